"""Every kind of controller by name: `tests/control/test_every_controller.py` is their contract.

Laws and regulators are one of each of `bench.law_cases`, some once more where their limits bind.
Controllers of inverse dynamics have every option at least once, several of them together. A
controller joins by one entry; its states are inputs by name, a state in each column.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
from twins import cooperating_robots as robots

import mbcasadi as mb
from bench import law_cases
from bench.law_cases import FORCE_LOOP, system_of
from mbcasadi import control, models
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask, laws
from mbcasadi.description.status import Flag
from support.mechanisms_of_control import admissible, closed, feet

States = dict[str, np.ndarray]
PULL = 15  # times the references at most, until limits bind
SOLVED, SATURATED, INFEASIBLE, BAD = 0, 1, 2, 3
UNATTAINABLE = 2  # by a law


@dataclass(frozen=True)
class Case:
    """A controller and what the contract says of it.

    Attributes:
        make: builds it.
        states: (controller, count, seed) → inputs (rows, count).
        same: relative difference of C and Function; 0 where they do the same operations.
        rounds: whether only rounding of the inputs tells how far C and Function may differ.
        seen: statuses that the states show.
        flags: those that they show at least.
        options: of inverse dynamics.
    """

    make: Callable[[], Any]
    states: Callable[[Any, int, int], States]
    same: float = 0.0
    rounds: bool = False
    seen: tuple[int, ...] = (SOLVED,)
    flags: int = 0
    options: dict[str, Any] = field(default_factory=dict)


def states_of_law(law, count, seed, pull=1.0):
    values = law_cases.inputs(law, count + count // 5, seed=seed)
    values = {name: value[:, :count] for name, value in values.items()}
    values["ref"] *= np.linspace(0, pull, count) if pull > 1 else 1.0
    if "mask" in values:
        values["mask"][:, count // 2 :] = 0.0
    z = np.tile(law.z0[:, None], (1, count))
    return values | {"z": z + 0.1 * np.random.default_rng(seed + 1).standard_normal(z.shape)}


def limited(build, limit=None, joints=None, **options):
    """Return a builder of a law with limits, and θ of these joints."""

    def build_limited(system):
        chosen = () if joints is None else (laws.joint_coordinates(system, joints),)
        more = (
            options
            | {"options": laws.LawOptions(ctrl_limits=np.tile([-limit, limit], (system.nu, 1)))}
            if limit
            else options
        )
        return build(system, *chosen, **more)

    return build_limited


def bar(form):
    """Return servo control of the pose of a bar that two arms carry, L15's example."""

    def build(arms, **more):
        q, v, y = ca.SX.sym("q", 5), ca.SX.sym("v", 5), ca.SX.sym("y", 3)
        rows = laws.servo_rows(arms, q, v, phi=robots.bar_pose(q) - y, y=y)
        return laws.servo_control(arms, rows, form=form, **more)

    return limited(build, 60.0)


def counting_law(system):
    """Return a law with a state: it counts its calls and asks for more than the motor has."""

    def equations(at):
        u = at.ref["u"] + 0 * ca.sum1(at.q) + ca.log(at.ref["u"] + 100)
        return laws.Command(u=u, a=ca.SX.zeros(system.nv), z_next={"count": at.z["count"] + 1})

    slot = control.tasks.task.Slot("u", ("crank",), ("N m",))
    states = {"count": [2.0], "idle": [7.0, 8.0]}
    face = laws.LawInterface([slot], states=states, notes={"law": "a count"})
    return laws.make_law(
        system, "counting", equations, face, options=laws.LawOptions(ctrl_limits=[[-1.0, 2.0]])
    )


def latched():
    """Return regulation of two pendulums with a loop that closes and opens."""
    pendulums = mb.read_mjcf(models.path("topology_switch"), switchable=True)
    return laws.dependent_regulation(
        pendulums, kp=20.0, kd=1.0, friction=laws.DryFriction(sigma=0.3)
    )


LIMITED = {
    "projected": (
        "slider_crank_driven",
        limited(laws.projected_inverse_dynamics, joints=["crank"]),
    ),
    "passive": ("planar_3rrr", limited(laws.passive_joint_control, 300.0)),
    "force": (
        "slider_crank_driven",
        limited(laws.constraint_force_control, 15.0, gains=FORCE_LOOP),
    ),
    "hybrid": (
        "prr_arm",
        limited(
            laws.hybrid_motion_force_control,
            joints=("tip", "q1"),
            gains=replace(FORCE_LOOP, rows=("surface.2",)),
        ),
    ),
    "least_norm": ("cooperating_arms", bar("least_norm")),
    "figures": ("cooperating_arms", bar("figures")),
}
"""Laws whose limits bind at these references."""


def law_case(case):
    return Case(
        lambda: case.build(system_of(case.model)), states_of_law, 1e-12 if case.exact else 1e-9
    )


LAWS = {case.law: law_case(case) for case in reversed(law_cases.CASES)}
LAWS |= {
    name: Case(
        partial(lambda build, model: build(system_of(model)), build, model),
        partial(states_of_law, pull=PULL),
        rounds=True,
        seen=(SOLVED, SATURATED),
    )
    for name, (model, build) in LIMITED.items()
}
LAWS["own law with states"] = Case(
    lambda: counting_law(system_of("four_bar")),
    partial(states_of_law, pull=2 * PULL),
    1e-12,
    seen=(SOLVED, SATURATED),
)
LAWS["both topologies"] = Case(latched, states_of_law, 1e-12, seen=(SATURATED, UNATTAINABLE))


def states_of_qp(law, count, seed, *, spread=0.1, speed=0.5, pull=0.1, fast=20.0, tuning=None):
    """Return states about the standing or initial pose, and references, masks and memories.

    Every seventh state is faster. A third of the memories are those of the start, a third have an
    active set at random, a third are disturbed throughout.
    """
    rng, system, columns = np.random.default_rng(seed), law.system, []
    home = np.array(system.tree.keyframes.get("stand", system.tree.q0))
    active = law.problems * len(law.row_names)
    for k in range(count):
        q = np.array(system.integrate(home, spread * rng.standard_normal(system.nv))).ravel()
        v = speed * rng.standard_normal(system.nv) * (fast if k % 7 == 6 else 1.0)
        if system.nc:
            q = closed(system, q)
            v = admissible(np.array(system.constraint_jacobian(q)), v)
        ref, z = law.reference_at(home), law.z0
        for name, place in law.reference_slices.items():
            if not name.endswith("quaternion"):
                ref[place] += pull * rng.standard_normal(place.stop - place.start)
        z = z + (k % 3 == 2) * 0.1 * rng.standard_normal(z.size)
        z[:active] = rng.choice([-1.0, 0.0, 1.0], active) if k % 3 == 1 else z[:active]
        entries = [(tuning or {}).get(entry.name, entry.default) for entry in law.tuning]
        given = {"q": q, "v": v, "ref": ref, "z": z, "tuning": entries}
        given["mask"] = 1.0 * (rng.random(len(law.mask_names)) < 0.9)
        sizes = {name: law.function.numel_in(name) for name in law.function.name_in()}
        given["f_measured"] = rng.standard_normal(sizes.get("f_measured", 0))
        columns.append({name: given[name] for name in sizes})
    return {name: np.array([each[name] for each in columns], float).T for name in columns[0]}


def qp_case(
    model, tasks, contacts=(), *, same=1e-6, seen=(SOLVED,), flags=0, states=None, **options
):
    """Return a case of inverse dynamics; `model` is a name of ours or MJCF."""

    def make():
        system = mb.read_mjcf(model) if "<mujoco" in model else system_of(model)
        return InverseDynamicsQP(system, tasks, contacts, name="law", **options)

    states = partial(states_of_qp, **(states or {}))
    return Case(make, states, same, seen=seen, flags=flags, options=options)


ARM = """
<mujoco><option timestep="0.001" integrator="implicitfast"/>
  <default><motor ctrlrange="-40 40"/></default>
  <worldbody><geom name="pillar" type="sphere" pos=".55 .02 0" size=".08"/>
    <geom name="post" type="box" pos="-.4 .5 0" size=".05 .06 .2" euler="0 0 30"/>
    <body name="upper"><joint name="shoulder" axis="0 0 1" range="-150 150" frictionloss="1"/>
      <geom name="upper" type="cylinder" fromto=".06 0 0 .34 0 0" size=".03" mass="2"/>
      <body name="lower" pos=".4 0 0"><joint name="elbow" axis="0 0 1" range="-150 150"/>
        <geom name="lower" type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>
        <body name="hand" pos=".3 0 0"><joint name="wrist" axis="0 0 1" range="-150 150"/>
          <geom name="hand" type="box" size=".04 .03 .02" mass=".3"/><site name="tool"/></body>
      </body></body></worldbody>
  <actuator><motor joint="shoulder"/><motor joint="elbow"/><motor joint="wrist"/></actuator>
</mujoco>"""
SERVOS = """
<mujoco><option timestep="0.002" integrator="implicitfast"/>
  <default><joint axis="0 1 0" armature=".02" range="-170 170"/></default>
  <worldbody><body><joint name="a"/><geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="2"/>
    <body pos=".4 0 0"><joint name="b"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass="1"/></body></body></worldbody>
  <actuator><position joint="a" kp="800" kv="60" forcerange="-32 32"/>
    <position joint="b" kp="800" kv="60" gear="2" forcerange="-22 22"/></actuator></mujoco>"""
SPRINGS = """
<mujoco><option gravity="0 0 0"/>
  <worldbody><body><joint name="motor" type="slide" axis="1 0 0"/><geom size=".1" mass=".5"/>
    <body><joint name="gap" type="slide" axis="1 0 0" stiffness="4000"/>
      <geom size=".1" mass="3"/><site name="load"/></body></body></worldbody>
  <actuator><motor joint="motor" ctrlrange="-900 900"/></actuator></mujoco>"""

SLED = """
<mujoco><worldbody>
  <body name="sled"><joint name="sled" type="slide" axis="1 0 0"/><geom size=".1" mass="5"/></body>
  <body name="load" pos="0 0 .3"><joint name="x" type="slide" axis="1 0 0"/>
    <joint name="z" type="slide" axis="0 0 1"/><geom size=".05" mass="2"/><site name="sole"/></body>
  <body name="puck" pos="1 0 .3"><joint name="px" type="slide" axis="1 0 0"/>
    <joint name="py" type="slide" axis="0 1 0"/><joint name="pz" type="slide" axis="0 0 1"/>
    <geom size=".05" mass="1"/><site name="tip"/></body></worldbody>
  <actuator><motor joint="sled"/><motor joint="x"/><motor joint="px"/><motor joint="py"/>
    <motor joint="pz" ctrlrange="-60 60"/></actuator></mujoco>"""

TRUNK = FrameTask("trunk", kind="body", kp=100.0, weight=100.0, name="base")
LEGS = ("quadruped", [TRUNK, PostureTask(kp=50.0)])
SOLES_OF_BIPED = ("left_foot", "right_foot")
BIPED = ("planar_biped", [PostureTask(kp=50.0)], feet(SOLES_OF_BIPED))
TOOL = FrameTask("tool", position="xy", orientation="", kp=100.0, weight=10.0)
JOINTS = control.JointLimits(velocity=15.0, braking=200.0)
OBSERVER = control.DisturbanceObserver(bandwidth=5.0)
PINS = {f"pin_{leg}": 1e-3 for leg in "abc"}

INVERSE_DYNAMICS = {
    "one motor": qp_case("four_bar", [PostureTask(("crank",), kp=400.0)]),
    "feet with ranges": qp_case(
        *LEGS, feet(min_force=15.0, max_force=60.0), same=1e-5, seen=(SOLVED, INFEASIBLE)
    ),
    "levels": qp_case(
        ARM,
        [TOOL, PostureTask()],
        levels=[["tool"], ["posture"]],
        level_damping=0.02,
        observer=OBSERVER,
        joint_limits=JOINTS,
        fallback="hold",
    ),
    "cones, soft joints, tunable": qp_case(
        *LEGS,
        feet(cone="quadratic", min_force=1.0),
        joint_limits=JOINTS,
        soft=[control.SoftLimit("joints", linear=1.0)],
        observer=OBSERVER,
        tunable=control.tick.tuning.TUNABLE,
        states={"tuning": {"base.kp.x": 300.0, "FL.friction": 0.3, "joints.price": 2.0}},
        same=1e-5,
    ),
    "ramp, forces, rates": qp_case(
        *BIPED,
        load_ramp=control.LoadRamp(0.04, 80.0),
        force_weight=1e-2,
        force_reference=True,
        actuator_limits=control.ActuatorLimits(rate=4000.0, power=800.0),
        torque_rate_weight=1e-8,
        contact_damping=20.0,
        delay=1,
        period=0.002,
        same=1e-5,
    ),
    "shared and soft feet": qp_case(
        *LEGS,
        feet(min_force=30.0, max_force=45.0),
        sharing=control.LoadSharing(rows="all"),
        joint_limits=control.JointLimits(velocity=1.0, braking=300.0),
        soft=[control.SoftLimit("normal forces"), control.SoftLimit("joints", linear=1.0)],
        flags=Flag.RELAXED,
        same=1e-5,
    ),
    "loops": qp_case(
        "planar_3rrr",
        [PostureTask(("x", "y", "phi"), kp=100.0)],
        loop_force_limits=control.LoopForceLimits({"pin_a": (-0.1, 0.1)}),
        loop_force_weights=control.LoopForceWeights(PINS),
        sharing=control.LoadSharing(stiffness=dict.fromkeys(PINS, 1.0)),
        soft=[control.SoftLimit("loop forces", linear=0.1)],
        flags=Flag.RELAXED,
        force_reference=True,
        force_feedback=control.ForceFeedback(limit=5.0, gain=5.0),
        observer=control.DisturbanceObserver(bandwidth=20.0),
        stabilisation=20.0,
        delay=1,
    ),
    "limits of positions": qp_case(
        ARM,
        [TOOL, PostureTask(kp=1.0, weight=1e-2), control.JointRangeTask(("wrist",))],
        joint_limits=control.JointLimits(velocity=4.0, braking=20.0),
        distance_limits=control.DistanceLimits(6.0, 0.02, nearest=3, smoothing=5e-3),
        parts=[
            control.HalfSpace("tool", -0.9, braking=5.0, normal=(1, 0, 0)),
            control.AngularMomentumLimit((np.inf, np.inf, 3.0)),
        ],
        soft=[control.SoftLimit("distances", price=10.0)],
        flags=Flag.RELAXED | Flag.UNVIABLE,
        friction_loss=control.FrictionLoss({"elbow": 0.5}, share=0.8, task="posture"),
        tunable=("limits",),
        bound_errors=False,
        period=0.002,
    ),
    "bodies that touch and slide": qp_case(
        SLED,
        [
            PostureTask(["sled"]),
            FrameTask("tip", position="xy", orientation="", kp=400.0),
        ],
        [
            mb.Contact("sole", friction=0.3, slide_speed=1e-2, other="sled"),
            mb.Contact("tip", friction=0.2, slides=True, slide_task="tip"),
        ],
        force_weight=(1.0, 0.0, 0.0),
        force_reference=True,
        force_feedback=control.ForceFeedback(limit=10.0, gain=20.0),
        tunable=("friction",),
    ),
    "late servos": qp_case(
        SERVOS,
        [PostureTask(kp=200.0)],
        actuator_limits=control.ActuatorLimits(
            rate=9000.0, power=900.0, stall_force=30.0, no_load_speed=9.0
        ),
        joint_limits=control.JointLimits(velocity=4.0, braking=30.0, reserve=0.2),
        torque_rate_weight=1e-3,
        torque_reference=True,
        servo_plant="model",
        delay=2,
        period=0.002,
    ),
    "rigid springs": qp_case(
        SPRINGS,
        [FrameTask("load", position="x", orientation="", kp=50.0)],
        rigid_springs=control.RigidSprings(("gap",), damping=15.0),
        states={"spread": 0.01, "fast": 2.0},
        observer=OBSERVER,
        delay=1,
        solver="qrqp",
        fallback="zero",
    ),
}
CASES = LAWS | INVERSE_DYNAMICS
