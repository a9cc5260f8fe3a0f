"""A commented file of a controller for a model, to begin with: what suits its kind of robot.

Robots whose base floats get a task of the base and contacts of the geoms that could be feet, or a
plan of the whole body; arms tasks of their tools; all others a posture of the joints that actuators
drive.
"""

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mbcasadi.anatomy import RobotDescription, describe
from mbcasadi.anatomy.standing_pose import standing_pose
from mbcasadi.argument_kinds import checked
from mbcasadi.control.regulators import equilibrium
from mbcasadi.errors import AssemblyError, ProblemError, SimulationError
from mbcasadi.plant import Ground, Plant, Source, with_ground, with_object
from mbcasadi.system import GeometryContact, System, read_mjcf
from mbcasadi.system.geom_pairs import is_static
from mbcasadi.system.missing_ground import HOW_TO_GET_A_FLOOR
from mbcasadi.validation.run import PlantFactory, fitted_to_plant
from mbcasadi.validation.spec.activities import (
    ON_FEET,
    WALKS,
    Activity,
    Walk,
    activity_of,
    contacts_of_plan,
    walk_of,
)
from mbcasadi.validation.spec.driving import drive_of, ground_of_wheels, wheels_on_plane
from mbcasadi.validation.spec.grasping import holds_of
from mbcasadi.validation.spec.kinds import experiment_for_system
from mbcasadi.validation.spec.lifting import balance_of
from mbcasadi.validation.spec.proposal import DELAY, FALLS, Proposal, gains_for, listed
from mbcasadi.validation.spec.read import parse_spec
from mbcasadi.validation.spec.script import script_of_spec
from mbcasadi.validation.spec.springs import HeldSprings, springs_to_hold
from mbcasadi.validation.spec.start import (
    base_joint,
    feet_on_plane,
    joints_outside,
    onto_ground,
    within_ranges,
)
from mbcasadi.validation.spec.tool_motions import loads_of, tool_motions

Array = NDArray[np.float64]
SHORTEST_PERIOD = 1e-3  # s
LONGEST_PERIOD = 2.5e-3  # s, of tools and fingers, beside the servos of small robots
SOFTER = 6  # gains that are tried, each with half the damping of the one before
STEADY = 20  # steps of a plant with rigid loops: of light bodies with dry friction it may diverge
FINER = (1, 2, 4)  # parts of a period, for servos that are unstable in the model's own time step
ROUND = ("sphere", "ellipsoid", "capsule")  # shapes that roll
NO_SOLES = (
    "What is lowest at the start is no foot: give its feet geoms, or write contacts of your own"
)
CRAMPED = (
    "No pose was found that leaves a tenth of their ranges to the joints and a fifth of their "
    "forces to the actuators on the whole way of:"
)


@checked
def propose_spec(
    model: Path,
    *,
    task: str | None = None,
    warn: Callable[[str], object] | None = None,
    python: bool = False,
    mpc: bool = False,
) -> str:
    """Return the text of a TOML file for a model, which `mbcasadi validate` runs.

    Loops of the plant are made rigid, and gains are as high as period and delay permit, where the
    model's servos allow it.

    Args:
        model: MJCF or URDF file.
        task: what the robot is to do, of `ACTIVITIES`; by default what suits its kind.
        warn: called with a sentence where the robot cannot hold its start, or not drive.
        python: return a script that builds, validates and exports the same, in place of the file.
        mpc: whole-body MPC: `trot` or `walk`, as the robot's kind can.

    Raises:
        ModelError: the model cannot be read.
        ProblemError: a model without actuators; a task that its kind cannot do; servos that no
            gains and no plant suit.
    """
    system = read_mjcf(model)
    if not system.nu:
        raise ProblemError(
            f"{model}: the model has no actuator, nothing can be controlled; add <actuator>"
        )
    robot = describe(system)
    if (activity := activity_of(robot, task, mpc=mpc)) == "grasp":
        return _written(_grasping(model, system, robot), model, python)
    ground = _ground(system, robot)
    source = str(model) if ground is None else with_ground(model, ground)
    if ground is not None:
        system = read_mjcf(source)
    plant = Plant(source)
    period = _period(plant)
    try:
        facts = _facts(system, robot, ground, plant, activity, period)
    except ProblemError as error:
        if task is not None or activity not in ("drive", "stand"):
            raise
        facts = _facts(system, robot, ground, plant, "hold", period)
        if warn is not None:
            warn(f"It holds where it starts: {error}")
    facts = _accepted(facts, source, model.name)
    if warn is not None and facts.falls:
        warn(f"{FALLS} {_remedy(system)}")
    if warn is not None and facts.unheld:
        warn(f"Its actuators cannot hold it where it starts: {facts.unheld}")
    if warn is not None and facts.cramped:
        warn(f"{CRAMPED} {listed(facts.cramped)}")
    return _written(facts, model, python)


def _written(facts: Proposal, model: Path, python: bool) -> str:
    text = facts.text(model.name)
    return script_of_spec(text, model, facts.title) if python else text


def _period(plant: Plant) -> float:
    """Return a period, s: a whole number of the plant's steps."""
    return plant.timestep * max(1, ceil(SHORTEST_PERIOD / plant.timestep - 1e-9))


def _grasping(model: Path, system: System, robot: RobotDescription) -> Proposal:
    """Return the facts of the first grasp for which there is a controller.

    Raises:
        ProblemError: no grasp, or none with a controller; the message is that of the first one.
    """
    why: ProblemError | None = None
    for hold in holds_of(str(model), system, robot):
        source = with_object(model, hold.thing)
        held, plant = read_mjcf(source), Plant(source)
        facts = Proposal(
            system=held,
            robot=robot,
            ground=None,
            keyframe=None,
            q0=hold.q0,
            base=None,
            contacts=(),
            moved=0.0,
            outside=(),
            bent=False,
            activity="grasp",
            unheld="",
            loads={},
            tools=(),
            walk=None,
            drive=None,
            hold=hold,
            balance=None,
            driven=_driven(held),
            loose=(),
            springs=HeldSprings(),
            gains=gains_for(_period(plant), HeldSprings()),
            period=_period(plant),
            rigid=system.nc > 0,
        )
        try:
            return _accepted(facts, source, model.name)
        except ProblemError as error:
            why = why or error
    assert why is not None  # `holds_of` raises where there is none
    raise why


def _remedy(system: System) -> str:
    """Return what a robot lacks that falls: feet, or a floor."""
    assert system.tree is not None
    if any(geom.kind == "plane" for geom in system.tree.geoms):
        return NO_SOLES
    return f"To stand it needs a floor: {HOW_TO_GET_A_FLOOR}"


def _ground(system: System, robot: RobotDescription) -> Ground | None:
    """Return the floor that a robot with feet or wheels needs; None where it has one."""
    assert system.tree is not None
    stands = [*robot.feet, *robot.limbs_of("wheel")]
    if not stands or any(is_static(system.tree, geom) for geom in system.tree.geoms):
        return None
    if not robot.feet:
        return ground_of_wheels(robot, system)
    return Ground(feet=tuple(name for foot in robot.feet for name in foot.geoms))


def _accepted(facts: Proposal, model: Source, name: str) -> Proposal:
    """Return the facts with a plant and gains that the model's servos allow.

    Raises:
        ProblemError: there are none; the message is that of the first trial.
    """
    if facts.walk is not None:
        return facts
    why = ""
    fine = max(1, ceil(facts.period / LONGEST_PERIOD)) if facts.tools or facts.hold else 1
    for finer in FINER:
        refined = facts if fine * finer == 1 else facts.refined(fine * finer)
        for k in range(SOFTER):
            gains = refined.gains
            softer = replace(gains, kp=gains.kp / 4**k, kd=gains.kd / 2**k)
            for rigid in (True, False)[not facts.rigid :]:
                trial = replace(refined, gains=softer, rigid=rigid)
                try:
                    _build(trial, model, name)
                except (ProblemError, SimulationError) as error:
                    why = why or str(error)
                else:
                    return trial
    raise ProblemError(f"{name}: no controller could be proposed: {why}")


def _build(facts: Proposal, model: Source, name: str) -> None:
    """Build the controller as `validate` does, without its Functions, and try rigid loops.

    Raises:
        ProblemError: servos that the gains or the plant do not suit.
        SimulationError: rigid loops with which the plant diverges, whatever the controller.
    """
    spec = parse_spec(tomllib.loads(facts.text(name)))
    controller = experiment_for_system(spec, facts.system, facts.q0).controller
    plant = PlantFactory(model, facts.rigid, facts.timestep).make()
    fitted_to_plant(controller, plant, DELAY)
    if facts.rigid:
        plant.reset(facts.q0)
        plant.step(np.zeros(plant.nu), steps=STEADY)


def _facts(
    system: System,
    robot: RobotDescription,
    ground: Ground | None,
    plant: Plant,
    activity: Activity,
    period: float,
) -> Proposal:
    """Return what can be read from a model."""
    tree = system.tree
    assert tree is not None  # it was read from a model
    keyframe = next(iter(tree.keyframes), None)
    authored = np.array(tree.q0 if keyframe is None else tree.keyframes[keyframe], dtype=float)
    stands = standing_pose(system, robot, authored)
    q0 = within_ranges(system, plant, stands)
    if activity in ("stand", *ON_FEET) and not any(tree.gravity):
        raise ProblemError(
            f"task {activity!r} of '{robot.name}', whose model has no gravity: nothing presses its "
            'feet on the ground; expected <option gravity="0 0 -9.81"/>'
        )
    free, rises = base_joint(robot, system, q0)
    contacts: tuple[str, ...] = ()
    unheld = ""
    found: tuple[GeometryContact, ...] = ()
    if free is not None and activity == "drive":
        q0 += rises * onto_ground(system, wheels_on_plane(robot, system, q0), q0)
    elif free is not None and any(tree.gravity):
        found, contacts = feet_on_plane(system, q0)
        if found:
            q0 += rises * onto_ground(system, found, q0)
            q0, unheld = _at_rest(system, q0, found)
            q0 += rises * onto_ground(system, found, q0)
    moved = float(rises @ (q0 - authored)) if found or activity == "drive" else 0.0
    if activity in ON_FEET and not (found and robot.base == "floating"):
        raise ProblemError(
            f"task {activity!r} of '{robot.name}', which has no feet on a ground that its base "
            "could leave; expected a free joint of the base, and shapes of feet"
        )
    scalar = (joint for joint in tree.joints if joint.kind in ("hinge", "slide"))
    limbs = [joint.qpos for joint in scalar if free is not None and joint.body != free.body]
    loads = loads_of(robot, plant) if activity == "carry" else {}
    laden = Plant(plant.model, perturb=loads)
    tools, q0 = tool_motions(robot, laden, q0, activity)
    springs = springs_to_hold(system, found, q0) if found else HeldSprings()
    return Proposal(
        system=system,
        robot=robot,
        ground=ground,
        keyframe=keyframe,
        q0=q0,
        base=None if free is None else tree.bodies[free.body].name,
        contacts=contacts,
        moved=moved,
        outside=joints_outside(system, authored),
        bent=free is not None and not np.allclose(q0[limbs], authored[limbs]),
        activity=activity,
        unheld=unheld,
        loads=loads,
        tools=tools,
        hold=None,
        balance=balance_of(robot, system, q0, found) if found and activity == "lift" else None,
        walk=_walk(system, robot, plant, q0, found) if found and activity in WALKS else None,
        drive=drive_of(robot, system, q0) if activity == "drive" else None,
        driven=_driven(system),
        loose=_loose(robot) if activity == "hold" else (),
        springs=springs,
        gains=gains_for(period, springs),
        period=period,
        rigid=system.nc > 0,
    )


def _at_rest(system: System, q: Array, feet: Sequence[GeometryContact]) -> tuple[Array, str]:
    """Return the pose nearest to q that actuators hold on the feet, and why there is none."""
    try:
        contacts = [contact.as_contact() for contact in feet]
        return equilibrium(system, q, contacts=contacts, friction=True).q, ""
    except (AssemblyError, ProblemError) as error:
        return q, str(error)


def _walk(
    system: System, robot: RobotDescription, plant: Plant, q: Array, feet: Sequence[GeometryContact]
) -> Walk:
    """Return gait and command of a robot that stands at q on these contacts."""
    assert system.tree is not None
    rolling = {geom.name for geom in system.tree.geoms if geom.kind in ROUND}
    rotation = np.array(system.frame(robot.base_body, "body").pose(q)[1])
    return walk_of(robot, [*contacts_of_plan(feet, rolling)], rotation, plant.timestep)


def _loose(robot: RobotDescription) -> tuple[str, ...]:
    """Return the joints of a limb on the world that nothing drives, if it is no arm."""
    if robot.kind != "other" or robot.base != "fixed":
        return ()
    names = [name for limb in robot.limbs for name in limb.joints]
    return tuple(name for name in names if name in robot.joints.passive)


def _driven(system: System) -> tuple[str, ...]:
    """Return the hinges and slides that an actuator drives, through a tendon too."""
    assert system.tree is not None
    scalar = [joint.name for joint in system.tree.joints if joint.kind in ("hinge", "slide")]
    return tuple(name for name in system.joint_roles.driven if name in scalar)
