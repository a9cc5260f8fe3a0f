"""The state machine in front of a law: from inputs and memory to what the law is given.

Memory is the mode m, the time τ in it, the length T of its fade, and the values of tuning and
reference and the mask at its beginning. At each tick the first transition from m whose conditions
hold leads to another mode, with τ = 0. With s = min(τ/T, 1) numbers are

    y = y_0 + w(s) (y_m - y_0),   w = s³ (10 - 15 s + 6 s²),

whose rate and acceleration begin and end at zero (T. Flash and N. Hogan, J. Neurosci. 5 (1985),
1688). The reference of a rate follows: with the mode's own rate ẏ_m,

    ẏ = ẇ (y_m - y_0) + w ẏ_m,   ÿ = ẅ (y_m - y_0) + 2 ẇ ẏ_m + w ÿ_m.

Quaternions are blended along the shorter way and brought back to unit length. Contacts that the
mode switches on are on at once, those that it switches off at the end of the fade.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.modes.mode import ANY, ControlMode, Transition
from mbcasadi.description import Controller
from mbcasadi.description.qp_stages import UNBOUNDED

Array = NDArray[np.float64]

REQUEST = "sequence.request"
"""Entry of `tuning` by which a mode is requested; 0 for none."""
GIVEN = ("ref", "tuning", "mask")
"""Inputs of the law that come from the machine, where it has them."""
STATE = ("mode", "time", "fade")
RATES = {
    "position": ("velocity", "acceleration"),
    "q": ("v", "a"),
}
"""Slices of a reference, by the end of their names, with those of their rates."""
QUATERNION = "quaternion"
NO_LENGTH = 1e-12
"""Square of a blend of quaternions below which it has no direction."""


@dataclass(frozen=True)
class Machine:
    """Modes and transitions of a law.

    Attributes:
        law: the law behind it.
        modes: by their names; the first one is the start.
        transitions: in the order in which they are tried.
        slices: places of the reference's slices, by name.
    """

    law: Controller
    modes: Mapping[str, ControlMode]
    transitions: tuple[Transition, ...]
    slices: Mapping[str, slice]

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Entries of the law's inputs that the machine gives."""
        f = self.law.function
        return {name: f.numel_in(name) for name in GIVEN if name in f.name_in()}

    @cached_property
    def targets(self) -> dict[str, Array]:
        """(modes, n) what each mode names of each input, NaN for nothing."""
        targets = {name: np.full((len(self.modes), n), np.nan) for name, n in self.sizes.items()}
        entries = [entry.name for entry in self.law.tuning]
        contacts = self.mask_names
        for k, mode in enumerate(self.modes.values()):
            for name, value in mode.tuning.items():
                targets["tuning"][k, entries.index(name)] = value
            for name, is_on in mode.mask.items():
                targets["mask"][k, contacts.index(name)] = is_on
            for name, values in mode.reference.items():
                targets["ref"][k, self.slices[name]] = np.ravel(values)
        return targets

    @property
    def mask_names(self) -> tuple[str, ...]:
        """Names of the law's mask."""
        return next((s.components for s in self.law.inputs if s.name == "mask"), ())

    @cached_property
    def moved(self) -> dict[str, list[int]]:
        """Entries of each input that some mode names."""
        return {
            name: np.flatnonzero(~np.all(np.isnan(x), axis=0)).tolist()
            for name, x in self.targets.items()
        }

    @cached_property
    def memory(self) -> tuple[str, ...]:
        """Names of what is remembered."""
        names = [*(f"sequence.{name}" for name in STATE)]
        for name, entries in self.moved.items():
            names += [f"sequence.{name}{k}" for k in entries]
        return tuple(names)

    @cached_property
    def z0(self) -> Array:
        """(nz,) in the first mode, without a fade."""
        return np.zeros(len(self.memory))

    @property
    def requests(self) -> int:
        """The largest number that a transition waits for, 0 for none."""
        return max((each.request or 0 for each in self.transitions), default=0)

    @cached_property
    def measured(self) -> tuple[str, ...]:
        """Inputs of the law that conditions read."""
        names: dict[str, None] = {}
        for each in self.transitions:
            if isinstance(each.when, str):
                names[each.when.partition(".")[0]] = None
            elif each.when is not None:
                names |= dict.fromkeys(each.when.name_in())
        return tuple(names)

    def function(self) -> ca.Function:
        """Return (values of `when`, request, ref, tuning, mask, z) → (…, z_next, mode)."""
        inputs = {name: ca.SX.sym(name, n) for name, n in self.sizes.items()}
        when = ca.SX.sym("when", len(self.transitions))
        request, z = ca.SX.sym("request"), ca.SX.sym("z", self.z0.size)
        is_memory = ca.sum1(ca.fabs(z)) <= UNBOUNDED
        z_now = ca.if_else(is_memory, z, ca.DM(self.z0))
        mode, time, fade = (z_now[k] for k in range(len(STATE)))
        begin = self._split(z_now[len(STATE) :])
        here = self._one_hot(mode)
        before = self._values(inputs, here, begin, time, fade)
        taken = self._taken(here, time, when, request)
        left = ca.sum1(ca.vertcat(*taken)) if taken else ca.SX(0)
        index = {name: k for k, name in enumerate(self.modes)}
        target = sum((x * index[t.target] for x, t in self._pairs(taken)), ca.SX(0))
        mode = ca.if_else(left, target, ca.dot(here, ca.DM(range(len(self.modes)))))
        time = ca.if_else(left, 0, time)
        fade = ca.if_else(left, sum((x * t.fade for x, t in self._pairs(taken)), ca.SX(0)), fade)
        begin = {
            name: ca.if_else(left, before[name][entries], begin[name])
            for name, entries in self.moved.items()
            if entries
        }
        values = self._values(inputs, self._one_hot(mode), begin, time, fade)
        z_next = ca.vertcat(mode, time + self.law.period, fade, *begin.values())
        return ca.Function(
            "sequence_of_modes",
            [when, request, *inputs.values(), z],
            [*values.values(), z_next, mode],
            ["when", "request", *inputs, "z"],
            [*(f"next_{name}" for name in inputs), "z_next", "mode"],
            {"cse": True, "never_inline": True},
        )

    def _pairs(self, taken: Sequence[ca.SX]) -> list[tuple[ca.SX, Transition]]:
        return list(zip(taken, self.transitions, strict=True))

    def _one_hot(self, mode: ca.SX) -> ca.SX:
        """Return (modes,) one for the mode; the first one where it is none."""
        is_mode = ca.vertcat(*(mode == k for k in range(len(self.modes))))
        return is_mode + ca.vertcat(1 - ca.sum1(is_mode), ca.SX.zeros(len(self.modes) - 1))

    def _split(self, column: ca.SX) -> dict[str, ca.SX]:
        """Return what is remembered of each input, by name."""
        parts, start = {}, 0
        for name, entries in self.moved.items():
            if entries:
                parts[name] = column[start : start + len(entries)]
            start += len(entries)
        return parts

    def _taken(self, here: ca.SX, time: ca.SX, when: ca.SX, request: ca.SX) -> list[ca.SX]:
        """Return one for the first transition whose conditions hold, else zero."""
        names, taken, free = list(self.modes), [], ca.SX(1)
        for k, each in enumerate(self.transitions):
            if each.source == ANY:
                holds = 1 - here[names.index(each.target)]
            else:
                holds = here[names.index(each.source)]
            if each.after is not None:
                # half a tick: sums of periods are not exact
                holds = ca.logic_and(holds, time >= each.after - self.law.period / 2)
            if each.request is not None:
                holds = ca.logic_and(holds, request == each.request)
            if each.above is not None:
                holds = ca.logic_and(holds, when[k] > each.above)
            if each.below is not None:
                holds = ca.logic_and(holds, when[k] < each.below)
            taken.append(ca.logic_and(holds, free))
            free = ca.logic_and(free, ca.logic_not(holds))
        return taken

    def _values(
        self,
        given: Mapping[str, ca.SX],
        here: ca.SX,
        begin: Mapping[str, ca.SX],
        time: ca.SX,
        fade: ca.SX,
    ) -> dict[str, ca.SX]:
        """Return what the law is given in a mode, by name."""
        fades = time < fade - self.law.period / 2  # as of `after`
        length = ca.if_else(fades, fade, 1)
        s = ca.if_else(fades, time / length, 1)
        w = s**3 * (10 - 15 * s + 6 * s**2)
        rate = 30 * (s * (1 - s)) ** 2 / length
        bend = 60 * s * (1 - s) * (1 - 2 * s) / length**2
        values = {}
        for name, x in given.items():
            target = self._named(name, x, here)
            y, entries = ca.SX(target), self.moved[name]
            if entries and name == "mask":
                stays = ca.fmax(target[entries], begin[name])
                y[entries] = ca.if_else(fades, stays, target[entries])
            elif entries:
                blend = begin[name] + w * (target[entries] - begin[name])
                y[entries] = ca.if_else(fades, blend, target[entries])
            if entries and name == "ref":
                y = self._with_rates(target, y, begin[name], (fades, w, rate, bend))
            values[name] = y * x if name == "mask" else y
        return values

    def _named(self, name: str, given: ca.SX, here: ca.SX) -> ca.SX:
        """Return (n,) what the mode names, else what is given; of a mask, else one."""
        targets = self.targets[name]
        rest = ca.SX.ones(given.numel()) if name == "mask" else given
        y = ca.SX(rest)
        for k in self.moved[name]:
            terms = [
                here[m] * (rest[k] if np.isnan(x) else float(x))
                for m, x in enumerate(targets[:, k])
            ]
            y[k] = sum(terms, ca.SX(0))
        return y

    def _with_rates(
        self, own: ca.SX, y: ca.SX, begin: ca.SX, fade: tuple[ca.SX, ca.SX, ca.SX, ca.SX]
    ) -> ca.SX:
        """Return the reference with rates that follow from the fade, and unit quaternions."""
        fades, w, rate, bend = fade
        order = {entry: k for k, entry in enumerate(self.moved["ref"])}
        y = ca.SX(y)
        for name, place in self.slices.items():
            entries = list(range(place.start, place.stop))
            if entries[0] not in order:
                continue
            first = begin[[order[k] for k in entries]]
            task, _, quantity = name.rpartition(".")
            if quantity == QUATERNION:
                y[entries] = ca.if_else(fades, _blend(first, own[entries], w), own[entries])
            v, a = (
                self._entries(f"{task}.{x}", len(entries)) for x in RATES.get(quantity, ("", ""))
            )
            step = own[entries] - first
            if v:
                y[v] = ca.if_else(fades, rate * step + w * own[v], y[v])
            if v and a:
                bent = bend * step + 2 * rate * own[v] + w * own[a]
                y[a] = ca.if_else(fades, bent, y[a])
        return y

    def _entries(self, name: str, size: int) -> list[int]:
        """Return the entries of a slice of this size; none where there is no such slice."""
        place = self.slices.get(name, slice(0, 0))
        return list(range(place.start, place.stop)) if place.stop - place.start == size else []


def _blend(first: ca.SX, last: ca.SX, w: ca.SX) -> ca.SX:
    """Return a unit quaternion between two, along the shorter way."""
    sign = ca.if_else(ca.dot(first, last) < 0, -1, 1)
    mixed = (1 - w) * first + w * sign * last
    square = ca.sumsqr(mixed)
    return ca.if_else(square > NO_LENGTH, mixed / ca.sqrt(ca.fmax(square, NO_LENGTH)), last)
