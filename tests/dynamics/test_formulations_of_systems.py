"""Stabilisation, non-ideal forces, masks and derivatives in every formulation of a `System`."""

import functools

import numpy as np
import pytest
from support.admissible_states import admissible_states, call, column, drifted_states, pinv, times
from support.constrained_mechanisms import FEET, mechanism, read, standing
from support.formulation_variants import labelled, variants
from support.motion_references import (
    acceleration_scale,
    force_scale,
    lengths,
    reference_motion,
    solve,
    worst,
)

import mbcasadi as mb
from mbcasadi.dynamics import Treatment
from mbcasadi.dynamics.terms import terms_fun

TOL = 1e-10  # relative; conditions are below 1e4
STATES = 100
POINTS = 3  # at which derivatives are looked at


@pytest.mark.parametrize(
    "name", ["driven_truss", "knife_edge", "elastic_slider_crank", "ball_loop"]
)
def test_baumgarte_makes_drift_decay_at_the_given_rates(name):
    """`A a + c + 2 α psi + β² phi = 0` on independent rows off the manifold."""
    it = mechanism(name)
    system = it.system
    states = drifted_states(it, STATES)
    at = reference_motion(it, states)
    psi = column(call(system.loop_rate, states), "psi")
    phi = column(call(system.constraint, states), "phi")
    alpha, beta = np.linspace(2, 5, system.nc), np.linspace(9, 4, system.nc)
    rates = mb.Baumgarte(tuple(alpha), tuple(beta))
    drift = 2 * alpha * psi + beta**2 * phi
    expected = solve(at.M, at.h, at.f, at.A, at.c + drift)
    size = acceleration_scale(expected)
    assert np.min(lengths(expected.a - at.a) / size) > 1e-6  # the drift was there
    for label in variants(it):
        formulation, options = labelled()[label]
        fd = mb.forward_dynamics(
            system, formulation, derivatives=False, treatment=Treatment(baumgarte=rates), **options
        )
        a = column(call(fd, states), "a")
        assert worst(a - expected.a, size) < TOL, label
        if system.nc == it.rank:
            left = times(at.A, a) + at.c + drift
            assert np.max(np.abs(left) / size[:, None]) < TOL, label


@pytest.mark.parametrize("name", ["bennett", "moving_pendulum", "rolling_disc"])
def test_a_non_ideal_force_acts_as_udwadia_and_kalaba_say(name):
    """`f_n = M^½ (I - B⁺ B) M^-½ C`, `B = A M^-½`  [L15, eq. 12-15], in every formulation."""
    it = mechanism(name)
    states = admissible_states(it, STATES)
    rng = np.random.default_rng(71)
    prescribed = rng.standard_normal((it.system.nv, STATES))
    ideal = reference_motion(it, states)
    values, vectors = np.linalg.eigh(ideal.M)
    root = np.einsum("kij,kj,klj->kil", vectors, np.sqrt(values), vectors)
    root_inv = np.linalg.inv(root)
    B = ideal.A @ root_inv
    along = np.eye(it.system.nv) - pinv(B) @ B
    f_n = times(root @ along @ root_inv, prescribed.T)
    a = ideal.a + np.linalg.solve(ideal.M, f_n[:, :, None])[:, :, 0]
    assert np.min(lengths(f_n)) > 1e-3
    for label in labelled():
        formulation, options = labelled()[label]
        fd = mb.forward_dynamics(
            it.system, formulation, nonideal=True, **options, derivatives=False
        )
        assert fd.name_in()[:4] == ["q", "v", "f", "f_nonideal"]
        found = call(fd, states | {"f_nonideal": prescribed})
        assert worst(column(found, "a") - a, acceleration_scale(ideal)) < TOL, label
        off = column(found, "f_c") - ideal.f_c - f_n
        assert worst(off, force_scale(ideal)) < TOL, label
        again = times(ideal.M, column(found, "a")) + ideal.h - ideal.f - column(found, "f_c")
        assert worst(again, force_scale(ideal)) < TOL, label


@functools.cache
def switched_quadruped():
    return read(standing("quadruped", FEET))[0].with_mask()


MODES = ((), ("FL",), ("FL", "RR"), ("FR", "RL"), ("FL", "FR", "RL"))


@functools.cache
def alone(mode):
    """Return the motion of the robot that is held at these feet only, without a mask."""
    states = admissible_states(mechanism("standing_quadruped"), STATES)
    system = read(standing("quadruped", {f"{leg}_foot": (leg,) for leg in mode}))[0]
    at = call(terms_fun(system), states)
    return solve(at["M"], column(at, "h"), states["f"].T, at["A"], column(at, "c"))


@pytest.mark.parametrize("label", labelled())
@pytest.mark.every(3)
def test_one_function_serves_every_mode_as_a_system_of_its_rows_alone(label):
    formulation, options = labelled()[label]
    switched = mb.forward_dynamics(switched_quadruped(), formulation, **options, derivatives=False)
    states = admissible_states(mechanism("standing_quadruped"), STATES)
    for mode in MODES:
        expected = alone(mode)
        mask = np.repeat([float(foot[:2] in mode) for foot in FEET], 3)
        found = call(switched, states | {"mask": np.tile(mask[:, None], STATES)})
        error = worst(column(found, "a") - expected.a, acceleration_scale(expected))
        assert error < TOL, f"{mode}: {error}"
        error = worst(column(found, "f_c") - expected.f_c, force_scale(expected))
        assert error < TOL, f"{mode}: {error}"
        lam = column(found, "lam")
        assert not np.any(lam[:, mask == 0])
        assert worst(lam[:, mask == 1] - expected.lam, force_scale(expected)) < TOL


WITH_DERIVATIVES = (
    "four_bar",
    "chained_particles",
    "moving_pendulum",
    "knife_edge",
    "climbing_particle",
    "rolling_disc",
    "elastic_slider_crank",
    "euler_parameters",
    "switched_particles",
)
STEP = 1e-3  # rad, m, N, s: the error of the differences is STEP⁴ times a fifth derivative
DIFFERENCE_TOL = 1e-7  # relative to the largest entry; rounding leaves 1e-12 / STEP and less


@pytest.mark.parametrize("rates", [None, mb.Baumgarte(3.0, 7.0)], ids=["plain", "stabilised"])
@pytest.mark.parametrize("name", WITH_DERIVATIVES)
@pytest.mark.every(3)
def test_implicit_jacobians_are_those_of_differences(name, rates):
    """On drifted states, so that rows contradict each other where they depend on t or v."""
    it = mechanism(name)
    states = drifted_states(it, POINTS)
    labels = variants(it) if rates is None else variants(it)[::5]
    for label in labels:
        formulation, options = labelled()[label]
        fd = mb.forward_dynamics(
            it.system, formulation, treatment=Treatment(baumgarte=rates), **options
        )
        for k in range(POINTS):
            at = {key: values[:, k] for key, values in states.items()}
            J = fd.jacobian()(**at)
            for x in at:
                if x == "mask":
                    continue
                expected = differences(fd, at, x)
                for key, expected_value in expected.items():
                    found = J[f"jac_{key}_{x}"].full()
                    size = max(1.0, np.abs(expected_value).max())
                    error = np.abs(found - expected_value).max() / size
                    assert error < DIFFERENCE_TOL, f"{label}: d{key}/d{x} is off by {error:.1e}"


def test_implicit_jacobians_hold_in_a_metric_and_with_a_non_ideal_force():
    it = mechanism("moving_pendulum")
    states = drifted_states(it, 1)
    states["f_nonideal"] = np.linspace(-1, 1, it.system.nv)[:, None]
    metric = np.diag([1.0, 4.0, 9.0, 2.0])
    for label in variants(it)[::3]:
        formulation, options = labelled()[label]
        fd = mb.forward_dynamics(
            it.system, formulation, metric=metric, nonideal=True, **options, derivatives=False
        )
        at = {key: values[:, 0] for key, values in states.items()}
        J = fd.jacobian()(**at)
        for x in at:
            for key, expected_value in differences(fd, at, x).items():
                size = max(1.0, np.abs(expected_value).max())
                error = np.abs(J[f"jac_{key}_{x}"].full() - expected_value).max() / size
                assert error < DIFFERENCE_TOL, f"{label}: d{key}/d{x} is off by {error:.1e}"


def differences(fd, at, x):
    """Return the derivatives of all outputs along `x` by central differences of fourth order."""
    n = at[x].size
    weights = {-2: 1, -1: -8, 1: 8, 2: -1}
    columns = {key: np.tile(value[:, None], 4 * n) for key, value in at.items()}
    for i, k in enumerate(weights):
        columns[x][:, i * n : (i + 1) * n] += STEP * k * np.eye(n)
    out = {}
    for key, values in call(fd, columns).items():
        parts = values[:, :, 0].reshape(4, n, -1)
        out[key] = np.einsum("w,wnr->rn", list(weights.values()), parts) / (12 * STEP)
    return out
