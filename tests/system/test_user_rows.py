"""Rows that a user writes: on Lagrangian systems, on MJCF with quaternions, with masks."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from support.corpora import ROOT

import mbcasadi.errors as err
from mbcasadi.description import Baumgarte
from mbcasadi.dynamics import Treatment, forward_dynamics
from mbcasadi.system import evaluate, from_equations, from_lagrangian, read_mjcf

STEP = 1e-5  # of central differences, whose error is about STEP² and rounding over STEP
DIFFERENCE_TOL = 1e-8
MOTION_TOL = 1e-10


def column(value):
    return np.array(value).ravel()


def particle(**rows):
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    return from_lagrangian(q, v, kinetic=ca.sumsqr(v), potential=9.81 * q[2], **rows(q, v))


def isokinetic(q, v):
    """Constant speed, and Appell's cone: both nonlinear in v."""
    return {
        "psi": ca.vertcat(ca.sumsqr(v) - 4, v[0] ** 2 + v[1] ** 2 - (1 + q[0] ** 2) * v[2] ** 2)
    }


@pytest.fixture
def nonlinear():
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    return from_lagrangian(q, v, kinetic=ca.sumsqr(v), potential=9.81 * q[2], **isokinetic(q, v))


def test_rows_nonlinear_in_v_keep_their_rate_along_the_motion(nonlinear):
    assert nonlinear.constraint_jacobian.name_in() == ["q", "v"]
    rng = np.random.default_rng(1)
    fd = forward_dynamics(nonlinear, "lagrange", derivatives=False)
    for q, v, f in rng.standard_normal((5, 3, 3)):
        a = column(fd(q, v, f)[0])

        def rate(s, q=q, v=v, a=a):
            return column(nonlinear.constraint_rate(q + s * v + s**2 / 2 * a, v + s * a))

        slope = (rate(STEP) - rate(-STEP)) / (2 * STEP)
        size = 1 + np.abs(rate(0.0)).max()
        np.testing.assert_allclose(slope, 0, atol=DIFFERENCE_TOL * size)
        A = np.array(nonlinear.constraint_jacobian(q, v))
        grown = (rate(STEP) - rate(-STEP)) / (2 * STEP)
        drift = A @ a + column(nonlinear.constraint_bias(q, v))
        np.testing.assert_allclose(drift, grown, atol=DIFFERENCE_TOL * size)
        assert np.linalg.norm(a - np.array([f[0] / 2, f[1] / 2, f[2] / 2 - 9.81 / 2])) > 1e-2


def test_a_psi_that_is_linear_in_v_is_a_pfaffian_row():
    q, v, t = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t")
    row, drift = ca.horzcat(ca.sin(q[0]), ca.cos(q[1])), ca.cos(t) * q[0]
    unit = {"M": np.eye(2), "h": np.zeros((2, 1)), "t": t}
    pfaffian = from_equations(q, v, **unit, A=row, a0=drift)
    two = from_equations(q, v, **unit, psi=row @ v + drift)
    assert "v" not in two.constraint_jacobian.name_in()
    at = {"q": [0.3, -0.8], "v": [1.1, 0.4], "t": 0.9}
    for name in (
        "constraint_jacobian",
        "constraint_velocity",
        "constraint_bias",
        "constraint_rate",
    ):
        expected = column(evaluate(pfaffian.member(name), at))
        np.testing.assert_allclose(column(evaluate(two.member(name), at)), expected, rtol=1e-13)
        assert np.abs(expected).max() > 1e-3, name


def free_body():
    """A body on a free joint, one point of it on the unit sphere, another in a moving plane."""
    system = read_mjcf(
        '<mujoco><worldbody><body pos="0 0 1"><freejoint/>'
        '<geom type="box" size=".1 .2 .3" mass="2"/></body></worldbody></mujoco>'
    )
    q, v, t = ca.SX.sym("q", 7), ca.SX.sym("v", 6), ca.SX.sym("t")
    w, x = q[3], q[4:7]
    turn = (w**2 - ca.sumsqr(x)) * ca.SX.eye(3) + 2 * x @ x.T + 2 * w * ca.skew(x)
    point = q[:3] + turn @ ca.DM([0.1, 0.2, 0.3])
    phi = ca.vertcat(ca.sumsqr(point) - 1, q[2] - 0.3 * ca.sin(2 * t))
    return system.with_rows(q, v, phi=phi, t=t)


def test_rows_on_a_free_body_follow_the_manifold_and_not_the_quaternion():
    system = free_body()
    assert (system.nc, system.constraint_names) == (2, ("phi0", "phi1"))
    rng = np.random.default_rng(2)
    q = column(system.integrate([0, 0, 1, 1, 0, 0, 0], rng.standard_normal(6)))
    v, a, t = rng.standard_normal(6), rng.standard_normal(6), 0.4

    def state_after(s):
        # second order along the motion: velocity v + s a on average v + s a / 2
        return column(system.integrate(q, s * v + s**2 / 2 * a)), v + s * a, t + s

    def slope(member, order):
        values = []
        for s in (STEP, -STEP):
            qs, vs, ts = state_after(s)
            values.append(column(evaluate(member, {"q": qs, "v": vs, "t": ts})))
        return (values[0] - values[1]) / (2 * STEP)

    at = {"q": q, "v": v, "t": t}
    rate = column(evaluate(system.constraint_rate, at))
    A = np.array(evaluate(system.constraint_jacobian, at))
    a0 = column(evaluate(system.constraint_velocity, at))
    np.testing.assert_allclose(slope(system.constraint, 0), rate, atol=DIFFERENCE_TOL)
    np.testing.assert_allclose(A @ v + a0, rate, rtol=1e-12)
    bias = column(evaluate(system.constraint_bias, at))
    np.testing.assert_allclose(slope(system.constraint_rate, 1), A @ a + bias, atol=1e-7)
    assert np.abs(a0[1]) > 0.1
    assert np.abs(bias).min() > 0.1


def test_user_rows_stand_below_those_of_the_model():
    system = read_mjcf(ROOT / "mujoco_models" / "four_bar.xml")
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    more = system.with_rows(q, v, psi=v[0] + 2 * v[1])
    assert more.nc == system.nc + 1
    q0 = system.tree.q0
    A = np.array(more.constraint_jacobian(q0))
    np.testing.assert_allclose(A[:-1], np.array(system.constraint_jacobian(q0)))
    np.testing.assert_allclose(A[-1, :2], [1, 2])
    assert more.constraint_names[-1] == "phi0"
    np.testing.assert_allclose(np.array(more.loop_jacobian(q0))[-1, :2], [1, 2])


def test_a_masked_row_is_a_row_that_is_not_there():
    system = read_mjcf(ROOT / "mujoco_models" / "four_bar.xml")
    switched = system.with_mask()
    fd = forward_dynamics(switched, derivatives=False)
    free = forward_dynamics(four_bar_without_its_loop(), derivatives=False)
    assert fd.name_in() == ["q", "v", "f", "mask"]
    rng = np.random.default_rng(3)
    q, v, f = system.tree.q0, rng.standard_normal(3), rng.standard_normal(3)
    a_closed = column(fd(q, v, f, np.ones(3))[0])
    np.testing.assert_allclose(
        a_closed, column(forward_dynamics(system, derivatives=False)(q, v, f)[0]), rtol=1e-12
    )
    opened = fd(q, v, f, np.zeros(3))
    np.testing.assert_allclose(column(opened[0]), column(free(q, v, f)[0]), rtol=MOTION_TOL)
    np.testing.assert_allclose(column(opened[2]), 0)
    assert np.linalg.norm(a_closed - column(opened[0])) > 1


def four_bar_without_its_loop():
    spec = mujoco.MjSpec.from_file(str(ROOT / "mujoco_models" / "four_bar.xml"))
    for equality in spec.equalities:
        spec.delete(equality)
    return read_mjcf(spec)


SWITCHED = """<mujoco><worldbody>
<body><joint name="a"/><geom size=".1"/></body><body><joint name="b"/><geom size=".1"/></body>
</worldbody><equality><joint joint1="a" joint2="b" active="false"/><joint joint1="b"/></equality>
</mujoco>"""


def test_a_switchable_model_has_rows_for_what_the_file_switches_off():
    assert read_mjcf(SWITCHED).nc == 1
    system = read_mjcf(SWITCHED, switchable=True)
    assert system.nc == 2
    np.testing.assert_array_equal(system.mask, [0, 1])
    rank = np.linalg.matrix_rank(np.array(system.constraint_jacobian([0.1, 0.2])))
    assert rank == 2


@pytest.mark.parametrize("formulation", ["lagrange", "projection"])
def test_baumgarte_gives_the_error_its_second_order_decay(formulation):
    system = free_body()
    alpha, beta = (3.0, 4.0), (5.0, 6.0)
    fd = forward_dynamics(
        system,
        formulation,
        derivatives=False,
        treatment=Treatment(baumgarte=Baumgarte(alpha, beta)),
    )
    rng = np.random.default_rng(4)
    q = column(system.integrate([0, 0, 1, 1, 0, 0, 0], rng.standard_normal(6)))
    at = {"q": q, "v": rng.standard_normal(6), "t": 0.2}
    a = column(fd(**at, f=rng.standard_normal(6))["a"])
    A, c, psi = (
        np.array(evaluate(system.member(name), at))
        for name in ("constraint_jacobian", "constraint_bias", "constraint_rate")
    )
    phi = column(evaluate(system.constraint, at))
    expected = -2 * np.array(alpha) * psi.ravel() - np.array(beta) ** 2 * phi
    assert np.abs(expected).min() > 0.1
    np.testing.assert_allclose(A @ a + c.ravel(), expected, rtol=1e-9)


def test_rates_of_a_wrong_shape_are_named():
    system = free_body()
    with pytest.raises(
        err.ShapeError, match=r"alpha has shape \(3,\), expected a scalar or \(2,\)"
    ):
        forward_dynamics(system, treatment=Treatment(baumgarte=Baumgarte((1.0, 2.0, 3.0), 1.0)))
    with pytest.raises(err.ShapeError, match="finite rates >= 0"):
        forward_dynamics(system, treatment=Treatment(baumgarte=Baumgarte(-1.0, 1.0)))


def euler_parameters():
    """A body that turns about its centre: four Euler parameters, M of rank 3."""
    p, pdot = ca.SX.sym("p", 4), ca.SX.sym("pdot", 4)
    inertia = ca.DM(np.diag([0.2, 0.5, 0.9]))
    G = ca.horzcat(-p[1:], p[0] * ca.SX.eye(3) - ca.skew(p[1:]))
    omega = 2 * G @ pdot
    return from_lagrangian(
        p, pdot, kinetic=ca.bilin(inertia, omega, omega) / 2, phi=ca.sumsqr(p) - 1
    )


def test_a_body_in_four_euler_parameters_turns_as_euler_has_it():
    system = euler_parameters()
    assert system.semidefinite
    rng = np.random.default_rng(5)
    I = np.diag([0.2, 0.5, 0.9])  # noqa: E741
    fd = forward_dynamics(system, "lagrange", derivatives=False)
    for p, pdot in rng.standard_normal((5, 2, 4)):
        p = p / np.linalg.norm(p)
        pdot = pdot - p * (p @ pdot)
        x = p[1:]
        skew = np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])
        G = np.column_stack([-x, p[0] * np.eye(3) - skew])
        omega = 2 * G @ pdot
        a = column(fd(p, pdot, np.zeros(4))[0])
        # the rate of omega: 2 G a, since dG/dt pdot = 0 on any p
        omega_dot = 2 * G @ a
        expected = np.linalg.solve(I, -np.cross(omega, I @ omega))
        np.testing.assert_allclose(omega_dot, expected, rtol=1e-10, atol=1e-10)
        assert abs(p @ a + pdot @ pdot) < 1e-10


def test_formulations_that_invert_m_refuse_a_singular_one_by_name():
    with pytest.raises(err.UnsupportedFeatureError, match=r"'projection'.*positive definite"):
        forward_dynamics(euler_parameters(), "projection", inertia="M_c")


def test_an_unknown_option_is_named():
    with pytest.raises(err.UnknownNameError, match="'rooot'"):
        forward_dynamics(euler_parameters(), "lagrange", rooot="cholesky")
