"""A commented file of a controller for a model, to begin with: what suits its kind of robot.

Robots whose base floats get a task of the base and contacts of the geoms that could be feet, or a
plan of the whole body; arms tasks of their tools; all others a posture of the joints that actuators
drive.
"""

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import ceil
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.anatomy import RobotDescription, describe
from mbcasadi.argument_kinds import checked
from mbcasadi.control.inverse_dynamics.call_inputs import TickInputs
from mbcasadi.control.inverse_dynamics.controller import InverseDynamicsQP, built_when_needed
from mbcasadi.description.status import Status
from mbcasadi.errors import ProblemError, SimulationError
from mbcasadi.plant import Ground, Plant, Source, with_ground, with_object
from mbcasadi.system import System, read_mjcf
from mbcasadi.system.geom_pairs import is_static
from mbcasadi.system.missing_ground import HOW_TO_GET_A_FLOOR
from mbcasadi.validation.run import PlantFactory, fitted_to_plant
from mbcasadi.validation.spec.activities import activity_of
from mbcasadi.validation.spec.driving import ground_of_wheels
from mbcasadi.validation.spec.grasping import holds_of, step_of_tips
from mbcasadi.validation.spec.kinds import experiment_for_system
from mbcasadi.validation.spec.model_facts import driven_joints, facts_of
from mbcasadi.validation.spec.motion_options import SUITED_MOTION, MotionOptions, require_taken
from mbcasadi.validation.spec.proposal import DELAY, FALLS, Proposal, gains_of, listed
from mbcasadi.validation.spec.read import parse_spec
from mbcasadi.validation.spec.script import script_of_spec
from mbcasadi.validation.spec.springs import HeldSprings

Array = NDArray[np.float64]
SHORTEST_PERIOD = 1e-3  # s
LONGEST_PERIOD = 2.5e-3  # s, of tools and fingers, beside the servos of small robots
SOFTER = 6  # gains that are tried, each with half the damping of the one before
STEADY = 20  # steps of a plant with rigid loops: of light bodies with dry friction it may diverge
FINER = (1, 2, 4)  # parts of a period, for servos that are unstable in the model's own time step
NO_SOLES = (
    "What is lowest at the start is no foot: give its feet geoms, or write contacts of your own"
)
FOOTLESS = (
    "Its feet have no shapes that touch the ground, so that it stands on what is above these "
    "joints; give the bodies beyond them geoms:"
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
    motion: MotionOptions = SUITED_MOTION,
    ahead: ArrayLike | None = None,
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
        motion: its speed, turn, radius and frequency, where they are not to suit the robot.
        ahead: (3,) direction in which the robot looks, in the axes of its base, as `describe`.
        warn: called with a sentence where the robot cannot hold its start, or not drive.
        python: return a script that builds, validates and exports the same, in place of the file.
        mpc: whole-body MPC: `trot` or `walk`, as the robot's kind can.

    Raises:
        ModelError: the model cannot be read.
        ProblemError: a model without actuators; a task that its kind cannot do; a motion that the
            task does not take, or the robot cannot make; servos that no gains and no plant suit.
        ShapeError: `ahead` has another size.
    """
    system = read_mjcf(model)
    if not system.nu:
        raise ProblemError(
            f"{model}: the model has no actuator, nothing can be controlled; add <actuator>"
        )
    robot = describe(system, ahead=ahead)
    activity = activity_of(robot, task, mpc=mpc)
    require_taken(motion, activity)
    if activity == "grasp":
        return _written(_grasping(model, system, robot), model, python)
    ground = _ground(system, robot)
    source = str(model) if ground is None else with_ground(model, ground)
    if ground is not None:
        system = read_mjcf(source)
    plant = Plant(source)
    period = _period(plant)
    try:
        facts = facts_of(system, robot, ground, plant, activity, period, motion)
    except ProblemError as error:
        if task is not None or activity not in ("drive", "stand", "track") or motion.given:
            raise
        facts = facts_of(system, robot, ground, plant, "hold", period, motion)
        if warn is not None:
            warn(f"It holds where it starts: {error}")
    facts = _accepted(facts, source, model.name)
    if warn is not None and facts.falls:
        warn(f"{FALLS} {_remedy(system)}")
    if warn is not None and facts.unheld:
        warn(f"Its actuators cannot hold it where it starts: {facts.unheld}")
    if warn is not None and facts.footless:
        warn(f"{FOOTLESS} {listed(facts.footless)}")
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
        driven = driven_joints(held)
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
            rolling=None,
            hold=hold,
            balance=None,
            driven=driven,
            loose=(),
            springs=HeldSprings(),
            gains=gains_of(held, hold.q0, driven, HeldSprings(), _period(plant)),
            period=_period(plant),
            rigid=system.nc > 0,
            timestep=step if (step := step_of_tips(plant.model, hold)) < plant.timestep else None,
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

    Legs have no joint limits where these alone are what no controller can be built with.

    Raises:
        ProblemError: there are none; the message is that of the first trial.
    """
    if facts.walk is not None:
        return facts
    why = ""
    for trial in _trials(facts):
        error = _error_of(trial, model, name)
        if not error:
            return trial
        why = why or error
        bare = replace(trial, unlimited=error)
        if trial.stands and not _error_of(bare, model, name):
            return bare
    raise ProblemError(f"{name}: no controller could be proposed: {why}")


def _trials(facts: Proposal) -> Iterator[Proposal]:
    """Yield the facts with softer and softer gains, then with finer steps of the plant."""
    fine = max(1, ceil(facts.period / LONGEST_PERIOD)) if facts.tools or facts.hold else 1
    for finer in FINER:
        refined = facts if fine * finer == 1 else facts.refined(fine * finer)
        gains = refined.gains
        for k in range(SOFTER):
            softer = replace(gains, kp=gains.kp / 4**k, kd=gains.kd / 2**k)
            for rigid in (True, False)[not facts.rigid :]:
                yield replace(refined, gains=softer, rigid=rigid)


def _error_of(facts: Proposal, model: Source, name: str) -> str:
    """Return why there is no controller, or none for the plant, "" where there is."""
    try:
        _build(facts, model, name)
    except (ProblemError, SimulationError) as error:
        return str(error)
    return ""


def _build(facts: Proposal, model: Source, name: str) -> None:
    """Build the controller as `validate` does, and try rigid loops.

    Raises:
        ProblemError: servos that the gains or the plant do not suit, or that cannot hold an object
            at once.
        SimulationError: rigid loops with which the plant diverges, whatever the controller.
    """
    spec = parse_spec(tomllib.loads(facts.text(name)))
    with built_when_needed():
        controller = experiment_for_system(spec, facts.system, facts.q0).controller
    plant = PlantFactory(model, facts.rigid, facts.timestep).make()
    fitted = fitted_to_plant(controller, plant, DELAY)
    if isinstance(fitted, InverseDynamicsQP):
        _ = fitted.function
        if facts.hold is not None:
            _require_first_tick(fitted, facts.q0, plant)
    if facts.rigid:
        plant.reset(facts.q0)
        plant.step(np.zeros(plant.nu), steps=STEADY)


def _require_first_tick(law: InverseDynamicsQP, q: Array, plant: Plant) -> None:
    """Raise unless a law has a solution at the start: what is let go once does not come back.

    Raises:
        ProblemError: it has none; the message says which limits exclude each other.
    """
    plant.reset(q)
    start = q, np.zeros(plant.nv), law.reference_at(q)
    inputs: TickInputs = {"act": plant.act} if plant.na else {}
    if law.solve(*start, **inputs).status > Status.SUBOPTIMAL:
        raise ProblemError(f"at the start {law.explain(*start, **inputs)}")
