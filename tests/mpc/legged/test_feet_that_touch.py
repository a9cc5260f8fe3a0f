"""Flat feet of which each corner is a contact: gait, early and late touch-down, and the C."""

import casadi as ca
import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.control import ComTask, FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.legged.pressing_force import touch_down_of
from mbcasadi.mpc.legged.touch_down import FootFlags, FootForce, next_flags

CORNERS = tuple(f"{side}_foot_{i}" for side in ("left", "right") for i in range(1, 5))
GAIT = mpc.Gait(0.6, 0.6, (0.0,) * 4 + (0.5,) * 4)
RULE = mpc.TouchDown(40.0, 20.0, speed=0.3, depth=0.02)
STANDS, SWINGS, ENDS = 0.03, 0.36, 0.6  # s: both feet stand, the left one leaves, is to land
PERIOD, SLOW, HORIZON = 0.002, 0.03, 4
WEIGHTS = [50, 50, 50, 100, 100, 300, 0.2, 0.2, 0.5, 2, 2, 2]


def flags_over(schedule, shares, forces, least=None):
    """Return `stands` at each tick of a foot that stood before; all contacts alike by default."""
    names = ("stands", "left", "scheduled", "share", "force", "least")
    s = {name: ca.SX.sym(name) for name in names}
    flags, force = FootFlags(s["stands"], s["left"]), FootForce(s["force"], s["least"])
    now = next_flags(RULE, flags, s["scheduled"], s["share"], force)
    step = ca.Function("step", list(s.values()), list(now))
    flags, found = (1.0, 0.0), []
    for tick in zip(schedule, shares, forces, forces if least is None else least, strict=True):
        flags = tuple(float(each) for each in step(*flags, *tick))
        found.append(int(flags[0]))
    return found


def test_a_foot_stands_early_late_or_in_time():
    share = [0, 0.1, 0.3, 0.6, 0.8, 0.9, 0, 0, 0]
    plan = [1, 0, 0, 0, 0, 0, 1, 1, 1]
    in_time = [90, 90, 5, 0, 0, 0, 50, 90, 90]
    assert flags_over(plan, share, in_time) == [1, 0, 0, 0, 0, 0, 1, 1, 1]
    early = [90, 90, 5, 0, 50, 60, 90, 90, 90]
    assert flags_over(plan, share, early) == [1, 0, 0, 0, 1, 1, 1, 1, 1]
    late = [90, 90, 5, 0, 0, 0, 0, 30, 45]
    assert flags_over(plan, share, late) == [1, 0, 0, 0, 0, 0, 0, 0, 1]


def test_a_foot_that_has_not_left_or_scuffs_at_first_swings_on():
    plan, share = [0] * 5, [0.1, 0.3, 0.6, 0.7, 0.9]
    assert flags_over(plan, share, [90] * 5) == [0] * 5
    assert flags_over(plan, share, [5, 60, 5, 5, 5]) == [0] * 5
    assert flags_over(plan, share, [5, 60, 60, 5, 5]) == [0, 0, 1, 1, 1]


def test_a_foot_in_stance_stays_though_its_load_is_low_and_leaves_in_the_next_swing():
    plan, share = [1, 1, 0, 0, 0, 1, 1, 0], [0, 0, 0.1, 0.6, 0.8, 0, 0, 0.1]
    force = [90, 0, 0, 0, 60, 0, 0, 0]
    assert flags_over(plan, share, force) == [1, 1, 0, 0, 1, 1, 1, 0]


def test_a_foot_that_touches_with_an_edge_swings_on_until_its_stance():
    plan, share, force = [0, 0, 0, 0, 1], [0.3, 0.7, 0.8, 0.9, 0], [5, 60, 60, 60, 60]
    assert flags_over(plan, share, force, [1, 0, 0, 0, 0]) == [0, 0, 0, 0, 1]
    assert flags_over(plan, share, force, [1, 0, 0, 30, 0]) == [0, 0, 0, 1, 1]


def test_no_number_is_no_contact():
    assert flags_over([0, 0, 1], [0.3, 0.8, 0], [5, np.nan, np.nan]) == [0, 0, 0]


class Walker:
    """Our humanoid on the corners of its soles, with both reactions."""

    def __init__(self):
        self.system = mb.read_mjcf(models.path("humanoid"))
        self.stand = np.array(self.system.tree.keyframes["stand"]).ravel()
        corners = [mb.Contact(name, friction=0.6, sides=4) for name in CORNERS]
        body = mpc.single_rigid_body(self.system, corners, self.stand)
        law = mpc.single_rigid_body_mpc(body, HORIZON, WEIGHTS, 1e-5, period=SLOW)
        tasks = [FrameTask("pelvis", kind="body", name="trunk"), ComTask()]
        tasks += [FrameTask("torso", kind="body", position="z", orientation="xy")]
        tasks += [FrameTask(name, orientation="", kp=400.0) for name in CORNERS]
        forces = {"internal_forces": "wrench", "force_weight": 1e-3, "force_reference": True}
        tasks += [PostureTask(weight=0.1)]
        self.law = InverseDynamicsQP(self.system, tasks, corners, period=PERIOD, **forces)
        self.mpc = law
        self.planner, self.scheduled = self.planned(RULE), self.planned(None)
        poses = (self.system.frame(name).pose(self.stand)[0] for name in CORNERS[:4])
        self.soles = np.array([np.array(p).ravel() for p in poses])
        self.z = self.planner.z0

    def planned(self, rule):
        """Return the planner with a rule."""
        stepping = mpc.SwingParameters(touch_down=rule)
        return mpc.walking_planner(self.law, self.mpc, GAIT, self.stand, stepping=stepping)

    def tick(self, t, left, right=300.0, q=None, v=None):
        """Return the outputs at a time with the normal forces of the feet; z is kept."""
        forces = np.zeros((8, 3))
        forces[:4, 0], forces[4:, 0] = left / 4, right / 4
        q, v = self.stand if q is None else q, np.zeros(self.system.nv) if v is None else v
        inputs = {"q": q, "v": v, "t": t, "command": np.zeros(3), "u": self.planner.u0, "z": self.z}
        out = self.planner.function(**inputs, f_measured=forces.ravel())
        out = {name: np.array(value).ravel() for name, value in out.items()}
        self.z = out["z_next"]
        return out

    def places(self, out, what="position"):
        """Return (4, 3) the references of the left foot's corners."""
        return np.array([out["ref"][self.law.reference_slices[f"{n}.{what}"]] for n in CORNERS[:4]])

    def swing(self, until):
        """Let the left foot leave, and swing on until a time."""
        self.z = self.planner.z0
        for t in np.arange(SWINGS + 0.01, until, PERIOD):
            out = self.tick(t, 0.0)
        return out

    def lifted(self, by):
        """Return the pose with the whole robot higher, both feet with it."""
        q = self.stand.copy()
        q[2] += by
        return q


@pytest.fixture(scope="module")
def walker():
    return Walker()


def test_by_the_schedule_and_force_together_all_goes_as_planned(walker):
    out = walker.swing(0.5)
    np.testing.assert_array_equal(out["mask"][:8], [0] * 4 + [1] * 4)
    assert walker.places(out)[:, 2].min() > 0.02
    landed = walker.tick(ENDS + 0.001, 100.0)
    np.testing.assert_array_equal(landed["mask"][:8], 1)


def test_an_early_foot_stands_where_it_is_and_the_mpc_knows(walker):
    walker.swing(0.52)
    out = walker.tick(0.52, 60.0)
    np.testing.assert_array_equal(out["mask"][:8], 1)
    np.testing.assert_allclose(walker.places(out), walker.soles, atol=1e-12)
    assert np.abs(walker.places(out, "velocity")).max() == 0
    rows = out["outer_mask"].reshape(HORIZON, 8)
    assert rows.min() == 1  # to the end of the swing it stands early, then by the schedule
    still = walker.tick(0.55, 0.0)  # it stays, whatever the force does
    np.testing.assert_array_equal(still["mask"][:8], 1)


def test_a_late_foot_goes_on_downwards_to_its_depth_and_then_waits(walker):
    walker.swing(ENDS)
    before = walker.places(walker.tick(ENDS - 1e-6, 0.0))
    first = walker.tick(ENDS + 1e-6, 0.0)
    np.testing.assert_array_equal(first["mask"][:8], [0] * 4 + [1] * 4)
    np.testing.assert_allclose(walker.places(first), before - [0, 0, PERIOD * RULE.speed])
    np.testing.assert_allclose(walker.places(first, "velocity")[:, 2], -RULE.speed)
    later = first
    for k in range(60):
        later = walker.tick(ENDS + 1e-6 + (k + 1) * PERIOD, 0.0)
    lowest = walker.soles[:, 2] - RULE.depth
    np.testing.assert_allclose(walker.places(later)[:, 2], lowest, atol=1e-9)
    assert np.abs(walker.places(later, "velocity")).max() == 0
    touched = walker.tick(ENDS + 0.13, 60.0)
    np.testing.assert_array_equal(touched["mask"][:4], 1)


def test_a_late_foot_carries_nothing_in_the_first_interval_of_a_prompt_mpc(walker):
    """`u` of a late foot is no load, so the reference of the forces holds none either."""
    walker.swing(ENDS)
    out = walker.tick(ENDS + 1e-6, 0.0)
    force = out["ref"][walker.law.reference_slices["force"]].reshape(8, 3)
    assert np.abs(force[:4]).max() == 0
    assert force[4:, 0].min() > 0


def test_heights_are_above_the_places_where_the_feet_stand(walker):
    walker.z = walker.planner.z0
    rest, up = walker.tick(STANDS, 300.0), 0.03
    walker.z = walker.planner.z0
    higher = walker.tick(STANDS, 300.0, q=walker.lifted(up))
    for name in ("trunk.position", "com.position"):
        here, there = (out["ref"][walker.law.reference_slices[name]] for out in (rest, higher))
        np.testing.assert_allclose(there - here, [0, 0, up], atol=1e-9)
    heights = [out["outer_ref"].reshape(HORIZON, 12)[:, 5] for out in (rest, higher)]
    np.testing.assert_allclose(heights[1] - heights[0], up, atol=1e-9)


def test_tasks_beside_trunk_and_feet_go_along_with_the_desired_pose(walker):
    """At rest they have what they have at q0; with the pose moved and turned they are with it."""
    walker.z = walker.planner.z0
    slices, rest = walker.law.reference_slices, walker.law.reference_at(walker.stand)
    out = walker.tick(STANDS, 300.0)["ref"]
    for name in ("torso.position", "torso.quaternion", "com.position", "posture.q"):
        np.testing.assert_allclose(out[slices[name]], rest[slices[name]], atol=1e-9, err_msg=name)
    walker.z = walker.planner.z0.copy()
    goal = slice(24, 27)  # behind the places of eight contacts
    walker.z[goal] += [0.05, -0.04, 0.08]
    moved = walker.tick(STANDS, 300.0)["ref"]
    shift = moved[slices["com.position"]] - rest[slices["com.position"]]
    np.testing.assert_allclose(shift, [0.05, -0.04, 0.0], atol=1e-9)
    w, _, _, z = moved[slices["torso.quaternion"]]
    assert 2 * np.arctan2(z, w) == pytest.approx(0.08, abs=1e-9)
    np.testing.assert_allclose(moved[slices["posture.q"]], rest[slices["posture.q"]])


def test_the_c_is_the_planner_and_bad_forces_leave_no_trace(walker, tmp_path):
    project = mb.export_c(walker.planner, tmp_path / "c")
    text = project.header.read_text()
    for name in ("F_MEASURED_LEFT_FOOT_1_N", "Z_FOOT_1_STANDS", "Z_REFERENCE_FOOT"):
        assert f"WALKING_PLANNER_{name}" in text
    program, rng = project.load(flags=("-O0",)), np.random.default_rng(3)
    f = walker.planner.function
    for t in (0.2, 0.41, 0.5, 0.61, 0.8):
        noise = 0.05 * rng.standard_normal(walker.system.nv)
        q = np.array(walker.system.integrate(walker.stand, noise)).ravel()
        given = (q, rng.standard_normal(walker.system.nv), 30 * rng.random(24))
        given += (rng.standard_normal(3), 30 * rng.random(24), t, walker.planner.z0)
        for one, other in zip(f(*given), program(*given), strict=True):
            np.testing.assert_allclose(np.array(other), np.array(one), rtol=1e-9, atol=1e-9)
    bad = np.full(24, np.nan)
    z = walker.planner.z0 + 0.01
    given = (walker.stand, np.zeros(walker.system.nv), bad, np.zeros(3), walker.planner.u0, 0.5, z)
    np.testing.assert_array_equal(np.array(f(*given)[-1]).ravel(), z)


def test_forces_are_those_of_a_foot_that_is_pressed_on_the_ground(walker):
    """MuJoCo's own inverse inertia at the sole's middle says how heavy a foot is."""
    model = mujoco.MjModel.from_xml_path(str(models.path("humanoid")))
    data = mujoco.MjData(model)
    data.qpos[:] = walker.stand
    mujoco.mj_forward(model, data)
    row, J = np.zeros(model.nv), np.zeros((3, model.nv))
    for name in CORNERS[:4]:
        mujoco.mj_jacSite(model, data, J, None, model.site(name).id)
        row += J[2] / 4
    solved = np.zeros((1, model.nv))
    mujoco.mj_solveM(model, data, solved, row[None, :])
    expected = 400.0 * 0.005 / float(solved[0] @ row)
    found = touch_down_of(mpc.TouchDown(), walker.law, [range(4), range(4, 8)], walker.stand)
    assert found.on_force == pytest.approx(expected, rel=1e-6)
    assert found.off_force == pytest.approx(expected / 2, rel=1e-6)
    with pytest.raises(ProblemError, match=r"would never touch; expected about"):
        walker.planned(mpc.TouchDown(21 * expected, depth=0.1))


def test_forces_that_contradict_each_other_are_refused():
    for numbers, words in (((20.0, 40.0), "off_force <= on_force"), ((0.0, 0.0), "on_force = 0")):
        with pytest.raises(ProblemError, match=words):
            mpc.TouchDown(*numbers)


def by_schedule(walker, t):
    """Return the outputs of a planner without the rule while the robot moves ahead."""
    ahead = np.eye(walker.system.nv)[0]
    planner = walker.scheduled
    given = {"q": walker.stand, "v": 0.3 * ahead, "command": [0.4, 0, 0], "u": planner.u0, "t": t}
    return {k: np.array(x).ravel() for k, x in planner.function(**given, z=planner.z0).items()}


@pytest.mark.parametrize("t", [0.38, 0.45, 0.55])  # s; the left foot is in the air
def test_the_corners_of_a_sole_swing_as_one_body(walker, t):
    """Their distances stay those of the stance, and they have moved ahead and up."""
    places = walker.places(by_schedule(walker, t)), walker.soles
    swinging, standing = (p[:, None] - p[None] for p in places)
    assert np.min((places[0] - places[1])[:, 2]) > 1e-9
    np.testing.assert_allclose(swinging, standing, atol=1e-9)


def test_a_sole_is_on_or_off_with_all_its_corners(walker):
    for t, on in ((0.1, [1, 0]), (0.33, [1, 1]), (0.45, [0, 1])):
        np.testing.assert_array_equal(by_schedule(walker, t)["mask"][:8], np.repeat(on, 4))


def test_tasks_that_the_planner_does_not_compute_hold_the_stance(walker):
    """No zeros: the posture has the angles of the pose, quaternions have length one."""
    ref, slices = by_schedule(walker, 0.38)["ref"], walker.law.reference_slices
    names = walker.law.tasks[-1].components(walker.system)
    place = {joint.name: joint.qpos for joint in walker.system.tree.joints}
    wanted = walker.stand[[place[name] for name in names]]
    assert np.any(wanted != 0)
    np.testing.assert_array_equal(ref[slices["posture.q"]], wanted)
    assert np.linalg.norm(ref[slices["trunk.quaternion"]]) == pytest.approx(1.0)
