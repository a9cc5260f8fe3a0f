"""A commented file of a controller for a model, to begin with: it holds the start.

Robots whose base floats get a task of the base and contacts of the geoms that could be feet; all
others a posture of the joints that actuators drive.
"""

import json
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mbcasadi.anatomy import RobotDescription, describe
from mbcasadi.anatomy.standing_pose import standing_pose
from mbcasadi.argument_kinds import checked
from mbcasadi.control import ProposedGains, propose_gains
from mbcasadi.control.regulators import equilibrium
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Ground, Plant, Source, with_ground
from mbcasadi.system import GeometryContacts, System, read_mjcf
from mbcasadi.system.actuator_kinds import actuator_kinds
from mbcasadi.system.geom_pairs import is_static
from mbcasadi.system.missing_ground import HOW_TO_GET_A_FLOOR
from mbcasadi.validation.run import PlantFactory, fitted_to_plant
from mbcasadi.validation.spec.activities import (
    DEPTH,
    EXACT,
    HOME,
    Activity,
    ToolMotion,
    Walk,
    activity_of,
    contacts_of_plan,
    tool_motions,
    walk_of,
)
from mbcasadi.validation.spec.kinds import experiment_for_system
from mbcasadi.validation.spec.read import parse_spec
from mbcasadi.validation.spec.start import (
    feet_on_plane,
    joints_outside,
    onto_ground,
    within_ranges,
)

Array = NDArray[np.float64]
SHORTEST_PERIOD = 1e-3  # s
DELAY = 1  # ticks, of the gains and of the trial
LAG = 5e-3  # s, of usual motors with their current loop
POSTURE_WEIGHT = 1e-3  # beside the task of a base
SOFTER = 6  # gains that are tried, each with half the damping of the one before
FINER = (1, 2, 4)  # parts of a period, for servos that are unstable in the model's own time step
ROUND = ("sphere", "ellipsoid", "capsule")  # shapes that roll
LISTED = 12  # names of a kind in a comment
NO_SOLES = (
    "What is lowest at the start is no foot: give its feet geoms, or write contacts of your own"
)
SHORT_OF_ROOM = (
    "No pose was found that leaves a tenth of their ranges to the joints and a fifth of their "
    "forces to the actuators on the whole way of:"
)
FALLS = "The base floats, and no foot can touch a plane of the world: this robot falls."


@dataclass(frozen=True)
class _Facts:
    """What the file says of a model."""

    system: System
    robot: RobotDescription
    ground: Ground | None
    keyframe: str | None
    q0: Array
    base: str | None
    contacts: tuple[str, ...]
    moved: float
    outside: tuple[str, ...]
    bent: bool
    activity: Activity
    unheld: str
    tools: tuple[ToolMotion, ...]
    walk: Walk | None
    driven: tuple[str, ...]
    gains: ProposedGains
    period: float
    rigid: bool
    timestep: float | None = None

    def refined(self, finer: int) -> "_Facts":
        """Return the same with shorter steps of the plant, and of the controller."""
        period = self.period / finer
        return replace(self, period=period, timestep=period, gains=_gains(period))

    @property
    def flies(self) -> bool:
        """Whether the base floats and actuators drive no joint: their forces carry it."""
        return self.base is not None and not self.driven

    @property
    def falls(self) -> bool:
        """Whether the base floats and has nothing to stand on."""
        return self.base is not None and not self.contacts and not self.flies

    @property
    def imu(self) -> tuple[str, str]:
        """Name and kind of the frame of the model's gyroscope; without one that of the base."""
        tree = self.system.tree
        assert tree is not None
        for each in self.system.sensors:
            if each.kind == "gyro" and each.frame is not None:
                frame = tree.frames[each.frame.index]
                return frame.name, frame.kind
        return self.pushed, "body"

    @property
    def pushed(self) -> str:
        """A body that a push moves: the base, or the last one that a joint moves."""
        tree = self.system.tree
        assert tree is not None
        return self.base or tree.bodies[tree.joints[-1].body].name

    @property
    def start_text(self) -> str:
        """Where the motion starts, and why not at the model's pose."""
        where = "authored pose" if self.keyframe is None else f"key frame {self.keyframe!r}"
        feet = [f"{1e3 * self.moved:+.1f} mm: feet touch"] if self.moved else []
        bent = ["legs bent, the centre of mass over the feet"] if self.bent else []
        inside = [f"moved into the range: {_listed(self.outside)}"] if self.outside else []
        arms = ["arms where they can work"] if self.works else []
        return ", ".join([where, *bent, *feet, *inside, *arms])

    @property
    def works(self) -> bool:
        """Whether arms start in another pose than the model's."""
        tree = self.system.tree
        assert tree is not None
        known = tree.q0 if self.keyframe is None else tree.keyframes[self.keyframe]
        return bool(self.tools) and not np.allclose(self.q0, known)

    @property
    def of_arms(self) -> tuple[str, ...]:
        """Driven joints of the arms whose tools move."""
        arms = {name for arm in self.robot.limbs_of("arm") for name in arm.joints}
        return tuple(name for name in self.driven if name in arms)

    @property
    def at_rest(self) -> tuple[str, ...]:
        """Driven joints that belong to no arm."""
        return tuple(name for name in self.driven if name not in self.of_arms)

    @property
    def depth(self) -> float:
        """Of a squat, m."""
        return DEPTH * float(np.mean([leg.length for leg in self.robot.limbs_of("leg")]))

    @property
    def rubs(self) -> bool:
        """Whether driven joints have dry friction, and tools have to be where they ought to be."""
        tree = self.system.tree
        losses = [j.friction_loss for j in tree.joints if j.name in self.driven] if tree else []
        return bool(self.tools) and any(losses)

    @property
    def short_of_room(self) -> tuple[str, ...]:
        """Frames of tools whose place leaves less room to limits than is asked for."""
        return tuple(each.tool.frame for each in self.tools if each.place.room < 1)

    def text(self, model: str) -> str:
        """Return the file."""
        import jinja2

        environment = jinja2.Environment(
            loader=jinja2.PackageLoader("mbcasadi.validation.spec"),
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            undefined=jinja2.StrictUndefined,
        )
        environment.filters |= {"listed": _listed, "text": _text}
        name = "proposed.toml.j2" if self.walk is None else "walking.toml.j2"
        text = environment.get_template(name).render(
            it=self,
            model=model,
            names_by_kind=[each for each in _names_by_kind(self.system) if each[1]],
            posture_weight=POSTURE_WEIGHT,
            delay=DELAY,
            falls=FALLS,
            exact=EXACT,
            home=HOME,
        )
        aligned = [f"{line:<36} # {note}" if note else line for line, note in _notes(text)]
        return "\n".join(aligned)


def _notes(text: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a template and their comments, which stand in one column."""
    for each in text.split("\n"):
        line, _, note = each.partition(" ## ")
        yield line, note


def _names_by_kind(system: System) -> Iterator[tuple[str, list[str]]]:
    """Yield what the model has."""
    tree = system.tree
    assert tree is not None
    for actuator, names in actuator_kinds(system).items():
        yield actuator, list(names)
    for kind, plural in (("site", "sites"), ("body", "bodies")):
        yield plural, [frame.name for frame in tree.frames if frame.kind == kind]
    yield "key frames", list(tree.keyframes)


@checked
def propose_spec(
    model: Path, *, task: str | None = None, warn: Callable[[str], object] | None = None
) -> str:
    """Return the text of a TOML file for a model, which `mbcasadi validate` runs.

    Loops of the plant are made rigid, and gains are as high as period and delay permit, where the
    model's servos allow it.

    Args:
        model: MJCF or URDF file.
        task: what the robot is to do, of `ACTIVITIES`; by default what suits its kind.
        warn: called with a sentence where the robot cannot hold its start.

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
    ground = _ground(system, robot)
    source = str(model) if ground is None else with_ground(model, ground)
    if ground is not None:
        system = read_mjcf(source)
    plant = Plant(source)
    period = plant.timestep * max(1, ceil(SHORTEST_PERIOD / plant.timestep - 1e-9))
    facts = _facts(system, robot, ground, plant, activity_of(robot, task), period)
    facts = _accepted(facts, source, model.name)
    if warn is not None and facts.falls:
        warn(f"{FALLS} {_remedy(system)}")
    if warn is not None and facts.unheld:
        warn(f"Its actuators cannot hold it where it starts: {facts.unheld}")
    if warn is not None and facts.short_of_room:
        warn(f"{SHORT_OF_ROOM} {_listed(facts.short_of_room)}")
    return facts.text(model.name)


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
    return Ground(feet=tuple(name for foot in robot.feet for name in foot.geoms))


def _accepted(facts: _Facts, model: Source, name: str) -> _Facts:
    """Return the facts with a plant and gains that the model's servos allow.

    Raises:
        ProblemError: there are none; the message is that of the first trial.
    """
    if facts.walk is not None:
        return facts
    why = ""
    for finer in FINER:
        refined = facts if finer == 1 else facts.refined(finer)
        for k in range(SOFTER):
            gains = refined.gains
            softer = replace(gains, kp=gains.kp / 4**k, kd=gains.kd / 2**k)
            for rigid in (True, False)[not facts.rigid :]:
                trial = replace(refined, gains=softer, rigid=rigid)
                try:
                    _build(trial, model, name)
                except ProblemError as error:
                    why = why or str(error)
                else:
                    return trial
    raise ProblemError(f"{name}: no controller could be proposed: {why}")


def _build(facts: _Facts, model: Source, name: str) -> None:
    """Build the controller as `validate` does, without its Functions."""
    spec = parse_spec(tomllib.loads(facts.text(name)))
    controller = experiment_for_system(spec, facts.system, facts.q0).controller
    fitted_to_plant(controller, PlantFactory(model, facts.rigid, facts.timestep).make(), DELAY)


def _facts(
    system: System,
    robot: RobotDescription,
    ground: Ground | None,
    plant: Plant,
    activity: Activity,
    period: float,
) -> _Facts:
    """Return what can be read from a model."""
    tree = system.tree
    assert tree is not None  # it was read from a model
    keyframe = next(iter(tree.keyframes), None)
    authored = np.array(tree.q0 if keyframe is None else tree.keyframes[keyframe], dtype=float)
    stands = standing_pose(system, robot, authored)
    q0 = within_ranges(system, plant, stands)
    free = next((joint for joint in tree.joints if joint.kind == "free"), None)
    contacts: tuple[str, ...] = ()
    moved, unheld = 0.0, ""
    found: GeometryContacts | None = None
    if free is not None:
        found = feet_on_plane(system, q0)
        contacts = tuple(dict.fromkeys(f"{c.geom2} on {c.geom1}" for c in found or ()))
        if found:
            q0[free.qpos + 2] += onto_ground(system, found, q0)
            q0, unheld = _at_rest(system, q0, found)
            q0[free.qpos + 2] += onto_ground(system, found, q0)
            moved = float(q0[free.qpos + 2] - authored[free.qpos + 2])
    tools, q0 = tool_motions(robot, plant, q0, activity)
    return _Facts(
        system=system,
        robot=robot,
        ground=ground,
        keyframe=keyframe,
        q0=q0,
        base=None if free is None else tree.bodies[free.body].name,
        contacts=contacts,
        moved=moved,
        outside=joints_outside(system, authored),
        bent=free is not None and not np.allclose(q0[free.qpos + 7 :], authored[free.qpos + 7 :]),
        activity=activity,
        unheld=unheld,
        tools=tools,
        walk=_walk(system, robot, plant, q0, found) if activity in ("trot", "walk") else None,
        driven=_driven(system),
        gains=_gains(period),
        period=period,
        rigid=system.nc > 0,
    )


def _at_rest(system: System, q: Array, feet: GeometryContacts | None) -> tuple[Array, str]:
    """Return the pose nearest to q that actuators hold on the feet, and why there is none."""
    if not feet:
        return q, ""
    try:
        contacts = [contact.as_contact() for contact in feet]
        return equilibrium(system, q, contacts=contacts, friction=True).q, ""
    except ProblemError as error:
        return q, str(error)


def _walk(
    system: System,
    robot: RobotDescription,
    plant: Plant,
    q: Array,
    feet: GeometryContacts | None,
) -> Walk:
    """Return gait and command of a robot that stands at q on bodies of these names."""
    if not feet:
        raise ProblemError(
            f"'{robot.name}' has no feet on a ground; expected a task that needs none"
        )
    assert system.tree is not None
    rolling = {geom.name for geom in system.tree.geoms if geom.kind in ROUND}
    rotation = np.array(system.frame(robot.base_body, "body").pose(q)[1])
    return walk_of(robot, [*contacts_of_plan(feet, rolling)], rotation, plant.timestep)


def _gains(period: float) -> ProposedGains:
    return propose_gains(period, delay=DELAY, lag=LAG, observer=True)


def _driven(system: System) -> tuple[str, ...]:
    """Return the hinges and slides that an actuator drives, through a tendon too."""
    assert system.tree is not None
    scalar = [joint.name for joint in system.tree.joints if joint.kind in ("hinge", "slide")]
    return tuple(name for name in system.joint_roles.driven if name in scalar)


def _text(value: str | None) -> str:
    """Return a TOML string."""
    return json.dumps(value, ensure_ascii=False)


def _listed(names: Sequence[str]) -> str:
    """Return some names in one line of a comment."""
    rest = f", … ({len(names)})" if len(names) > LISTED else ""
    return ", ".join(repr(name)[1:-1] for name in names[:LISTED]) + rest
