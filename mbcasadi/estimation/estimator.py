"""An estimator as data: one named Function with explicit state, as every controller has.

(y, valid, [u], [mask], dt, z) → (q, v, z_next, covariance, status, flags, residual)
"""

from dataclasses import dataclass
from typing import Literal

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Signal
from mbcasadi.description.status import StatusTable
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

    def _summary(self) -> dict[str, object]:
        return {
            "name": self.name,
            "sensors": [sensor.name for sensor in self.sensors],
            "inputs": [f"{s.name}[{len(s.components)}]" for s in self.inputs],
            "outputs": [f"{s.name}[{len(s.components)}]" for s in self.outputs],
            "period": self.period,
            "unobservable": list(self.unobservable),
        }
