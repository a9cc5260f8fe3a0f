"""A base that is commanded over its feet, which stay where they are."""

import casadi as ca
import numpy as np
import pytest
from mpc.whole_body.test_horizon_references import GAIT, STILL, N, moved, walker
from scipy.spatial.transform import Rotation

import mbcasadi as mb
from mbcasadi.mpc.whole_body.base_shift import shifted_pose
from mbcasadi.mpc.whole_body.horizon_references import HorizonReferences

SHIFT = np.array([0.01, -0.015, -0.02])  # m
TURN = np.array([0.03, -0.02, 0.025])  # rad
UPRIGHT = np.zeros(3)


@pytest.fixture(scope="module")
def shifting():
    """Return references with a shift, those without, the pose, and slices of p."""
    refs, plain, q0, slices, _ = walker(compiler='<compiler angle="radian"/>')
    made = (refs.ocp, refs.system, refs.contacts, GAIT, refs.stepping, q0, 0, refs.decay)
    shifted = HorizonReferences(*made, shift=True)
    return shifted, shifted.function("shifted"), plain, q0, slices


def rotation_of(q):
    return Rotation.from_quat(q[3:7], scalar_first=True)


def samples(function, q, command, t, z):
    ref, z_next = function(q, STILL, command, STILL, t, z)
    return ref.full().reshape(N + 1, -1), z_next.full().ravel()


def test_the_base_of_the_setpoint_moves_by_the_shift_and_its_feet_stay(shifting):
    refs, function, _, q0, slices = shifting
    feet = refs.stance[0]
    for size in (1.0, 0.1):
        p, _ = samples(function, q0, [0, 0, 0, *size * SHIFT, *size * TURN], 0.0, refs.z0)
        q = p[0, slices["setpoint.q"]]
        np.testing.assert_allclose(q[:3] - q0[:3], size * SHIFT, atol=1e-12)
        turned = rotation_of(q) * rotation_of(q0).inv()
        np.testing.assert_allclose(turned.as_rotvec(), size * TURN, atol=1e-12)
        stiff = np.concatenate([q[:7], q0[7:]])  # with joints that do not follow
        assert np.abs(refs.feet(stiff).full() - feet).max() > 0.02 * size
        np.testing.assert_allclose(refs.feet(q).full(), feet, atol=1e-9)


def humanoid():
    """Return a humanoid on its soles, its feet, and a pose with bent knees."""
    system = mb.read_mjcf(mb.models.path("humanoid"))
    q0, bend = np.array(system.tree.q0), {"hip_pitch": -0.4, "knee": 0.8, "ankle_pitch": -0.4}
    place = {joint.name: joint.qpos for joint in system.tree.joints}
    for side in ("left", "right"):
        q0[[place[f"{side}_{key}"] for key in bend]] = list(bend.values())
    feet = [mb.Contact(f"{side}_foot_{k}") for side in ("left", "right") for k in (1, 2, 3, 4)]
    return mb.with_contacts(system, feet, q0).with_mask(), feet, q0


@pytest.mark.parametrize(
    ("shift", "left"),
    [
        ((0.0, 0.0, -0.1, 0.0, 0.0, 0.0), 1e-5),
        ((0.02, 0.08, -0.03, -0.1, 0.1, 0.1), 1e-5),
        ((0.0, 0.0, 0.1, 0.0, 0.0, 0.0), 0.045),  # legs are not that long
    ],
)
def test_soles_stay_where_legs_reach_and_are_near_where_not(shift, left):
    system, contacts, q0 = humanoid()
    s = ca.SX.sym("s", 6)
    q = shifted_pose(system, contacts, q0, np.eye(3), s)
    q = ca.Function("pose", [s], [q])(shift).full().ravel()
    frames = [system.frame(contact.frame, contact.kind) for contact in contacts]
    moved = [np.array(frame.pose(q)[0]) - np.array(frame.pose(q0)[0]) for frame in frames]
    assert np.abs(moved).max() < left
    np.testing.assert_allclose(q[:3] - q0[:3], shift[:3], atol=1e-12)
    arms = [j.qpos for j in system.tree.joints if "shoulder" in j.name or "elbow" in j.name]
    np.testing.assert_allclose(q[arms], q0[arms], atol=1e-12)
    assert arms


def test_without_a_shift_all_is_as_without_the_option(shifting):
    refs, function, plain, q0, _ = shifting
    with_it, without = (
        samples(each, q0, command, 0.3, refs.z0)
        for each, command in ((function, [0.3, 0.1, 0.2, *np.zeros(6)]), (plain, [0.3, 0.1, 0.2]))
    )
    for one, other in zip(with_it, without, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_footholds_and_goal_do_not_move_with_a_base_that_follows_its_shift(shifting):
    """A base turned by 0.7 rad that is at its shift, beside one that is at rest at its place."""
    refs, function, _, q0, slices = shifting
    turn, t = Rotation.from_euler("z", 0.7), 0.1 + 0.24 + 0.02
    q, _, z = moved(q0, STILL, refs.z0, turn, np.array([0.2, 0.1, 0.0]))
    (rest, after), places = samples(function, q, np.zeros(9), t, z), slices["feet"]
    there = q.copy()
    there[:3] += turn.apply(SHIFT)
    p, z_next = samples(function, there, [0, 0, 0, *SHIFT, *UPRIGHT], t, z)
    swing = [x[:6, places].reshape(6, 4, 3)[:, [0, 3]] for x in (p, rest)]
    np.testing.assert_allclose(*swing, atol=1e-12)
    np.testing.assert_allclose(z_next[12:15], after[12:15], atol=1e-12)
    of_base = slices["setpoint.q"].start
    way = p[0, of_base : of_base + 3] - rest[0, of_base : of_base + 3]
    np.testing.assert_allclose(way[:2], turn.apply(SHIFT)[:2], atol=1e-12)
