"""Forward dynamics against a rigid system made of MuJoCo's own matrices."""

from importlib import import_module

import casadi as ca
import mujoco
import numpy as np
import pytest
from dynamics_states import consistent_state, the_case

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.dynamics import FORMULATIONS, Treatment, constraint_force, forward_dynamics
from mbcasadi.dynamics.response import response_fun
from mbcasadi.dynamics.terms import terms_fun
from mbcasadi.errors import UnknownNameError
from mbcasadi.system import from_equations, from_lagrangian
from mbcasadi.system.over_steps import over_steps

REFERENCE_TOL = 1e-9  # the promise; about 1e-13 is found


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_acceleration_without_constraints_is_that_of_mujocos_matrices(formulation):
    """`tests/agreement` compares constrained mechanisms."""
    robot, rng = the_case("quadruped"), np.random.default_rng(41)
    fd = forward_dynamics(robot.system, formulation, derivatives=False)
    data = mujoco.MjData(robot.model)
    for _ in range(3):
        q, v = consistent_state(robot, rng)
        f, M = rng.standard_normal(robot.system.nv), np.zeros((robot.system.nv,) * 2)
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(robot.model, data)
        mujoco.mj_fullM(robot.model, data, M)
        expected = np.linalg.solve(M, f + data.qfrc_passive - data.qfrc_bias)
        a, f_c, _ = (x.full().ravel() for x in fd(q, v, f))
        assert np.linalg.norm(a - expected) / np.linalg.norm(expected) < REFERENCE_TOL
        assert not f_c.any()


def drifted(system, rng, spread):
    """Return q, v, f with an open standing quadruped."""
    q = system.integrate(system.tree.q0, spread * rng.standard_normal(18)).full().ravel()
    return q, rng.standard_normal(18), rng.standard_normal(18)


@pytest.mark.parametrize(("spread", "apart"), [(5e-3, ()), (0.2, ("limbwise",))])
def test_formulations_agree_on_drifted_states_and_multipliers(spread, apart):
    """With 20 cm open, rules in the inertia's metric and in that of v drop different rows."""
    system = the_case("standing_quadruped").system
    names = [name for name in FORMULATIONS if name not in apart]
    first, *others = (forward_dynamics(system, name, derivatives=False) for name in names)
    rng = np.random.default_rng(42)
    for _ in range(5):
        q, v, f = drifted(system, rng, spread)
        assert np.abs(system.constraint(q).full()).max() > 0.4 * spread
        expected = first(q=q, v=v, f=f)
        for other in others:
            for key, found in other(q=q, v=v, f=f).items():
                size = np.abs(expected[key].full()).max()
                np.testing.assert_allclose(found, expected[key], atol=1e-9 * size, err_msg=key)


def test_limbwise_keeps_all_rows_of_a_state_that_is_far_open():
    """All 12 rows are independent in the inertia's metric: the motion by NumPy's pseudo-inverse."""
    system = the_case("standing_quadruped").system
    fd, rng = forward_dynamics(system, "limbwise", derivatives=False), np.random.default_rng(42)
    for _ in range(8):
        q, v, f = drifted(system, rng, 0.2)
        A, c = system.constraint_jacobian(q).full(), system.constraint_bias(q, v).full().ravel()
        h = (system.bias_force(q, v) - system.passive_force(q, v)).full().ravel()
        L = np.linalg.cholesky(system.mass_matrix(q).full())
        X, y_0 = np.linalg.solve(L, A.T).T, np.linalg.solve(L, f - h)
        y = y_0 - np.linalg.pinv(X) @ (X @ y_0 + c)
        a = fd(q=q, v=v, f=f)["a"].full().ravel()
        np.testing.assert_allclose(a, np.linalg.solve(L.T, y), atol=1e-11 * np.abs(a).max())


def test_unknown_formulation_names_the_known_ones():
    with pytest.raises(UnknownNameError, match="'lagrange', 'projection'"):
        forward_dynamics(the_case("four_bar").system, "newton")


def test_constraint_force_is_that_of_the_forward_dynamics():
    robot = the_case("spatial_loop")
    q, v = consistent_state(robot, np.random.default_rng(43))
    f = np.ones(4)
    expected = forward_dynamics(robot.system)(q=q, v=v, f=f)
    found = constraint_force(robot.system)(q=q, v=v, f=f)
    assert np.abs(found["f_c"].full()).max() > 1e-3
    for key in ("f_c", "lam"):
        np.testing.assert_array_equal(found[key], expected[key])


def test_forward_dynamics_takes_sx_mx_dm_and_numpy():
    system = the_case("four_bar").system
    fd = forward_dynamics(system)
    numbers = [np.array([0.1, -0.2, 0.3]), np.ones(3), np.zeros(3)]
    expected = fd(*numbers)[0]
    for kind in (ca.SX, ca.MX):
        symbols = [kind.sym(name, 3) for name in ("q", "v", "f")]
        f = ca.Function("f", symbols, [fd(*symbols)[0]])
        np.testing.assert_allclose(f(*numbers), expected, rtol=1e-12)


def test_a_pendulum_of_a_lagrangian_with_a_constraint_is_the_textbook_one():
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    mass, length, gravity = 2.0, 1.5, 9.81
    system = from_lagrangian(
        q,
        v,
        kinetic=mass / 2 * ca.sumsqr(v),
        potential=mass * gravity * q[1],
        phi=(ca.sumsqr(q) - length**2) / 2,
    )
    angle, rate = 0.4, -1.3
    at = length * np.array([np.sin(angle), -np.cos(angle)])
    along = np.array([np.cos(angle), np.sin(angle)])
    a, f_c, _ = (
        x.full().ravel() for x in forward_dynamics(system)(at, length * rate * along, np.zeros(2))
    )
    expected = -gravity * np.sin(angle) * along - rate**2 * at
    np.testing.assert_allclose(a, expected, rtol=1e-12)
    tension = mass * (gravity * np.cos(angle) + length * rate**2)
    np.testing.assert_allclose(f_c, -tension * at / length, rtol=1e-12)


def test_a_moving_constraint_carries_the_mass_along():
    q, v, t = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t")
    system = from_equations(q, v, M=np.eye(2), h=np.zeros(2), phi=q[0] - ca.sin(3 * t), t=t)
    a = forward_dynamics(system)(q=[0, 0], v=[0, 1], f=[5, 7], t=0.2)["a"].full().ravel()
    np.testing.assert_allclose(a, [-9 * np.sin(0.6), 7], rtol=1e-12)


def test_without_derivatives_the_motion_is_the_same():
    robot = the_case("four_bar")
    q, v = consistent_state(robot, np.random.default_rng(43))
    with_own, without = (forward_dynamics(robot.system, derivatives=own) for own in (True, False))
    for ours, theirs in zip(with_own(q, v, q), without(q, v, q), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_equal_dynamics_of_one_system_are_built_once(monkeypatch):
    module, made = import_module("mbcasadi.dynamics.forward"), []
    build = module.forward_core
    monkeypatch.setattr(module, "forward_core", lambda *a, **k: made.append(a) or build(*a, **k))
    system = mb.read_mjcf(models.path("four_bar"))
    forward_dynamics(system)
    forward_dynamics(system)
    assert len(made) == 1
    for different in (
        {"treatment": Treatment(rank_tol=1e-6)},
        {"formulation": "lagrange"},
        {"derivatives": False},
        {"metric": np.eye(system.nv)},
        {"metric": 2 * np.eye(system.nv)},
    ):
        forward_dynamics(system, **different)
    assert len(made) == 6


def test_equal_terms_and_responses_are_built_once():
    system, drift = mb.read_mjcf(models.path("four_bar")), mb.Baumgarte(1.0, 2.0)
    assert terms_fun(system) is terms_fun(system)
    assert terms_fun(system, drift) is terms_fun(system, mb.Baumgarte(1.0, 2.0))
    q, v = np.array(system.tree.q0) + 0.1, np.ones(system.nv)
    c, stabilised = (np.array(terms_fun(system, x)(q=q, v=v)["c"]) for x in (None, drift))
    assert np.abs(c - stabilised).max() > 1e-3
    patterns = system.mass_matrix.sparsity_out(0), system.loop_jacobian.sparsity_out(0)
    made = response_fun(*patterns, Treatment(), False)
    assert response_fun(*patterns, Treatment(baumgarte=drift), False) is made
    for other in (Treatment(rank_tol=1e-3), Treatment(pivot=False)):
        assert response_fun(*patterns, other, False) is not made


def test_a_system_over_equal_steps_is_one_system():
    system = mb.read_mjcf(models.path("four_bar"))
    stepped = over_steps(system, None)
    assert over_steps(system, None) is stepped
    assert over_steps(system, None, forces=False) is not stepped
    assert over_steps(mb.read_mjcf(models.path("four_bar")), None) is not stepped
