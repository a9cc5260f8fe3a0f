"""A controller as data, for code generation, the plant and the report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description.constraints import Contact
from mbcasadi.description.qp_stages import LeastDistanceStages
from mbcasadi.description.status import OUTPUTS, QP_STATUS
from mbcasadi.short_text import summarised

INPUTS = ("ref", "tuning", "p", "t", "mask", "z")
"""Inputs of every controller behind the measured ones, in this order; all but `z` are optional."""

HANDED = ("valid", "dt", "age")
"""Inputs beside a measurement `y`: whether a sample is valid, s since the last tick, age of it."""

UNREPORTED = {
    "tracking": "tracking error",
    "status": "status and self-check",
    "plan": "plans",
    "limits": "controls beyond limits of its own",
    "contacts": "contacts that it counts on",
}
"""What a report may have to leave out as a controller does not report it, in words."""


@summarised
@dataclass(frozen=True)
class Signal:
    """One input or output of a controller.

    Attributes:
        name: name of the Function's input or output.
        components: one name for each row.
        units: one unit for each row ("" where there is none).
    """

    name: str
    components: tuple[str, ...]
    units: tuple[str, ...]


class PlantSensor(Protocol):
    """A sensor of a plant that entries of a controller's input `y` are read from.

    Attributes:
        name: of the sensor.
        kind: "gyro", "accelerometer": of an IMU; "position", "rate": of a joint of one coordinate;
            "sensor": of the model, by its name.
        target: name of the frame, the joint or the model's sensor.
        rows: entries of y.
        frame_kind: of the frame, where it measures one.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def target(self) -> str: ...  # noqa: D102
    @property
    def rows(self) -> tuple[int, ...]: ...  # noqa: D102
    @property
    def frame_kind(self) -> str: ...  # noqa: D102


@dataclass(frozen=True)
class TuningParameter:
    """One entry of a controller's input `tuning` or `p`: a number that may change between ticks.

    `p` holds physical parameters of the mechanism; gains, weights, friction coefficients, normals,
    limits and prices of slack are tuning.

    Attributes:
        name: unique among the entries.
        default: value where the caller gives none.
        lower, upper: a value outside them, or NaN, is bad input.
        unit: "" where there is none.
    """

    name: str
    default: float
    lower: float = 0.0
    upper: float = np.inf
    unit: str = ""


def defaults_of(entries: Sequence[TuningParameter]) -> NDArray[np.float64]:
    """Return the default of each entry of `tuning` or `p`."""
    return np.array([entry.default for entry in entries], dtype=float)


@dataclass(frozen=True)
class ReportedLimits:
    """Bounded quantities of a law beside its controls, for reports.

    Attributes:
        value: any of the controller's inputs, `u` (nu,) that acts on the measured state and
            `u_last` (nu,) that acted in the period before, by name → (value), (m,).
        signal: name, rows and units of the value.
        lower, upper: (m,) bounds, infinite where there are none.
        soft: (m,) whether the row may be violated with slack.
    """

    value: ca.Function
    signal: Signal
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    soft: tuple[bool, ...]


LAST_COMMAND = 0.01
"""s during which the last solved command is still used, at least one tick."""


def ticks_of_last_command(period: float) -> int:
    """Return the ticks without a solution in which the last command is used."""
    return max(1, round(LAST_COMMAND / period))


@dataclass(frozen=True)
class Emergency:
    """The output of a tick of which nothing could be computed, from the state alone.

    The generated C calls it where the law itself cannot run: without memory, during another call
    on the same memory, after an arithmetic breakdown.

    Attributes:
        function: (memory, missed) → (u, memory_next), in SX: the safe output on the last of
            `missed` ticks (at least 1) without measurement and solution. It is finite and within
            the limits whatever the memory holds.
        first: row of z at which the memory begins.
    """

    function: ca.Function
    first: int


@summarised
@dataclass(frozen=True)
class Controller:
    """A discrete-time control law with explicit state.

    Attributes:
        name: a C identifier.
        function: the law as one named Function, e.g. (q, v, ref, mask, z) → (u, z_next,
            status, flags, residual). The state `z` and `z_next` have the same size.
        inputs, outputs: one `Signal` for each, in the Function's order. Measured inputs come
            first, then those of `INPUTS` that the controller has; outputs are those of `OUTPUTS`.
        u_min, u_max: (nu,) limits that the output never leaves; infinite where there are none.
        z0: (nz,) initial state.
        period: sample time, s.
        stages: the parts around the QP solver, or None where `function` is plain arithmetic.
        source: name of the model that it was made from.
        monitor: a Function that a report calls beside the controller and that is never exported:
            any of (q, v, act, ref, mask, z, u), by name → any of
            `target`, `error` (ny,): desired value and error of the tasks
            (rotations as vectors, rad); `contact_force` (3 nc,): the planned contact forces
            (n, t1, t2), in the order of `contacts`.
        monitors: one `Signal` for each output of `monitor`, in its order.
        monitor_stages: `stages` whose `finish` gives the outputs of `monitor` in place of the
            law's, where `monitor` solves the QP again: the same as C, for many runs.
        contacts: the contacts that the controller uses, in the order of its mask.
        loop_forces: equality constraint and row there of each further force in `f_measured`.
        statuses: text of each status, from 0 on.
        safe_statuses: those whose u is the safe output.
        prediction: a Function that a report calls beside the controller and that is never
            exported: any of its inputs, `u` and `z_next`, by name → (x, u), (nx, N + 1) states
            and (nu, N) controls that the law plans, one column for each period, from the moment
            at which u acts; None where the law has no plan.
        prediction_rows: names of the rows of x; `q.` and `v.` come first where x is (q, v).
        delay: ticks from a measurement to the moment at which u acts, as the law assumes.
        limits: further bounded quantities: rates, states, outputs.
        tuning: names, defaults and bounds of the input `tuning`, where there is one.
        parameters: the same of the input `p`, physical parameters of the mechanism.
        unreported: what it has no signal for, of `UNREPORTED`; metrics of these are left out.
        secondary: rows of `error` that tasks of far more weight, or of a level before, leave no
            freedom: their error is reported and not judged.
        emergency: the output where the law cannot run. Without one the generated C keeps the last
            finite control for `LAST_COMMAND` seconds, then gives a constant: what the law gives for
            NaN if its status says that this is the safe output, else zero within the limits.
        sensors: what the input `y` is read from, of a controller that has one.
        input_defaults: of further inputs, by name, where they are not zeros.
        needs_double: why single precision does not suffice, for the message of an export that is
            refused; "" where it does.
    """

    name: str
    function: ca.Function
    inputs: tuple[Signal, ...]
    outputs: tuple[Signal, ...]
    u_min: NDArray[np.float64]
    u_max: NDArray[np.float64]
    z0: NDArray[np.float64]
    period: float
    stages: LeastDistanceStages | None = None
    source: str = ""
    notes: dict[str, str] = field(default_factory=dict)
    monitor: ca.Function | None = None
    monitors: tuple[Signal, ...] = ()
    monitor_stages: LeastDistanceStages | None = None
    contacts: tuple[Contact, ...] = ()
    loop_forces: tuple[tuple[str, int], ...] = ()
    statuses: tuple[str, ...] = QP_STATUS.texts
    safe_statuses: tuple[int, ...] = QP_STATUS.safe
    prediction: ca.Function | None = None
    prediction_rows: tuple[str, ...] = ()
    delay: int = 0
    limits: ReportedLimits | None = None
    tuning: tuple[TuningParameter, ...] = ()
    parameters: tuple[TuningParameter, ...] = ()
    emergency: Emergency | None = None
    unreported: tuple[str, ...] = ()
    sensors: tuple[PlantSensor, ...] = ()
    input_defaults: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    secondary: tuple[str, ...] = ()
    needs_double: str = ""

    def _summary(self) -> dict[str, object]:
        return {
            "name": self.name,
            "inputs": [f"{s.name}[{len(s.components)}]" for s in self.inputs],
            "outputs": [f"{s.name}[{len(s.components)}]" for s in self.outputs],
            "period": self.period,
            "source": self.source,
        }

    @property
    def default_tuning(self) -> NDArray[np.float64]:
        """Default of each entry of `tuning`."""
        return defaults_of(self.tuning)

    @property
    def default_parameters(self) -> NDArray[np.float64]:
        """Default of each entry of `p`, the model's own numbers."""
        return defaults_of(self.parameters)

    @property
    def defaults(self) -> dict[str, NDArray[np.float64]]:
        """What a tick takes for an input that is left out, a null pointer in C; else zeros.

        Tuning and physical parameters have their defaults, a mask is on, z is z0.
        """
        sizes = {signal.name: len(signal.components) for signal in self.inputs}
        values = {
            "tuning": self.default_tuning,
            "p": self.default_parameters,
            "mask": np.ones(sizes.get("mask", 0)),
            "z": np.asarray(self.z0, dtype=float),
            **self.input_defaults,
        }
        return {name: value for name, value in values.items() if name in sizes and value.size}

    def contract_violation(self) -> str:
        """Return how the Function departs from the order of inputs and outputs, or ""."""
        for side, names, order in (
            ("inputs", self.function.name_in(), INPUTS),
            ("outputs", self.function.name_out(), OUTPUTS),
        ):
            known = [name for name in names if name in order]
            if known != [name for name in order if name in names]:
                return f"{side} {tuple(names)}; expected the order {', '.join(order)}"
            if side == "inputs" and known and names[-len(known) :] != known:
                return (
                    f"inputs {tuple(names)}; expected what is measured first, then {tuple(known)}"
                )
        sizes = {signal.name: len(signal.components) for signal in self.inputs}
        for name, entries, words in (
            ("tuning", self.tuning, "tuning parameters"),
            ("p", self.parameters, "physical parameters"),
        ):
            if sizes.get(name, 0) != len(entries):
                return (
                    f"an input `{name}` of {sizes.get(name, 0)} numbers and {len(entries)} "
                    f"{words}; expected one for each number"
                )
        return ""


@runtime_checkable
class HasController(Protocol):
    """An object that carries its controller as data."""

    @property
    def controller(self) -> Controller:
        """The controller."""


@runtime_checkable
class HasExample(Protocol):
    """A control law that knows inputs from which it can run."""

    def example_inputs(self) -> dict[str, NDArray[np.float64]]:
        """Return some inputs by name: a state at rest, and the reference that holds it."""
