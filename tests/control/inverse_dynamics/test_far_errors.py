"""Errors of tasks that are far: no larger than joints can follow, and led home by postures."""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import FrameTask, InverseDynamicsQP, JointLimits, PostureTask, propose_gains
from mbcasadi.control.inverse_dynamics.far_errors import LAG, LED, LIGHTEST
from mbcasadi.control.inverse_dynamics.followed_errors import (
    FAR_SHARE,
    STRONGEST,
    followed,
    vectors,
)
from mbcasadi.description.status import Flag

H, LATE, HEAVY = 0.002, 1, 0.1  # s, ticks, share of the mass
SLIDER = """
<mujoco><worldbody><body><joint name="x" type="slide" axis="1 0 0" range="-2 2"/>
    <geom size=".05" mass="2"/></body></worldbody>
  <actuator><motor joint="x" ctrlrange="-20 20"/></actuator></mujoco>
"""
BRAKING = 2.0  # m/s², of 10 that the motor gives


def slider(kp: float, **options) -> InverseDynamicsQP:
    return InverseDynamicsQP(
        mb.read_mjcf(SLIDER),
        [PostureTask(kp=kp)],
        joint_limits=JointLimits(braking=BRAKING),
        period=H,
        torque_weight=1e-9,
        **options,
    )


def test_small_errors_are_as_they_are_and_large_ones_are_what_can_be_braked():
    """`a_des = kd ((2 a e)^½ - v)` beyond `e = 8 a / kp`, and no more than 3 a."""
    kp = 400.0
    law, kd = slider(kp), 2 * np.sqrt(kp)
    for error in (0.005, 0.014):
        a = law.solve([0.0], [0.0], law.reference_at([error])).a[0]
        assert a == pytest.approx(kp * error, rel=1e-6)
    for error in (0.2, 1.0):
        speed = np.sqrt(2 * BRAKING * error)
        v = speed - 0.1
        a = law.solve([0.0], [v], law.reference_at([error])).a[0]
        assert a == pytest.approx(kd * (speed - v), rel=1e-6)
        rest = law.solve([0.0], [0.0], law.reference_at([error])).a[0]
        assert rest == pytest.approx(STRONGEST * BRAKING, rel=1e-6)
    free = slider(kp, bound_errors=False)
    a = free.solve([0.0], [1.3], free.reference_at([0.2])).a[0]
    assert a == pytest.approx(min(kp * 0.2 - kd * 1.3, 10.0), rel=1e-6)


def test_points_and_rotations_are_shortened_as_vectors_and_joints_each_by_itself():
    system = mb.read_mjcf(models.path("scara"))
    tasks = [FrameTask("tool"), PostureTask(), FrameTask("tool", orientation="z", name="turned")]
    law = InverseDynamicsQP(system, tasks, joint_limits=JointLimits(), period=H)
    of_posture = [[6 + k] for k in range(4)]
    assert sorted(vectors(law)) == [[0, 1, 2], [3, 4, 5], *of_posture, [10, 11, 12], [13]]


def test_a_posture_that_chooses_among_motions_of_a_heavier_task_is_as_it_is():
    """The pull `kp e` of a posture of small weight is whole: it holds an arm in its branch."""
    for weight, bounded in ((1.0, True), (5e-4, False)):
        tasks = [FrameTask("tool"), PostureTask(weight=weight)]
        law = InverseDynamicsQP(
            mb.read_mjcf(models.path("scara")), tasks, joint_limits=JointLimits(), period=H
        )
        J = [np.vstack([np.eye(6, law.system.nv), np.eye(law.system.nv)])]
        a = followed(law, J).accelerations
        assert np.isfinite(a[0])  # the tool
        assert np.all(np.isfinite(a[2:]) == bounded)


@pytest.mark.long
def test_high_gains_bring_an_arm_home_from_far_beyond_its_reach():
    """As they are, such errors throw the arm past its home until its joints are at their limits."""
    model = mujoco.MjModel.from_xml_path(str(models.path("scara")))
    home, found = model.key("home").qpos, {}
    for bound in (None, False):
        law = tool_law(model, bound_errors=bound)
        rest, away = law.reference_at(home), law.reference_at(home)
        away[law.reference_slices["tool.position"]] += [0.0, -1.1, 0.0]
        reference = lambda t, rest=rest, away=away: away if t < 1.0 else rest  # noqa: E731
        error, recording = run(law, model, reference, home, 3.0)
        assert error.max() > 500.0
        assert not np.any(recording.flags & Flag.UNVIABLE)
        far = np.abs(recording.u).max(axis=1) > 0.99 * 40.0
        found[bound] = error[-1], np.count_nonzero(far)
    assert found[None][0] < 1.0
    assert found[None][1] <= found[False][1]


FAR = FAR_SHARE * 4.0  # m, of the slider
KP, LIGHT = 2.0, 0.01


def pulled_two_ways(**options) -> InverseDynamicsQP:
    tasks = [PostureTask(kp=KP, name="lead"), PostureTask(kp=KP, weight=LIGHT, name="light")]
    return InverseDynamicsQP(
        mb.read_mjcf(SLIDER),
        tasks,
        joint_limits=JointLimits(braking=BRAKING),
        period=H,
        torque_weight=1e-9,
        **options,
    )


def references(law: InverseDynamicsQP, lead: float, light: float) -> np.ndarray:
    ref = law.reference_at([0.0])
    ref[law.reference_slices["lead.q"]], ref[law.reference_slices["light.q"]] = lead, light
    return ref


@pytest.mark.parametrize("options", [{}, {"tunable": ("weights",)}])
def test_a_far_task_is_damped_by_postures_that_do_not_pull_against_it(options):
    """Weight `max(s⁴, 10 l)`, `s = FAR / e`, beside a posture whose pose is farther off."""
    law = pulled_two_ways(**options)
    for error in (0.9 * FAR, 1.5 * FAR, 1.9):
        s = min(1.0, FAR / error)
        weight = max(s**4, 10 * LIGHT)
        pull = s**4 * KP * -0.5
        expected = (weight * KP * error + LIGHT * pull) / (weight + LIGHT)
        solution = law.solve([0.0], [0.0], references(law, error, -0.5))
        assert solution.a[0] == pytest.approx(expected, rel=1e-6)


def test_postures_lead_where_their_pose_is_nearer_to_the_reference():
    """Weight `max(h⁴, l / 100)`, `h = max(LED FAR, e_home) / e`, where that is less."""
    law, kd = pulled_two_ways(), 2 * np.sqrt(KP)
    cases = (1.9, 1.7, 0.0), (1.9, 1.0, 0.0), (1.0, 0.5, 0.0), (1.9, 1.89, 0.0), (1.0, 0.95, 1.4)
    for error, light, rate in cases:
        home = np.hypot(error - light, LAG * rate)
        s, h = FAR / error, max(LED * FAR, home) / error
        weight = min(max(s**4, 10 * LIGHT), max(h**4, LIGHTEST * LIGHT))
        pull = max(s**4, 1 - h**4) * KP * light
        expected = (weight * (KP * error + kd * rate) + LIGHT * pull) / (weight + LIGHT)
        ref = references(law, error, light)
        ref[law.reference_slices["lead.v"]] = rate
        solution = law.solve([0.0], [0.0], ref)
        assert solution.a[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("options", [{"levels": (("lead", "light"),)}, {"bound_errors": False}])
def test_weights_stay_with_levels_and_where_errors_are_not_bounded(options):
    law = pulled_two_ways(**options)
    expected = KP * (1.9 + LIGHT * 1.7) / (1 + LIGHT)
    assert law.solve([0.0], [0.0], references(law, 1.9, 1.7)).a[0] == pytest.approx(
        expected, rel=1e-6
    )


def test_a_far_task_that_is_missed_is_flagged_beside_one_that_is_near():
    plane = SLIDER.replace("<geom", '<joint name="y" type="slide" axis="0 1 0" range="-2 2"/><geom')
    plane = plane.replace("</actuator>", '<motor joint="y" ctrlrange="-20 20"/></actuator>')
    tasks = [PostureTask(joints=(name,), name=name) for name in "xy"]
    law = InverseDynamicsQP(
        mb.read_mjcf(plane),
        [*tasks, PostureTask(weight=0.01)],
        joint_limits=JointLimits(braking=BRAKING),
        force_limits=[[-0.5, 0.5], [-20.0, 20.0]],
        period=H,
    )
    ref, z = law.reference_at([0.0, 0.0]), law.z0
    ref[law.reference_slices["x.q"]] = 1.5
    for _ in range(20):
        solution = law.solve([0.0, 0.0], [0.0, 0.0], ref, z=z)
        z = solution.z_next
    assert Flag.TASK_MISSED in solution.flags


def tool_law(model: mujoco.MjModel, **options) -> InverseDynamicsQP:
    gains = propose_gains(H, delay=LATE)
    tool = FrameTask("tool", orientation="z", kp=gains.kp, kd=gains.kd)
    return InverseDynamicsQP(
        mb.read_mjcf(model),
        [tool, PostureTask(kp=25.0, weight=5e-4)],
        joint_limits=JointLimits(),
        period=H,
        delay=LATE,
        **options,
    )


def run(law: InverseDynamicsQP, model: mujoco.MjModel, reference, start: np.ndarray, seconds=2.0):
    """Return the tool's errors, mm, and the recording, of the generated C in MuJoCo."""
    setting = {"delay": LATE, "perturb": {"mass": HEAVY}}
    report = mb.validate(law, model, seconds, reference=reference, q0=start, **setting)
    recording = report.runs[0].recording
    assert not np.any(recording.status)
    return 1e3 * np.linalg.norm(recording.monitor["error"][:, :3], axis=1), recording


@pytest.mark.long
def test_an_arm_at_a_stop_in_another_branch_comes_home():
    """The tool pulls the elbow through its stop; only the posture knows the way round."""
    spec = mujoco.MjSpec.from_file(str(models.path("scara")))
    spec.joint("j2").range = -20, 150
    model = spec.compile()
    home, stuck = np.array([-0.6, 1.8, -0.05, 0.2]), np.array([0.35, -0.349, -0.05, 1.4])
    for options, is_home in (({}, True), ({"bound_errors": False}, False)):
        law = tool_law(model, **options)
        error, recording = run(law, model, law.reference_at(home), stuck)
        assert error[0] > 150.0
        assert (error[-1] < 1.0) == is_home
        assert np.allclose(recording.q[-1], home, atol=1e-3) == is_home


@pytest.mark.long
def test_a_far_step_that_is_within_reach_is_made():
    """Postures lead home, not away from a reference that their pose does not have."""
    model = mujoco.MjModel.from_xml_path(str(models.path("scara")))
    law, home = tool_law(model), model.key("home").qpos
    reference = law.reference_at(home)
    there = law.reference_at([2.0, 1.3, -0.05, 0.2])
    for part in ("position", "quaternion"):
        place = law.reference_slices[f"tool.{part}"]
        reference[place] = there[place]
    error, _ = run(law, model, reference, home)
    assert error[0] > 800.0
    assert error[-1] < 1.0
