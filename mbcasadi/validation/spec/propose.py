"""A commented file of a controller for a model, to begin with: it holds the start.

Robots whose base floats get a task of the base and contacts of the geoms that could be feet; all
others a posture of the joints that actuators drive.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.control import ProposedGains, propose_gains
from mbcasadi.plant import Plant
from mbcasadi.system import GeometryContacts, System, contacts_of, read_mjcf
from mbcasadi.system.actuator_kinds import actuator_kinds
from mbcasadi.system.missing_ground import HOW_TO_GET_A_FLOOR
from mbcasadi.system.possible_feet import possible_feet

Array = NDArray[np.float64]
SHORTEST_PERIOD = 1e-3  # s
ON_THE_GROUND = 1e-4  # m; a larger gap of the lowest foot moves the base
DELAY = 1  # ticks, of the gains and of the trial
LAG = 5e-3  # s, of usual motors with their current loop
POSTURE_WEIGHT = 1e-3  # beside the task of a base
LISTED = 12  # names of a kind in a comment
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
    driven: tuple[str, ...]
    gains: ProposedGains
    period: float


@checked
def propose_spec(model: Path, *, warn: Callable[[str], object] | None = None) -> str:
    """Return the text of a TOML file for a model, which `mbcasadi validate` runs.

    Args:
        model: MJCF or URDF file.
        warn: called with a sentence where the robot cannot hold its start.

    Raises:
        ModelError: the model cannot be read.
    """
    system = read_mjcf(model)
    plant = Plant(model)
    period = plant.timestep * max(1, ceil(SHORTEST_PERIOD / plant.timestep - 1e-9))
    facts = _facts(system, period)
    if warn is not None and _falls(facts):
        warn(f"{FALLS} To stand it needs a floor: {HOW_TO_GET_A_FLOOR}")
    return "\n".join(_lines(facts, model.name)) + "\n"


def _falls(facts: _Facts) -> bool:
    """Return whether the base floats and has nothing to stand on."""
    return facts.base is not None and not facts.contacts


def _facts(system: System, period: float) -> _Facts:
    """Return what can be read from a model."""
    tree = system.tree
    assert tree is not None  # it was read from a model
    keyframe = next(iter(tree.keyframes), None)
    q0 = np.array(tree.q0 if keyframe is None else tree.keyframes[keyframe], dtype=float)
    free = next((joint for joint in tree.joints if joint.kind == "free"), None)
    contacts: tuple[str, ...] = ()
    moved = 0.0
    if free is not None:
        found = _feet(system, q0)
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
        driven=_driven(system),
        gains=propose_gains(period, delay=DELAY, lag=LAG, observer=True),
        period=period,
    )


def _feet(system: System, q0: Array) -> GeometryContacts | None:
    """Return the contacts of the possible feet with a plane of the world, if there is one."""
    assert system.tree is not None
    feet = [foot.geom for foot in possible_feet(system.tree)]
    planes = [geom.name for geom in system.tree.geoms if geom.kind == "plane"]
    if not feet or not planes:
        return None
    return contacts_of(system, ground=planes[0], geoms=feet, q=q0)


def _driven(system: System) -> tuple[str, ...]:
    """Return the hinges and slides that an actuator drives directly; all where there are none."""
    assert system.tree is not None
    joints = system.tree.joints
    scalar = [joint.name for joint in joints if joint.kind in ("hinge", "slide")]
    own = [joints[a.target].name for a in system.actuators if "joint" in a.transmission]
    return tuple(name for name in scalar if name in own) or tuple(scalar)


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
    if facts.system.nc:
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
    if facts.moved:
        numbers = ", ".join(f"{value:.6g}" for value in facts.q0)
        where = "authored pose" if facts.keyframe is None else f"key frame {facts.keyframe!r}"
        yield f"{'[start]':<36} # {where}, {1e3 * facts.moved:+.1f} mm: feet touch"
        yield f"q = [{numbers}]"
        yield ""
    elif facts.keyframe is not None:
        yield "[start]"
        yield f"keyframe = {_text(facts.keyframe)}"
        yield ""


def _tasks(facts: _Facts) -> Iterator[str]:
    """Yield the tasks: the base where it floats on feet, and a posture."""
    gains = facts.gains
    if facts.contacts:
        yield "[[task]]                             # the base keeps its pose"
        yield 'type = "frame"'
        yield f"frame = {_text(facts.base)}"
        yield 'kind = "body"'
        yield 'name = "base"'
        yield f"{f'kp = {gains.kp:.4g}':<36} # 1/s²; for this delay and 5 ms of motor lag"
        yield f"{f'kd = {gains.kd:.4g}':<36} # 1/s"
        yield "# [task.reference]                   # motion that is added to the start"
        yield '# z = { amplitude = 20, unit = "mm", frequency = 0.5, ramp = 1.0 }'
        yield ""
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
