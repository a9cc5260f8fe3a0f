"""A law with a state machine in front of it as one law: one Function, one C."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.control.modes.checks import entry_of, require_known
from mbcasadi.control.modes.machine import REQUEST, Machine
from mbcasadi.control.modes.mode import ControlMode, Transition
from mbcasadi.control.tick.behind_front import BehindFront, Symbols, slices_of
from mbcasadi.description import Controller, Signal, TuningParameter
from mbcasadi.description.controller import INPUTS, HasController, HasExample
from mbcasadi.description.status import OUTPUTS
from mbcasadi.shapes import require_identifier
from mbcasadi.short_text import summarised
from mbcasadi.system.coordinates import unitless_signal

Array = NDArray[np.float64]


@runtime_checkable
class HasSlices(Protocol):
    """A law that knows the slices of its reference."""

    @property
    def reference_slices(self) -> dict[str, slice]:
        """Places in the reference, by name."""


@summarised
@dataclass(frozen=True)
class SequencedLaw:
    """A law of several modes; `sequence` makes one.

    Attributes:
        controller: the whole as data: what `export_c` and `validate` take.
        law: the law that is switched.
        machine: modes and transitions.
    """

    controller: Controller
    law: Controller | HasController
    machine: Machine

    @property
    def modes(self) -> tuple[str, ...]:
        """Names of the modes, by the number that the output `mode` gives."""
        return tuple(self.machine.modes)

    @property
    def function(self) -> ca.Function:
        """The whole as one named Function."""
        return self.controller.function

    def _summary(self) -> dict[str, object]:
        return {"name": self.controller.name, "modes": list(self.modes)}

    def example_inputs(self) -> dict[str, Array]:
        """Return inputs of the law from which it can run, where it knows any."""
        of_law = self.law.example_inputs() if isinstance(self.law, HasExample) else {}
        names = self.function.name_in()
        return {n: x for n, x in of_law.items() if n in names and n not in ("z", "tuning")}


@checked
def sequence(
    law: Controller | HasController,
    modes: Mapping[str, ControlMode],
    transitions: Sequence[Transition],
    *,
    name: str | None = None,
) -> SequencedLaw:
    """Return a law that switches between modes, with fades; its memory is part of z.

    Its Function has the inputs of the law, with an entry `sequence.request` behind those of
    `tuning` where a transition waits for one, and one more output, the number of the mode. What
    no mode names comes from the inputs `ref`, `tuning` and `mask`. Of several transitions whose
    conditions hold the first one is taken, one in a tick; see `machine.py` for fades.

    Args:
        law: any controller; numbers that modes change are `tunable` in it.
        modes: by name; the first one is the start.
        transitions: in the order in which they are tried.
        name: a C identifier; that of the law with `_in_modes` by default.

    Raises:
        ProblemError: names that the law does not have, all in one message; numbers outside their
            bounds; a number that is faded from an infinite default; a law whose first phase takes
            what modes change.
    """
    inner = law if isinstance(law, Controller) else law.controller
    symbol = f"{inner.name}_in_modes" if name is None else name
    require_identifier("name", symbol)
    slices = law.reference_slices if isinstance(law, HasSlices) else _slices(inner)
    machine = Machine(inner, dict(modes), tuple(transitions), slices)
    require_known(machine)
    whole = _Whole(machine)
    data = whole.controller(symbol, {"modes": ", ".join(machine.modes)})
    return SequencedLaw(replace(data, tuning=whole.tuning), law, machine)


def _slices(law: Controller) -> dict[str, slice]:
    """Return the slices of the reference: components `<task>.<quantity>.<entry>` in a row."""
    signal = next((s for s in law.inputs if s.name == "ref"), None)
    slices: dict[str, slice] = {}
    for k, component in enumerate(() if signal is None else signal.components):
        name = ".".join(component.split(".")[:2])
        place = slices.get(name, slice(k, k))
        slices[name] = slice(place.start, k + 1)
    return slices


@dataclass(frozen=True)
class _Whole(BehindFront):
    """The law behind the machine."""

    machine: Machine

    @property
    def law(self) -> Controller:
        """The law behind the machine."""
        return self.machine.law

    @property
    def first(self) -> Array:
        """Memory of the machine."""
        return self.machine.z0

    @cached_property
    def tuning(self) -> tuple[TuningParameter, ...]:
        """Entries of the whole: those of the law, then the request."""
        most = self.machine.requests
        request = (TuningParameter(REQUEST, 0.0, 0.0, float(most)),) if most else ()
        return (*self.law.tuning, *request)

    @cached_property
    def inputs(self) -> dict[str, Signal]:
        """Signals of the whole, by name, in their order."""
        f, of_law = self.law.function, {s.name: s for s in self.law.inputs}
        signals = {name: of_law[name] for name in f.name_in()}
        names, units = ([getattr(e, k) for e in self.tuning] for k in ("name", "unit"))
        if self.tuning:
            signals["tuning"] = Signal("tuning", tuple(names), tuple(units))
        state = of_law["z"].components if "z" in of_law else ()
        signals["z"] = unitless_signal("z", (*self.machine.memory, *state))
        usual = [name for name in INPUTS if name in signals]
        others = {n: x for n, x in signals.items() if n not in INPUTS}
        return others | {n: signals[n] for n in usual}

    @cached_property
    def outputs(self) -> dict[str, Signal]:
        """The same of the outputs."""
        signals = {s.name: s for s in self.law.outputs}
        signals["z_next"] = replace(self.inputs["z"], name="z_next")
        first = {name: signals.pop(name) for name in OUTPUTS if name in signals}
        return first | signals | {"mode": unitless_signal("mode", ("mode",))}

    @cached_property
    def front(self) -> ca.Function:
        """(inputs of the whole) → (column): what the law is given, then memory and mode."""
        s, machine, f = self.symbols(), self.machine, self.machine.function()
        when = [self._when(each, s) for each in machine.transitions]
        of_law = {name: s[name] for name in machine.sizes}
        request = ca.MX(0.0)
        if machine.requests:
            request, of_law["tuning"] = s["tuning"][-1], s["tuning"][:-1]
        of_law = {name: of_law[name] for name in machine.sizes}
        z = s["z"][: machine.z0.size]
        column = ca.vertcat(*f.call([ca.vertcat(ca.MX(0, 1), *when), request, *of_law.values(), z]))
        used = [name for name in s if name in (*machine.measured, *machine.sizes, "tuning", "z")]
        options = {"never_inline": True}
        return ca.Function(
            "front_of_modes", [s[n] for n in used], [column], used, ["column"], options
        )

    def _when(self, each: Transition, s: Symbols) -> ca.MX:
        """Return the value that a transition compares, zero where there is none."""
        if isinstance(each.when, str):
            entry = entry_of(self.law, each.when)
            assert entry is not None  # `require_known` has looked
            return s[entry[0]][entry[1]]
        if each.when is None:
            return ca.MX(0.0)
        return each.when.call([s[name] for name in each.when.name_in()])[0]

    @property
    def input_signals(self) -> tuple[Signal, ...]:
        """Inputs of the whole."""
        return tuple(self.inputs.values())

    @property
    def output_signals(self) -> tuple[Signal, ...]:
        """Outputs of the whole."""
        return tuple(self.outputs.values())

    def given(self, column: ca.MX) -> Symbols:
        """Return what the machine gives the law."""
        return slices_of(self.machine.sizes, column)

    def joined(self, of_law: Mapping[str, ca.MX], column: ca.MX) -> Symbols:
        """Return the outputs of the whole from those of the law."""
        found, own = dict(of_law), column[-self.first.size - 1 :]
        found["z_next"] = ca.vertcat(own[:-1], found.get("z_next", ca.MX(0, 1)))
        found["mode"] = own[-1]
        return {name: ca.densify(found[name]) for name in self.outputs}
