"""Limits of joints: viable up to the stop, in the QP and in MuJoCo."""

import casadi as ca
import numpy as np
import pytest
from full_problem import compare, judged
from numpy.testing import assert_allclose
from support.loops_in_mujoco import ticks
from support.mechanisms_of_control import limited, quadruped_controller, stand
from support.refusals import refused

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP, JointLimits, PostureTask
from mbcasadi.control.limits.braking_rule import Tick, braking_bound
from mbcasadi.control.limits.joint_limits import acceleration_bounds, limited_joints
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.plant import Plant

H = 0.004  # s
STOP, BRAKING, SPEED, MOST = 1.2, 8.0, 2.0, 30.0
ROUNDING = 1e-9
BOTH = ("shoulder", "elbow")
ARM = """
<mujoco><option timestep="0.001"/>
  <worldbody><body name="upper">
      <joint name="shoulder" axis="0 1 0" range="-69 69" limited="true"/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="2"/>
      <body name="lower" pos=".4 0 0">
        <joint name="elbow" axis="0 1 0" range="-115 115" limited="true"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>
        <site name="tool" pos=".3 0 0"/></body></body>
    <body name="loose" pos="0 1 0"><joint name="loose" axis="0 1 0"/><geom size=".05"/></body>
  </worldbody>
  <contact><exclude body1="upper" body2="lower"/></contact>
  <actuator><motor joint="shoulder" ctrlrange="-60 60"/><motor joint="elbow" ctrlrange="-25 25"/>
  </actuator></mujoco>
"""
arm = pytest.fixture(scope="module")(lambda: mb.read_mjcf(ARM))


@pytest.fixture(scope="module")
def bounds(arm) -> ca.Function:
    """(q, v) → bounds of the shoulder's acceleration."""
    margin = np.deg2rad(69) - STOP
    limits = JointLimits(("shoulder",), SPEED, MOST, braking=BRAKING, margin=margin, reserve=0.0)
    joints = limited_joints(arm, limits, ranges_of(arm), H)
    q, v = ca.SX.sym("q", arm.nq), ca.SX.sym("v", arm.nv)
    state = q[list(joints.places), 0], v[list(joints.dofs), 0]
    return ca.Function("bounds", [q, v], acceleration_bounds(joints, *state, Tick(H)))


def ranges_of(system):
    return InverseDynamicsQP(system, [PostureTask()]).ranges


def is_viable(q: float, v: float) -> bool:
    """Whether a joint stops before its stop, braking from now on."""
    return q <= STOP + ROUNDING and (v <= 0 or q + v**2 / (2 * BRAKING) <= STOP + ROUNDING)


def test_a_joint_driven_at_its_bounds_never_passes_its_stop_nor_its_speed(bounds):
    rng = np.random.default_rng(0)
    reached = 0
    for _ in range(60):
        q, v = rng.uniform(-1, 1), rng.uniform(-SPEED, SPEED)
        if not (is_viable(q, v) and is_viable(-q, -v)):
            continue
        side = rng.choice([0, 1])
        for _ in range(400):
            ends = [float(x) for x in bounds([q, 0, 0], [v, 0, 0])]
            assert ends[0] <= ends[1]
            a = ends[side] if rng.random() < 0.9 else rng.uniform(*ends)
            q, v = q + H * v + H**2 / 2 * a, v + H * a
            assert abs(q) <= STOP + ROUNDING
            assert abs(v) <= SPEED + ROUNDING
            assert -BRAKING - ROUNDING <= ends[1] <= MOST
        reached += abs(q) > STOP - 0.01
    assert reached > 10


def test_the_bound_is_the_largest_acceleration_behind_which_a_stop_is_possible(bounds):
    rng = np.random.default_rng(1)
    checked = 0
    for _ in range(3000):
        q, v = rng.uniform(0.8, STOP), rng.uniform(-SPEED, SPEED)
        upper = float(bounds([q, 0, 0], [v, 0, 0])[1])
        speed_bound = (SPEED - v) / H
        if upper in (MOST, -BRAKING) or np.isclose(upper, speed_bound) or not is_viable(q, v):
            continue
        after = [
            is_viable(q + H * v + H**2 / 2 * a, v + H * a) for a in (upper - 1e-3, upper + 1e-3)
        ]
        assert after == [True, False], (q, v, upper)
        checked += 1
    assert checked > 50


def test_a_joint_that_cannot_stop_any_more_brakes_with_what_is_needed_now(bounds):
    """v²/(2 left), which stays the same while it is held; at the stop it halts within a tick."""
    for q, v in ((1.12, 1.9), (1.1, 1.9)):
        needed = v**2 / (2 * (STOP - q))
        assert needed > BRAKING
        a = float(bounds([q, 0, 0], [v, 0, 0])[1])
        assert a == pytest.approx(-needed)
        q, v = q + H * v + H**2 / 2 * a, v + H * a
        assert float(bounds([q, 0, 0], [v, 0, 0])[1]) == pytest.approx(a)
    for q, v in ((1.3, 0.05), (2.0, 0.1)):
        assert float(bounds([q, 0, 0], [v, 0, 0])[1]) == pytest.approx(-v / H)
    assert float(bounds([1.1999, 0, 0], [1.9, 0, 0])[1]) == -MOST  # the limit of acceleration
    assert float(bounds([1.3, 0, 0], [0, 0, 0])[1]) == pytest.approx(-BRAKING)  # it returns
    assert float(bounds([1.3, 0, 0], [-2.0, 0, 0])[0]) >= -MOST


def test_the_quadruped_gets_the_optimum_of_the_full_problem_with_joints_near_their_stops():
    limits = JointLimits(("FL_calf", "RR_thigh"), velocity=0.2, acceleration=5.0, braking=3.0)
    law = quadruped_controller(joint_limits=limits, bound_errors=False, period=0.01)
    system, joints = law.system, limited(law)
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    state = q[list(joints.places), 0], v[list(joints.dofs), 0]
    bounds = ca.Function("b", [q, v], acceleration_bounds(joints, *state, Tick(law.period)))
    rng, solved, held = np.random.default_rng(3), 0, 0
    for mask in ((1, 1, 1, 1), (0, 1, 1, 1), (0, 1, 1, 0)):
        for _ in range(8):
            q, v = stand(system, rng, key="stand")
            ref = law.reference_at(system.tree.keyframes["stand"])
            ends = np.hstack([np.array(x) for x in bounds(q, v)])
            rows = [(dof, *pair) for dof, pair in zip(joints.dofs, ends, strict=True)]
            solution = law.solve(q, v, ref, mask=mask)
            if compare(solution, judged(law, q, v, ref, mask, accelerations=rows)):
                solved += 1
                a = solution.a[list(joints.dofs)]
                held += bool(np.any(np.isclose(a, ends[:, 0]) | np.isclose(a, ends[:, 1])))
    assert solved >= 12
    assert held >= 6


@pytest.mark.parametrize("with_limits", [False, True])
def test_in_mujoco_the_arm_stops_before_its_stops_however_far_away_the_target_is(arm, with_limits):
    limits, tasks = JointLimits(BOTH, velocity=4.0), [PostureTask(BOTH, kp=400.0)]
    limits = limits if with_limits else None
    law = InverseDynamicsQP(arm, tasks, joint_limits=limits, period=0.002)
    plant, stops, largest, speed = Plant(ARM), np.deg2rad([69, 115]), 0.0, 0.0
    plant.reset(arm.tree.q0)
    for out in ticks(law, plant, 500, beyond(law), steps=2):  # of 1 ms
        assert out["status"] == 0
        largest = max(largest, float(np.max(np.abs(plant.q[:2]) - stops)))
        speed = max(speed, float(np.max(np.abs(plant.v[:2]))))
    if not with_limits:
        assert largest > 0.02  # MuJoCo's stops are soft
        return
    assert largest < 1e-3
    assert speed < 4.0 * 1.02  # the plant's steps are shorter than a tick
    assert_allclose(np.abs(plant.q[:2]), stops, atol=2e-3)


def test_wrong_limits_are_refused(arm):
    def law(**limits):
        return InverseDynamicsQP(arm, [PostureTask()], joint_limits=JointLimits(**limits))

    refused(UnknownNameError, "'shoulder', 'elbow', 'loose'", lambda: law(joints=("wrist",)))
    refused(ProblemError, "braking = -1", lambda: law(braking=-1.0))
    refused(ProblemError, "reserve = 1", lambda: law(reserve=1.0))
    refused(ProblemError, "one for each of shoulder, elbow", lambda: law(velocity=(1.0, 2.0, 3.0)))
    refused(ProblemError, "range less the margins is empty", lambda: law(margin=2.0))
    loose = mb.read_mjcf(ARM.replace('name="loose" axis', 'name="loose" range="-9 9" axis'))
    with pytest.raises(ProblemError, match="joint 'loose': it has no actuator"):
        InverseDynamicsQP(loose, [PostureTask()], joint_limits=JointLimits(("loose",)))
    assert limited(law()).names == ("shoulder", "elbow")


CART = """
<mujoco><worldbody>
    <body name="cart">
      <joint name="rail" type="slide" axis="1 0 0" range="-1 2" limited="true" {limit}/>
      <geom size=".1" mass="2"/></body></worldbody>
  <actuator>
    <position name="servo" joint="rail" kp="50" kv="20" ctrllimited="true" ctrlrange="-1 2"/>
  </actuator></mujoco>
"""


@pytest.mark.parametrize(("limit", "force"), [("", 150.0), ('actuatorfrcrange="-40 60"', 40.0)])
def test_a_servo_brakes_with_the_far_end_of_its_range(limit, force):
    """At a stop it gives kp times the whole range, 50 N/m x 3 m, or what the joint bears."""
    system = mb.read_mjcf(CART.format(limit=limit))
    law = InverseDynamicsQP(system, [PostureTask()], joint_limits=JointLimits(), period=0.005)
    assert_allclose(limited(law).braking, [0.5 * force / 2.0], rtol=1e-12)


LATE, HEAVY = 2, 0.1  # ticks, share of the mass


@pytest.mark.long
def test_by_default_a_heavier_arm_whose_commands_are_late_stops_before_its_stops(arm):
    """Were the planned braking the most that is demanded, it would be 30 mrad beyond."""
    late = {"period": 0.002, "delay": LATE, "joint_limits": JointLimits(BOTH)}
    law = InverseDynamicsQP(arm, [PostureTask(BOTH, kp=400.0)], **late)
    given = {"reference": beyond(law), "perturb": {"mass": HEAVY}, "delay": LATE}
    recording = mb.validate(law, ARM, 1.0, **given).runs[0].recording
    passed = np.max(np.abs(recording.q[:, :2]) - np.deg2rad([69, 115]))
    assert np.all(recording.status == 0)
    assert -0.01 < passed < 1e-3


def test_the_state_remembers_what_is_planned(arm):
    limits = JointLimits(("shoulder", "elbow"), velocity=4.0, reserve=0.2)
    law = InverseDynamicsQP(arm, [PostureTask()], joint_limits=limits, period=0.002, delay=LATE)
    plans = [f"planned.{joint}.{k}" for k in range(LATE, 0, -1) for joint in ("shoulder", "elbow")]
    assert law.memory_names == ("missed_ticks.posture", *plans)
    rng, z, last = np.random.default_rng(5), law.z0, None
    for _ in range(10):
        q, v = rng.normal(size=3) * [1, 1, 0], rng.normal(size=3) * [2, 2, 0]
        z = law.solve(q, v, z=z).z_next
        assert last is None or np.array_equal(z[-4:-2], last)
        last = z[-2:]


@pytest.mark.parametrize(("late", "share"), [(0, 0.5), (1, 0.5), (3, 0.75)])
def test_a_predicted_joint_is_where_a_plant_of_its_steps_is(late, share):
    """Driven at the bound for the state that it will have, by the plant's own rule of motion."""
    d, reserve, q, v = 20.0, 0.25, 0.0, 0.0
    left, speed = ca.SX.sym("left"), ca.SX.sym("speed")
    bound = braking_bound(left, speed, (1 - reserve) * d, Tick(H, share))
    most = ca.Function("most", [left, speed], [ca.fmin(bound, 30.0)])
    planned, reached = [0.0] * late, -np.inf
    for _ in range(600):
        ahead, rate = q, v
        for a in planned:
            ahead, rate = ahead + H * rate + share * H**2 * a, rate + H * a
        planned.append(float(most(STOP - ahead, rate)))
        a = planned.pop(0)
        q, v = q + H * v + share * H**2 * a, v + H * a
        reached = max(reached, q)
    assert STOP - 0.01 < reached <= STOP + ROUNDING


HINGE = """
<mujoco><compiler angle="radian"/>
  <worldbody><body><joint name="hinge" axis="0 0 1" range="-1 1"/>
    <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass="1"/></body></worldbody>
  <actuator><motor joint="hinge" ctrlrange="-10 10"/></actuator></mujoco>
"""


def hinge(**limits):
    """Return a law of MuJoCo's step, where the speed is advanced first, and what is beyond."""
    law = InverseDynamicsQP(
        mb.read_mjcf(HINGE),
        [PostureTask(kp=400.0)],
        joint_limits=JointLimits(**limits),
        period=2e-3,
    )
    return law, np.array([1.5, 0.0, 0.0])


def test_a_joint_that_needs_no_force_at_its_limit_is_solved():
    """Nothing acts in a plane without gravity: bound, force and acceleration are about zero."""
    law, ref = hinge(velocity=2.0)
    for q in np.linspace(-0.5, 0.5, 41):
        solution = law.solve([q], [2.0], ref)  # at the speed limit
        assert solution.status == 0
        assert abs(solution.a[0]) < 1e-9
    *_, (q, _) = moved(law, ref, 600)
    assert 0.999 < q <= 1.0 + 1e-9


def test_braking_is_no_more_than_the_limit_of_acceleration():
    law, ref = hinge(velocity=2.0, acceleration=5.0)
    assert limited(law).braking[0] == 5.0
    for q, solution in moved(law, ref, 1250):
        assert abs(solution.a[0]) <= 5.0 + 1e-6
        assert q <= 1.0 + 1e-9
    assert q > 0.999
    with pytest.raises(ProblemError, match="braking of at most the acceleration"):
        hinge(acceleration=5.0, braking=6.0)


GRIPPER = """<mujoco><compiler angle="radian"/><option gravity="0 0 0" timestep="0.002"/><worldbody>
<body name="hand"><joint name="wrist" axis="0 0 1" range="-2 2" limited="true"/>
<geom size=".05" mass="1"/>
<body pos=".1 .02 0"><joint name="finger" type="slide" axis="0 1 0" range="0 .04" limited="true"/>
<geom size=".01" mass=".1"/></body>
<body pos=".1 -.02 0">
<joint name="follower" type="slide" axis="0 1 0" range="-.08 0" limited="true"/>
<geom size=".01" mass=".3"/><body pos=".02 0 0">
<joint name="pad" axis="0 0 1" range="-.5 .5" limited="true"/><geom size=".01" mass=".01"/></body>
</body></body></worldbody>
<equality><joint joint1="follower" joint2="finger" polycoef="0 -2 0 0 0"/></equality>
<actuator><motor joint="wrist" ctrlrange="-4 4"/><motor joint="finger" ctrlrange="-8 8"/></actuator>
</mujoco>"""


def test_joints_that_constraints_drive_brake_by_those_that_drive_them():
    system = mb.read_mjcf(GRIPPER)
    assert system.joint_roles == (("wrist", "finger"), ("follower",), ("pad",))
    law = InverseDynamicsQP(system, [PostureTask(kp=400.0)], joint_limits=JointLimits())
    joints = limited(law)
    assert joints.names == ("wrist", "finger", "follower")
    finger, follower = joints.braking[1:]
    assert follower == pytest.approx(2 * finger, rel=1e-9)  # it moves twice as far
    moving = 0.1 + 4 * (0.3 + 0.01)  # kg along the finger, both alone
    assert finger <= 0.5 * 8 / moving * (1 + 1e-9)
    assert law.controller.notes["passive joints without limits"] == "pad"
    with pytest.raises(ProblemError, match=r"joint 'pad': it has no actuator"):
        InverseDynamicsQP(system, [PostureTask()], joint_limits=JointLimits(joints=("pad",)))


def test_a_driven_finger_and_its_follower_stop_before_their_stops_in_mujoco():
    system = mb.read_mjcf(GRIPPER)
    law = InverseDynamicsQP(
        system, [PostureTask(kp=400.0, weight=1.0)], joint_limits=JointLimits(), period=0.002
    )
    goal = law.reference_at([0.0, 0.2, -0.4, 0.0])  # 0.16 m beyond the range
    report = mb.validate(law, GRIPPER, 1.0, reference=goal, fast=True, rigid=True)
    q = report.runs[0].recording.q
    assert 0.039 < q[:, 1].max() < 0.04 + 2e-5
    assert -0.08 - 4e-5 < q[:, 2].min() < -0.078


def beyond(law):
    return law.reference_at(law.system.tree.q0, {"posture.q": [3.0, -3.0]})


def moved(law, ref, ticks):
    """Yield q and the solution over ticks of a hinge driven towards its stop."""
    q, v = 0.0, 0.0
    for _ in range(ticks):
        solution = law.solve([q], [v], ref)
        assert solution.status == 0
        v += law.period * solution.a[0]
        q += law.period * v
        yield q, solution
