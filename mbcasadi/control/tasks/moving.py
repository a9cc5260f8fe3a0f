"""Poses, and motions of poses and vectors, as slices of a reference.

The entries of `hand` are those of the task or law with the slices `hand.position`, `hand.velocity`
and so on: of its axes only. A pose alone is held at rest. A slice that neither a pose nor a vector
gives, such as a force, keeps its value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.control.tasks.task import Slot
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.motion.motions import PoseMotion, PoseSample, VectorMotion, VectorSample
from mbcasadi.motion.pose import Pose
from mbcasadi.shapes import column, require_name
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]
Moving = Pose | PoseSample | VectorSample
Motion = PoseMotion | VectorMotion

TURNS = ("rx", "ry", "rz")
POSE_ENTRIES: Mapping[str, tuple[tuple[str, ...], int]] = {
    "position": (("x", "y", "z"), 0),
    "quaternion": (("w", "x", "y", "z"), 3),
    "velocity": (("x", "y", "z"), 7),
    "angular_velocity": (TURNS, 10),
    "acceleration": (("x", "y", "z"), 13),
    "angular_acceleration": (TURNS, 16),
}
"""Slices of a moving pose: their components, and the first entry among `PoseMotion.values`."""

POSE_SIZE = 19

VECTOR_ENTRIES = {"q": 0, "v": 1, "a": 2, "position": 0, "velocity": 1, "acceleration": 2}
"""Slices of a moving vector: value, rate, or rate of the rate."""


@runtime_checkable
class HasReference(Protocol):
    """A law or a controller with a reference in named slices."""

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Slices of the reference, in order."""

    @property
    def nref(self) -> int:
        """Size of the reference."""

    def reference(self) -> Array:
        """Return the default reference (nref,)."""


class Places(NamedTuple):
    """Where entries of a motion are in a reference."""

    ref: list[int]
    values: list[int]


def places_of(slots: Sequence[Slot], name: str, size: int | None) -> Places:
    """Return where a motion's entries are in a reference.

    Args:
        slots: of the reference.
        name: of the task or law, the part of slices' names before their last dot.
        size: of a vector; None for a pose.

    Raises:
        UnknownNameError: no such task; the message lists those there are.
        ShapeError: a vector of another size.
        ProblemError: no slice that it gives.
    """
    owners = {slot.name.rpartition(".")[0]: None for slot in slots}
    owners.pop("", None)
    require_name("task in the reference", name, list(owners))
    places, first = Places([], []), 0
    for slot in slots:
        owner, _, quantity = slot.name.rpartition(".")
        if owner == name:
            entries = _of_pose(slot, quantity) if size is None else _of_vector(slot, quantity, size)
            places.ref.extend(range(first, first + len(entries)))
            places.values.extend(entries)
        first += slot.size
    if not places.ref:
        given = POSE_ENTRIES if size is None else VECTOR_ENTRIES
        raise ProblemError(
            f"'{name}' has no slice that a {'pose' if size is None else 'vector'} gives; expected "
            f"some of {', '.join(given)}"
        )
    return places


def _of_pose(slot: Slot, quantity: str) -> list[int]:
    names, first = POSE_ENTRIES.get(quantity, ((), 0))
    if not set(slot.components) <= set(names):
        return []
    return [first + names.index(each) for each in slot.components]


def _of_vector(slot: Slot, quantity: str, size: int) -> list[int]:
    if quantity not in VECTOR_ENTRIES:
        return []
    if slot.size != size:
        raise ShapeError(
            f"the motion of {slot.name} has {size} entries, expected {slot.size}: "
            f"{', '.join(slot.components)}"
        )
    first = VECTOR_ENTRIES[quantity] * size
    return list(range(first, first + size))


def fill_moving(ref: Array, slots: Sequence[Slot], name: str, value: Moving) -> None:
    """Write a pose or a sample into a reference; as `places_of`."""
    if isinstance(value, VectorSample):
        sizes = {np.size(each) for each in (value.q, value.v, value.a)}
        if len(sizes) != 1:
            raise ShapeError(f"{name}: q, v and a have the sizes {sizes}; expected one")
        entries, size = np.concatenate([value.q, value.v, value.a]), int(np.size(value.q))
        places = places_of(slots, name, size)
    else:
        places = places_of(slots, name, None)
        pose, rates = (value, ()) if isinstance(value, Pose) else (value.pose, _rates(value))
        if not isinstance(pose.qpos, np.ndarray):
            raise ProblemError(f"{name} is a pose of expressions; expected numbers")
        entries = np.zeros(POSE_SIZE)
        entries[: 7 + len(rates)] = [*pose.qpos, *rates]
    ref[places.ref] = entries[places.values]


def _rates(sample: PoseSample) -> list[float]:
    pair = (("velocity", sample.velocity), ("acceleration", sample.acceleration))
    return [x for name, value in pair for x in column(name, value, 6).tolist()]


@summarised
@dataclass(frozen=True, eq=False)
class MotionReference:
    """`reference(t)`, t in s, is the reference (nref,) of tasks that follow motions.

    Attributes:
        rest: (nref,) all other entries.
        motions: task → motion.
        places: of each motion's entries.
    """

    rest: Array
    motions: Mapping[str, Motion]
    places: Mapping[str, Places]

    @checked
    def __call__(self, t: float) -> Array:
        """Return the reference at a time, s."""
        ref = self.rest.copy()
        for name, motion in self.motions.items():
            places = self.places[name]
            ref[places.ref] = motion.values(t)[places.values]
        return ref

    @cached_property
    def function(self) -> ca.Function:
        """(t) → (ref), the same as a Function, for `export_c`."""
        t, ref = ca.MX.sym("t"), ca.MX(ca.DM(self.rest))
        for name, motion in self.motions.items():
            places = self.places[name]
            values = ca.vertcat(*motion.function.call([t]))
            ref[places.ref] = values[places.values]
        return ca.Function("reference", [t], [ca.densify(ref)], ["t"], ["ref"])

    def _summary(self) -> dict[str, object]:
        return {"motions": list(self.motions), "nref": self.rest.size}


@checked
def follow_motions(
    law: HasReference, motions: Mapping[str, Motion], *, rest: ArrayLike | None = None
) -> MotionReference:
    """Return the reference of a law as a function of time, for `validate` or a loop of one's own.

    Args:
        law: with a reference.
        motions: the name of a task, or of a law's slices before the dot → its motion.
        rest: (nref,) what the other entries are; `law.reference()` by default.

    Raises:
        UnknownNameError: no such task; the message lists those there are.
        ShapeError: a vector of another size, or a wrong shape.
        ProblemError: nothing moves, or a task has no slice that the motion gives.
    """
    if not motions:
        raise ProblemError("motions is empty; expected the name of a task → its motion")
    held = law.reference() if rest is None else column("rest", rest, law.nref)
    places = {
        name: places_of(law.slots, name, None if isinstance(each, PoseMotion) else each.size)
        for name, each in motions.items()
    }
    return MotionReference(held, dict(motions), places)
