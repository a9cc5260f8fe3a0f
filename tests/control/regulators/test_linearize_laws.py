"""Laws of linear models: coordinates, gauge, redundancy, exact hold, S20's form, refusals."""

import casadi as ca
import numpy as np
import pytest
from linear_mechanisms import cart_pole, state_of, system_of
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp
from support.refusals import refused

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.control.regulators import descriptor_form, discretize, linearize, reduce_descriptor
from mbcasadi.control.regulators.lqr import require_equilibrium

ALL = ["four_bar", "cart_pole", "planar_3rrr", "standing_quadruped", "spinning", "disc"]
ROUNDING = 1e-12


def at_rest(name):
    system = system_of(name)
    q, *_ = state_of(name, moving=False)
    point = mb.equilibrium(system, q)
    return linearize(system, point)


@pytest.mark.parametrize("name", ALL)
def test_coordinates_and_deviations_are_inverse_and_admissible(name):
    system = system_of(name)
    q, v, u, _ = state_of(name)
    linear = linearize(system, q, v, u)
    x = np.random.default_rng(1).standard_normal(linear.nx)
    back = linear.from_dq @ linear.to_dq @ x + linear.from_dv @ linear.to_dv @ x
    assert_allclose(back, x, atol=ROUNDING * 100)
    small = 1e-7 * x
    assert_allclose(linear.coordinates(*linear.state(small)), small, atol=1e-14)
    measured = np.array(linear.coordinates_fun()(*linear.state(small))).ravel()
    assert_allclose(measured, small, atol=1e-14)
    if system.nc:
        A = np.array(system.constraint_jacobian(q))
        assert linear.n_v == system.nv - np.linalg.matrix_rank(A, 1e-7)
        holonomic = A if name != "disc" else A[:0]  # a disc that rolls reaches every pose
        assert_allclose(holonomic @ linear.to_dq, 0, atol=1e-10)


@pytest.mark.parametrize("name", ["four_bar", "planar_3rrr", "disc"])
def test_the_velocity_stays_admissible_where_the_constraints_turn(name):
    system = system_of(name)
    q, v, u, _ = state_of(name)
    linear = linearize(system, q, v, u)
    rate = lambda x: np.array(system.constraint_rate(*linear.state(x))).ravel()  # noqa: E731
    xi = np.eye(linear.nx)[:, : linear.n_q]
    assert np.abs(linear.slope).max() > 0.01
    for unit in xi.T:
        along = (rate(1e-5 * unit) - rate(-1e-5 * unit)) / 2e-5
        assert_allclose(along, 0, atol=1e-8)


def test_copies_of_a_row_change_nothing():
    q = np.array([0.3, 0.2, 0.15])
    v = np.array([0.4, 0.0, -0.6])
    one, many = (linearize(cart_pole(copies), q, v, [1.0]) for copies in (False, True))
    assert_allclose(many.dfdx, one.dfdx, atol=1e-10)
    assert_allclose(many.to_dv @ many.dfdu, one.to_dv @ one.dfdu, atol=1e-10)


def test_a_mask_opens_a_loop():
    system = mb.read_mjcf(models.path("four_bar")).with_mask()
    q, v, u, _ = state_of("four_bar")
    opened = linearize(system, q, v, u, mask=np.zeros(system.nc))
    shut = linearize(system, q, v, u)
    assert (opened.nx, shut.nx) == (6, 2)
    assert_allclose(shut.dfdx, linearize(system_of("four_bar"), q, v, u).dfdx)


def test_the_cart_pole_is_the_one_of_the_textbook():
    """Upright, from the Lagrangian by hand: (m + m_p) ẍ + m_p l θ̈ = u - d ẋ and so on."""
    linear = linearize(cart_pole(), np.array([0.0, 0.2, 0.0]))
    mass, pole, half, inertia = 1.2, 0.3, 0.45, 0.3 * 0.9**2 / 12
    M = np.array([[mass + pole, pole * half], [pole * half, inertia + pole * half**2]])
    stiffness, damping = np.diag([0.0, -9.81 * pole * half]), np.diag([0.1, 0.02])
    zero, identity = np.zeros((2, 2)), np.eye(2)
    by_hand = np.block([[zero, identity], -np.linalg.solve(M, np.hstack([stiffness, damping]))][:1])
    by_hand = np.vstack([by_hand, -np.linalg.solve(M, np.hstack([stiffness, damping]))])
    T = np.kron(identity, linear.Z_v[[0, 2]])  # (x, θ) of the basis
    assert_allclose(T @ linear.dfdx @ np.linalg.inv(T), by_hand, atol=1e-10)
    assert_allclose(T @ linear.dfdu, np.vstack([[0], [0], np.linalg.inv(M)[:, :1]]))


def test_outputs_are_differentiated_on_the_manifold():
    system = system_of("four_bar")
    q, v, u, _ = state_of("four_bar")
    linear = linearize(system, q, v, u)
    tracer = system.frame("tracer")
    at, speed = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    point = ca.vertcat(tracer.pose(at)[0], (tracer.jacobian(at) @ speed)[:3])
    output = ca.Function("output", [at, speed], [point], ["q", "v"], ["y"])
    C = linear.output_matrix(output)
    for j in range(linear.nx):
        step = 1e-5 * np.eye(linear.nx)[j]
        ends = [np.array(output(*linear.state(s * step))).ravel() for s in (1, -1)]
        assert_allclose(C[:, j], (ends[0] - ends[1]) / 2e-5, atol=1e-8)


def test_the_exact_hold_is_the_solution_of_the_differential_equation():
    system = system_of("cart_pole")
    q, v, u, _ = state_of("cart_pole")
    linear = linearize(system, q, v, u)
    step = discretize(linear, 0.3)
    rng = np.random.default_rng(2)
    x, du = rng.standard_normal(linear.nx), rng.standard_normal(1)
    rate = lambda _, y: linear.dfdx @ y + linear.dfdu @ du + linear.drift  # noqa: E731
    end = solve_ivp(rate, (0, 0.3), x, rtol=1e-12, atol=1e-13, method="DOP853").y[:, -1]
    assert_allclose(step.dfdx @ x + step.dfdu @ du + step.drift, end, rtol=1e-9)
    refused(err.ProblemError, "discrete already", lambda: discretize(step, 0.1))


@pytest.mark.parametrize("name", [name for name in ALL if name != "spinning"])
def test_the_corrected_reduction_of_s20_is_the_linear_model(name):
    linear = at_rest(name)
    full, N = descriptor_form(linear), np.vstack([linear.to_dq, linear.to_dv])
    assert_allclose(full.G @ N, 0, atol=1e-9)
    reduced = reduce_descriptor(full, basis=N)
    scale = 1 + np.abs(linear.dfdx).max()
    assert_allclose(reduced.dfdz, linear.dfdx, atol=1e-11 * scale)
    assert_allclose(reduced.dfdu, linear.dfdu, atol=1e-10)
    own = reduce_descriptor(full)  # another basis: the same eigenvalues
    assert_allclose(np.trace(own.dfdz), np.trace(linear.dfdx), atol=1e-9 * scale)
    assert_allclose(
        np.trace(own.dfdz @ own.dfdz), np.trace(linear.dfdx @ linear.dfdx), atol=1e-9 * scale**2
    )


@pytest.mark.parametrize("name", ALL)
def test_the_reduction_holds_at_states_that_move(name):
    """With the change of G along x; G constant, as S20 has it, is wrong there."""
    system = system_of(name)
    q, v, u, _ = state_of(name)
    linear = linearize(system, q, v, u)
    assert np.abs(linear.v).max() > 0.1
    full, N = descriptor_form(linear), np.vstack([linear.to_dq, linear.to_dv])
    chart = np.hstack([linear.from_dq, linear.from_dv])
    scale = 1 + np.abs(linear.dfdx).max()
    assert_allclose(full.G @ N, 0, atol=1e-9)
    assert_allclose(full.G @ full.c, 0, atol=1e-9 * scale)  # the motion itself
    reduced = reduce_descriptor(full, basis=N, inverse=chart)
    assert_allclose(reduced.dfdz, linear.dfdx, atol=1e-10 * scale)
    assert_allclose(reduced.dfdu, linear.dfdu, atol=1e-9)
    assert_allclose(reduced.c, linear.drift, atol=1e-9 * scale)
    if system.nc and name != "cart_pole":  # its rows are straight lines
        printed = reduce_descriptor(full._replace(G_x=None), basis=N, inverse=chart)
        assert np.abs(printed.dfdz - linear.dfdx).max() > 1e-3
    with pytest.raises(err.ShapeError, match=r"expected .* with inverse N = I"):
        reduce_descriptor(full, basis=N, inverse=2 * chart)


def test_the_lower_rows_of_g_hold_the_rate_of_the_jacobian():
    """`G = [F 0; Ḟ F]`, Ḟ by differences along the motion."""
    system = system_of("four_bar")
    q, v, u, _ = state_of("four_bar")
    linear, step = linearize(system, q, v, u), 1e-6
    ahead, behind = (np.array(system.loop_jacobian(linear.q + s * linear.v)) for s in (step, -step))
    lower = descriptor_form(linear).G[system.nc :, : system.nv]
    assert_allclose(lower, (ahead - behind) / (2 * step), atol=1e-8)
    assert np.abs(lower).max() > 1e-2


def test_the_reduction_as_printed_is_wrong():
    linear = at_rest("four_bar")
    full, N = descriptor_form(linear), np.vstack([linear.to_dq, linear.to_dv])
    assert np.abs(N.T @ full.S).max() > 0.1  # "NᵀS = 0 for all mechanical systems"
    assert np.abs(N.T @ full.dfdx @ N - linear.dfdx).max() > 1.0


def test_states_without_a_linear_model_are_refused():
    crank = system_of("slider_crank")
    upright = [np.pi / 2, 0.0, np.pi / 2]
    with pytest.raises(
        err.ProblemError, match=r"rank 1 at this pose and 2 beside it.*pin leaves one"
    ):
        linearize(crank, upright)
    with pytest.raises(err.ProblemError, match=r"row 0 \(pin\) is open by 1.0e-01"):
        linearize(crank, [np.pi / 2, 0.1, np.pi / 2])
    four_bar = system_of("four_bar")
    with pytest.raises(err.ProblemError, match="violated by the velocity"):
        linearize(four_bar, four_bar.tree.q0, [1.0, 0.0, 0.0])
    with pytest.raises(err.ProblemError, match="beyond the range"):
        linearize(four_bar, four_bar.tree.q0, None, [2.0])
    with pytest.raises(err.ShapeError, match=r"q has shape \(2,\), expected \(3,\)"):
        linearize(four_bar, [0.0, 0.0])
    moving = linearize(four_bar, four_bar.tree.q0)
    with pytest.raises(err.ProblemError, match="does not rest where it was linearised"):
        require_equilibrium(moving)
    with pytest.raises(err.ProblemError, match=r"continuous linearisation, found a period of 0.1"):
        descriptor_form(discretize(moving, 0.1))
