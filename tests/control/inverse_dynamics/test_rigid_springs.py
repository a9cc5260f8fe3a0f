"""Springs that the law holds: NumPy's problem without them, a closed form, MuJoCo's loop, C."""

from dataclasses import replace

import casadi as ca
import mujoco
import numpy as np
import pytest
from full_problem import solve
from mujoco_problem import mujoco_full_problem, site_motion
from numpy.testing import assert_allclose
from support.mechanisms_of_control import admissible, closed, limited
from support.refusals import refused

import mbcasadi as mb
from mbcasadi.control import (
    DisturbanceObserver,
    FrameTask,
    InverseDynamicsQP,
    JointLimits,
    LoadSharing,
    PostureTask,
    RigidSprings,
)
from mbcasadi.errors import ProblemError, UnknownNameError

SPRING, STIFFNESS, REST = 9, 900.0, 0.05  # dof of the shin's spring, N m/rad, rad
DAMPING = 15.0
LEG = f"""
<mujoco model="springy_leg"><compiler angle="radian"/>
  <worldbody><body name="trunk" pos="0 0 1"><freejoint/>
    <geom type="box" size=".15 .1 .08" mass="8"/><site name="trunk"/>
    <body name="thigh"><joint name="hip" axis="0 1 0" armature=".05"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.4" size=".04" mass="2"/>
      <body name="rod" pos="-.06 0 -.38"><joint name="rod" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 -.42" size=".01" mass=".1"/>
        <site name="rod_end" pos="0 0 -.42"/></body>
      <body name="shin" pos="0 0 -.4"><joint name="knee" axis="0 1 0" armature=".05"/>
        <geom type="capsule" fromto="0 0 0 0 0 -.1" size=".03" mass=".5"/>
        <body name="below" pos="0 0 -.1">
          <joint name="spring" axis="0 1 0" stiffness="{STIFFNESS}" springref="{REST}" damping=".2"
            range="-.4 .4"/>
          <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".03" mass=".5"/>
          <body name="tarsus" pos="0 0 -.3"><joint name="tarsus" axis="0 1 0"/>
            <geom type="capsule" fromto="0 0 0 .1 0 -.25" size=".02" mass=".4"/>
            <site name="heel" pos="-.06 0 0"/><site name="toe" pos=".12 0 -.25"/>
            <site name="back" pos=".04 0 -.27"/></body></body></body></body></body></worldbody>
  <tendon><fixed name="twice" stiffness="10"><joint joint="spring" coef="2"/></fixed></tendon>
  <equality><connect site1="rod_end" site2="heel"/></equality>
  <actuator><motor joint="hip" ctrlrange="-80 80" gear="2"/>
    <motor joint="knee" ctrlrange="-150 150"/></actuator></mujoco>
"""
FEET = [mb.Contact(name, friction=0.8, sides=4) for name in ("toe", "back")]
TRUNK = FrameTask("trunk", kp=100.0, weight=10.0)
HELD = RigidSprings(("spring",), damping=DAMPING)


def leg(springs=HELD, **options):
    return InverseDynamicsQP(mb.read_mjcf(LEG), [TRUNK], FEET, rigid_springs=springs, **options)


def states(law, count):
    """Yield states on the loop's manifold whose points do not slip: the spring moves."""
    rng = np.random.default_rng(3)
    model = mujoco.MjModel.from_xml_string(LEG)
    for _ in range(count):
        q = law.system.tree.q0.copy()
        q = np.array(law.system.integrate(q, 0.1 * rng.standard_normal(11))).ravel()
        q[7:] += [-0.3, 0.5, 0.4, 0.1, -0.4]
        q = closed(law.system, q)
        data = mujoco.MjData(model)
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        points = [site_motion(model, data, contact.frame)[0][:3] for contact in FEET]
        A = np.vstack([np.array(law.system.constraint_jacobian(q)), *points])
        v = admissible(A, rng.standard_normal(11))
        assert abs(v[SPRING]) > 1e-3
        yield model, q, v


def without_spring(law, model, q, v, ref):
    """Return MuJoCo's problem with the spring's row, and without its force."""
    part = {name.split(".", 1)[1]: ref[place] for name, place in law.reference_slices.items()}
    full = mujoco_full_problem(
        model, q, v, [(TRUNK, part)], FEET, weights=law.force_weights, loops=[("rod_end", "heel")]
    )
    row = np.eye(model.nv)[SPRING]
    stretch = q[model.joint("spring").qposadr[0]] - REST
    full.f += row * (STIFFNESS * stretch + 10.0 * 2 * 2 * (stretch + REST))
    full.A, full.c = np.vstack([full.A, row]), np.append(full.c, DAMPING * v[SPRING])
    return full


@pytest.mark.parametrize(
    "springs",
    [HELD, RigidSprings(("spring",), ("twice",), damping=DAMPING)],
    ids=["once", "once more by a tendon"],
)
@pytest.mark.parametrize("sharing", [None, LoadSharing(rows="all")], ids=["", "shared"])
@pytest.mark.every(3)
def test_motion_and_forces_are_those_of_a_leg_without_the_spring(springs, sharing):
    law = leg(springs, sharing=sharing)
    for model, q, v in states(law, 8):
        ref = law.reference_at(q)
        ref[law.reference_slices["trunk.position"]] += [0.02, -0.01, 0.03]
        found, judge = law.solve(q, v, ref), solve(without_spring(law, model, q, v, ref))
        assert found.solved == judge.feasible, found.explain()
        assert found.a[SPRING] == pytest.approx(-DAMPING * v[SPRING], rel=1e-9)
        assert_allclose(found.a, judge.a, atol=1e-6 * np.abs(judge.a).max())
        assert_allclose(found.p, judge.p, atol=1e-6 * np.abs(judge.p).max())
        if sharing is None:
            force = judge.force
            assert_allclose(found.contact_forces, force, atol=1e-6 * np.abs(force).max())


@pytest.mark.long
def test_the_spring_itself_would_ask_for_other_forces():
    held, free = leg(), leg(None)
    _, q, v = next(states(held, 1))
    ref = held.reference_at(q)
    assert np.abs(held.solve(q, v, ref).p - free.solve(q, v, ref).p).max() > 10.0


def test_levels_hold_the_spring_too():
    law = InverseDynamicsQP(
        mb.read_mjcf(LEG),
        [TRUNK, PostureTask(("hip", "knee"))],
        FEET,
        rigid_springs=HELD,
        levels=[["trunk"], ["posture"]],
    )
    for _, q, v in states(law, 3):
        found = law.solve(q, v)
        assert found.solved
        assert found.a[SPRING] == pytest.approx(-DAMPING * v[SPRING], rel=1e-9)


J, M, K = 0.5, 3.0, 4000.0
TWO_MASSES = f"""
<mujoco><option gravity="0 0 0"/>
  <worldbody><body><joint name="motor" type="slide" axis="1 0 0"/><geom size=".1" mass="{J}"/>
    <body><joint name="gap" type="slide" axis="1 0 0" stiffness="{K}"/>
      <geom size=".1" mass="{M}"/><site name="load"/></body></body></worldbody>
  <actuator><motor joint="motor"/></actuator></mujoco>
"""


LOAD = FrameTask("load", position="x", orientation="", kp=50.0)


def two_masses_by_equations(springs, k=K, task=LOAD, motor=J):
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    kinetic = motor / 2 * v[0] ** 2 + M / 2 * (v[0] + v[1]) ** 2
    system = mb.from_lagrangian(
        q, v, kinetic=kinetic, potential=k / 2 * q[1] ** 2, B=np.array([[1], [0]])
    ).with_frame("load", q, ca.vertcat(q[0] + q[1], 0, 0))
    return law_of_masses(system, springs, task)


def law_of_masses(system, springs, task=LOAD):
    return InverseDynamicsQP(system, [task], rigid_springs=springs, torque_weight=1e-12)


@pytest.mark.parametrize("given_as", ["model", "equations"])
def test_two_masses_get_the_force_of_their_sum_and_a_damped_gap(given_as):
    if given_as == "model":
        law = law_of_masses(mb.read_mjcf(TWO_MASSES), RigidSprings(("gap",), damping=DAMPING))
    else:
        law = two_masses_by_equations(RigidSprings(("q_1",), damping=DAMPING))
    rng = np.random.default_rng(5)
    for _ in range(5):
        (x, s), (dx, ds) = rng.standard_normal(2) * [1.0, 1e-2], rng.standard_normal(2)
        a_load = -50.0 * (x + s) - 2 * np.sqrt(50.0) * (dx + ds)
        ref = law.reference_at(np.zeros(2))
        u = law.solve([x, s], [dx, ds], ref).u[0]
        assert u == pytest.approx((J + M) * a_load + J * DAMPING * ds, rel=1e-6)


def test_a_motor_without_mass_gets_the_force_of_the_load():
    """The inertia is singular, and definite where the spring is held."""
    springs = RigidSprings(("q_1",), damping=DAMPING)
    law = two_masses_by_equations(springs, motor=0.0)
    found = law.solve([0.1, 0.01], [0.3, 0.2], law.reference_at(np.zeros(2)))
    assert found.solved
    assert found.u[0] == pytest.approx(M * (-50.0 * 0.11 - 2 * np.sqrt(50.0) * 0.5), rel=1e-6)
    assert found.a[1] == pytest.approx(-DAMPING * 0.2, rel=1e-9)


def slowest_decay(k, damping, task):
    """Return the largest real part of the poles of two masses under the law, 1/s."""
    law = two_masses_by_equations(RigidSprings(("q_1",), damping=damping), k, task)
    ref = law.reference_at(np.zeros(2))
    forces = [law.solve(state[:2], state[2:], ref).u[0] for state in np.eye(4)]
    inertia = np.array([[J + M, M], [M, M]])
    pull = np.array([forces, [0.0, -k, 0.0, 0.0]])
    A = np.vstack([np.eye(4)[2:], np.linalg.solve(inertia, pull)])
    return np.linalg.eigvals(A).real.max()


def test_two_masses_are_stable_from_the_spring_on_that_the_formula_says():
    """`ω > kd` at the default damping, and no damping below kd will do."""
    load, kd = replace(LOAD, kp=100.0), 20.0
    for share, stable in ((1.05, True), (0.95, False)):
        k = (share * kd) ** 2 / (1 / J + 1 / M)
        assert (slowest_decay(k, None, load) < 0) == stable
        assert (slowest_decay(1e6, share * kd, load) < 0) == stable
        assert slowest_decay(k, 3 * kd, load) > slowest_decay(k, None, load)


def test_a_task_of_the_motor_is_stable_below_the_damping_from_which_one_of_the_load_is():
    motor, kd = PostureTask(kp=100.0), 20.0  # the gap is held, its row counts for nothing
    for share, stable in ((0.95, True), (1.05, False)):
        assert (slowest_decay(1e6, share * kd, motor) < 0) == stable


ARM = """
<mujoco><option timestep=".0005" integrator="implicitfast"/>
  <compiler angle="radian"/>
  <default><joint axis="0 1 0"/></default>
  <worldbody><body><joint name="shoulder" armature=".1" damping=".5"/>
    <geom type="cylinder" size=".05 .03" mass=".5"/>
    <body><joint name="shoulder_spring" stiffness="800" damping=".2"/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="3"/>
      <body pos=".4 0 0"><joint name="elbow" armature=".05" damping=".5"/>
        <geom type="cylinder" size=".04 .03" mass=".3"/>
        <body><joint name="elbow_spring" stiffness="500" damping=".1"/>
          <geom type="capsule" fromto="0 0 0 .35 0 0" size=".03" mass="2"/>
          <site name="tip" pos=".35 0 0"/></body></body></body></body></worldbody>
  <actuator><motor joint="shoulder" ctrlrange="-120 120"/><motor joint="elbow" ctrlrange="-80 80"/>
  </actuator></mujoco>
"""
BENT = np.array([0.6, 0.0, -1.2, 0.0])
RADIUS, TURNS = 0.08, 0.5  # m, Hz


def circling(springs):
    """Return errors (n,) of a tip on a circle, m, and the share of solved ticks; one tick late."""
    tip, observer = (
        FrameTask("tip", position="xz", orientation="", kp=150.0),
        DisturbanceObserver(3.0),
    )
    options = {"rigid_springs": springs, "observer": observer, "period": 0.002, "delay": 1}
    law = InverseDynamicsQP(mb.read_mjcf(ARM), [tip], **options)
    rest, rate = law.reference_at(BENT), 2 * np.pi * TURNS

    def at(t):
        ref, c, s = rest.copy(), np.cos(rate * t), np.sin(rate * t)
        wave = {"position": [c - 1, s], "velocity": [-rate * s, rate * c]}
        wave["acceleration"] = [-(rate**2) * c, -(rate**2) * s]
        for name, value in wave.items():
            ref[law.reference_slices[f"tip.{name}"]] += RADIUS * np.array(value)
        return ref

    report = mb.validate(law, ARM, 3.0, reference=at, q0=BENT, perturb={"mass": 0.1}, delay=1)
    run = report.runs[0].recording
    return np.linalg.norm(run.monitor["error"], axis=1), np.mean(run.status == 0)


@pytest.mark.long
def test_an_arm_with_springs_in_its_joints_follows_a_circle_in_mujoco():
    """The law that takes the springs as they are is half a metre off within 0.4 s."""
    with_springs, solved = circling(RigidSprings(("shoulder_spring", "elbow_spring")))
    as_they_are, _ = circling(None)
    assert solved == 1.0
    assert with_springs[750:].max() < 2e-3
    assert as_they_are[:200].max() > 0.5


def test_springs_are_left_out_of_the_limits_of_joints():
    ranged = LEG.replace('name="hip" axis', 'name="hip" range="-2 2" axis')
    options = {"contacts": FEET, "rigid_springs": HELD}
    law = InverseDynamicsQP(
        mb.read_mjcf(ranged), [TRUNK], joint_limits=JointLimits(braking=50.0), **options
    )
    assert limited(law).names == ("hip",)
    with pytest.raises(ProblemError, match="'spring' has limits and is a rigid spring"):
        leg(joint_limits=JointLimits(("spring",), braking=50.0))


def test_a_damping_is_refused_before_its_recursion_grows():
    """`v_{k+1} = v_k - h c v_{k-d}` grows beyond twice the largest damping, and fades at it."""
    for delay in (0, 1, 2):
        with pytest.raises(ProblemError, match="expected at most") as error:
            leg(RigidSprings(("spring",), damping=1e4), delay=delay)
        largest = float(str(error.value).split("at most ")[1].split(" ")[0])
        for share, fades in ((1.0, True), (2.02, False)):
            step = np.eye(delay + 1, k=-1)
            step[0, 0] += 1
            step[0, delay] -= 1e-3 * share * largest
            assert (np.abs(np.linalg.eigvals(step)).max() < 1) == fades


def test_what_is_no_spring_is_refused():
    def law(text, *springs):
        return InverseDynamicsQP(mb.read_mjcf(text), [TRUNK], rigid_springs=RigidSprings(*springs))

    refused(UnknownNameError, "ankle", lambda: leg(RigidSprings(("ankle",))))
    refused(UnknownNameError, "fixed tendon 'spring'", lambda: leg(RigidSprings((), ("spring",))))
    refused(ProblemError, "'knee' has no stiffness", lambda: leg(RigidSprings(("knee",))))
    driven = LEG.replace('name="knee" axis', 'name="knee" stiffness="9" axis')
    refused(ProblemError, "'knee' is moved by actuator", lambda: law(driven, ("knee",)))
    refused(ProblemError, "no springs", RigidSprings)
    refused(ProblemError, "named twice", lambda: RigidSprings(("spring", "spring")))
    refused(ProblemError, "damping", lambda: RigidSprings(("spring",), damping=-1.0))
    slack = LEG.replace('name="twice"', 'name="twice" springlength="-.1 .1"')
    refused(ProblemError, r"slack from -0.1 to 0.1", lambda: law(slack, (), ("twice",)))
    twice = RigidSprings((), ("twice",))
    refused(ProblemError, "has no tendons", lambda: two_masses_by_equations(twice))
