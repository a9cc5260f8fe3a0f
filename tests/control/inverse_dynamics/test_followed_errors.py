"""Errors of tasks that enter no larger than joints with limits can follow."""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import FrameTask, InverseDynamicsQP, JointLimits, PostureTask, propose_gains
from mbcasadi.control.inverse_dynamics.followed_errors import (
    FAR_SHARE,
    STRONGEST,
    followed,
    vectors,
)
from mbcasadi.description.status import Flag

H, LATE, HEAVY = 0.002, 1, 0.1  # s, ticks, share of the mass

SLIDER = """
<mujoco>
  <worldbody><body><joint name="x" type="slide" axis="1 0 0" range="-2 2"/>
    <geom size=".05" mass="2"/></body></worldbody>
  <actuator><motor joint="x" ctrlrange="-20 20"/></actuator>
</mujoco>
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


def pulled_two_ways(**options) -> InverseDynamicsQP:
    tasks = [PostureTask(kp=2.0, name="lead"), PostureTask(kp=2.0, weight=0.01, name="light")]
    return InverseDynamicsQP(
        mb.read_mjcf(SLIDER),
        tasks,
        joint_limits=JointLimits(braking=BRAKING),
        period=H,
        torque_weight=1e-9,
        **options,
    )


@pytest.mark.parametrize("options", [{}, {"tunable": ("weights",)}])
def test_a_task_with_a_far_error_weighs_less_down_to_the_lighter_ones(options):
    """`w (FAR / e)^4`, FAR a tenth of the range of 4 m."""
    law, far = pulled_two_ways(**options), FAR_SHARE * 4.0
    for error in (0.9 * far, 1.5 * far, 1.9):
        weight = max(min(1.0, (far / error) ** 4), 0.01)
        ref = law.reference_at([0.0])
        ref[law.reference_slices["lead.q"]], ref[law.reference_slices["light.q"]] = error, -0.5
        lead, light = 2.0 * error, 2.0 * -0.5
        expected = (weight * lead + 0.01 * light) / (weight + 0.01)
        assert law.solve([0.0], [0.0], ref).a[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("options", [{"levels": (("lead", "light"),)}, {"bound_errors": False}])
def test_weights_stay_with_levels_and_where_errors_are_not_bounded(options):
    law = pulled_two_ways(**options)
    ref = law.reference_at([0.0])
    ref[law.reference_slices["lead.q"]], ref[law.reference_slices["light.q"]] = 1.9, -0.5
    expected = (3.8 - 0.01 * 1.0) / 1.01
    assert law.solve([0.0], [0.0], ref).a[0] == pytest.approx(expected, rel=1e-6)


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


def test_an_arm_at_a_stop_in_another_branch_comes_home():
    """The tool pulls the elbow through its stop; only the posture knows the way round."""
    spec = mujoco.MjSpec.from_file(str(models.path("scara")))
    spec.joint("j2").range = -20, 150
    model = spec.compile()
    system, gains = mb.read_mjcf(model), propose_gains(H, delay=LATE)
    home, stuck = np.array([-0.6, 1.8, -0.05, 0.2]), np.array([0.35, -0.349, -0.05, 1.4])
    found = {}
    for bound in (None, False):
        law = InverseDynamicsQP(
            system,
            [
                FrameTask("tool", orientation="z", kp=gains.kp, kd=gains.kd),
                PostureTask(kp=25.0, weight=5e-4),
            ],
            joint_limits=JointLimits(),
            bound_errors=bound,
            period=H,
            delay=LATE,
        )
        report = mb.validate(
            law,
            model,
            2.0,
            reference=law.reference_at(home),
            q0=stuck,
            delay=LATE,
            perturb={"mass": HEAVY},
        )
        recording = report.runs[0].recording
        error = 1e3 * np.linalg.norm(recording.monitor["error"][:, :3], axis=1)
        assert error[0] > 150.0
        assert not np.any(recording.status)
        found[bound] = error[-1], recording.q[-1]
    assert found[False][0] > 150.0
    assert found[None][0] < 1.0
    assert found[None][1] == pytest.approx(home, abs=1e-3)


def test_high_gains_bring_an_arm_home_from_far_beyond_its_reach():
    """As they are, such errors throw the arm past its home until its joints are at their limits."""
    path, gains = models.path("scara"), propose_gains(H, delay=LATE)
    system = mb.read_mjcf(path)
    found = {}
    for bound in (None, False):
        law = InverseDynamicsQP(
            system,
            [
                FrameTask("tool", orientation="z", kp=gains.kp, kd=gains.kd),
                PostureTask(kp=25.0, weight=5e-4),
            ],
            joint_limits=JointLimits(),
            bound_errors=bound,
            period=H,
            delay=LATE,
        )
        q0 = np.array(system.tree.keyframes["home"]).ravel()
        home = law.reference_at(q0)

        def reference(t: float, home=home, law=law) -> np.ndarray:
            ref = home.copy()
            if t < 1.0:
                ref[law.reference_slices["tool.position"]] += [0.0, -1.1, 0.0]
            return ref

        report = mb.validate(
            law, path, 3.0, reference=reference, q0=q0, delay=LATE, perturb={"mass": HEAVY}
        )
        recording = report.runs[0].recording
        error = 1e3 * np.linalg.norm(recording.monitor["error"][:, :3], axis=1)
        assert error.max() > 500.0
        assert not np.any(recording.status)
        assert not np.any(recording.flags & Flag.UNVIABLE)
        far = np.abs(recording.u).max(axis=1) > 0.99 * 40.0
        found[bound] = error[-1], np.count_nonzero(far)
    assert found[None][0] < 1.0
    assert found[None][1] <= found[False][1]
