"""A10's laws: a reduced law in joint space, force and motion apart, errors that decay."""

import functools

import casadi as ca
import numpy as np
import pytest
from a10_motions import (
    K_D,
    K_P,
    STRONG,
    coordinates_of,
    flat,
    length_of_error,
    motion_fun,
    on_rows,
    papers_reference,
    run_of,
    states,
    swing_of,
    system_of,
    theta_of,
)
from numpy.testing import assert_allclose
from support.refusals import refused

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi.control.laws import (
    ForceGains,
    LawOptions,
    function_coordinates,
    gain_condition,
    quasi_velocity_force,
    quasi_velocity_tracking,
)
from mbcasadi.dynamics import quasi_velocity_terms
from mbcasadi.formulation.quasi_velocity_equations import free_basis_near

ROUNDING = 1e-9
STEP = 1e-5  # s, of central differences; their error is 1e-9 times third derivatives
FROM_DIFFERENCES = 1e-6


@pytest.mark.parametrize("name", ["twin", "five_bar", "planar_3rrr", "planar_3rrr open"])
def test_s_moves_theta_at_the_desired_rate_and_its_rate_is_its_derivative(name):
    system, theta = system_of(name.removesuffix(" open")), coordinates_of(name)
    f, rng = motion_fun(system, theta), np.random.default_rng(1)
    for q, v in zip(*states(system, 4), strict=True):
        place, rate, second = rng.standard_normal((3, len(theta.names)))

        def s_at(t, q=q, v=v, place=place, rate=rate, second=second):
            ahead = [place + t * rate + t * t / 2 * second, rate + t * second, second]
            return flat(*f(on_rows(system, q + t * v), v, np.concatenate(ahead)))[0]

        s, s_dot, *_ = flat(*f(q, v, np.concatenate([place, rate, second])))
        now, J = flat(theta.theta(q))[0], theta.rows(q, v)[1].full()
        assert_allclose(system.constraint_jacobian(q).full() @ s, 0, atol=ROUNDING)
        assert_allclose(J @ s, rate + K_P * (place - now), atol=ROUNDING)
        slope = (s_at(STEP) - s_at(-STEP)) / (2 * STEP)
        assert_allclose(s_dot, slope, atol=FROM_DIFFERENCES * (1 + abs(slope).max()))


@pytest.mark.parametrize("name", ["twin", "five_bar"])
def test_the_force_is_the_papers_law_in_reduced_quasi_velocities(name):
    """(39) with Γ_r of (30) in the gauge of parallel transport, its rates by differences."""
    system, theta = system_of(name), coordinates_of(name)
    f, terms, rng = (
        motion_fun(system, theta),
        quasi_velocity_terms(system),
        np.random.default_rng(2),
    )
    k, n = min(system.nc, system.nv), system.nv
    V1, V_ref = ca.SX.sym("V1", n, k), ca.SX.sym("V", n, n)
    near = ca.Function("near", [V1, V_ref], [free_basis_near(V1, V_ref)])
    for q, v in zip(*states(system, 4), strict=True):
        place, rate, second = rng.standard_normal((3, len(theta.names)))
        here = terms(q, v, 0)
        names = terms.name_out()
        now = {n: np.array(x) for n, x in zip(names, here, strict=True)}
        W, V2 = now["W"], now["V2"]

        def reduced(t, q=q, v=v, V2=V2, names=names, ref=(place, rate, second)):
            """s_r along the motion, V2 carried without turning within its space."""
            place, rate, second = ref
            ahead = [place + t * rate + t * t / 2 * second, rate + t * second, second]
            there = on_rows(system, q + t * v)
            other = dict(zip(names, terms(there, v, 0), strict=True))
            basis = near(other["V1"], V2).full()
            s = flat(*f(there, v, np.concatenate(ahead)))[0]
            return basis.T @ np.array(other["W"]).T @ s

        s, _, _, force, _ = flat(*f(q, v, np.concatenate([place, rate, second])))
        s_r = V2.T @ W.T @ s
        slope = (reduced(STEP) - reduced(-STEP)) / (2 * STEP)
        epsilon = V2.T @ W.T @ (v - s)
        u_r = slope + now["Gamma_r"] @ s_r - K_D * epsilon
        still = system.gravity_force(q).full().ravel() - system.passive_force(q, v).full().ravel()
        actual = V2.T @ np.linalg.solve(W, force - still)
        assert_allclose(actual, u_r, atol=FROM_DIFFERENCES * (1 + abs(u_r).max()))
        skew = now["Gamma_r"]
        assert abs(skew).max() > 1e-4
        assert_allclose(skew, -skew.T, atol=1e-12)


@pytest.mark.parametrize(("name", "rows"), [("twin", ("phi0.0",)), ("prr_arm", ("surface.2",))])
def test_the_force_is_the_desired_one_and_the_motion_that_of_tracking(name, rows):
    """(47): the force has no say in the motion, and the motion none in the force."""
    system, theta = system_of(name), coordinates_of(name)
    strong = {"options": LawOptions(ctrl_limits=np.tile([-STRONG, STRONG], (system.nu, 1)))}
    gains = ForceGains(rows=rows)
    law = quasi_velocity_force(system, theta, gains=gains, kp=K_P, kd=K_D, **strong)
    plain = quasi_velocity_tracking(system, theta, kp=K_P, kd=K_D, **strong)
    fd, rng = mb.forward_dynamics(system, "lagrange", derivatives=False), np.random.default_rng(7)
    row = int(rows[0].split(".")[1])
    for q, v in zip(*states(system, 6, seed=7), strict=True):
        ref, lam = rng.standard_normal(6), 50 * rng.standard_normal()
        u, _, status, _, missing = law.function(q, v, [*ref, lam], [])
        u_plain = plain.function(q, v, ref, [])[0]
        a, _, f_c = fd(q, v, system.actuation(q) @ u)  # motors without limits
        a_plain, _, lam_plain = fd(q, v, system.actuation(q) @ u_plain)
        assert float(status) == 0
        assert abs(float(lam_plain[row]) - lam) > 1e-3
        assert_allclose(float(f_c[row]), lam, atol=1e-8)
        assert_allclose(a.full(), a_plain.full(), atol=1e-7)
        assert_allclose(a.full(), law.desired(q, v, [*ref, lam], [])[0], atol=1e-7)
        assert_allclose(missing.full(), 0, atol=1e-7)


def test_a_row_that_is_switched_off_frees_its_motion_and_the_law_follows():
    system = system_of("twin").with_mask()
    q3 = ca.SX.sym("q", 3)
    theta = function_coordinates(system, ca.Function("theta", [q3], [theta_of(q3)]))
    strong = np.tile([-STRONG, STRONG], (3, 1))
    law = quasi_velocity_tracking(
        system, theta, kp=K_P, kd=K_D, options=LawOptions(ctrl_limits=strong)
    )
    fd, rng = mb.forward_dynamics(system, "lagrange", derivatives=False), np.random.default_rng(9)
    for on in (0.0, 1.0):
        for q, v in zip(*states(system_of("twin"), 3, seed=9), strict=True):
            ref = rng.standard_normal(6)
            u, _, status, *_ = law.function(q, v, ref, [on], [])
            a = fd(q, v, u, [on])[0]
            assert float(status) == 0
            desired = law.desired(q, v, ref, [on], [])[0]
            assert_allclose(a.full(), desired.full(), atol=1e-8)


def test_what_does_not_fit_is_refused_by_name():
    five_bar, theta = system_of("five_bar"), coordinates_of("five_bar")
    refused(err.ProblemError, "kp = 0", lambda: quasi_velocity_tracking(five_bar, theta, kp=0.0))
    with pytest.raises(err.ProblemError, match=r"kd has shape \(2,\), expected a number or \(4,\)"):
        quasi_velocity_tracking(five_bar, theta, kd=[1.0, 2.0])
    with pytest.raises(err.UnknownNameError, match=r"'pin.3'.*'pin.2'"):
        quasi_velocity_force(five_bar, theta, gains=ForceGains(rows=("pin.3",)))
    with pytest.raises(err.ProblemError, match="diverges"):
        quasi_velocity_force(five_bar, theta, gains=ForceGains(1.5))
    with pytest.raises(err.ShapeError, match=r"\(1, 3\).*\(1, 4\)"):
        gain_condition(five_bar, theta, [[0.0] * 3], [[0.0] * 4])
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    moving = mb.from_equations(
        q, v, M=ca.DM.eye(2), h=ca.SX.zeros(2), B=ca.DM.eye(2), A=ca.DM([[1, 0]]), a0=ca.DM([1])
    )
    one = function_coordinates(moving, ca.Function("theta", [q], [q[1]]))
    with pytest.raises(err.UnsupportedFeatureError, match="rows that are not"):
        quasi_velocity_tracking(moving, one)


INTEGRATION = 1e-6  # √kg m/s, of a motion at rtol 1e-8


def test_the_composite_error_of_the_papers_arm_decays_at_exactly_the_gain():
    """(41) corrected: equality for a number K_d. The arm starts at rest beside its path."""
    system, theta = system_of("twin"), coordinates_of("twin")
    strong = np.tile([-STRONG, STRONG], (3, 1))
    law = quasi_velocity_tracking(
        system, theta, kp=K_P, kd=K_D, options=LawOptions(ctrl_limits=strong)
    )
    place, lean = 0.4, np.pi / 12 + 0.2
    q2 = -np.arccos(place - np.sin(lean))
    q0 = np.array([np.cos(lean) - np.sin(q2), q2, lean + 1.5 * np.pi - q2])
    run = run_of(system, law, q0, np.zeros(3), 2.0, functools.partial(papers_reference, law))
    errors = length_of_error(system, theta, run)
    assert errors[0] > 1.0
    assert_allclose(errors, errors[0] * np.exp(-K_D * run[0]), atol=INTEGRATION)


def test_so_does_that_of_a_loop_with_passive_joints():
    system, theta = system_of("five_bar"), coordinates_of("five_bar")
    strong = np.tile([-STRONG, STRONG], (2, 1))
    law = quasi_velocity_tracking(
        system, theta, kp=K_P, kd=K_D, options=LawOptions(ctrl_limits=strong)
    )
    q, v = (each[0] for each in states(system, 1, seed=4))
    run = run_of(system, law, q, v, 1.5, swing_of(law, flat(theta.theta(q))[0] + [0.1, -0.1]))
    errors = length_of_error(system, theta, run)
    assert errors[0] > 0.1
    assert_allclose(errors, errors[0] * np.exp(-K_D * run[0]), atol=INTEGRATION)


def test_with_unequal_gains_the_error_stays_below_the_bound_of_the_least():
    system, theta = system_of("planar_3rrr"), coordinates_of("planar_3rrr open")
    kd = np.linspace(4.0, 12.0, system.nv)
    strong = np.tile([-STRONG, STRONG], (system.nu, 1))
    law = quasi_velocity_tracking(
        system, theta, kp=K_P, kd=kd, allow_free=True, options=LawOptions(ctrl_limits=strong)
    )
    q, v = (each[0] for each in states(system, 1, seed=5))
    run = run_of(system, law, q, v, 0.6, swing_of(law, flat(theta.theta(q))[0]))
    errors, bound = length_of_error(system, theta, run), np.exp(-4.0 * run[0])
    assert np.all(errors <= errors[0] * bound + 1e-7)
    assert errors[-1] < 0.7 * errors[0] * bound[-1]


def test_the_coordinates_stay_below_their_bound_and_the_condition_is_explained():
    """(45) corrected, with c_b of the motion itself."""
    system, theta = system_of("five_bar"), coordinates_of("five_bar")
    strong = np.tile([-STRONG, STRONG], (system.nu, 1))
    law = quasi_velocity_tracking(
        system, theta, kp=K_P, kd=K_D, options=LawOptions(ctrl_limits=strong)
    )
    q, v = (each[0] for each in states(system, 1, seed=6))
    run = run_of(system, law, q, v, 1.5, swing_of(law, flat(theta.theta(q))[0] + [0.2, 0.1]))
    epsilon = length_of_error(system, theta, run)
    now = theta.theta.map(len(run[0]))(run[1].T).full()
    error = np.linalg.norm(now - run[3][:, :2].T, axis=0)
    condition = gain_condition(system, theta, run[1], run[2], kp=K_P, kd=K_D)
    bound = condition.bound(run[0], error[0], epsilon[0])
    assert error[0] > 0.1
    assert np.all(error <= bound * (1 + 1e-6))
    assert bound[-1] < 0.2 * bound.max()
    assert condition.holds == (condition.c_l * condition.c_v < K_P)
    assert f"{condition.required:.3g} 1/s" in condition.in_words
    weak = gain_condition(system, theta, run[1], 100 * run[2], kp=K_P, kd=K_D)
    assert not weak.holds
    assert "does not hold" in weak.in_words


def test_the_constants_of_the_gain_condition_are_those_of_a_particle():
    """A mass m in the plane with θ = (x²/2, y): B = diag(x, 1)/√m, dB/dθ1 = 1/(x √m)."""
    mass, x, y = 4.0, 0.5, 2.0
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    system = mb.from_lagrangian(q, v, kinetic=mass / 2 * ca.sumsqr(v), B=ca.DM.eye(2))
    theta = ca.Function("theta", [q], [ca.vertcat(q[0] ** 2 / 2, q[1])])
    condition = gain_condition(system, function_coordinates(system, theta), [[x, y]], [[3.0, 4.0]])
    constants = (condition.c_b, condition.c_l, condition.c_v)
    expected = (np.hypot(x, 1) / np.sqrt(mass), 1 / (x * np.sqrt(mass)), 5 * np.sqrt(mass))
    assert_allclose(constants, expected, rtol=1e-12)
    equal = gain_condition(
        system, function_coordinates(system, theta), [[x, y]], [[0.0, 0.0]], kp=2.0, kd=2.0
    )
    near = gain_condition(
        system, function_coordinates(system, theta), [[x, y]], [[0.0, 0.0]], kp=2.0, kd=2.0001
    )
    assert_allclose(equal.bound(0.7, 1, 2), near.bound(0.7, 1, 2), rtol=1e-4)
