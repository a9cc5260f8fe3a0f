"""Forces and controls of actuators that carry a robot at rest on the feet that stand."""

from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.least_contact_forces import least_contact_forces
from support.legs_with_rods import standing
from support.small_walker import LEGS, small_walker, standing_pose

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.control import RigidSprings
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.mpc.whole_body.static_references import static_references

G = 9.81
SLOPE = (0.2, -0.1, 1.0)
MOTORS = small_walker()
SERVOS = MOTORS.replace("<motor joint", '<position kp="200" kv="4" joint').replace(
    "ctrlrange", "forcerange"
)


@cache
def walker(text, normal=(0.0, 0.0, 1.0), shift=False):
    """Return the walker with its feet as rows, its pose, the normal, and the references."""
    turn = Rotation.align_vectors([normal], [[0, 0, 1]])[0]
    system, unit = mb.read_mjcf(text), np.array(normal) / np.linalg.norm(normal)
    q0 = standing_pose(system)
    q0[:3], q0[3:7] = turn.apply(q0[:3]), turn.as_quat(scalar_first=True)
    feet = [mb.Contact(name, friction=0.6, normal=tuple(normal)) for name in LEGS]
    touching = mb.with_contacts(system, feet, q0).with_mask()
    return touching, q0, unit, static_references(touching, feet, q0, unit, 0.02, shift=shift)


def turned(q0, normal, angle):
    """Return a pose turned about the normal and moved."""
    q, turn = q0.copy(), Rotation.from_rotvec(angle * normal)
    q[:3] += [2.0, -1.0, 0.0]
    q[3:7] = (turn * Rotation.from_quat(q[3:7], scalar_first=True)).as_quat(scalar_first=True)
    return q


@cache
def motion_of(system):
    """Return its forward dynamics."""
    return mb.forward_dynamics(system, derivatives=False)


def acceleration(system, q, u, mask, d):
    """Return the acceleration at rest under controls and a further force."""
    motion, still = motion_of(system), np.zeros(18)
    f = d + system.actuation(q) @ u + system.actuator_bias(q, still)
    known = {"q": q, "v": still, "f": f, "mask": mask, "t": 0.0}
    return np.array(motion(**{key: known[key] for key in motion.name_in()})["a"]).ravel()


@pytest.mark.parametrize("text", [MOTORS, SERVOS], ids=["motors", "servos"])
@pytest.mark.parametrize("normal", [(0.0, 0.0, 1.0), SLOPE], ids=["level", "slope"])
@pytest.mark.every(3)
def test_a_robot_that_stands_with_these_controls_stays(text, normal):
    system, q0, unit, static = walker(text, normal)
    rng = np.random.default_rng(0)
    for off in ({}, {"FL": 0}):
        mask = mb.row_mask(system, off)
        for angle in (0.0, 0.8, -2.5):
            q, d = turned(q0, unit, angle), rng.normal(size=18)
            if off:  # three feet carry no side load that turns it
                d[:6] = 0
            _, u = static(q, mask, d)
            a = acceleration(system, q, u, mask, d)
            assert np.abs(a).max() < 2e-3 * G, (off, angle)


@pytest.mark.parametrize("text", [MOTORS, SERVOS], ids=["motors", "servos"])
def test_a_robot_with_its_base_shifted_stays_with_the_controls_of_its_own_pose(text):
    """With those of q0 it does not."""
    system, q0, unit, static = walker(text, SLOPE, shift=True)
    of_q0, d = walker(text, SLOPE)[3], np.linspace(-1, 1, 18)
    on = np.ones(system.nc)
    np.testing.assert_allclose(static(q0, on, d)[0], of_q0(q0, on, d)[0], atol=1e-6)
    q = turned(q0, unit, 0.8)
    q[7:] += 0.2 * np.cos(np.arange(12))
    for references, least, most in ((static, 0.0, 2e-3 * G), (of_q0, 0.02 * G, np.inf)):
        u = references(q, on, d)[1]
        assert least <= np.abs(acceleration(system, q, u, on, d)).max() < most


@pytest.mark.long
def test_plans_have_the_controls_of_their_shifted_setpoint():
    system, still = mb.read_mjcf(MOTORS), np.zeros(18)
    q0, feet = standing_pose(system), [mb.Contact(name, friction=0.6) for name in LEGS]
    options = mpc.WholeBodyOptions(shift=True)
    whole = mpc.whole_body_mpc(system, 3, 0.02, feet, q0=q0, options=options)
    command = [0, 0, 0, 0.03, -0.02, -0.02, 0.05, 0.0, 0.1]
    ref = whole.references(q0, still, command, still, whole.u0, 0.0, 0.0, whole.z0)[2]
    p, places = ref.full().reshape(4, -1)[2], slot_slices(whole.plan.ocp.slots)
    q, u = p[places["setpoint.q"]], p[places["setpoint.u"]]
    assert np.abs(q - q0).max() > 0.03
    touching = walker(MOTORS)[0]
    a = acceleration(touching, q, u, np.ones(touching.nc), still)
    assert np.abs(a).max() < 2e-3 * G


def test_forces_are_those_of_the_controls():
    system, q0, _, static = walker(SERVOS)
    p, u = (np.array(x).ravel() for x in static(q0, np.ones(system.nc), np.zeros(18)))
    np.testing.assert_allclose(p, 200 * (u - q0[7:]), atol=1e-9)
    assert np.abs(p).max() > 1


def test_what_no_foot_carries_falls_with_its_joints_at_rest():
    system, q0, _, static = walker(MOTORS)
    _, u = static(q0, np.zeros(system.nc), np.zeros(18))
    a = acceleration(system, q0, u, np.zeros(system.nc), np.zeros(18))
    np.testing.assert_allclose(a, -G * np.eye(18)[2], atol=1e-6 * G)
    for off in ({"FL": 0, "RR": 0, "RL": 0}, {"FL": 0, "RL": 0}):  # it tips over what stands
        mask = mb.row_mask(system, off)
        _, u = static(q0, mask, np.zeros(18))
        a = acceleration(system, q0, u, mask, np.zeros(18))
        assert np.abs(a[:6]).max() > 0.2 * G
        np.testing.assert_allclose(a[6:], 0.0, atol=2e-3 * G)


def test_feet_at_equal_places_carry_equal_shares_whatever_rows_hold_them():
    system = mb.read_mjcf(mb.models.path("humanoid"))
    q0, bend = np.array(system.tree.q0), {"hip_pitch": -0.4, "knee": 0.8, "ankle_pitch": -0.4}
    place = {joint.name: joint.qpos for joint in system.tree.joints}
    for side in ("left", "right"):
        q0[[place[f"{side}_{key}"] for key in bend]] = list(bend.values())
    still, answers = np.zeros(system.nv), []
    for order in ((1, 2, 3, 4), (3, 4, 1, 2)):  # rows are normals of other points
        names = [f"left_foot_{k}" for k in (1, 2, 3, 4)] + [f"right_foot_{k}" for k in order]
        feet = [mb.Contact(name, friction=0.6) for name in names]
        touching = mb.with_contacts(system, feet, q0).with_mask()
        static = static_references(touching, feet, q0, np.array([0.0, 0.0, 1.0]), 0.02)
        answers.append(static(q0, np.ones(touching.nc), still)[0].full().ravel())
    np.testing.assert_allclose(*answers, atol=1e-6)
    force = dict(zip(system.actuator_names, answers[0], strict=True))
    assert abs(force["left_knee"]) > 20
    for name in ("hip_pitch", "knee", "ankle_pitch"):
        assert force[f"left_{name}"] == pytest.approx(force[f"right_{name}"], abs=1e-3)
    for name in ("hip_roll", "ankle_roll", "hip_yaw"):
        assert force[f"left_{name}"] == pytest.approx(-force[f"right_{name}"], abs=1e-3)


def test_rods_in_legs_carry_what_they_have_to_and_feet_do_not_press_against_each_other():
    """With rods' forces as small as may be hips would roll with 447 N m."""
    system, q, feet = standing()
    touching, up = mb.with_contacts(system, feet, q).with_mask(), np.array([0.0, 0.0, 1.0])
    static = static_references(touching, feet, q, up, 0.02)
    d = np.random.default_rng(3).uniform(-5, 5, system.nv)
    found = static(q=q, mask=np.ones(touching.nc), disturbance=d)["forces"].full().ravel()
    expected = least_contact_forces(system, feet, q, d)
    np.testing.assert_allclose(found, expected, atol=1e-2 * np.abs(expected).max())


def test_springs_that_a_law_holds_deflect_until_they_carry():
    """Springs in shanks without a force at the pose: what they will carry loads no foot."""
    system, q, feet = standing(stiffness=2000.0)
    touching, up = mb.with_contacts(system, feet, q).with_mask(), np.array([0.0, 0.0, 1.0])
    springs = RigidSprings(("left_spring", "right_spring"))
    static = static_references(touching, feet, q, up, 0.02, springs=springs)
    known = {"q": q, "mask": np.ones(touching.nc), "disturbance": np.zeros(system.nv)}
    found = static(**known)["forces"].full().ravel()
    rigid = standing()
    expected = least_contact_forces(*[rigid[k] for k in (0, 2, 1)], np.zeros(rigid[0].nv))
    np.testing.assert_allclose(found, expected, atol=1e-2 * np.abs(expected).max())
