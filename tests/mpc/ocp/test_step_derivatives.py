"""Slopes of a step on the manifold against differences of the same step written with NumPy."""

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.codegen.count import operations
from mbcasadi.mpc.integrators.step import free_step_fun
from mbcasadi.simulation.active_rows import holonomic_rows
from mbcasadi.system import evaluate

PINNED = """<mujoco><worldbody><site name="hook" pos=".1 0 .9"/>
<body pos="0 0 1"><joint type="ball" damping=".1"/><geom type="box" size=".1 .2 .3" mass="2"/>
<body pos=".3 0 0" euler="0 50 0"><joint name="hinge" axis="0 1 0"/><geom type="box" pos=".2 0 0"
size=".2 .05 .02" mass="1"/><body name="tip" pos=".4 0 0"><joint type="ball"/><geom type="box"
size=".05 .1 .02" mass=".3"/></body></body></body></worldbody>
<equality><connect body1="tip" body2="world" anchor="0 0 0"/></equality></mujoco>"""
TUMBLING = """<mujoco><worldbody><body><joint type="free"/>
<geom type="box" size=".1 .2 .3" mass="2"/><body pos=".3 0 0"><joint type="ball" damping=".1"/>
<geom type="box" pos=".2 0 0" size=".2 .05 .02" mass="1"/></body></body></worldbody></mujoco>"""
H = 1e-4
STENCIL = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
TOL = 1e-9  # H⁴ times fifth derivatives, and rounding over H
RANK_TOL = 1e-9


def pinv(A):
    return np.linalg.pinv(A, RANK_TOL)


def plain_step(system, h, known, newton=2):
    """Return (q, v) after a classical Runge-Kutta step, written out with NumPy."""

    def at(function, **given):
        return evaluate(function, dict(known) | given).full()

    def rate(q, v, t):
        now = {"q": q, "v": v, "t": t}
        on = np.ravel(known.get("mask", np.ones(system.nc)))
        M, h_f = at(system.mass_matrix, **now), at(system.bias_force, **now)
        f = at(system.passive_force, **now) - h_f
        if system.nu:
            f = f + at(system.actuation, **now) @ np.reshape(known["u"], (-1, 1))
            f = f + at(system.actuator_bias, **now)
        A = on[:, None] * at(system.loop_jacobian, **now)
        c = on[:, None] * at(system.loop_bias, **now)
        P = np.eye(system.nv) - pinv(A) @ A
        M_c = M + P @ M - (P @ M).T
        a = np.linalg.solve(M_c, P @ f - M @ pinv(A) @ c)
        return a.ravel()

    def plus(q, dv):
        return system.integrate(q, dv).full().ravel()

    def chart(base, q, v):
        q_dot = system.velocity_map(q).full() @ v
        at = [system.difference(base, q + k * H * q_dot).full().ravel() for k in STENCIL]
        return np.tensordot(list(STENCIL.values()), at, 1) / H

    q0, t = np.ravel(known["q"]), float(np.ravel(known.get("t", 0.0))[0])
    v0 = velocity_after_impact(system, known)
    ws, accelerations = [], []
    for share in (0.0, 0.5, 0.5, 1.0):
        q = plus(q0, share * h * ws[-1]) if ws else q0
        v = v0 + share * h * accelerations[-1] if ws else v0
        ws.append(chart(q0, q, v) if ws else v)  # at the start the rate is v
        accelerations.append(rate(q, v, t + share * h))
    b = np.array([1, 2, 2, 1]) / 6
    q, v = plus(q0, h * b @ np.array(ws)), v0 + h * b @ np.array(accelerations)
    mask = np.ravel(known.get("mask", np.ones(system.nc)))[:, None]
    on = mask * holonomic_rows(system).full()
    for _ in range(newton if system.nc else 0):
        A = on * at(system.loop_jacobian, q=q, v=0 * v, t=t + h)
        q = plus(q, -pinv(A) @ (on * at(system.constraint, q=q, t=t + h)).ravel())
    if system.nc:
        A = mask * at(system.loop_jacobian, q=q, v=v, t=t + h)
        v = v - pinv(A) @ (mask * at(system.loop_rate, q=q, v=v, t=t + h)).ravel()
    return np.concatenate([q, v])


def velocity_after_impact(system, known):
    v = np.ravel(known["v"])
    if "mask" not in known:
        return v
    M = system.mass_matrix(known["q"]).full()
    A = np.ravel(known["mask"])[:, None] * evaluate(system.loop_jacobian, known).full()
    inner = np.linalg.inv(M)
    return v - inner @ A.T @ pinv(A @ inner @ A.T) @ A @ v


def slopes(step, known):
    """Return (nq + nv, ·) by all inputs but the mask, from CasADi's own Jacobian of the step."""
    J = step.jacobian()(**known)
    along = [key for key in step.name_in() if key != "mask"]
    rows = [ca.horzcat(*(J[f"jac_{out}_{x}"] for x in along)) for out in step.name_out()]
    return ca.vertcat(*rows).full()


def differences(function, known, along):
    columns = []
    for key in along:
        value = np.atleast_1d(np.asarray(known[key], dtype=float))
        for j in range(value.size):
            e = H * np.eye(value.size)[j]
            at = [function(dict(known) | {key: value + k * e}) for k in STENCIL]
            columns.append(np.tensordot(list(STENCIL.values()), at, 1) / H)
    return np.array(columns).T


def mechanism(name):
    return mb.read_mjcf(models.path(name))


def state_off_manifold(system, size, seed=0):
    """Return a random state near the initial pose, off the manifold by about `size`."""
    rng = np.random.default_rng(seed)
    q = system.integrate(system.tree.q0, size * rng.standard_normal(system.nv)).full().ravel()
    return {"q": q, "v": rng.standard_normal(system.nv), "u": rng.standard_normal(system.nu)}


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("pendulum_on_four_bar", 0.1),  # three rows of rank two, off the manifold
        ("slider_crank", 0.1),
        ("planar_biped", 0.02),
        ("pinned", 0.02),  # quaternions in a loop
        ("tumbling", 0.02),  # a free joint, no loop
    ],
)
@pytest.mark.every(3)
def test_slopes_are_differences_of_the_step_off_the_manifold_too(name, size):
    text = {"pinned": PINNED, "tumbling": TUMBLING}.get(name)
    system = mb.read_mjcf(text) if text else mechanism(name)
    known = state_off_manifold(system, size)
    assert not system.nc or np.abs(system.constraint(known["q"]).full()).max() > 1e-3
    step = mpc.step_fun(system, 0.02)
    out = step(**known)
    plain = plain_step(system, 0.02, known)
    value = np.concatenate([out[key].full().ravel() for key in ("q_next", "v_next")])
    np.testing.assert_allclose(value, plain, atol=1e-10)
    expected = differences(lambda at: plain_step(system, 0.02, at), known, ("q", "v", "u"))
    actual = slopes(step, known)
    np.testing.assert_allclose(actual, expected, atol=TOL * max(1, np.abs(expected).max()))


def test_what_a_gap_adds_to_the_slopes_is_not_dropped():
    system = mechanism("pendulum_on_four_bar")
    known = state_off_manifold(system, 0.1)
    step = mpc.step_fun(system, 1e-6, mpc.StepOptions(order=1))  # hardly more than the way back
    A = evaluate(system.loop_jacobian, {"q": step(**known)["q_next"]}).full()
    of_first_order = np.eye(4) - pinv(A) @ A
    actual = slopes(step, known)[:4, :4]
    assert np.abs(actual - of_first_order).max() > 1e-3
    expected = differences(lambda at: step(**at)["q_next"].full().ravel(), known, ("q",))
    np.testing.assert_allclose(actual, expected, atol=TOL)


@pytest.mark.parametrize("before", [0.1, 0.02])
@pytest.mark.every(2)
def test_slopes_hold_in_a_step_to_and_in_one_through_a_singular_pose(before):
    system = mechanism("slider_crank")
    crank, h = np.pi / 2 - before, 0.06
    q = np.array([crank, 2 * np.cos(crank), crank])
    v = np.array([1, -2 * np.sin(crank), 1])  # 1 rad/s, the step turns the crank by 0.06 rad
    A = system.constraint_jacobian(q).full()
    assert np.abs(system.constraint(q).full()).max() < 1e-15
    assert np.linalg.svd(A)[1][1] < 0.15  # of rank two, and of rank one in the pose
    known = {"q": q, "v": v, "u": np.full(system.nu, 0.3)}
    out = mpc.step_fun(system, h)(**known)
    assert float(out["q_next"][0] - crank) == pytest.approx(h, abs=0.005)
    expected = differences(lambda at: plain_step(system, h, at), known, ("q", "v", "u"))
    actual = slopes(mpc.step_fun(system, h), known)
    np.testing.assert_allclose(actual, expected, atol=1e-7 * np.abs(expected).max())


def contradicting():
    """Return two rows that demand different velocities of one motion, and clocks."""
    q, v, t = ca.SX.sym("q", 3), ca.SX.sym("v", 3), ca.SX.sym("t")
    row = ca.horzcat(1 + q[1] ** 2, ca.sin(q[0]), q[2])
    A = ca.vertcat(row, (2 + ca.cos(q[1])) * row)
    M = ca.diag(ca.vertcat(1 + q[0] ** 2, 2, 3 + ca.sin(q[1]))) + 0.2
    h = ca.vertcat(v[1] * v[2], ca.sin(q[0]) * v[0] ** 2, q[2])
    a0 = ca.vertcat(ca.sin(3 * t), t**2)
    return mb.from_equations(q, v, M=M, h=h, A=A, a0=a0, t=t)


def test_slopes_hold_where_rows_contradict_each_other_and_move_with_time():
    system, rng = contradicting(), np.random.default_rng(1)
    known = {"q": rng.standard_normal(3), "v": rng.standard_normal(3), "u": [], "t": 0.4}
    expected = differences(lambda at: plain_step(system, 0.05, at), known, ("q", "v", "t"))
    actual = slopes(mpc.step_fun(system, 0.05), known)
    np.testing.assert_allclose(actual, expected, atol=TOL * np.abs(expected).max())
    assert np.abs(expected[:, -1]).max() > 0.1  # the clock matters


@pytest.mark.parametrize("substeps", [1, 3])
def test_the_length_of_a_step_and_its_clock_have_slopes_too(substeps):
    q, v, t = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t")
    kinetic = ca.sumsqr(v) / 2 + 0.2 * v[0] * v[1] * ca.cos(q[0])
    phi = ca.sumsqr(q) - 1 - ca.sin(t) ** 2
    system = mb.from_lagrangian(q, v, kinetic=kinetic, B=[[0], [1]], phi=phi, t=t)
    known = {"q": [0.7, 0.8], "v": [1.0, -0.4], "u": [0.6], "t": 0.2, "h": 0.1}
    step = free_step_fun(system, mpc.StepOptions(substeps=substeps))

    def value(at):
        return np.concatenate([step(**at)[key].full().ravel() for key in step.name_out()])

    expected = differences(value, known, ("q", "v", "u", "t", "h"))
    np.testing.assert_allclose(slopes(step, known), expected, atol=TOL)
    fixed = mpc.step_fun(system, 0.1, mpc.StepOptions(substeps=substeps))
    without = {key: part for key, part in known.items() if key != "h"}
    np.testing.assert_allclose(slopes(fixed, without), expected[:, :-1], atol=TOL)


@pytest.mark.long
def test_slopes_of_a_step_that_starts_with_an_impact():
    system = mechanism("pendulum_on_four_bar").with_mask()
    for mask in ([1, 1, 1], [0, 1, 1], [0, 0, 0]):
        known = state_off_manifold(system, 0.0) | {"mask": np.array(mask, float)}
        expected = differences(lambda at: plain_step(system, 0.01, at), known, ("q", "v", "u"))
        actual = slopes(mpc.step_fun(system, 0.01), known)
        np.testing.assert_allclose(actual, expected, atol=TOL * np.abs(expected).max())


def test_every_way_to_differentiate_uses_these_slopes():
    system = mechanism("pendulum_on_four_bar")
    F = mpc.discrete_dynamics(system, 0.02)
    w, seed = ca.MX.sym("w", 9), ca.MX.sym("seed", 8)
    x_next = F(w[:8], w[8:], [])
    J = ca.Function("J", [w], [ca.jacobian(x_next, w)])
    back = ca.Function("back", [w, seed], [ca.jtimes(x_next, w, seed, True)])
    point = np.concatenate([*state_off_manifold(system, 0.01).values()])
    actual, bar = J(point).full(), np.arange(8.0)
    np.testing.assert_allclose(
        actual, slopes(mpc.step_fun(system, 0.02), state_off_manifold(system, 0.01))
    )
    np.testing.assert_allclose(back(point, bar).full().ravel(), actual.T @ bar, atol=1e-12)
    mapped = F.map(2)(np.tile(point[:8], (2, 1)).T, np.tile(point[8:], (2, 1)).T, [])
    np.testing.assert_allclose(mapped[:, 0], mapped[:, 1])


def test_second_derivatives_are_differences_of_the_first():
    system = mechanism("pendulum_on_four_bar")
    F = mpc.discrete_dynamics(system, 0.02)
    w, bar = ca.MX.sym("w", 9), np.arange(1.0, 9.0)
    lagrangian = ca.dot(bar, F(w[:8], w[8:], []))
    gradient = ca.Function("gradient", [w], [ca.gradient(lagrangian, w)])
    hessian = ca.Function("hessian", [w], [ca.hessian(lagrangian, w)[0]])
    point = np.concatenate([*state_off_manifold(system, 0.01).values()])
    expected = differences(lambda at: gradient(at["w"]).full().ravel(), {"w": point}, ("w",))
    np.testing.assert_allclose(hessian(point), expected, atol=TOL * np.abs(expected).max())


def test_a_step_with_its_slopes_costs_a_few_steps():
    system = mechanism("pendulum_on_four_bar")
    step = mpc.discrete_dynamics(system, 0.02)
    assert operations(step.jacobian()) < 5 * operations(step)
