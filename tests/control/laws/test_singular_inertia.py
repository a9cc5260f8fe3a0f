"""Laws on a mechanism with a massless coordinate: M is singular, and definite on null(A)."""

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi.control import PostureTask, laws

MASS, GRAVITY, LENGTH = 2.0, 9.81, 1.3
EXACT = 1e-9  # of forces of order 100
WIDE = np.tile([-1e6, 1e6], (3, 1))
RNG = np.random.default_rng(5)


def rod_with_a_cam(mask=False):
    """A point mass on a circle; the massless coordinate s follows it, and one row repeats."""
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    circle, cam = q[0] ** 2 + q[1] ** 2 - LENGTH**2, q[2] - q[0] * q[1]
    system = mb.from_equations(
        q,
        v,
        M=np.diag([MASS, MASS, 0.0]),
        h=ca.vertcat(0, MASS * GRAVITY, 0),
        B=np.eye(3),
        phi=ca.vertcat(circle, cam, circle + 2 * cam),
        ctrl_range=WIDE,
    )
    return system.with_mask() if mask else system


def state(angle, speed):
    x, y = LENGTH * np.cos(angle), LENGTH * np.sin(angle)
    v = speed * np.array([-y, x])
    return np.array([x, y, x * y]), np.array([*v, v[0] * y + x * v[1]])


def matrices(q, v):
    """A and `c = Ȧ v`, by hand."""
    circle, cam = 2 * np.array([q[0], q[1], 0]), np.array([-q[1], -q[0], 1])
    c = np.array([2 * (v[0] ** 2 + v[1] ** 2), -2 * v[0] * v[1]])
    return np.array([circle, cam, circle + 2 * cam]), np.array([c[0], c[1], c[0] + 2 * c[1]])


def motion_under(q, v, f):
    """a and the constraint force, from the equations with multipliers by least squares."""
    A, c = matrices(q, v)
    M, h = np.diag([MASS, MASS, 0.0]), np.array([0, MASS * GRAVITY, 0])
    K = np.block([[M, -A.T], [A, np.zeros((3, 3))]])
    x = np.linalg.lstsq(K, np.concatenate([f - h, -c]), rcond=1e-12)[0]
    return x[:3], A.T @ x[3:]


@pytest.mark.parametrize("metric", [None, np.diag([4.0, 1.0, 2.0])])
def test_the_constraint_force_is_the_desired_one_and_the_motion_is_unchanged(metric):
    law = laws.constraint_force_control(rod_with_a_cam(), metric=metric)
    for angle, speed in RNG.uniform(-3, 3, (6, 2)):
        q, v = state(angle, speed)
        A, _ = matrices(q, v)
        f, lam = RNG.normal(size=3) * 20, RNG.normal(size=3) * 20
        weight = np.eye(3) if metric is None else metric
        B = np.linalg.svd(A)[2][2:]  # the free motion
        moving = weight @ B.T @ np.linalg.solve(B @ weight @ B.T, B @ f)
        ref = law.reference(motion_f=f, force_lam=lam)
        u, _, status, *_ = law.function(q, v, ref, [])
        a, f_c = motion_under(q, v, np.array(u).ravel())
        a_wanted, _ = motion_under(q, v, moving)
        assert status == 0
        assert_allclose(a, a_wanted, atol=EXACT)
        assert_allclose(f_c, A.T @ lam, atol=EXACT)
        assert_allclose(np.array(law.desired(q, v, ref, [])[0]).ravel(), a, atol=EXACT)


def all_laws(system):
    """Laws that need no inverse of M itself, with the slices that they are tested with."""
    theta = laws.joint_coordinates(system, ("q_0",))
    task = PostureTask(kp=9.0)
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    servo = laws.servo_rows(system, q, v, phi=q[0] - 0.3)
    return {
        "computed_torque": laws.computed_torque(system, task),
        "qr": laws.qr_inverse_dynamics(system, task),
        "projected": laws.projected_inverse_dynamics(system, theta),
        "passive": laws.passive_joint_control(system, theta),
        "hybrid": laws.hybrid_motion_force_control(system, theta),
        "pd": laws.gravity_compensated_pd(system, task, stiffness=30.0, damping=3.0),
        "regulation": laws.dependent_regulation(system, kp=5.0, kd=2.0),
        "tracking": laws.dependent_tracking(system, kd=2.0),
        "servo": laws.servo_control(system, servo),
    }


def test_every_other_law_moves_a_massless_coordinate_as_it_says():
    for name, law in all_laws(rod_with_a_cam()).items():
        for angle, speed in ((0.4, 1.5), (2.0, -0.7)):
            q, v = state(angle, speed)
            ref = RNG.normal(size=law.function.size1_in("ref"))
            if name == "servo":
                ref[law.reference_slices["off"]] = 0
            out = law.function.call([q, v, ref, []])
            a, _ = motion_under(q, v, np.array(out[0]).ravel())
            desired = np.array(law.desired.call([q, v, ref, []])[0]).ravel()
            assert out[2] == 0, name
            assert_allclose(desired, a, atol=EXACT, err_msg=name)


def test_without_its_row_the_massless_coordinate_gives_the_status_of_no_solution():
    system = rod_with_a_cam(mask=True)
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    servo = laws.servo_rows(system, q, v, phi=q[0] - 0.3)
    q, v = state(0.4, 1.5)
    for law in (laws.constraint_force_control(system), laws.servo_control(system, servo)):
        ref = 0 * law.reference() + 1
        for mask, expected in (([1, 1, 1], 0), ([1, 0, 1], 0), ([1, 0, 0], 4), ([0, 0, 0], 4)):
            ref[law.reference_slices.get("off", slice(0, 0))] = 0
            last = law.controller.z0.copy()
            last[-3 * system.nu - 1 :][: system.nu], last[-1] = 0.01, 1  # solved in the tick before
            u, _, status, *_ = law.function(q, v, ref, mask, last)
            assert status == expected, (law.controller.name, mask)
            assert expected == 0 or np.all(np.array(u) == 0.01)


def test_what_needs_the_inverse_of_m_is_refused_by_name():
    system = rod_with_a_cam()
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    servo = laws.servo_rows(system, q, v, phi=q[0] - 0.3)
    theta, task = laws.joint_coordinates(system, ("q_0",)), PostureTask()
    for build in (
        lambda: laws.servo_control(system, servo, form="figures"),
        lambda: laws.impedance_control(system, task, stiffness=1.0, damping=1.0),
        lambda: laws.quasi_velocity_tracking(system, theta),
        lambda: laws.quasi_velocity_force(system, theta),
    ):
        with pytest.raises(err.UnsupportedFeatureError, match="M of 'equations' is singular"):
            build()
