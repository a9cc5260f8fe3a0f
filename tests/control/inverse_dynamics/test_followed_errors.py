"""Errors of tasks that enter no larger than joints with limits can follow."""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import FrameTask, InverseDynamicsQP, JointLimits, PostureTask, propose_gains
from mbcasadi.control.inverse_dynamics.followed_errors import (
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
