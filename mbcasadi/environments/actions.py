"""Actions in [-1, 1] as references, tuned numbers, or controls."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.description import Controller
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column
from mbcasadi.unknown_names import unknown_name

Array = NDArray[np.float64]
Ranges = Mapping[str, Sequence[ArrayLike]]
Signal = Callable[[float], ArrayLike] | ArrayLike
REFERENCE, TUNING, CONTROL = "ref", "tuning", "u"


@dataclass(frozen=True)
class Entries:
    """Entries of a command that one action moves.

    Attributes:
        target: "ref", "tuning" or "u".
        places: of its numbers in the target.
        low, high: what -1 and 1 mean: added to the reference, in the place of tuned numbers and
            controls.
    """

    target: str
    places: tuple[int, ...]
    low: Array
    high: Array

    def values(self, action: Array) -> Array:
        """Return the numbers of actions in [-1, 1]."""
        return np.asarray(self.low + (action + 1) / 2 * (self.high - self.low))


class Commands:
    """What an agent commands, held until its next action.

    Args:
        controller: that is commanded; one without inputs where actions are its controls.
        ranges: name → (low, high), each a number or one for each entry: "u"; "ref", a slice of it
            ("trunk.position") or a component ("trunk.position.z"); an entry of `tuning`.
        is_controlled: whether there is a controller between actions and controls.

    Raises:
        UnknownNameError: the message lists what can be commanded.
        ProblemError: bounds that are no numbers with low < high.
    """

    def __init__(self, controller: Controller, ranges: Ranges, *, is_controlled: bool) -> None:
        self.sizes = {CONTROL: controller.u_min.size} if not is_controlled else {}
        known = {CONTROL: (CONTROL, tuple(range(controller.u_min.size)))}
        if is_controlled:
            known = _places(controller)
            self.sizes |= {s.name: len(s.components) for s in controller.inputs}
        if not ranges:
            raise ProblemError(f"no actions; expected a range for some of {', '.join(known)}")
        self.entries = [_entries(name, bounds, known) for name, bounds in ranges.items()]
        self.size = sum(len(each.places) for each in self.entries)
        self.reset()

    def reset(self) -> None:
        """Command nothing: no offset of references, the defaults of tuned numbers, no control."""
        self._commanded: dict[str, dict[int, float]] = {}

    def take(self, action: ArrayLike) -> None:
        """Hold an action (n,), limited to [-1, 1]."""
        given, start = np.clip(column("action", action, self.size), -1, 1), 0
        if np.any(np.isnan(given)):
            raise ProblemError(f"action is {given}; expected numbers from -1 to 1")
        for each in self.entries:
            values = each.values(given[start : start + len(each.places)])
            known = self._commanded.setdefault(each.target, {})
            known.update(zip(each.places, map(float, values), strict=True))
            start += len(each.places)

    def control(self) -> Array:
        """Return the (nu,) control that is commanded."""
        return self._filled(CONTROL, np.zeros(self.sizes[CONTROL]))

    def commands(self, target: str) -> bool:
        """Whether an action moves entries of a target."""
        return any(each.target == target for each in self.entries)

    def reference(self, base: Signal) -> Callable[[float], Array]:
        """Return a reference with what is commanded added to it."""

        def moved(t: float) -> Array:
            own = _at(base, t)
            return own + self._filled(REFERENCE, np.zeros(own.size))

        return moved

    def tuning(self, base: Signal) -> Callable[[float], Array]:
        """Return the tuned numbers, those that are commanded in the place of their own."""
        return lambda t: self._filled(TUNING, _at(base, t))

    def _filled(self, target: str, values: Array) -> Array:
        for place, value in self._commanded.get(target, {}).items():
            values[place] = value
        return values


def _at(signal: Signal, t: float) -> Array:
    """Return a copy of the value of a signal at a time, s."""
    return np.array(signal(t) if callable(signal) else signal, dtype=float).ravel()


def _places(controller: Controller) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return name → (input, places) of all that can be commanded: wholes, slices, entries."""
    known: dict[str, tuple[str, tuple[int, ...]]] = {}
    for signal in controller.inputs:
        if signal.name not in (REFERENCE, TUNING):
            continue
        known[signal.name] = (signal.name, tuple(range(len(signal.components))))
        for k, component in enumerate(signal.components):
            part = component.rpartition(".")[0]
            known[component] = (signal.name, (k,))
            if part:
                known[part] = (signal.name, (*known.get(part, ("", ()))[1], k))
    return known


def _entries(
    name: str, bounds: Sequence[ArrayLike], known: Mapping[str, tuple[str, tuple[int, ...]]]
) -> Entries:
    if name not in known:
        raise unknown_name("action", name, known)
    target, places = known[name]
    low, high = (np.broadcast_to(np.asarray(b, dtype=float), len(places)) for b in bounds)
    if not (np.all(np.isfinite([low, high])) and np.all(low < high)):
        raise ProblemError(f"{name} is from {low} to {high}; expected finite numbers, low < high")
    return Entries(target, places, low, high)
