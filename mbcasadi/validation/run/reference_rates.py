"""A reference against its own velocity: rates by differences, and what a reference lacks.

A slice `base.position` that moves while `base.velocity` is zero makes the damping of a task pull
against the motion: an error of `kd / kp` times the velocity that no gain removes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.description import Controller
from mbcasadi.validation.closed_loop import Recording

Array = NDArray[np.float64]

RATE_OF = {
    "position": "velocity",
    "q": "v",
    "direction": "velocity",
    "point": "velocity",
    "y": "ydot",
    "quaternion": "angular_velocity",
}
"""Name of the rate beside each quantity of a task's or a law's reference."""

MISMATCH = 0.1
"""Difference of a rate and its slice, relative to the rate, RMS, that is pointed out."""

FEWEST = 0.05
"""Share of the ticks in which a quantity moves; one that jumps now and then has no velocity."""

JUMP = 5.0
"""A quantity jumps in a tick where it moves so many times as far as in the ticks around it."""

STILL = 1e-9
"""Rate, relative to the largest, below which a quantity rests."""


class RatePair(NamedTuple):
    """A slice of the reference and that of its rate.

    Attributes:
        quantity, rate: names, as "base.position" and "base.velocity".
        places, rate_places: rows of the reference.
    """

    quantity: str
    rate: str
    places: tuple[int, ...]
    rate_places: tuple[int, ...]


@dataclass(frozen=True)
class WrongRate:
    """A rate in the reference that is not the rate of its quantity.

    Attributes:
        pair: the two slices.
        moves: largest rate of the quantity.
        unit: of that rate.
        missing: the slice of the rate is zero all the time.
        when: s, of the largest difference.
    """

    pair: RatePair
    moves: float
    unit: str
    missing: bool
    when: float

    def __str__(self) -> str:
        """Return the finding in words, with what to do."""
        quantity, rate, unit = self.pair.quantity, self.pair.rate, f" {self.unit}" * bool(self.unit)
        found = f"the reference '{quantity}' moves at up to {self.moves:.3g}{unit}"
        what = "is zero all the time" if self.missing else "is another"
        return (
            f"{found}, but its velocity '{rate}' {what} (most at {self.when:.3g} s): give "
            f"'{rate}' the rate of '{quantity}', and the acceleration likewise"
        )


def rate_pairs(controller: Controller) -> list[RatePair]:
    """Return the slices of a reference that have a rate of the same rows beside them."""
    signal = next((s for s in controller.inputs if s.name == "ref"), None)
    rows: dict[str, list[tuple[int, str]]] = {}
    for i, name in enumerate(() if signal is None else signal.components):
        for quantity in {*RATE_OF, *RATE_OF.values()}:
            head, mark, row = f".{name}".partition(f".{quantity}.")
            if mark:
                rows.setdefault(f"{head}.{quantity}".lstrip("."), []).append((i, row))
    pairs = []
    for quantity, entries in rows.items():
        prefix, _, kind = quantity.rpartition(".")
        rate = ".".join(filter(None, [prefix, RATE_OF.get(kind, "")]))
        sizes = {"quaternion": 3}.get(kind, len(entries))
        if kind in RATE_OF and len(rows.get(rate, [])) == sizes:
            places = tuple(i for i, _ in entries)
            pairs.append(RatePair(quantity, rate, places, tuple(i for i, _ in rows[rate])))
    return pairs


def rate_between(pair: RatePair, before: Array, after: Array, time: float) -> Array:
    """Return the rate of a slice between two references (..., nref), world axes for rotations."""
    q0, q1 = before[..., list(pair.places)], after[..., list(pair.places)]
    if len(pair.places) == len(pair.rate_places):
        return np.asarray((q1 - q0) / time)
    w0, x0 = q0[..., :1], -q0[..., 1:]  # the inverse of the first
    w1, x1 = q1[..., :1], q1[..., 1:]
    w = w1 * w0 - np.sum(x1 * x0, axis=-1, keepdims=True)
    x = w1 * x0 + w0 * x1 + np.cross(x1, x0)
    x, w = np.where(w < 0, -x, x), np.abs(w)
    size = np.linalg.norm(x, axis=-1, keepdims=True)
    angle = 2 * np.arctan2(size, w)
    return np.asarray(x * np.where(size > 0, angle / np.where(size > 0, size, 1.0), 2.0) / time)


def wrong_rates(controller: Controller, recording: Recording) -> list[WrongRate]:
    """Return the rates of a run's reference that differ from its own differences."""
    ref, t = recording.ref, recording.t
    if len(t) < 3 or not ref.size:
        return []
    signal = next(s for s in controller.inputs if s.name == "ref")
    found = []
    for pair in rate_pairs(controller):
        rate = rate_between(pair, ref[:-2], ref[2:], float(t[2] - t[0]))
        given = ref[1:-1, list(pair.rate_places)]
        smooth = _without_jumps(np.abs(rate_between(pair, ref[:-1], ref[1:], 1.0)).max(axis=1))
        rate[~smooth] = given[~smooth]
        speed = np.abs(rate).max(axis=1)
        moving = speed > STILL * max(1.0, float(speed.max()))
        off = np.abs(rate - given).max(axis=1)
        if moving.mean() < FEWEST or off @ off < MISMATCH**2 * (speed @ speed):
            continue
        found.append(
            WrongRate(
                pair=pair,
                moves=float(speed.max()),
                unit=signal.units[pair.rate_places[int(np.argmax(np.abs(rate).max(axis=0)))]],
                missing=not given.any(),
                when=float(t[1 + int(np.argmax(off))]),
            )
        )
    return found


def _without_jumps(moved: Array) -> NDArray[np.bool_]:
    """Return, for each tick between the first and the last, whether no jump is beside it.

    Args:
        moved: what the quantity moves between two ticks.
    """
    padded = np.pad(moved, 1)
    around = np.maximum(padded[:-2], padded[2:])
    jumps = moved > np.maximum(JUMP * around, STILL * moved.max())
    if jumps.mean() > FEWEST:  # a staircase, sampled more slowly than the ticks
        return np.ones(len(moved) - 1, dtype=bool)
    return np.asarray(~(jumps[:-1] | jumps[1:]))


def with_rates(
    reference: Callable[[float], ArrayLike], wrong: list[WrongRate], step: float
) -> Callable[[float], Array]:
    """Return a reference whose wrong rates are differences of their quantities over `step` s."""

    def corrected(t: float) -> Array:
        ref = np.array(reference(t), dtype=float).ravel()
        before, after = (
            np.asarray(reference(max(0.0, t + sign * step / 2)), dtype=float).ravel()
            for sign in (-1, 1)
        )
        time = step if t >= step / 2 else t + step / 2
        for each in wrong:
            ref[list(each.pair.rate_places)] = rate_between(each.pair, before, after, time)
        return ref

    return corrected
