"""An estimator as data: one named Function with explicit state, as every controller has.

(y, valid, [u], [mask], dt, z) → (q, v, z_next, covariance, status, flags, residual)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller, Signal, TuningParameter
from mbcasadi.description.controller import INPUTS
from mbcasadi.description.status import StatusTable
from mbcasadi.errors import ProblemError
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]

ESTIMATE_STATUS = StatusTable(
    (
        "estimated",
        "predicted for long without a measurement that bounds its error",
        "measurements contradict the estimate",
        "bad input, predicted without it",
        "arithmetic failed, started anew",
    ),
    (),
)
"""Of an estimator; its output is finite with all of them."""

ADRIFT = 0.5
"""s without a measurement that bounds the error from which the status is 1."""

DOUBTED = 0.02
"""s for which measurements have to be rejected until the status is 2."""

LONGEST = 0.1
"""s, the largest dt of a tick; a longer one is bad input."""


LIKELIHOOD = Signal("likelihood", ("likelihood",), ("",))
"""The output of an estimator that says how well its noise explains the samples."""


@dataclass(frozen=True)
class EstimatorSensor:
    """A sensor of an estimator: entries of y that are valid together, or not.

    Attributes:
        name: of the sensor.
        kind: "gyro", "accelerometer", "position", "rate" and others: what a plant reads.
        target: name of the frame or joint that it measures.
        rows: entries of y.
        noise: standard deviation of each entry of a sample, or density of the white noise where
            `density` says so.
        density: whether the noise of a sample has the variance `noise² / dt`.
        valid: its entry of `valid`.
        frame_kind: of the frame, where it measures one.
    """

    name: str
    kind: str
    target: str
    rows: tuple[int, ...]
    noise: float
    density: bool
    valid: int
    frame_kind: Literal["site", "body"] = "site"


@summarised
@dataclass(frozen=True)
class Estimator:
    """A state estimator with explicit memory.

    Attributes:
        name: a C identifier.
        function: (y, valid, [u], [mask], dt, z) → (q, v, z_next, covariance, status, flags,
            residual). A sample that is NaN counts as not valid.
        inputs, outputs: one `Signal` for each, in the Function's order.
        sensors: what y consists of.
        z0: (nz,) initial memory.
        period: s, the usual dt.
        statuses: text of each status.
        source: name of the model that it was made from.
        unobservable: what no sensor sees, in words.
        covered: rows of the errors (δq, δv), (2 nv,), of which `covariance` is, its first ones.
        parameters: of the input p, the model's own numbers; none without such an input.
        y0: (ny,) what the sensors read at rest at the start, as far as it is known; else zeros.
    """

    name: str
    function: ca.Function
    inputs: tuple[Signal, ...]
    outputs: tuple[Signal, ...]
    sensors: tuple[EstimatorSensor, ...]
    z0: Array
    period: float
    statuses: tuple[str, ...] = ESTIMATE_STATUS.texts
    source: str = ""
    unobservable: tuple[str, ...] = ()
    covered: tuple[int, ...] = ()
    parameters: tuple[float, ...] = ()
    y0: Array = field(default_factory=lambda: np.zeros(0))

    @cached_property
    def controller(self) -> Controller:
        """The estimator as data, as `export_c` takes it: inputs in the order of controllers."""
        ordered = in_order(self.inputs)
        return Controller(
            name=self.name,
            function=with_defaults(_ordered(self.function, ordered), self.name, self.defaults),
            inputs=ordered,
            outputs=self.outputs,
            u_min=np.zeros(0),
            u_max=np.zeros(0),
            z0=self.z0,
            period=self.period,
            source=self.source,
            notes=dict(self.notes),
            statuses=self.statuses,
            safe_statuses=(),
            sensors=self.sensors,
            input_defaults=self.defaults,
            parameters=self.tuning_of_parameters,
        )

    @cached_property
    def deviation(self) -> Signal:
        """Names and units of the standard deviations, the root of the covariance's diagonal."""
        signals = {signal.name: signal for signal in self.outputs}
        pairs = signals["covariance"].components
        names = [pair[: len(pair) // 2] for pair in pairs[:: round(np.sqrt(len(pairs))) + 1]]
        rates = signals["v"].units
        units = [(*(unit.removesuffix("/s") for unit in rates), *rates)[k] for k in self.covered]
        units += signals["states"].units if "states" in signals else ()
        return Signal("deviation", tuple(names), tuple(units))

    def example_inputs(self) -> dict[str, Array]:
        """Return what the sensors read at rest."""
        return {"y": self.y0} if self.y0.size else {}

    @property
    def notes(self) -> dict[str, str]:
        """What pages say of it: its statuses, and what it does not observe."""
        texts = "; ".join(f"{code} {text}" for code, text in enumerate(self.statuses))
        unseen = ", ".join(self.unobservable)
        return {"status of the estimate": texts} | ({"not observed": unseen} if unseen else {})

    @property
    def defaults(self) -> dict[str, Array]:
        """What stands for inputs that are left out, where it is not zeros: by name."""
        sizes = {signal.name: len(signal.components) for signal in self.inputs}
        values = {"valid": np.ones(sizes.get("valid", 0)), "dt": np.array([self.period])}
        return {name: value for name, value in values.items() if name in sizes}

    @property
    def tuning_of_parameters(self) -> tuple[TuningParameter, ...]:
        """Entries of the input p."""
        signal = next((s for s in self.inputs if s.name == "p"), Signal("p", (), ()))
        entries = zip(signal.components, self.parameters, signal.units, strict=True)
        return tuple(TuningParameter(n, x, -np.inf, np.inf, unit) for n, x, unit in entries)

    def _summary(self) -> dict[str, object]:
        return {
            "name": self.name,
            "sensors": [sensor.name for sensor in self.sensors],
            "inputs": [f"{s.name}[{len(s.components)}]" for s in self.inputs],
            "outputs": [f"{s.name}[{len(s.components)}]" for s in self.outputs],
            "period": self.period,
            "unobservable": list(self.unobservable),
            "units of deviation": list(dict.fromkeys(self.deviation.units)),
        }


SAME_PERIOD = 1e-9
"""Relative difference of periods that is rounding."""


def require_same_period(estimator: Estimator, period: float) -> None:
    """Raise `ProblemError` for an estimator of another period, s, than the controller's."""
    if abs(estimator.period - period) > SAME_PERIOD * period:
        raise ProblemError(
            f"the estimator's period is {estimator.period:g} s, the controller's {period:g} s; "
            "expected the same"
        )


def in_order(signals: Sequence[Signal]) -> tuple[Signal, ...]:
    """Return the inputs of a controller: what is measured first, then those of `INPUTS`."""
    behind = {signal.name: signal for signal in signals if signal.name in INPUTS}
    measured = [signal for signal in signals if signal.name not in INPUTS]
    return (*measured, *(behind[name] for name in INPUTS if name in behind))


def with_defaults(f: ca.Function, name: str, defaults: Mapping[str, Array]) -> ca.Function:
    """Return a Function under a name, whose inputs have these defaults, and a mask ones."""
    s, names = f.mx_in(), f.name_in()
    usual = [float(defaults[n][0]) if n in defaults else float(n == "mask") for n in names]
    return ca.Function(name, s, f.call(s), names, f.name_out(), {"default_in": usual})


def _ordered(f: ca.Function, signals: Sequence[Signal]) -> ca.Function:
    """Return a Function with its inputs in the order of these signals."""
    s = {signal.name: ca.MX.sym(signal.name, f.sparsity_in(signal.name)) for signal in signals}
    return ca.Function(
        "ordered", [*s.values()], f.call([s[n] for n in f.name_in()]), [*s], f.name_out()
    )
