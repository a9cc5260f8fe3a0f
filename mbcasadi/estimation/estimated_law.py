"""An estimator and a law as one law, from measurements to controls: one Function, one C."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.tick.behind_front import BehindFront, Symbols
from mbcasadi.description import Controller, Signal
from mbcasadi.description.controller import HasController, HasExample
from mbcasadi.description.safe_command import safe_command
from mbcasadi.description.status import OUTPUTS, Flag, Status
from mbcasadi.estimation.estimate_front import GATED, UNSURE, EstimateFront
from mbcasadi.estimation.estimator import Estimator, with_defaults
from mbcasadi.estimation.law_inputs import LawInputs, nameless, require_fit
from mbcasadi.qp.input_guard import clamp
from mbcasadi.shapes import require_identifier, require_positive, require_whole
from mbcasadi.short_text import summarised
from mbcasadi.system.coordinates import unitless_signal

Array = NDArray[np.float64]


@summarised
@dataclass(frozen=True)
class EstimatedLaw:
    """A law that takes what a robot measures; `with_estimator` makes one.

    Attributes:
        controller: the whole as data: what `export_c` takes.
        law: the law that takes q and v.
        estimator: what gives them.
    """

    controller: Controller
    law: Controller | HasController
    estimator: Estimator

    @property
    def function(self) -> ca.Function:
        """The whole as one named Function."""
        return self.controller.function

    def _summary(self) -> dict[str, object]:
        return {"name": self.controller.name, "estimator": self.estimator.name}

    def example_inputs(self) -> dict[str, Array]:
        """Return inputs of a robot at rest: those of the law, and what its sensors read then."""
        given = self.law.example_inputs() if isinstance(self.law, HasExample) else {}
        names = self.function.name_in()
        own = {name: x for name, x in given.items() if name in names and name != "z"}
        return own | self.estimator.example_inputs()


def estimated_law(
    law: Controller | HasController,
    estimator: Estimator,
    observers: tuple[ca.Function, ...],
    blind: float,
    delay: int | None,
    name: str | None,
    renamed: dict[str, str] | None = None,
) -> EstimatedLaw:
    """Return the law from measurements of `with_estimator`.

    `renamed` are inputs of the estimator that have another name in the whole.
    """
    inner = law if isinstance(law, Controller) else law.controller
    require_positive(blind=blind)
    late = inner.delay if delay is None else delay
    require_whole(0, delay=late)
    symbol = f"{inner.name}_from_sensors" if name is None else name
    require_identifier("name", symbol)
    inputs = LawInputs(inner, estimator, observers, int(late), renamed or {})
    require_fit(inputs)
    whole = _Whole(inputs, EstimateFront(inputs, float(blind)))
    return EstimatedLaw(whole.described(symbol), law, estimator)


@dataclass(frozen=True)
class _Whole(BehindFront):
    """The law behind the estimate."""

    inputs: LawInputs
    estimate: EstimateFront

    @property
    def law(self) -> Controller:
        """The law behind the estimate."""
        return self.inputs.law

    @property
    def first(self) -> Array:
        """Memory of estimator and observers."""
        return self.inputs.z0[: self.inputs.memory.size]

    @property
    def front(self) -> ca.Function:
        """Estimator and observers."""
        return self.estimate.function

    @cached_property
    def outputs(self) -> dict[str, Signal]:
        """Signals of the whole by name, in their order."""
        given, f = {s.name: s for s in self.law.outputs if s.components}, self.law.function
        own = {n: given.get(n, nameless(n, f.numel_out(n))) for n in f.name_out()}
        own["z_next"] = replace(self.inputs.signals[-1], name="z_next")
        for name in ("status", "flags"):
            own.setdefault(name, unitless_signal(name, (name,)))
        first = {name: own.pop(name) for name in OUTPUTS if name in own}
        return first | own | {signal.name: signal for signal in self.estimate.reports.values()}

    @property
    def input_signals(self) -> tuple[Signal, ...]:
        """Inputs of the whole."""
        return self.inputs.signals

    @property
    def output_signals(self) -> tuple[Signal, ...]:
        """Outputs of the whole."""
        return tuple(self.outputs.values())

    @property
    def monitor(self) -> None:
        """None: a loop judges by the states of the plant, not by the estimate."""

    def given(self, column: ca.MX) -> Symbols:
        """Return what the law takes of the estimate."""
        return self.estimate.given(self.estimate.column.split(column))

    def joined(self, of_law: Mapping[str, ca.MX], column: ca.MX) -> Symbols:
        """Return the outputs of the whole from those of the law."""
        parts, outputs = self.estimate.column.split(column), dict(of_law)
        if "status" not in outputs:
            outputs |= self._without_status(outputs["u"])
        u = outputs["u"]
        older = parts["next u"][: u.numel() * self.inputs.delay, 0]
        parts["next u"] = ca.vertcat(u, older)
        memory = [parts[f"next {name}"] for name in self.inputs.memory.sizes]
        outputs["z_next"] = ca.vertcat(*memory, outputs.get("z_next", ca.MX(0, 1)))
        flags = outputs.get("flags", ca.MX(0))
        has = ca.fmod(ca.floor(flags / Flag.GATED), 2)
        flags += Flag.GATED * ca.logic_and(parts[GATED], ca.logic_not(has))
        outputs["flags"] = flags + Flag.UNSURE * parts[UNSURE]
        outputs |= {signal.name: parts[key] for key, signal in self.estimate.reports.items()}
        return {name: ca.densify(outputs[name]) for name in self.outputs}

    def _without_status(self, u: ca.MX) -> dict[str, ca.MX]:
        """Return u and status of a law that has none."""
        finite = ca.sum1(ca.fabs(u) <= np.finfo(float).max) == u.numel()
        limited = clamp(u, self.law.u_min, self.law.u_max)
        safe = ca.if_else(finite, limited, ca.DM(safe_command(self.law)))
        return {"u": safe, "status": ca.if_else(finite, 0, int(Status.BAD_INPUT))}

    def described(self, name: str) -> Controller:
        """Return the whole as data, with what the estimator adds."""
        data, estimator = self.controller(name, self._notes()), self.inputs.estimator
        defaults = {n: x for n, x in estimator.defaults.items() if n in self.inputs.sizes}
        return replace(
            data,
            function=with_defaults(data.function, name, defaults),
            parameters=data.parameters or estimator.tuning_of_parameters,
            sensors=estimator.sensors,
            input_defaults={**data.input_defaults, **defaults},
            monitors=(),
        )

    def _notes(self) -> dict[str, str]:
        """Return what header and README say of the estimate."""
        blind = self.estimate.blind
        text = f"the law goes on for {blind:g} s, then its safe output for bad input acts"
        return self.inputs.estimator.notes | {"without measurements": text}
