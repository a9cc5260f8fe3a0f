"""Implicit derivatives against finite differences on the manifold and differentiated scalars."""

import casadi as ca
import numpy as np
import pytest
from dynamics_states import consistent_state, null_projector, the_case

from mbcasadi.dynamics import forward_dynamics, forward_dynamics_derivatives
from mbcasadi.dynamics.residual_jacobians import residual_jacobian_fun
from mbcasadi.dynamics.response import response_fun
from mbcasadi.dynamics.terms import Treatment
from mbcasadi.system import from_equations

STEP = 1e-5
DIFFERENCE_TOL = 1e-6  # STEP² times third derivatives, relative
AD_TOL = 1e-9  # the same numbers by another order of operations
TEXT_BUDGET = 37_000  # operations at 18 dof and 12 rows, loops apart
JACOBIAN_BUDGET = 7_000  # operations of the residual's Jacobian at 18 dof


def on_manifold(robot, q, v):
    system = robot.system
    for _ in range(10):
        A = system.constraint_jacobian(q).full()
        q = system.integrate(q, -np.linalg.pinv(A, 1e-8) @ system.constraint(q).full().ravel())
    return q.full().ravel(), null_projector(system.constraint_jacobian(q).full()) @ v


@pytest.mark.parametrize("name", ["four_bar", "spatial_loop", "arm_gripper", "standing_quadruped"])
def test_derivatives_agree_with_differences_along_the_manifold(name):
    robot = the_case(name)
    system = robot.system
    fd, derivatives = forward_dynamics(system), forward_dynamics_derivatives(system)
    rng = np.random.default_rng(51)
    for _ in range(3):
        q, v = consistent_state(robot, rng)
        f, df = rng.standard_normal((2, system.nv))
        along = null_projector(system.constraint_jacobian(q).full()) @ rng.standard_normal(
            system.nv
        )
        w = rng.standard_normal(system.nv)
        ends = []
        for sign in (1, -1):
            q_end, v_end = on_manifold(
                robot, system.integrate(q, sign * STEP * along), v + sign * STEP * w
            )
            out = fd(q=q_end, v=v_end, f=f + sign * STEP * df)
            ends.append((system.difference(q, q_end).full().ravel(), v_end, out))
        (dq_1, v_1, plus), (dq_2, v_2, minus) = ends
        D = derivatives(q=q, v=v, f=f)
        for key in ("a", "lam"):
            difference = (plus[key] - minus[key]).full().ravel()
            steps = {"q": dq_1 - dq_2, "v": v_1 - v_2, "f": 2 * STEP * df}
            found = sum(D[f"d{key}d{x}"].full() @ step for x, step in steps.items())
            size = np.abs(difference).max()
            assert size > 1e-7
            error = np.abs(found - difference).max() / size
            assert error < DIFFERENCE_TOL * 10, f"{name} {key}: {error}"


def scalar_jacobian(function, values):
    """Differentiate the written-out operations instead of using the implicit rule."""
    plain = function.expand()
    symbols = plain.sx_in()
    names = [plain.name_in(i) for i in range(plain.n_in())]
    out = plain.call(symbols)
    jacobians = [ca.jacobian(y, x) for y in out for x in symbols]
    labels = [f"jac_{plain.name_out(i)}_{x}" for i in range(plain.n_out()) for x in names]
    return ca.Function("plain", symbols, jacobians, names, labels)(**values)


def pfaffian_with_contradicting_rows():
    """Rows 0 and 1 demand different velocities of one motion: `e = (I - A A⁺) c` is not zero."""
    q, v, t = ca.SX.sym("q", 3), ca.SX.sym("v", 3), ca.SX.sym("t")
    row = ca.horzcat(1 + q[1] ** 2, ca.sin(q[0]), q[2])
    A = ca.vertcat(row, (2 + ca.cos(q[1])) * row, ca.horzcat(q[1], 1, ca.exp(q[0])))
    a0 = ca.vertcat(ca.sin(3 * t), t**2, ca.cos(t))
    M = ca.diag(ca.vertcat(1 + q[0] ** 2, 2, 3 + ca.sin(q[1]))) + 0.2
    h = ca.vertcat(v[1] * v[2], ca.sin(q[0]) * v[0] ** 2, q[2])
    return from_equations(q, v, M=M, h=h, A=A, a0=a0, t=t)


@pytest.mark.parametrize("formulation", ["projection", "lagrange"])
def test_implicit_rule_equals_differentiated_scalars_on_contradicting_rows(formulation):
    fd = forward_dynamics(pfaffian_with_contradicting_rows(), formulation)
    rng = np.random.default_rng(52)
    for _ in range(3):
        values = {x: rng.standard_normal(3) for x in ("q", "v", "f")} | {"t": rng.standard_normal()}
        expected = scalar_jacobian(fd, values)
        for key, found in fd.jacobian()(**values).items():
            size = max(1, np.abs(expected[key].full()).max())
            np.testing.assert_allclose(found, expected[key], atol=AD_TOL * size, err_msg=key)


def test_implicit_rule_equals_differentiated_scalars_off_the_manifold():
    robot = the_case("standing_quadruped")
    fd = forward_dynamics(robot.system)
    rng = np.random.default_rng(53)
    q = robot.system.integrate(robot.system.tree.q0, 0.2 * rng.standard_normal(18)).full().ravel()
    values = {"q": q, "v": rng.standard_normal(18), "f": rng.standard_normal(18)}
    direction = rng.standard_normal(19)
    plain = fd.expand()
    expected = plain.forward(1)(
        **values,
        **{f"fwd_{x}": 0 * value for x, value in values.items() if x != "q"},
        fwd_q=direction,
    )
    found = fd.jacobian()(**values)
    for key in ("a", "f_c", "lam"):
        reference = expected[f"fwd_{key}"].full().ravel()
        size = np.abs(reference).max()
        result = found[f"jac_{key}_q"].full() @ direction
        np.testing.assert_allclose(result, reference, atol=1e-8 * size, err_msg=key)


def test_matrix_expressions_use_the_implicit_rule():
    fd = forward_dynamics(the_case("four_bar").system)
    q, v, f = (ca.MX.sym(x, 3) for x in "qvf")
    seed = ca.MX.sym("seed", 3)
    a = fd(q, v, f)[0]
    directional = ca.Function("directional", [q, v, f, seed], [ca.jtimes(a, q, seed)])
    gradient = ca.Function("gradient", [q, v, f], [ca.gradient(ca.sum1(a), q)])
    for function in (directional, gradient, fd.map(4).jacobian()):
        assert "jac_forward_dynamics_core" in names_inside(function)
    point = [np.array([0.1, -0.2, 0.3]), np.ones(3), np.zeros(3)]
    J = fd.jacobian()(q=point[0], v=point[1], f=point[2])["jac_a_q"].full()
    np.testing.assert_allclose(directional(*point, [1, 2, 3]).full().ravel(), J @ [1, 2, 3])
    np.testing.assert_allclose(gradient(*point).full().ravel(), J.sum(axis=0))


def names_inside(function):
    return set(function.get_function()) | {
        name
        for inner in function.get_function()
        for name in names_inside(function.get_function(inner))
    }


def test_derivatives_of_eighteen_dof_stay_within_the_jacobian_of_inverse_dynamics():
    system = the_case("quadruped").system
    assert residual_jacobian_fun(system).n_instructions() < JACOBIAN_BUDGET
    patterns = system.mass_matrix.sparsity_out("M"), ca.Sparsity(0, system.nv)
    response = response_fun(*patterns, Treatment(), False)
    assert response.expand().n_instructions() < JACOBIAN_BUDGET


def test_derivatives_on_four_feet_stay_a_short_text():
    function = forward_dynamics_derivatives(the_case("standing_quadruped").system)
    assert function.expand().n_instructions() < TEXT_BUDGET  # each loop is one of them
