"""Bounds on constraint forces: slopes against differences, and feet that stay in their cones."""

from functools import lru_cache

import casadi as ca
import numpy as np
import pytest
import quadprog
import scipy

import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.codegen import export_c
from mbcasadi.control.regulators import equilibrium, linearize
from mbcasadi.control.regulators.tangent import null_basis
from mbcasadi.dynamics import forward_dynamics
from mbcasadi.mpc import LinearOptions, force_output, friction_output, linear_mpc
from mbcasadi.mpc.linear.force_outputs import force_slopes
from mbcasadi.system import read_mjcf

STEP = 1e-6  # of differences
FRICTION, LEAST = 0.4, 60.0  # -, N
PUSHED = 0.2  # m/s of the hip
FEET = ("left_foot", "right_foot")
PERIOD = 0.01
WEAK = np.tile([-60.0, 60.0], (4, 1))  # N m


def at_rest(name):
    system = read_mjcf(models.path(name))
    held = equilibrium(system)
    return system, linearize(system, held)


@pytest.fixture(scope="module")
def biped():
    return at_rest("planar_biped")


@lru_cache
def motion_of(system):
    """Return (q, v, u) → (a, lam) of the whole mechanism."""
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    u = ca.SX.sym("u", system.nu)
    f = system.actuation(q) @ u + system.actuator_bias(q, v)
    a, _, lam = forward_dynamics(system, derivatives=False)(q, v, f)
    return ca.Function("motion", [q, v, u], [a, lam])


def reaction(system, q, v, u):
    return motion_of(system)(q, v, u)[1].full().ravel()


@pytest.mark.parametrize("name", ["planar_biped", "four_bar", "cart_pole"])
def test_slopes_of_forces_are_differences_along_the_manifold(name):
    """Redundant rows in all three: six of rank 4, three of rank 2, six of rank 3."""
    system, linear = at_rest(name)
    slopes, rng = force_slopes(linear), np.random.default_rng(0)
    np.testing.assert_allclose(
        slopes.lam, reaction(system, linear.q, linear.v, linear.u), atol=1e-8
    )
    for _ in range(5):
        x, du = rng.standard_normal(linear.nx), rng.standard_normal(linear.nu)
        dq, dv = linear.to_dq @ x, linear.to_dv @ x

        def along(step, dq=dq, dv=dv, du=du):
            q = np.array(system.integrate(linear.q, step * dq)).ravel()
            return reaction(system, q, linear.v + step * dv, linear.u + step * du)

        expected = (along(STEP) - along(-STEP)) / (2 * STEP)
        actual = slopes.of_state @ np.concatenate([dq, dv]) + slopes.of_u @ du
        scale = np.abs(expected).max()
        assert scale > 1e-2
        np.testing.assert_allclose(actual, expected, atol=2e-6 * scale)


def push(linear):
    """Return the velocity on the manifold whose hip moves at `PUSHED`, nearest to that alone."""
    free = linear.to_dv[:, linear.n_q :]
    along = free @ free[0]
    return along * PUSHED / along[0]


def run(system, linear, mpc, ticks=60, substeps=5):
    """Return the feet's forces at each tick (ticks, 2, 3) in our own dynamics, and statuses."""
    dynamics, q, v = motion_of(system), np.array(linear.q), push(linear)
    ref = mpc.reference(setpoint_q=linear.q, setpoint_u=linear.u)
    z, forces, statuses = mpc.controller.z0, [], []
    for _ in range(ticks):
        u, z, status, *_ = mpc.function(q, v, ref, z)
        statuses.append(float(status))
        forces.append(reaction(system, q, v, u).reshape(2, 3))
        for _ in range(substeps):
            a = dynamics(q, v, u)[0].full().ravel()
            v = v + PERIOD / substeps * a
            q = np.array(system.integrate(q, PERIOD / substeps * v)).ravel()
    return np.array(forces), statuses, np.abs(q - linear.q).max()


def controller_of(linear, outputs, **options):
    weights = np.repeat([10.0, 0.1], linear.system.nv), 1e-4
    return linear_mpc(
        linear, LinearOptions(15, *weights, period=PERIOD, outputs=outputs, **options)
    )


def cones(linear, **options):
    given = {"min_force": LEAST} | options
    return [friction_output(linear, foot, foot, FRICTION, **given) for foot in FEET]


def slipping(forces):
    """Return the largest |f_t| / f_n, infinite where a foot is pulled."""
    normal, tangent = forces[..., 2], np.abs(forces[..., 0])
    return np.inf if normal.min() <= 0 else (tangent / normal).max()


def test_without_the_cones_a_push_tears_a_foot_off_and_with_them_no_foot_slips(biped):
    system, linear = biped
    free, statuses, _ = run(system, linear, controller_of(linear, []))
    assert statuses == [0.0] * len(statuses)
    assert free[..., 2].min() < 0  # a pin that pulls is no foot
    held, statuses, left = run(system, linear, controller_of(linear, cones(linear)))
    assert statuses == [0.0] * len(statuses)
    assert slipping(held) < FRICTION + 0.05  # forces are linear in the problem only
    assert held[..., 2].min() > LEAST - 5
    assert left < 0.02


def test_the_plan_keeps_each_force_of_the_linear_model_inside_its_cone(biped):
    _, linear = biped
    mpc, slopes = controller_of(linear, cones(linear)), force_slopes(linear)
    ref = mpc.reference(setpoint_q=linear.q, setpoint_u=linear.u)
    given = (linear.q, push(linear), ref, mpc.controller.z0)
    x, u = (np.array(part) for part in mpc.controller.prediction(*given))
    nv = linear.system.nv
    deviation = np.vstack([x[:nv] - linear.q[:, None], x[nv:]])[:, :-1]
    lam = slopes.lam[:, None] + slopes.of_state @ deviation
    lam = lam + slopes.of_u @ (u - linear.u[:, None])
    normal, tangent = lam[[2, 5]], np.abs(lam[[0, 3]])
    assert np.all(normal > LEAST - 1e-4)
    assert np.all(tangent < FRICTION * normal + 1e-4)
    assert normal.min() < LEAST + 1e-4  # the bound is at work


def test_solutions_with_force_rows_are_those_of_an_independent_solver(biped):
    """Hard rows; after large pushes no control keeps the feet down, and that is found."""
    _, linear = biped
    mpc = controller_of(linear, cones(linear), u_bounds=WEAK)
    rng, count = np.random.default_rng(3), 1000
    ref = mpc.reference(setpoint_q=linear.q, setpoint_u=linear.u)
    solve = mpc.function.map(count)
    E = null_basis(np.array(linear.system.constraint_jacobian(linear.q)), 1e-7)
    to_x = scipy.linalg.block_diag(linear.to_xi @ E, linear.to_eta @ E)  # of rad and m
    states = [linear.state(0.6 * to_x @ rng.standard_normal(linear.nx)) for _ in range(count)]
    q, v = (np.array(part).T for part in zip(*states, strict=True))
    columns = [np.tile(part[:, None], (1, count)) for part in (ref, mpc.controller.z0)]
    u, _, status, *_ = (np.array(out) for out in solve(q, v, *columns))
    seen = {"solved": 0, "infeasible": 0, "at a bound": 0}
    for k in range(count):
        x = linear.coordinates(q[:, k], v[:, k])
        y, bound = by_quadprog(mpc.condensed, np.concatenate([x, np.zeros(linear.nx + linear.nu)]))
        if y is None:
            assert status[0, k] == 2
            seen["infeasible"] += 1
            continue
        assert status[0, k] == 0
        seen["solved"] += 1
        seen["at a bound"] += bound
        expected = y[: linear.nu] + linear.u
        np.testing.assert_allclose(u[:, k], expected, atol=1e-7 * np.abs(expected).max())
    assert min(seen.values()) > 20, seen


def by_quadprog(c, theta):
    offset = c.D @ theta + c.c_0
    low, high = c.lower - offset, c.upper - offset
    rows = [c.C[np.isfinite(low)], -c.C[np.isfinite(high)]]
    ends = np.concatenate([low[np.isfinite(low)], -high[np.isfinite(high)]])
    try:
        solution = quadprog.solve_qp(c.H, -(c.G @ theta + c.g_0), np.vstack(rows).T, ends)
    except ValueError:
        return None, False
    return solution[0], bool(np.any(solution[4] > 0))


def test_a_pin_that_may_not_be_pulled_too_hard(tmp_path):
    """A generic row of lam: the four-bar's pin, in Python and as C."""
    system, linear = at_rest("four_bar")
    base = force_slopes(linear).lam
    tight = force_output(
        linear, "pin", np.eye(3)[:1], base[0] - 0.02, base[0] + 0.02, linear_penalty=10.0
    )
    mpc = linear_mpc(linear, LinearOptions(10, np.repeat([10.0, 0.01], 3), 1e-3, outputs=[tight]))
    program = export_c(mpc, tmp_path / "c").load()
    ref = mpc.reference(setpoint_q=linear.q, setpoint_u=linear.u)
    free = linear_mpc(linear, LinearOptions(10, np.repeat([10.0, 0.01], 3), 1e-3))
    bound = 0
    for x in 0.02 * np.random.default_rng(0).standard_normal((40, linear.nx)):
        q, v = linear.state(x)
        u, _, status, *_ = (
            part.full().ravel() for part in mpc.function(q, v, ref, mpc.controller.z0)
        )
        assert status == 0
        np.testing.assert_allclose(
            program(q, v, ref, mpc.controller.z0)[0].full().ravel(), u, atol=1e-7
        )
        other = free.function(q, v, ref, free.controller.z0)[0].full().ravel()
        slopes = force_slopes(linear)
        deviation = np.concatenate([linear.to_dq @ x, linear.to_dv @ x])
        forces = [
            (slopes.lam + slopes.of_state @ deviation + slopes.of_u @ (a - linear.u))[0]
            for a in (u, other)
        ]
        if abs(forces[1] - base[0]) > 0.03:
            bound += 1
            assert abs(forces[0] - base[0]) < abs(forces[1] - base[0])
    assert bound > 5
    assert system.nc == 3


def friction(linear, foot=FEET[0], value=0.5, **options):
    return friction_output(linear, "feet", foot, value, **options)


def rows(linear, pick, *ends):
    return controller_of(linear, [force_output(linear, "feet", pick, *ends)])


WRONG = {
    "no such pin": (lambda x: friction(x, "foot"), err.UnknownNameError, "unknown constraint"),
    "friction": (lambda x: friction(x, value=-0.5), err.ProblemError, "expected a positive number"),
    "normal": (lambda x: friction(x, normal=(0, 0, 0)), err.ProblemError, "numbers, not zero"),
    "rows": (lambda x: rows(x, np.eye(5)), err.ShapeError, r"expected \(k, 6\)"),
    "unloaded": (lambda x: rows(x, np.eye(6)[1]), err.ProblemError, "no control changes"),
    "empty": (lambda x: rows(x, np.eye(6)[0], 2.0, 1.0), err.ProblemError, "empty"),
}


@pytest.mark.parametrize("case", WRONG)
def test_forces_that_make_no_sense_are_refused(case, biped):
    make, error, words = WRONG[case]
    with pytest.raises(error, match=words):
        make(biped[1])
