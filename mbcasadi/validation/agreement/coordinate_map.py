"""Which coordinate of one model is which of another."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import ModelError, ProblemError
from mbcasadi.validation.agreement.manifold import Array
from mbcasadi.validation.agreement.mujoco_values import Draw
from mbcasadi.validation.agreement.sides import Block, Side

Places = NDArray[np.int64]
Coordinates = Mapping[str, str] | Literal["order"] | None


class CoordinateMap(NamedTuple):
    """Places in the first side of each entry of the second: `x_second = x_first[places]`."""

    q: Places
    v: Places
    u: Places

    def to_first(self, at: Draw) -> Draw:
        """Return a draw of the second side in the coordinates of the first."""

        def back(x: Array, places: Places) -> Array:
            result = np.empty_like(x)
            result[places] = x
            return result

        q, v, u = self.q, self.v, self.u
        controls = at.u if u.size != at.u.size else back(at.u, u)
        return Draw(back(at.q, q), back(at.v, v), controls, at.act, back(at.q0, q), back(at.q1, q),
                    back(at.dv, v))  # fmt: skip

    def to_second(self, axes: str, value: Array) -> Array:
        """Return a quantity of the first side, with these axes, in the order of the second."""
        places = {"q": self.q, "v": self.v, "u": self.u}
        for axis, kind in enumerate(axes):
            if kind in places:
                value = np.take(value, places[kind], axis=axis)
        return value


def coordinate_map(first: Side, second: Side, coordinates: Coordinates) -> CoordinateMap:
    """Return the map.

    Args:
        first, second: the sides.
        coordinates: name in the first → name in the second; "order"; or None, by equal names.

    Raises:
        ModelError: the sides have different numbers or kinds of coordinates.
        ProblemError: the names do not say which is which.
    """
    pairs = _pairs(first, second, coordinates)
    for block, other in pairs:
        kinds = {block.kind, other.kind} - {""}
        if block.sizes != other.sizes or len(kinds) > 1:
            raise ModelError(
                f"coordinate {block.name!r} of {first.name} is a {block.kind or 'scalar'}, "
                f"{other.name!r} of {second.name} a {other.kind or 'scalar'}; expected joints of "
                "one kind"
            )
    q = np.empty(second.sizes[0], dtype=np.int64)
    v = np.empty(second.sizes[1], dtype=np.int64)
    for block, other in pairs:
        nq, nv = block.sizes
        q[other.q : other.q + nq] = block.q + np.arange(nq)
        v[other.v : other.v + nv] = block.v + np.arange(nv)
    return CoordinateMap(q, v, _controls(first, second))


def _pairs(first: Side, second: Side, coordinates: Coordinates) -> list[tuple[Block, Block]]:
    own, others = [b.name for b in first.blocks], [b.name for b in second.blocks]
    if len(own) != len(others):
        raise ModelError(
            f"{first.name} has {len(own)} coordinates, {second.name} has {len(others)}: "
            f"{_only(own, others)} in the first only, {_only(others, own)} in the second only; "
            "only models with the same joints can be compared"
        )
    if coordinates == "order":
        return list(zip(first.blocks, second.blocks, strict=True))
    names = {name: name for name in own} | dict(coordinates or {})
    unknown = [name for name in names if name not in own]
    if unknown or sorted(names.values()) != sorted(others):
        raise ProblemError(
            f"{first.name} has the coordinates {', '.join(own)}, {second.name} has "
            f"{', '.join(others)}; give coordinates={{name in the first: name in the second}} for "
            'those whose names differ, or coordinates="order"'
        )
    place = {block.name: block for block in second.blocks}
    return [(block, place[names[block.name]]) for block in first.blocks]


def _only(names: Sequence[str], others: Sequence[str]) -> str:
    return ", ".join(name for name in names if name not in others) or "none"


def _controls(first: Side, second: Side) -> Places:
    """Return the controls by name, or by order; none where their numbers differ."""
    count = second.sizes[2]
    if first.sizes[2] != count:
        return np.zeros(0, dtype=np.int64)
    names = (first.controls, second.controls)
    if first.sizes[3] == 0 and all(names) and sorted(names[0]) == sorted(names[1]):
        return np.array([names[0].index(name) for name in names[1]], dtype=np.int64)
    return np.arange(count)
