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

from mbcasadi.argument_kinds import checked
from mbcasadi.control import ProposedGains, propose_gains
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant
from mbcasadi.system import System, read_mjcf
from mbcasadi.system.actuator_kinds import actuator_kinds
from mbcasadi.system.missing_ground import HOW_TO_GET_A_FLOOR
from mbcasadi.validation.run import PlantFactory, fitted_to_plant
from mbcasadi.validation.spec.kinds import experiment_for_system
from mbcasadi.validation.spec.proposed_start import (
    feet_on_plane,
    joints_outside,
    within_ranges,
)
from mbcasadi.validation.spec.read import parse_spec

Array = NDArray[np.float64]
SHORTEST_PERIOD = 1e-3  # s
ON_THE_GROUND = 1e-4  # m; a larger gap of the lowest foot moves the base
DELAY = 1  # ticks, of the gains and of the trial
LAG = 5e-3  # s, of usual motors with their current loop
POSTURE_WEIGHT = 1e-3  # beside the task of a base
SOFTER = 6  # gains that are tried, each with half the damping of the one before
LISTED = 12  # names of a kind in a comment
NO_SOLES = (
    "What is lowest at the start is no foot: give its feet geoms, or write contacts of your own"
)
FALLS = "The base floats, and no foot can touch a plane of the world: this robot falls."


@dataclass(frozen=True)
class _Facts:
    """What the file says of a model."""

    system: System
    keyframe: str | None
    q0: Array
    base: str | None
    contacts: tuple[str, ...]
    moved: float
    outside: tuple[str, ...]
    driven: tuple[str, ...]
    gains: ProposedGains
    period: float
    rigid: bool

    @property
    def flies(self) -> bool:
        """Whether the base floats and actuators drive no joint: their forces carry it."""
        return self.base is not None and not self.driven


@checked
def propose_spec(model: Path, *, warn: Callable[[str], object] | None = None) -> str:
    """Return the text of a TOML file for a model, which `mbcasadi validate` runs.

    Loops of the plant are made rigid, and gains are as high as period and delay permit, where the
    model's servos allow it.

    Args:
        model: MJCF or URDF file.
        warn: called with a sentence where the robot cannot hold its start.

    Raises:
        ModelError: the model cannot be read.
        ProblemError: a model without actuators; servos that no gains and no plant suit.
    """
    system = read_mjcf(model)
    if not system.nu:
        raise ProblemError(
            f"{model}: the model has no actuator, nothing can be controlled; add <actuator>"
        )
    plant = Plant(model)
    period = plant.timestep * max(1, ceil(SHORTEST_PERIOD / plant.timestep - 1e-9))
    facts = _accepted(_facts(system, plant, period), model)
    if warn is not None and _falls(facts):
        warn(f"{FALLS} {_remedy(system)}")
    return _text_of(facts, model)


def _remedy(system: System) -> str:
    """Return what a robot lacks that falls: feet, or a floor."""
    assert system.tree is not None
    if any(geom.kind == "plane" for geom in system.tree.geoms):
        return NO_SOLES
    return f"To stand it needs a floor: {HOW_TO_GET_A_FLOOR}"


def _text_of(facts: _Facts, model: Path) -> str:
    return "\n".join(_lines(facts, model.name)) + "\n"


def _accepted(facts: _Facts, model: Path) -> _Facts:
    """Return the facts with a plant and gains that the model's servos allow.

    Raises:
        ProblemError: there are none; the message is that of the last trial.
    """
    gains, why = facts.gains, ""
    softer = (replace(gains, kp=gains.kp / 4**k, kd=gains.kd / 2**k) for k in range(SOFTER))
    for each in softer:
        for rigid in (True, False)[not facts.rigid :]:
            trial = replace(facts, gains=each, rigid=rigid)
            try:
                _build(trial, model)
            except ProblemError as error:
                why = str(error)
            else:
                return trial
    raise ProblemError(f"{model}: no controller could be proposed: {why}")


def _build(facts: _Facts, model: Path) -> None:
    """Build the controller as `validate` does, without its Functions."""
    spec = parse_spec(tomllib.loads(_text_of(facts, model)))
    controller = experiment_for_system(spec, facts.system, facts.q0).controller
    fitted_to_plant(controller, PlantFactory(str(model), facts.rigid).make(), DELAY)


def _falls(facts: _Facts) -> bool:
    """Return whether the base floats and has nothing to stand on."""
    return facts.base is not None and not facts.contacts and not facts.flies


def _facts(system: System, plant: Plant, period: float) -> _Facts:
    """Return what can be read from a model."""
    tree = system.tree
    assert tree is not None  # it was read from a model
    keyframe = next(iter(tree.keyframes), None)
    authored = np.array(tree.q0 if keyframe is None else tree.keyframes[keyframe], dtype=float)
    q0 = within_ranges(system, plant, authored)
    free = next((joint for joint in tree.joints if joint.kind == "free"), None)
    contacts: tuple[str, ...] = ()
    moved = 0.0
    if free is not None:
        found = feet_on_plane(system, q0)
        contacts = tuple(dict.fromkeys(f"{c.geom2} on {c.geom1}" for c in found or ()))
        gap = min((float(c.gap(q0)[0]) for c in found or ()), default=0.0)
        if abs(gap) > ON_THE_GROUND:
            moved = -gap
            q0[free.qpos + 2] += moved
    return _Facts(
        system=system,
        keyframe=keyframe,
        q0=q0,
        base=None if free is None else tree.bodies[free.body].name,
        contacts=contacts,
        moved=moved,
        outside=joints_outside(system, authored),
        driven=_driven(system),
        gains=propose_gains(period, delay=DELAY, lag=LAG, observer=True),
        period=period,
        rigid=system.nc > 0,
    )


def _driven(system: System) -> tuple[str, ...]:
    """Return the hinges and slides that an actuator drives, through a tendon too."""
    assert system.tree is not None
    scalar = [joint.name for joint in system.tree.joints if joint.kind in ("hinge", "slide")]
    return tuple(name for name in system.joint_roles.driven if name in scalar)


def _lines(facts: _Facts, model: str) -> Iterator[str]:
    """Yield the lines of the file."""
    yield "#:schema ./spec.schema.json"
    yield "# Editors complete and check with the schema: mbcasadi schema > spec.schema.json"
    yield f"# Controller of {model}. Run it: mbcasadi validate MODEL --controller THIS_FILE"
    yield from _summary(facts)
    yield ""
    yield 'type = "inverse_dynamics_qp"'
    yield f"{'name = ' + _text('controller'):<36} # prefix of the C symbols"
    yield f"{f'period = {facts.period:g}':<36} # s; a multiple of the model's time step"
    yield ""
    yield from _start(facts)
    yield from _tasks(facts)
    yield from _contacts(facts)
    yield "[observer]                           # estimates the force that the model lacks"
    assert facts.gains.observer is not None
    yield f"{f'bandwidth = {facts.gains.observer.bandwidth:.3g}':<36} # 1/s"
    yield ""
    yield "[validation]"
    yield f"{'duration = 2.0':<36} # s"
    yield f"{f'delay = {DELAY}':<36} # ticks from a measurement to its control"
    if facts.rigid:
        yield f"{'rigid = true':<36} # loops of the plant as rigid as MuJoCo allows"
    yield f"{'# perturb = { mass = 0.1 }':<36} # errors of the plant"
    yield "# [[validation.push]]                # a force from outside, at the centre of mass"
    yield f"# body = {_text(_pushed(facts))}"
    yield f"{'# force = [0.0, 50.0, 0.0]':<36} # N, world axes"
    yield f"{'# start = 0.5':<36} # s"
    yield f"{'# stop = 0.7':<36} # s"
    yield "# [validation.criteria]"
    yield '# "tracking.rms_share" = 0.05'


def _pushed(facts: _Facts) -> str:
    """Return a body that a push moves: the base, or the last one that a joint moves."""
    tree = facts.system.tree
    assert tree is not None
    return facts.base or tree.bodies[tree.joints[-1].body].name


def _summary(facts: _Facts) -> Iterator[str]:
    """Yield what the model has, as comments."""
    system = facts.system
    assert system.tree is not None
    for kind, names in actuator_kinds(system).items():
        yield f"# {kind}: {_listed(names)}"
    for kind in ("site", "body"):
        frames = [frame.name for frame in system.tree.frames if frame.kind == kind]
        if frames:
            yield f"# {'sites' if kind == 'site' else 'bodies'}: {_listed(frames)}"
    if system.tree.keyframes:
        yield f"# key frames: {_listed(list(system.tree.keyframes))}"


def _start(facts: _Facts) -> Iterator[str]:
    """Yield where the motion starts."""
    if facts.moved or facts.outside:
        numbers = ", ".join(f"{value:.6g}" for value in facts.q0)
        where = "authored pose" if facts.keyframe is None else f"key frame {facts.keyframe!r}"
        changes = [f"{1e3 * facts.moved:+.1f} mm: feet touch"] if facts.moved else []
        if facts.outside:
            changes.append(f"moved into the range: {_listed(facts.outside)}")
        yield f"{'[start]':<36} # {where}, {', '.join(changes)}"
        yield f"q = [{numbers}]"
        yield ""
    elif facts.keyframe is not None:
        yield "[start]"
        yield f"keyframe = {_text(facts.keyframe)}"
        yield ""


def _tasks(facts: _Facts) -> Iterator[str]:
    """Yield the tasks: the base where it floats on feet, and a posture."""
    gains = facts.gains
    if facts.contacts or facts.flies:
        yield "[[task]]                             # the base keeps its pose"
        yield 'type = "frame"'
        yield f"frame = {_text(facts.base)}"
        yield 'kind = "body"'
        yield 'name = "base"'
        yield f"{f'kp = {gains.kp:.4g}':<36} # 1/s²; for this delay and 5 ms of motor lag"
        yield f"{f'kd = {gains.kd:.4g}':<36} # 1/s"
        if facts.flies:
            yield f"{'position = ' + _text('z'):<36} # thrust tilts the base to move it sideways"
        yield "# [task.reference]                   # motion that is added to the start"
        yield '# z = { amplitude = 20, unit = "mm", frequency = 0.5, ramp = 1.0 }'
        yield ""
    if facts.flies:
        return
    yield "[[task]]"
    yield 'type = "posture"'
    if not facts.contacts:
        yield f"joints = [{', '.join(map(_text, facts.driven))}]"
    kp, kd = (50.0, None) if facts.contacts else (gains.kp, gains.kd)
    yield f"{f'kp = {kp:.4g}':<36} # 1/s²"
    if kd is not None:
        yield f"{f'kd = {kd:.4g}':<36} # 1/s"
    if facts.contacts:
        yield f"{f'weight = {POSTURE_WEIGHT:g}':<36} # decides what the base leaves open"
    else:
        yield "# [task.reference]                   # motion that is added to the start"
        yield f"# {_text(facts.driven[0])} = {{ by = 0.2, duration = 1.0 }}"
    yield ""


def _contacts(facts: _Facts) -> Iterator[str]:
    """Yield the contacts of the feet, or why there are none."""
    if _falls(facts):
        yield f"# {FALLS}"
        yield "# Write the file for its scene, with the floor."
        yield ""
    for name in facts.contacts:
        yield "[[contact]]                          # friction is the model's"
        yield f"frame = {_text(name)}"
        yield 'kind = "contact"'
        yield ""


def _text(value: str | None) -> str:
    """Return a TOML string."""
    return json.dumps(value, ensure_ascii=False)


def _listed(names: Sequence[str]) -> str:
    """Return some names in one line of a comment."""
    rest = f", … ({len(names)})" if len(names) > LISTED else ""
    return ", ".join(repr(name)[1:-1] for name in names[:LISTED]) + rest
