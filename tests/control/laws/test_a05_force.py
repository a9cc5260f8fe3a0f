"""A05's force laws: the constraint force is the desired one, and the sampled loop's limits hold."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from a05_mechanisms import closed_states, model_text, motion_under, outputs_of, projector, system_of
from numpy.testing import assert_allclose, assert_array_equal

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi.control.laws import (
    ForceGains,
    LawOptions,
    constraint_force_control,
    hybrid_motion_force_control,
    joint_coordinates,
    multiplier_tracking,
    within_limits,
)
from mbcasadi.formulation.projection_forces import coupling, normal_acceleration
from mbcasadi.system import read_mjcf

EXACT = 1e-8  # of forces of order 100, poses closed to 1e-10
PERIOD = 1e-3
PI = ForceGains(0.4, 60.0)
SURFACE = ("surface.2",)


def free_limits(system):
    return np.tile([-1e6, 1e6], (system.nu, 1))


def hybrid(name, joints, gains=None, rows=None, **options):
    gains = gains if rows is None else replace(gains or ForceGains(), rows=rows)
    system = system_of(name)
    theta = joint_coordinates(system, joints)
    options = {
        "options": LawOptions(ctrl_limits=free_limits(system)),
        "kp": 30.0,
        "kd": 4.0,
    } | options
    return hybrid_motion_force_control(system, theta, gains, **options)


@pytest.mark.parametrize("metric", [None, np.diag([4.0, 1.0, 2.0])])
@pytest.mark.parametrize("gains", [None, PI])
def test_motion_and_force_are_both_the_desired_ones(gains, metric):
    system = system_of("slider_crank_driven")
    law = hybrid("slider_crank_driven", ("crank",), gains, metric=metric)
    q, v = closed_states(system, 20)
    n, rng = q.shape[1], np.random.default_rng(7)
    ref = np.vstack([rng.standard_normal((3, n)), 20 * rng.standard_normal((3, n))])
    A = [system.constraint_jacobian(x).full() for x in q.T]
    measured = np.column_stack([a.T @ rng.standard_normal(3) for a in A])
    held = np.column_stack([a.T @ rng.standard_normal(3) for a in A])
    out = outputs_of(law, q, v, ref, z=held if gains else None, f_c=measured)
    assert_array_equal(out["status"], 0)
    a, f_c = motion_under(system, q, v, out["u"])
    second = ref[2] + 4.0 * (ref[1] - v[0]) + 30.0 * (ref[0] - q[0])
    assert_allclose(a[0], second, rtol=EXACT, atol=EXACT)
    desired = np.column_stack([a.T @ lam for a, lam in zip(A, ref[3:].T, strict=True)])
    if gains is None:
        assert_allclose(f_c, desired, atol=EXACT)
        return
    error = desired - measured
    integral = held + gains.integral * PERIOD * error
    assert_allclose(out["z_next"], integral, atol=EXACT)
    assert_allclose(f_c, desired + gains.proportional * error + integral, atol=EXACT)


def test_the_hybrid_law_is_the_papers_equation_with_m_on_the_velocity_term():
    """f = h + μ C_c v + (I + μ) P M u_p - u_F, with `C_c v = M (I - P) a`, not `(I - P) a`."""
    system = system_of("slider_crank_driven")
    law = hybrid("slider_crank_driven", ("crank",))
    q, v = closed_states(system, 6)
    v = 3 * v
    lam = np.array([0.0, 0.0, 12.0])
    ref = np.concatenate([[1.0, 0.5, 2.0], lam])
    n = q.shape[1]
    f = system.actuation(q[:, 0]).full() @ outputs_of(law, q, v, ref)["u"]
    u_p = law.desired.map(n)(q=q, v=v, ref=np.tile(ref[:, None], n))["a"].full()
    for i in range(n):
        P = projector(system, q[:, i])
        M = system.mass_matrix(q[:, i]).full()
        A = system.constraint_jacobian(q[:, i]).full()
        h = (system.bias_force(q[:, i], v[:, i]) - system.passive_force(q[:, i], v[:, i])).full()
        c = system.constraint_bias(q[:, i], v[:, i]).full()
        mu = np.array(numeric(coupling, M, P))
        across = normal_acceleration(np.linalg.pinv(A, 1e-9), c)
        eye = np.eye(3)
        rest = (eye + mu) @ P @ M @ u_p[:, [i]] - A.T @ lam[:, None] + h
        assert_allclose(f[:, [i]], rest + mu @ M @ across, atol=1e-6)
        assert np.abs(mu @ (M - eye) @ across).max() > 1e-3  # the printed form differs


def numeric(function, *matrices):
    """Evaluate a matrix function of SX on numbers."""
    symbols = [ca.SX.sym(f"x{i}", *m.shape) for i, m in enumerate(matrices)]
    return ca.Function("f", symbols, [function(*symbols)])(*matrices).full()


def test_the_force_law_leaves_the_motion_to_its_commander():
    system = system_of("slider_crank_driven")
    law = constraint_force_control(system, options=LawOptions(ctrl_limits=free_limits(system)))
    q, v = closed_states(system, 20)
    n, rng = q.shape[1], np.random.default_rng(8)
    lam, moving = 30 * rng.standard_normal((3, n)), 10 * rng.standard_normal((3, n))
    a, f_c = motion_under(system, q, v, outputs_of(law, q, v, np.vstack([lam, moving]))["u"])
    unforced, other = motion_under(system, q, v, moving)
    A = [system.constraint_jacobian(x).full() for x in q.T]
    desired = np.column_stack([a.T @ x for a, x in zip(A, lam.T, strict=True)])
    assert np.abs(other - desired).max() > 10
    assert_allclose(a, unforced, atol=EXACT * 100)
    assert_allclose(f_c, desired, atol=EXACT * 100)


@pytest.mark.parametrize("gains", [None, PI])
def test_where_joints_are_passive_the_motion_comes_first_and_chosen_multipliers_follow(gains):
    """The carriage at the arm's tip has no motor: the force along the surface is the motion's."""
    system = system_of("prr_arm")
    law = hybrid("prr_arm", ("tip", "q2"), gains, rows=SURFACE)
    q, v = closed_states(system, 20)
    ref = np.concatenate([np.zeros(6), [50.0]])
    f_c = np.zeros(q.shape)
    out = outputs_of(law, q, v, ref, z=[2.0] if gains else None, f_c=f_c)
    assert_array_equal(out["status"], 0)
    a, f_c = motion_under(system, q, v, out["u"])
    desired = -4.0 * v[[3, 1]] - 30.0 * q[[3, 1]]
    assert_allclose(a[[3, 1]], desired, rtol=EXACT, atol=EXACT)
    A = [system.constraint_jacobian(x).full() for x in q.T]
    lam = np.column_stack([np.linalg.pinv(a.T, 1e-9) @ f for a, f in zip(A, f_c.T, strict=True)])
    pressed = 50.0 if gains is None else 50.0 * 1.4 + 2.0 + 60.0 * PERIOD * 50.0
    assert_allclose(lam[2], pressed, rtol=1e-8)
    assert np.ptp(lam[0]) > 1


def test_what_the_motors_cannot_press_is_reported():
    law = hybrid("prr_arm", ("tip", "q2"))  # the whole force, which three motors cannot give
    q, v = closed_states(system_of("prr_arm"), 5)
    out = outputs_of(law, q, v, np.concatenate([np.zeros(6), [0.0, 0.0, 50.0]]))
    assert_array_equal(out["status"], 2)
    a, _ = motion_under(system_of("prr_arm"), q, v, out["u"])
    assert_allclose(a[[3, 1]], -4.0 * v[[3, 1]] - 30.0 * q[[3, 1]], atol=1e-6)
    assert_allclose(out["residual"][:4], 0, atol=1e-8)  # motion
    assert np.abs(out["residual"][4:8]).max() > 1  # force


def test_a_row_that_is_off_wants_no_force_and_its_integral_is_forgotten():
    system = read_mjcf(model_text("prr_arm"), switchable=True)
    theta = joint_coordinates(system, ("q1", "q2"))
    law = hybrid_motion_force_control(
        system,
        theta,
        replace(PI, rows=SURFACE),
        options=LawOptions(ctrl_limits=free_limits(system)),
    )
    q, v = closed_states(system_of("prr_arm"), 5)
    ref, f_c = np.concatenate([np.zeros(6), [50.0]]), np.full(q.shape, 3.0)
    touching = outputs_of(law, q, v, ref, z=[2.0], f_c=f_c, mask=[1.0])
    assert np.abs(touching["z_next"] - 2.0).min() > 1
    lifted = outputs_of(law, q, v, ref, z=[2.0], f_c=f_c, mask=[0.0])
    assert_array_equal(lifted["z_next"], 0)
    other = outputs_of(law, q, v, np.zeros(7), z=[0.0], f_c=f_c, mask=[0.0])
    assert_array_equal(lifted["u"], other["u"])


def test_the_qp_takes_a_law_that_measures_the_force_as_it_is():
    system = system_of("prr_arm")
    law = hybrid("prr_arm", ("tip", "q2"), PI, rows=SURFACE)
    wrapped = within_limits(law)
    q, v = closed_states(system, 3)
    for i in range(q.shape[1]):
        state = [q[:, i], v[:, i], np.full(4, 3.0), np.concatenate([np.zeros(6), [50.0]])]
        ours = law.function(*state, np.append([2.0], law.controller.z0[1:]))
        theirs = wrapped.function(*state, np.append([2.0], wrapped.controller.z0[1:]))
        assert_array_equal(theirs[0].full(), ours[0].full())
        assert float(theirs[1][0]) == float(ours[1][0]) != 2.0


@pytest.mark.parametrize("delay", [1, 2, 3])
@pytest.mark.parametrize("proportional", [0.0, 0.5, 0.95, 1.05])
@pytest.mark.parametrize("integral", [0.0, 0.02, 0.6, 2.2])
def test_the_radius_decides_whether_the_sampled_loop_converges(proportional, integral, delay):
    gains = ForceGains(proportional, integral / PERIOD, delay)
    radius, errors, total = gains.radius(PERIOD), [1.0] * delay, 0.0
    for _ in range(600):
        measured = errors[-delay]
        total += integral * measured
        errors.append(1.0 - (proportional * measured + total))  # one is what the model missed
    settles = np.ptp(errors[-20:]) < 1e-3 * max(1.0, abs(errors[0]))
    if abs(radius - 1) > 0.02:
        assert settles == (radius < 1)
    if delay == 1:
        stable = proportional < 1 and (integral < 2 * (1 - proportional))
        assert (radius < 1) == stable or (proportional == 0 and integral == 0)


def test_gains_that_diverge_are_refused_and_the_message_names_those_that_do_not():
    system = system_of("slider_crank_driven")
    for gains in (ForceGains(1.0), ForceGains(0.5, 1001.0), ForceGains(0.5, 600.0, delay=3)):
        with pytest.raises(err.ProblemError, match=r"diverges.*G_F < 1"):
            constraint_force_control(system, gains)
    constraint_force_control(system, ForceGains(1.1, allow_unstable=True))
    with pytest.raises(err.ProblemError, match="proportional = -1"):
        constraint_force_control(system, ForceGains(-1.0))
    with pytest.raises(err.ProblemError, match="delay = 0; expected a whole number, at least 1"):
        constraint_force_control(system, ForceGains(0.1, delay=0))
    with pytest.raises(err.UnknownNameError, match=r"'pin\.2'"):
        constraint_force_control(system, ForceGains(rows=("pin.5",)))


def test_the_integrator_does_not_step_further_into_saturation_and_comes_out_of_it():
    system = system_of("slider_crank_driven")
    law = constraint_force_control(
        system, ForceGains(0.0, 100.0), options=LawOptions(ctrl_limits=np.tile([-5.0, 5.0], (3, 1)))
    )
    q = np.array(system.tree.q0)[:, None]
    A = system.constraint_jacobian(q).full()
    moving = np.zeros(3)
    ref = np.concatenate([[0.0, 0.0, 100.0], moving])
    desired = A.T @ ref[:3]
    integral = 0.5 * desired
    weak = outputs_of(law, q, 0 * q, ref, z=integral, f_c=0.2 * desired)
    assert weak["status"] == 1
    assert_allclose(weak["z_next"][:, 0], integral, atol=EXACT)  # not further
    strong = outputs_of(law, q, 0 * q, ref, z=integral, f_c=1.2 * desired)
    assert strong["status"] == 1
    back = integral - 0.2 * 100.0 * PERIOD * desired
    assert_allclose(strong["z_next"][:, 0], back, atol=EXACT)


def test_multiplier_tracking_names_dependent_rows():
    report = multiplier_tracking(system_of("slider_crank"), system_of("slider_crank").tree.q0)
    assert (report.rank, report.rows, report.controllable, report.least) == (2, 3, False, 0.0)
    assert "1 of 3 rows depend on the others" in report.in_words
    q, v = (ca.SX.sym(name, 2) for name in "qv")
    circle = mb.from_equations(q, v, M=np.eye(2), h=np.zeros(2), B=np.eye(2), phi=q[0] * 3 - q[1])
    report = multiplier_tracking(circle, [0.0, 0.0])
    assert report.controllable
    assert_allclose(report.least, np.sqrt(10.0))
    assert "‖e_lam‖ <= ‖e_F‖ / 3.16" in report.in_words
