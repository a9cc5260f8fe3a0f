"""What a gait and a command ask of each sample of a horizon."""

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.small_walker import LEGS, small_walker, standing_pose

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.mpc.whole_body.horizon_references import HorizonReferences

H, N, STANCE, PERIOD = 0.02, 12, 0.24, 0.4
GAIT = mpc.Gait(PERIOD, STANCE / PERIOD, (0.0, 0.5, 0.5, 0.0), start=0.1)
FLIGHT, DECAY = PERIOD - STANCE, 0.2
STILL = np.zeros(18)
STEPPING = mpc.SwingParameters(height=0.05, feedback=0.1, reach=10.0, max_drift=10.0)


def walker(normal=(0.0, 0.0, 1.0), gait=GAIT, compiler=""):
    """Return references, the pose, and slices of p at a sample, on a ground of some tilt."""
    turn = Rotation.align_vectors([normal], [[0, 0, 1]])[0]
    system = mb.read_mjcf(small_walker().replace("<option", f"{compiler}<option", 1))
    q0 = standing_pose(system)
    q0[:3] = turn.apply(q0[:3])
    q0[3:7] = turn.as_quat(scalar_first=True)
    feet = [mb.Contact(name, friction=0.6, normal=tuple(normal)) for name in LEGS]
    touching = mb.with_contacts(system, feet, q0).with_mask()
    parts = [mpc.Cost(Q=np.ones(2 * system.nv)), mpc.SwingFeet(feet, [1.0, 1.0, 1.0])]
    ocp = mpc.optimal_control_problem(touching, N, H, parts, step=mpc.SemiImplicitStep())
    refs = HorizonReferences(ocp, touching, feet, gait, STEPPING, q0, 0, DECAY)
    ends = np.cumsum([0, *(slot.size for slot in ocp.slots)])
    slices = {
        slot.name: slice(a, b) for slot, a, b in zip(ocp.slots, ends[:-1], ends[1:], strict=True)
    }
    return refs, refs.function("references"), q0, slices, turn


@pytest.fixture(scope="module")
def level():
    return walker()


def samples(function, q, v, command, t, z):
    """Return p (N + 1, np), and z_next."""
    ref, z_next = function(q, v, command, STILL, t, z)
    return ref.full().reshape(N + 1, -1), z_next.full().ravel()


def moved(q, v, z, turn, way):
    """Return state and z, turned about the vertical and displaced."""
    q, v, z = q.copy(), v.copy(), z.copy()
    q[:3] = turn.apply(q[:3]) + way
    q[3:7] = (turn * Rotation.from_quat(q[3:7], scalar_first=True)).as_quat(scalar_first=True)
    v[:3] = turn.apply(v[:3])
    z[:12] = (turn.apply(z[:12].reshape(4, 3)) + way).ravel()
    z[12:14] = (turn.apply([*z[12:14], 0]) + way)[:2]
    z[14] += turn.as_rotvec()[2]
    return q, v, z


def test_a_robot_that_steps_in_place_is_asked_for_the_same_a_sample_later(level):
    """Samples are moments, and not places in a row."""
    refs, function, q0, slices, _ = level
    now = samples(function, q0, np.zeros(18), [0, 0, 0], 0.3, refs.z0)
    later = samples(function, q0, np.zeros(18), [0, 0, 0], 0.3 + H, now[1])
    for name in ("setpoint.q", "setpoint.v", "feet", "mask"):
        np.testing.assert_allclose(now[0][1:, slices[name]], later[0][:-1, slices[name]], atol=1e-9)


def test_a_mask_is_that_of_the_gait_in_the_middle_of_an_interval(level):
    refs, function, q0, slices, _ = level
    p, _ = samples(function, q0, np.zeros(18), [0, 0, 0], 0.02, refs.z0)
    middle = 0.02 + (np.arange(N + 1) + 0.5) * H
    phase = np.mod((middle[:, None] - 0.1) / PERIOD + np.array([0, 0.5, 0.5, 0]), 1)
    on = (phase < STANCE / PERIOD) | (middle[:, None] < 0.1)
    names = {name: on[:, i].astype(float) for i, name in enumerate(LEGS)}
    np.testing.assert_array_equal(p[:, slices["mask"]], mb.row_mask(refs.system, names))
    assert 0 < on.mean() < 1


def test_references_turn_and_move_with_the_robot(level):
    """Nothing depends on where the world's axes are."""
    refs, function, q0, slices, _ = level
    rng = np.random.default_rng(1)
    v, command, z = rng.normal(size=18), rng.normal(size=3), refs.z0
    turn, way = Rotation.from_rotvec([0, 0, 0.7]), np.array([2.0, -1.0, 0.0])
    p, z_next = samples(function, q0, v, command, 0.3, z)
    q_t, v_t, z_t = moved(q0, v, z, turn, way)
    p_t, z_next_t = samples(function, q_t, v_t, command, 0.3, z_t)
    for k in range(N + 1):
        feet = p[k, slices["feet"]].reshape(4, 3)
        np.testing.assert_allclose(
            p_t[k, slices["feet"]].reshape(4, 3), turn.apply(feet) + way, atol=1e-9
        )
        pose, pose_t = (x[k, slices["setpoint.q"]] for x in (p, p_t))
        np.testing.assert_allclose(pose_t[:3], turn.apply(pose[:3]) + way, atol=1e-9)
        turned = turn * Rotation.from_quat(pose[3:7], scalar_first=True)
        apart = turned.inv() * Rotation.from_quat(pose_t[3:7], scalar_first=True)
        assert apart.magnitude() < 1e-9
        speed, speed_t = (x[k, slices["setpoint.v"]] for x in (p, p_t))
        np.testing.assert_allclose(speed_t[:3], turn.apply(speed[:3]), atol=1e-9)
        np.testing.assert_allclose(speed_t[3:], speed[3:], atol=1e-9)
    np.testing.assert_allclose(moved(q0, v, z_next, turn, way)[2], z_next_t, atol=1e-9)


def test_a_swing_leads_from_where_a_foot_left_to_below_its_hip(level):
    """The foothold of a body that drifts is in closed form; FR swings 0.1 s after FL."""
    refs, function, q0, slices, _ = level
    t, v = 0.1 + STANCE, np.zeros(18)  # FL and RR leave the ground
    v[:2] = 0.3, -0.2
    lift = refs.z0.copy()
    lift[:3] += [0.01, 0.02, 0.0]  # where FL left it
    p, _ = samples(function, q0, v, [0.2, 0.1, 0.0], t + H, lift)
    share = (H + np.arange(6) * H) / FLIGHT
    along = share**3 * (10 - 15 * share + 6 * share**2)
    feet = p[:6, slices["feet"]].reshape(6, 4, 3)[:, 0]
    target = lift[:3] + (feet[5] - lift[:3]) / along[5]
    ahead = FLIGHT - H
    left, excess = np.exp(-ahead / DECAY), np.array([0.3, -0.2]) - [0.2, 0.1]
    hip = refs.hips[:, 0]
    below = q0[:2] + ahead * np.array([0.2, 0.1]) + DECAY * (1 - left) * excess + hip
    step = STANCE / 2 * np.array([0.2, 0.1]) + 0.1 * left * excess
    np.testing.assert_allclose(target[:2], below + step, atol=1e-9)
    bump = 64 * 0.05 * share**3 * (1 - share) ** 3
    np.testing.assert_allclose(feet[:, 2], lift[2] + bump, atol=1e-9)


@pytest.mark.long
def test_on_a_slope_all_is_as_on_level_ground_in_its_axes(level):
    rng, (refs, function, q0, slices, _) = np.random.default_rng(2), level
    tilted, on_slope, q_s, _, turn = walker((0.2, -0.1, 1.0))
    ground = tilted.ground
    v, command = rng.normal(size=18), rng.normal(size=3)
    v_s = np.concatenate([turn.apply(v[:3]), v[3:]])
    p, _ = samples(function, q0, v, command, 0.3, refs.z0)
    p_s, _ = samples(on_slope, q_s, v_s, command, 0.3, tilted.z0)
    yaw = Rotation.from_matrix(ground.T @ turn.as_matrix())  # of the robot in axes of the slope
    assert np.abs(yaw.as_rotvec()[:2]).max() < 1e-9
    feet, feet_s = (x[:, slices["feet"]].reshape(-1, 3) for x in (p, p_s))
    np.testing.assert_allclose(feet_s, turn.apply(feet), atol=1e-9)
    q, q_t = (x[:, slices["setpoint.q"]] for x in (p, p_s))
    np.testing.assert_allclose(q_t[:, :3], turn.apply(q[:, :3]), atol=1e-9)
    np.testing.assert_allclose(
        p_s[:, slices["setpoint.v"]][:, 3:], p[:, slices["setpoint.v"]][:, 3:], atol=1e-9
    )


@pytest.mark.parametrize("bad", ["q", "v", "command", "t"])
def test_a_bad_measurement_leaves_the_state_as_it_was(level, bad):
    refs, function, q0, _, _ = level
    inputs = {"q": q0, "v": np.zeros(18), "command": np.zeros(3), "t": 0.3, "z": refs.z0 + 0.01}
    inputs[bad] = np.full(np.shape(inputs[bad]), np.nan)
    z_next = function(**inputs)["z_next"]
    np.testing.assert_array_equal(z_next.full().ravel(), refs.z0 + 0.01)
    assert isinstance(z_next, ca.DM)


def test_uneven_ground_lifts_the_footholds_and_the_base_and_says_what_lands():
    system = mb.read_mjcf(small_walker())
    q0, feet = standing_pose(system), [mb.Contact(name, friction=0.6) for name in LEGS]
    touching = mb.with_contacts(system, feet, q0).with_mask()
    parts = [mpc.Cost(Q=np.ones(36)), mpc.SwingFeet(feet, [1.0, 1.0, 1.0])]
    parts.append(mpc.ContactLanding(feet, 1.0, 1.0))
    ocp = mpc.optimal_control_problem(touching, N, H, parts, step=mpc.SemiImplicitStep())
    made = (ocp, touching, feet, GAIT, STEPPING, q0, 0, DECAY)
    flat, uneven = (HorizonReferences(*made, uneven=yes) for yes in (False, True))
    t, rise = 0.1 + STANCE + H, np.array([0.03, 0.05, -0.02, 0.04])
    level, _ = flat.function("flat")(q0, STILL, [0.2, 0, 0], STILL, t, flat.z0)
    given = [0.2, 0, 0, *rise]
    ref, _ = uneven.function("uneven")(q0, STILL, given, STILL, t, flat.z0)
    ref, level = (x.full().reshape(N + 1, -1) for x in (ref, level))
    places = slot_slices(ocp.slots)
    np.testing.assert_allclose(ref[:, places["ground"]], np.tile(rise, (N + 1, 1)), atol=1e-12)
    base = (ref - level)[:, places["setpoint.q"]][:, 2]
    np.testing.assert_allclose(base, rise.mean(), atol=1e-12)
    lifted = (ref - level)[:, places["feet"]].reshape(N + 1, 4, 3)[..., 2]
    landed = round((FLIGHT - H) / H)  # the sample at which FL and RR land
    share = 1 - H / FLIGHT  # of their way at the sample before
    along = share**3 * (10 - 15 * share + 6 * share**2)
    np.testing.assert_allclose(lifted[landed - 1, [0, 3]], along * rise[[0, 3]], atol=1e-9)
    on = ref[:, places["mask"]]
    lands, first = ref[:, places["landing"]], [0, 1, 2, 3]  # rows of heights come first
    np.testing.assert_array_equal(lands[1:, :4], (on[1:] * (1 - on[:-1]))[:, first])
    np.testing.assert_array_equal(lands[2:, 4:], lands[2:, :4])
    assert lands[landed, [0, 3]].tolist() == [1, 1]
    assert not lands[:2, 4:].any()


def test_the_ground_is_where_feet_stand_or_stood_last(level):
    """FL and RR swing, and stood on blocks; FR and RL stand where they are measured."""
    refs, function, q0, slices, _ = level
    t, rise = 0.1 + STANCE + H, np.array([0.03, 0.0, 0.0, 0.04])
    z = refs.z0.copy()
    z[2:12:3] += rise
    z[[5, 8]] += 0.1  # of feet that stand: no matter
    (p, _), (before, _) = (samples(function, q0, STILL, [0, 0, 0], t, x) for x in (z, refs.z0))
    lifted = (p - before)[:, slices["feet"]].reshape(N + 1, 4, 3)[:, :, 2]
    np.testing.assert_allclose(lifted[:6, [0, 3]], np.tile(rise[[0, 3]], (6, 1)), atol=1e-9)
    base = (p - before)[:, slices["setpoint.q"]][:, 2]
    np.testing.assert_allclose(base, rise.mean(), atol=1e-12)


@pytest.mark.parametrize("normal", [(0.0, 0.0, 1.0), (0.2, -0.1, 1.0)])
@pytest.mark.long
def test_while_no_foot_stands_base_and_feet_are_thrown(normal):
    """Heights over the ground have the acceleration of gravity across it, and the speed of it."""
    hop = mpc.pronk(PERIOD, duty=STANCE / PERIOD, start=0.1)
    refs, function, q0, slices, _ = walker(normal, hop)
    p, _ = samples(function, q0, STILL, [0.2, 0.0, 0.0], 0.1 + STANCE - H, refs.z0)
    up = np.array(normal) / np.linalg.norm(normal)
    height = (p[:, slices["setpoint.q"]][:, :3] - q0[:3]) @ up
    speed = p[:, slices["setpoint.v"]][:, :3] @ up
    landed = round(FLIGHT / H) + 1
    np.testing.assert_allclose(height[[0, 1, *range(landed, N + 1)]], 0, atol=1e-9)
    np.testing.assert_allclose(np.diff(height[1 : landed + 1], 2), -9.81 * up[2] * H**2, atol=1e-9)
    middle = (speed[2 : landed - 1] + speed[3:landed]) / 2 * H
    np.testing.assert_allclose(np.diff(height[2:landed]), middle, atol=1e-9)
    share = (np.arange(2, landed) - 1) * H / FLIGHT
    bump = 64 * STEPPING.height * share**3 * (1 - share) ** 3
    feet = p[2:landed, slices["feet"]].reshape(-1, 4, 3) @ up
    over = feet - refs.stance[0][2]
    np.testing.assert_allclose(over, np.tile((height[2:landed] + bump)[:, None], 4), atol=1e-9)
    assert height.max() > 0.02


@pytest.mark.long
def test_a_foot_that_stands_carries_the_base():
    """FL alone stands on while the others swing."""
    gait = mpc.Gait(PERIOD, STANCE / PERIOD, (0.5, 0.0, 0.0, 0.0), start=0.1)
    refs, function, q0, slices, _ = walker(gait=gait)
    p, _ = samples(function, q0, STILL, [0.2, 0.0, 0.0], 0.1 + STANCE - H, refs.z0)
    np.testing.assert_allclose(p[:, slices["setpoint.q"]][:, 2], q0[2], atol=1e-12)
    assert not p[:, slices["setpoint.v"]][:, 2].any()
