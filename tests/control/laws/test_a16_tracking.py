"""A16's model as a tracking law: the energy of the velocity error, and masks that switch."""

import casadi as ca
import numpy as np
import pytest
from manifold_states import manifold_states, outputs_of

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.control.laws import LawOptions, dependent_tracking
from mbcasadi.dynamics import virtual_mass_terms

STEP = 1e-5  # s, of central differences along a motion
ROUNDING = 1e-5  # of such differences, of powers of some 10 W
KP = 6.0


def wide(system):
    return np.tile([-1e6, 1e6], (system.nu, 1))


def projector(system, q, rows):
    A = rows[:, None] * system.constraint_jacobian(q).full()
    return np.eye(system.nv) - np.linalg.pinv(A, 1e-8) @ A


def closed(system, q, rows):
    for _ in range(6):
        A = rows[:, None] * system.constraint_jacobian(q).full()
        gap = rows * system.constraint(q).full().ravel()
        q = system.integrate(q, -np.linalg.pinv(A, 1e-8) @ gap).full().ravel()
    return q


def desired_velocity(system, q, reference, rows):
    """`s = P (v_d + K_p e)`, by NumPy."""
    q_d, v_d = reference
    e = system.difference(q, q_d).full().ravel()
    return projector(system, q, rows) @ (v_d + KP * e)


@pytest.mark.parametrize("mask", [(0, 1, 1), (1, 0, 0), (0, 0, 0), (0, 1, 0)])
def test_the_energy_of_the_velocity_error_falls_by_damping_alone(mask):
    """`d/dt ½ (v - s)ᵀ M (v - s) = -(v - s)ᵀ K_d (v - s)`, along the motion that u causes."""
    arms = mb.read_mjcf(models.path("two_arm_carry"), switchable=True)
    every = mb.from_equations(  # every coordinate has an actuator, so nothing is out of reach
        *(x := [ca.SX.sym("q", 9), ca.SX.sym("v", 9)]),
        M=arms.mass_matrix(x[0]),
        h=arms.bias_force(*x),
        force=arms.passive_force(*x),
        B=np.eye(9),
        phi=arms.constraint(x[0]),
    ).with_mask()
    rows = np.repeat(mask, 6).astype(float)
    K_d = np.diag(np.linspace(1.0, 9.0, 9))
    K_d[0, 3] = K_d[3, 0] = 0.7
    law = dependent_tracking(
        every, kp=KP, kd=K_d, metric=np.eye(9), options=LawOptions(ctrl_limits=wide(every))
    )  # P as in the paper
    rng, fd = np.random.default_rng(4), mb.forward_dynamics(every, derivatives=False)
    q_all, v_all = manifold_states(arms, 3, 5, rows=rows)
    for q, v in zip(q_all.T, v_all.T, strict=True):
        start, rate, second = q + 0.1 * rng.normal(size=9), rng.normal(size=9), rng.normal(size=9)

        def reference(t, start=start, rate=rate, second=second):
            return start + t * rate + t * t / 2 * second, rate + t * second

        u, _, status, *_ = law.function(q, v, [*start, *rate, *second], rows, [])
        assert status == 0
        a = fd(q, v, u, rows)[0].full().ravel()

        def energy(t, q=q, v=v, a=a, reference=reference):
            there = closed(arms, q + t * v + t * t / 2 * a, rows)
            error = v + t * a - desired_velocity(arms, there, reference(t), rows)
            return error @ arms.mass_matrix(there).full() @ error / 2

        error = v - desired_velocity(arms, q, reference(0.0), rows)
        power = (energy(STEP) - energy(-STEP)) / (2 * STEP)
        loss = -error @ projector(arms, q, rows) @ K_d @ error
        assert loss < -1e-3
        assert power == pytest.approx(loss, abs=ROUNDING * (1 + abs(loss)))


def test_the_force_is_that_of_the_papers_matrices_with_any_virtual_mass():
    """`M̄ ds/dt + C̄ s + P (g - f_passive) - P K_d (v - s)`, ds/dt by differences."""
    system = mb.read_mjcf(models.path("five_bar"))
    law = dependent_tracking(system, kp=KP, kd=3.0, options=LawOptions(ctrl_limits=wide(system)))
    rows, rng = np.ones(system.nc), np.random.default_rng(2)
    q_all, v_all = manifold_states(system, 4, 3)
    for q, v in zip(q_all.T, v_all.T, strict=True):
        q_d, v_d, a_d = q + 0.1 * rng.normal(size=4), rng.normal(size=4), rng.normal(size=4)

        def s_at(t, q=q, v=v, q_d=q_d, v_d=v_d, a_d=a_d):
            there = closed(system, q + t * v, rows)
            moving = q_d + t * v_d + t * t / 2 * a_d, v_d + t * a_d
            return desired_velocity(system, there, moving, rows)

        s, s_dot = s_at(0.0), (s_at(STEP) - s_at(-STEP)) / (2 * STEP)
        P, B = projector(system, q, rows), system.actuation(q).full()
        still = system.gravity_force(q).full() - system.passive_force(q, v).full()
        u = law.function(q, v, [*q_d, *v_d, *a_d], [])[0].full().ravel()
        for mass in (0.02, 5.0):
            terms = virtual_mass_terms(system, virtual_mass=mass)(q=q, v=v)
            force = terms["M_bar"].full() @ s_dot + terms["C_bar"].full() @ s
            force += P @ (still.ravel() - 3.0 * (v - s))
            expected = np.linalg.pinv(P @ B, 1e-8) @ force
            np.testing.assert_allclose(u, expected, atol=ROUNDING * (1 + np.abs(u).max()))


def test_a_swinging_reference_is_tracked_and_the_mask_switches_the_same_law():
    system = mb.read_mjcf(models.path("five_bar"), switchable=True)
    law = dependent_tracking(system, kp=KP, kd=2.0, options=LawOptions(ctrl_limits=wide(system)))
    rows = np.ones(system.nc)
    middle = closed(system, np.array(system.tree.q0), rows)
    swing = projector(system, middle, rows) @ np.array([1.0, 0, 0, -1.0])

    def reference(t):
        """The pose on the manifold nearest to a swing, with rates by differences."""
        times = (t - 1e-3, t, t + 1e-3)
        poses = [closed(system, middle + 0.3 * np.sin(2 * s) * swing, rows) for s in times]
        rate = (poses[2] - poses[0]) / 2e-3
        return np.concatenate([poses[1], rate, (poses[2] - 2 * poses[1] + poses[0]) / 1e-6])

    q0 = closed(system, middle + 0.2 * np.array([1, 0.5, 0, 0]), rows)

    def force(t, q, v):
        u, _, status, *_ = law.function(q, v, reference(t), [1.0], [])
        assert status == 0
        return system.actuation(q).full() @ u.full().ravel()

    run = mb.simulate(system, q0, np.zeros(4), 3.0, force=force, rtol=1e-6, atol=1e-8)
    gap = [np.abs(q - reference(t)[:4]).max() for t, q in zip(run.t, run.q, strict=True)]
    assert gap[0] > 0.1
    assert gap[-1] < 1e-4
    at = {"q": run.q[:1].T, "v": run.v[:1].T, "ref": reference(0.0)[:, None], "z": np.zeros((0, 1))}
    assert outputs_of(law.function, at | {"mask": np.zeros((1, 1))})["status"] == 2  # loop open


def test_rows_and_gains_that_do_not_fit_are_refused():
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    moving = mb.from_equations(q, v, M=np.eye(2), h=np.zeros(2), B=np.eye(2), psi=v[0] - 1)
    with pytest.raises(err.UnsupportedFeatureError, match="rows that are not"):
        dependent_tracking(moving, kd=1.0)
    system = mb.read_mjcf(models.path("five_bar"))
    with pytest.raises(err.ProblemError, match="kd = 0"):
        dependent_tracking(system, kd=0.0)
