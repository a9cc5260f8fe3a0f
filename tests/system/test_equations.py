"""Systems given by a Lagrangian or by equations."""

import casadi as ca
import numpy as np
import pytest

import mbcasadi.errors as err
from mbcasadi.system import from_equations, from_lagrangian
from mbcasadi.system.coordinates import coordinates, rates

ROUNDING = 1e-12  # closed forms of a few dozen operations
GRAVITY = 9.81


def pendulum_on_cart(m_cart=2.0, m_bob=0.7, length=0.4):
    """Cart-pole; the angle is zero when the bob hangs down."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    bob_velocity = ca.vertcat(v[0] + length * ca.cos(q[1]) * v[1], length * ca.sin(q[1]) * v[1])
    kinetic = 0.5 * m_cart * v[0] ** 2 + 0.5 * m_bob * ca.sumsqr(bob_velocity)
    potential = -m_bob * GRAVITY * length * ca.cos(q[1])
    return from_lagrangian(q, v, kinetic=kinetic, potential=potential, B=[[1.0], [0.0]])


def test_the_cart_pole_has_its_textbook_mass_matrix_and_bias_force():
    m_cart, m_bob, length, angle, rate = 2.0, 0.7, 0.4, 0.8, -1.7
    system = pendulum_on_cart(m_cart, m_bob, length)
    M = np.array(system.mass_matrix([0.3, angle]))
    h = np.array(system.bias_force([0.3, angle], [0.5, rate])).ravel()
    coupling = m_bob * length * np.cos(angle)
    np.testing.assert_allclose(
        M, [[m_cart + m_bob, coupling], [coupling, m_bob * length**2]], rtol=ROUNDING
    )
    np.testing.assert_allclose(
        h,
        [-m_bob * length * np.sin(angle) * rate**2, m_bob * GRAVITY * length * np.sin(angle)],
        rtol=ROUNDING,
    )


def test_energy_power_balance_holds_along_free_motion():
    system = pendulum_on_cart()
    q, v = np.array([0.1, 0.9]), np.array([0.4, 1.3])
    M, h = np.array(system.mass_matrix(q)), np.array(system.bias_force(q, v)).ravel()
    a = np.linalg.solve(M, -h)
    step = 1e-6

    def energy(s):
        qs, vs = q + s * v + 0.5 * s**2 * a, v + s * a
        kinetic = 0.5 * vs @ np.array(system.mass_matrix(qs)) @ vs
        return kinetic - 0.7 * GRAVITY * 0.4 * np.cos(qs[1])

    assert abs(energy(step) - energy(-step)) / (2 * step) < 1e-8  # central difference, O(step²)
    assert abs(v @ h) > 1.0  # gravity does work here, so the balance is not trivial


def test_constraint_rows_keep_their_time_derivatives():
    q, v, t = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t")
    phi = q[0] ** 2 + q[1] ** 2 - (1 + 0.1 * ca.sin(t)) ** 2
    rows = ca.horzcat(-ca.sin(q[0]), ca.cos(q[1]))
    system = from_equations(
        q, v, M=np.eye(2), h=np.zeros((2, 1)), phi=phi, A=rows, a0=ca.cos(2 * t), t=t
    )
    rng = np.random.default_rng(3)
    q0, v0, a0, t0 = rng.normal(size=2), rng.normal(size=2), rng.normal(size=2), 0.7

    def velocity_residual(s):
        qs, vs = q0 + s * v0 + 0.5 * s**2 * a0, v0 + s * a0
        A = np.array(system.constraint_jacobian(qs, t0 + s))
        return A @ vs + np.array(system.constraint_velocity(qs, t0 + s)).ravel()

    step = 1e-5
    slope = (velocity_residual(step) - velocity_residual(-step)) / (2 * step)
    A = np.array(system.constraint_jacobian(q0, t0))
    c = np.array(system.constraint_bias(q0, v0, t0)).ravel()
    assert system.nc == 2
    np.testing.assert_allclose(A @ a0 + c, slope, rtol=1e-8)  # central difference, O(step²)

    residual = [np.array(system.constraint(q0 + s * v0, t0 + s)).ravel()[0] for s in (step, -step)]
    np.testing.assert_allclose(
        (residual[0] - residual[1]) / (2 * step), velocity_residual(0.0)[0], rtol=1e-8
    )


def test_members_take_every_casadi_type_and_numpy():
    system = pendulum_on_cart()
    q = np.array([0.2, 0.5])
    expected = np.array(system.mass_matrix(q))
    for kind in (ca.SX, ca.MX):
        symbol = kind.sym("q", 2)
        function = ca.Function("M", [symbol], [system.mass_matrix(symbol)])
        np.testing.assert_allclose(np.array(function(q)), expected, rtol=ROUNDING)
    np.testing.assert_allclose(np.array(system.mass_matrix(ca.DM(q))), expected, rtol=ROUNDING)
    np.testing.assert_allclose(np.array(system.mass_matrix(q=q)["M"]), expected, rtol=ROUNDING)


def equations(M, **more):
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    expression = M(q) if callable(M) else M
    return from_equations(q, v, M=expression, **({"h": np.zeros((2, 1))} | more))


def test_an_inertia_that_is_not_symmetric_is_refused():
    with pytest.raises(err.ProblemError, match=r"not symmetric: M\[0, 1\] = 0.5, M\[1, 0\] = 0.1 "):
        equations([[1.0, 0.5], [0.1, 1.0]])
    small = [[1e6, 1.0], [1.1, 1e-3]]  # kg and kg m² of very different size
    with pytest.raises(err.ProblemError, match="not symmetric"):
        equations(small)
    with pytest.raises(err.ProblemError, match="not symmetric"):
        equations(lambda q: ca.blockcat([[2, ca.cos(q[1])], [ca.sin(q[1]), 1]]))
    equations([[1.0, 0.5], [0.5 * (1 + 1e-15), 1.0]])  # rounding


@pytest.mark.parametrize("M", [-np.eye(2), np.diag([1e6, -1e-3]), [[1.0, 2.0], [2.0, 1.0]]])
def test_an_inertia_of_the_wrong_sign_is_refused_with_the_motion_that_shows_it(M):
    assert np.linalg.eigvalsh(M)[0] < 0
    with pytest.raises(err.ProblemError, match=r"negative eigenvalue: the motion v = .* energy -"):
        equations(M)


def test_a_negative_kinetic_energy_is_refused():
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    with pytest.raises(err.ProblemError, match="negative eigenvalue"):
        from_lagrangian(q, v, kinetic=v[0] ** 2 - 0.1 * v[1] ** 2)


def test_a_singular_inertia_is_no_error():
    assert equations([[1.0, 1.0], [1.0, 1.0]]).semidefinite
    assert equations(np.diag([1.0, 0.0])).semidefinite
    assert equations(np.zeros((2, 2))).semidefinite
    n = ca.SX.sym("n", 2)
    u = n / ca.norm_2(n)  # I - u uᵀ: an eigenvalue of zero, up to rounding of both signs
    project = ca.Function("project", [n], [ca.SX.eye(2) - u @ u.T])
    assert equations(lambda q: 3 * project(q)).semidefinite
    assert not equations(np.diag([1.0, 1e-6])).semidefinite


def test_nan_is_refused_where_it_is_everywhere_and_not_outside_a_domain():
    for key, numbers in {"M": [[np.nan, 0.0], [0.0, 1.0]], "h": [[0.0], [np.inf]]}.items():
        with pytest.raises(err.ShapeError, match=f"{key} holds NaN or infinity"):
            equations(**({"M": np.eye(2)} | {key: numbers}))
    with pytest.raises(err.ShapeError, match="M is NaN or infinite at all of 9 sampled states"):
        equations(lambda q: ca.diag(ca.vertcat(ca.sqrt(-1 - q[0] ** 2), 1)))
    with pytest.raises(err.ShapeError, match=r"h is NaN or infinite .* first in row 1, column 0"):
        equations(np.eye(2), h=ca.vertcat(0, ca.inf))
    equations(lambda q: ca.diag(ca.vertcat(1 + ca.sqrt(q[0] - 0.7), 1)))
    equations(lambda q: ca.diag(ca.vertcat(q[0], 1 / q[0])))  # an inertia for q > 0


def test_a_stray_symbol_is_named():
    q, v, mass = ca.SX.sym("q"), ca.SX.sym("v"), ca.SX.sym("mass")
    with pytest.raises(err.ShapeError, match="mass_matrix depends on mass"):
        from_equations(q, v, M=mass, h=0.0)


def test_a_wrong_shape_names_found_and_expected():
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    with pytest.raises(err.ShapeError, match=r"M has shape \(1, 2\), expected \(2, 2\)"):
        from_equations(q, v, M=[[1.0, 2.0]], h=np.zeros((2, 1)))


def test_an_absent_member_lists_those_that_exist():
    with pytest.raises(err.UnknownNameError, match="'mass_matrix'"):
        pendulum_on_cart().act_dot  # noqa: B018


def test_a_system_cannot_be_changed():
    with pytest.raises(AttributeError):
        pendulum_on_cart().nq = 3


def test_coordinates_and_their_rates_have_the_names_of_the_users_symbols():
    x, phi = ca.SX.sym("x"), ca.SX.sym("phi")
    q, v = ca.vertcat(x, phi), ca.SX.sym("v", 2)
    kinetic = ca.sumsqr(v) / 2
    system = from_lagrangian(q, v, kinetic=kinetic, phi=phi)
    assert system.coordinate_names == ("x", "phi")
    assert coordinates(system).components == rates(system).components == ("x", "phi")
    assert system.with_mask().coordinate_names == ("x", "phi")
    assert pendulum_on_cart().coordinate_names == ("q_0", "q_1")
    twice = ca.vertcat(ca.SX.sym("s"), ca.SX.sym("s"))
    assert from_lagrangian(twice, v, kinetic=kinetic).coordinate_names == ("s", "s_2")


def test_coordinates_must_be_symbols():
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    with pytest.raises(err.ShapeError, match="q holds expressions"):
        from_equations(2 * q, v, M=np.eye(2), h=q)
