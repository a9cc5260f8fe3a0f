"""What controls reach: against Kalman's rank, hand-made losses, and where nothing is left."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from linear_mechanisms import cart_pole, state_of, system_of
from numpy.testing import assert_allclose
from scipy.optimize import linprog
from support.refusals import refused

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi.control.laws import LawOptions
from mbcasadi.control.regulators import (
    controllability,
    discretize,
    encoders,
    finite_horizon_lqr,
    linearize,
    lqr,
    lqr_gain,
    pole_placement,
    require_stabilisable,
)
from mbcasadi.control.regulators.loads import LoadLimits, loads
from mbcasadi.control.regulators.modes import mode_of
from mbcasadi.estimation import kalman
from mbcasadi.mpc import LinearOptions, linear_mpc, offset_free_mpc

UPRIGHT = [0.0, 0.2, 0.0]


def two_pendulums(lengths=(0.8, 0.8), damping=0.0, push=1.0):
    """Two poles on one cart; equal ones swing in step, and their difference is out of reach."""
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    kinetic, potential = 0.6 * v[0] ** 2, ca.SX(0)
    for i, length in enumerate(lengths, start=1):
        tip = ca.vertcat(q[0] + length * ca.sin(q[i]), -length * ca.cos(q[i]))
        kinetic += 0.15 * ca.sumsqr(ca.jtimes(tip, q, v))
        potential += 9.81 * 0.3 * tip[1]
    return mb.from_lagrangian(
        q,
        v,
        kinetic=kinetic,
        potential=potential,
        force=-damping * v,
        B=[[push], [0.0], [0.0]],
        name="two_poles",
    )


def kalman_rank(linear, tol):
    """Return the rank of `B, A B, …` with each power scaled to the norm of A."""
    A, B = linear.dfdx / np.linalg.norm(linear.dfdx, 2), linear.dfdu
    blocks = [B / np.linalg.norm(B, 2)]
    for _ in range(linear.nx - 1):
        blocks.append(A @ blocks[-1])
    return np.linalg.matrix_rank(np.hstack(blocks), tol)


@pytest.mark.parametrize("name", ["four_bar", "cart_pole", "planar_3rrr", "standing_quadruped"])
@pytest.mark.parametrize("period", [None, 1e-3])
@pytest.mark.every(3)
def test_what_has_enough_motors_is_controllable(name, period):
    system = system_of(name)
    point = mb.equilibrium(system, state_of(name, moving=False)[0])
    linear = linearize(system, point)
    report = controllability(linear if period is None else discretize(linear, period))
    assert report.controllable
    assert report.stabilisable
    assert report.margin > 1e-3
    assert "is controllable: all" in report.in_words


@pytest.mark.parametrize("hidden", [1, 2, 3])
def test_random_losses_are_found(hidden):
    """A random system with a part that no control reaches, in random coordinates."""
    rng = np.random.default_rng(hidden)
    linear = linearize(system_of("planar_3rrr"), system_of("planar_3rrr").tree.q0)
    n = linear.nx
    A, B = rng.standard_normal((n, n)), rng.standard_normal((n, 3))
    A[n - hidden :, : n - hidden] = 0
    B[n - hidden :] = 0
    T = np.linalg.qr(rng.standard_normal((n, n)))[0]
    transformed = replace(linear, dfdx=T @ A @ T.T, dfdu=T @ B)
    report = controllability(transformed)
    assert report.rank == n - hidden == kalman_rank(transformed, 1e-7)
    hidden_eigenvalues = np.linalg.eigvals(A[n - hidden :, n - hidden :])
    assert report.stabilisable == bool(np.all(hidden_eigenvalues.real < 0))
    for mode in report.unreached:
        assert np.abs(hidden_eigenvalues - mode.eigenvalue).min() < 1e-6
    W = report.directions
    assert_allclose(W.T @ W, np.eye(hidden), atol=1e-12)
    assert_allclose(W.T @ transformed.dfdu, 0, atol=1e-10)
    assert_allclose(W.T @ transformed.dfdx @ (np.eye(n) - W @ W.T), 0, atol=1e-10)


def test_poles_of_one_length_hide_a_swing():
    report = controllability(linearize(two_pendulums(), np.zeros(3)))
    assert not report.stabilisable
    assert (report.rank, report.nx) == (4, 6)
    (mode,) = report.unreached
    assert_allclose(mode.eigenvalue, 1j * np.sqrt(9.81 / 0.8), atol=1e-6)
    assert_allclose(np.abs(mode.shape), [0, 1, 1], atol=1e-6)
    assert set(mode.joints) == {"q_1", "q_2"}
    assert "swings at 0.557 Hz and does not decay" in report.in_words


def test_the_modes_shape_is_a_motion_that_no_control_moves():
    linear = linearize(two_pendulums(damping=0.01), np.zeros(3))
    (mode,) = controllability(linear).unreached
    assert mode.decays
    s, shape = mode.eigenvalue, mode.shape
    x = np.concatenate([linear.to_xi @ shape, linear.to_eta @ (s * shape)])
    assert_allclose(linear.dfdx @ x, s * x, atol=1e-8)
    assert mode_of(linear, s, 1e-3 * x).joints == mode.joints  # an eigenvector has no length


def test_poles_of_different_lengths_are_reached():
    linear = linearize(two_pendulums((0.8, 0.7)), np.zeros(3))
    report = controllability(linear)
    assert report.controllable
    assert kalman_rank(linear, 1e-9) == 6
    nearly = controllability(linearize(two_pendulums((0.8, 0.799)), np.zeros(3)))
    assert nearly.margin < 0.1 * report.margin


@pytest.mark.parametrize("period", [None, 1e-2])
def test_a_discrete_system_tells_the_same(period):
    linear = linearize(two_pendulums(damping=0.01), np.zeros(3))
    report = controllability(linear if period is None else discretize(linear, period))
    (mode,) = report.unreached
    assert report.stabilisable
    assert_allclose(mode.eigenvalue.imag, np.sqrt(9.81 / 0.8), rtol=1e-3)
    assert "is stabilisable: no control acts on 2 of its 6 states" in report.in_words


def test_units_do_not_matter():
    """A force in kN instead of N changes no verdict."""
    for push in (1e-3, 1.0, 1e3):
        assert controllability(linearize(two_pendulums(push=push), np.zeros(3))).rank == 4
        weak = two_pendulums((0.8, 0.7), push=push)
        assert controllability(linearize(weak, np.zeros(3))).rank == 6


def test_a_cart_pole_without_its_motor_is_refused_by_name():
    linear = linearize(cart_pole(), UPRIGHT)
    assert require_stabilisable(linear).controllable
    dead = replace(linear, dfdu=0 * linear.dfdu)
    assert not controllability(dead).controllable
    with pytest.raises(
        err.ProblemError,
        match=r"not stabilisable.*grows \(e-fold in .* s\).*q_2.*[Oo]nly the linear model",
    ):
        require_stabilisable(dead)


def test_a_motor_that_only_presses_on_the_rail_reaches_nothing():
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    system = mb.from_lagrangian(
        q,
        v,
        kinetic=0.7 * ca.sumsqr(v) + 0.3 * v[0] * v[2],
        B=[[-np.sin(0.3)], [np.cos(0.3)], [0.0]],
        phi=ca.vertcat(ca.sin(0.3) * q[0] - ca.cos(0.3) * q[1], 3 * q[2]),
    )
    M = np.array(system.mass_matrix(np.zeros(3)))
    assert np.abs(np.linalg.inv(M) @ np.array(system.actuation(np.zeros(3)))).max() > 0.1
    report = controllability(linearize(system, np.zeros(3)))
    assert (report.rank, report.nx) == (0, 2)


def test_a_free_body_drifts():
    report = controllability(linearize(system_of("spinning"), system_of("spinning").tree.q0))
    assert not report.stabilisable
    assert any("drifts" in mode.in_words for mode in report.unreached)


def welded():
    """Return the linear system of a mass that its row holds."""
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    system = mb.from_lagrangian(q, v, kinetic=v**2 / 2, B=[[1]], phi=q, name="welded")
    return linearize(system, [0.0], None, [0.0])


MAKERS = {
    "lqr": lambda linear: lqr(linear, np.ones(2), 1.0),
    "lqr_gain": lambda linear: lqr_gain(linear, np.ones(2), 1.0),
    "pole_placement": lambda linear: pole_placement(linear, []),
    "finite_horizon_lqr": lambda linear: finite_horizon_lqr(linear, np.ones(2), 1.0, 0.1),
    "kalman": lambda linear: kalman(linear, encoders(linear.system, ["q"]), np.ones(2), 1.0),
    "linear_mpc": lambda linear: linear_mpc(linear, LinearOptions(3, np.ones(2), 1.0)),
    "offset_free_mpc": lambda linear: offset_free_mpc(
        linear, LinearOptions(3, np.ones(2), 1.0), np.eye(2)[:1]
    ),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_a_mechanism_that_cannot_move_is_refused_in_words(maker):
    refused(err.ProblemError, r"'welded' cannot move.*no freedom", lambda: MAKERS[maker](welded()))


def idle_mass():
    """Return two masses on springs that push them away, a motor on the first alone."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    system = mb.from_lagrangian(
        q, v, kinetic=ca.sumsqr(v) / 2, potential=-ca.sumsqr(q), B=[[1], [0]], name="idle"
    )
    return linearize(system, [0.0, 0.0], None, [0.0])


def test_a_finite_horizon_needs_no_stabilisable_mode_where_its_end_is_weighted():
    linear = idle_mass()
    with pytest.raises(err.ProblemError, match=r"not stabilisable.*with Q_end no mode needs"):
        finite_horizon_lqr(linear, np.ones(4), 1.0, 0.1, options=LawOptions(period=0.01))
    law = finite_horizon_lqr(
        linear, np.ones(4), 1.0, 0.1, Q_end=np.ones(4), options=LawOptions(period=0.01)
    )
    u = law.function([0.1, 0.0], [0.0, 0.0], [], law.controller.z0)[0]
    assert float(u) < -0.01


def random_loads(rng):
    """Return a problem with a control of its own, and two that push against each other."""
    E = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, -1.0]])
    g = rng.uniform(-2, 2, 2)
    bounds = rng.uniform(0.3, 2.0, 3)
    G = np.vstack([np.eye(3), -np.eye(3)])
    return E, g, LoadLimits(G, np.tile(bounds, 2)), bounds


def test_forces_within_limits_exist_exactly_where_linear_programming_finds_them():
    """The first control is determined: no internal force helps it."""
    rng, seen = np.random.default_rng(0), set()
    for _ in range(300):
        E, g, limits, bounds = random_loads(rng)
        found = loads(E, g, limits, 3)
        second = linprog(np.zeros(3), A_eq=E, b_eq=g, bounds=np.column_stack([-bounds, bounds]))
        assert found.feasible == (second.status == 0)
        if found.feasible:
            assert_allclose(E @ found.y, g, atol=1e-9)
            assert np.all(np.abs(found.y) <= bounds * (1 + 1e-8))
        seen.add((found.feasible, bool(np.abs(g[0]) > bounds[0])))
    assert {(True, False), (False, True)} <= seen


def test_a_motor_that_is_too_weak_beside_a_redundant_pair_is_named():
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    system = mb.from_lagrangian(
        q, v, kinetic=ca.sumsqr(v) / 2, potential=3 * q[0] + q[1], B=[[1, 0, 0], [0, 1, 1]],
        ctrl_range=[[-1, 1], [-0.2, 0.2], [-5, 5]], name="weak",
    )  # fmt: skip
    with pytest.raises(err.ProblemError, match=r"no equilibrium was found.*u0"):
        mb.equilibrium(system, [0.0, 0.0])
