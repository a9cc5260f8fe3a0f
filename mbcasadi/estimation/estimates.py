"""An estimator that runs through a log, and what it says."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.estimation.estimator import Estimator
from mbcasadi.estimation.logged_inputs import LoggedInputs
from mbcasadi.shapes import matrix
from mbcasadi.short_text import summarised
from mbcasadi.simulation.buffered_function import BufferedFunction
from mbcasadi.system import System

Array = NDArray[np.float64]


@summarised
@dataclass(frozen=True)
class Estimates:
    """What an estimator said, tick by tick; n ticks.

    Attributes:
        t: (n,) s.
        q, v: (n, nq), (n, nv).
        states: (n, k) of the estimator beside them; k = 0 for none.
        deviation: (n, m) standard deviations of the errors whose covariance it has.
        covered: (m,) rows of the errors (δq, δv), in coordinates of `System.difference`; further
            columns of `deviation` are of `states`.
        status, flags: (n,).
        residual: (n, r) distances of samples from what was expected, in standard deviations.
        likelihood: (n,) logarithm of the samples' density; zeros without such an output.
    """

    t: Array
    q: Array
    v: Array
    states: Array
    deviation: Array
    covered: tuple[int, ...]
    status: NDArray[np.int64]
    flags: NDArray[np.int64]
    residual: Array
    likelihood: Array

    def _summary(self) -> dict[str, object]:
        return {"ticks": self.t.size, "not estimated": int(np.count_nonzero(self.status))}

    @checked
    def errors(self, system: System, q: ArrayLike, v: ArrayLike) -> Array:
        """Return the errors (n, m) beside a motion that is known, in the order of `covered`.

        Args:
            system: of the estimator.
            q: (n, nq) true poses, from motion capture for example.
            v: (n, nv) true rates.

        Raises:
            ShapeError: other shapes, or NaN.
        """
        poses = matrix("q", q, self.q.shape)
        rates = matrix("v", v, self.v.shape)
        gaps = [
            np.array(system.difference(*pair)).ravel() for pair in zip(poses, self.q, strict=True)
        ]
        return np.hstack([np.array(gaps), self.v - rates])[:, list(self.covered)]


@checked
def estimate_log(estimator: Estimator, logged: LoggedInputs) -> Estimates:
    """Return what an estimator says about a log.

    Args:
        estimator: any of this package.
        logged: of `logged_inputs`, for this estimator or one of the same inputs.

    Raises:
        ProblemError: inputs of another estimator.
    """
    names = [s.name for s in estimator.inputs]
    sizes = {s.name: len(s.components) for s in estimator.inputs if s.name != "z"}
    widths = {name: x.shape[1] for name, x in logged.inputs.items()}
    if sizes != widths:
        raise ProblemError(
            f"the inputs have sizes {widths}; expected {sizes}, those of '{estimator.name}'"
        )
    outputs = [s.name for s in estimator.outputs]
    rows: dict[str, list[Array]] = {name: [] for name in outputs}
    call, z = BufferedFunction(estimator.function), estimator.z0
    for k in range(logged.t.size):
        results = call(*(z if name == "z" else logged.inputs[name][k] for name in names))
        z = results[outputs.index("z_next")]
        for name, result in zip(outputs, results, strict=True):
            if name == "covariance":
                result = result[:: round(np.sqrt(result.size)) + 1]
            if name != "z_next":
                rows[name].append(result)
    return _estimates(estimator, logged.t, {name: np.array(x) for name, x in rows.items()})


def _estimates(estimator: Estimator, t: Array, of: dict[str, Array]) -> Estimates:
    none = np.zeros((t.size, 0))
    return Estimates(
        t=t,
        q=of["q"],
        v=of["v"],
        states=of.get("states", none),
        deviation=np.sqrt(np.maximum(of["covariance"], 0.0)),
        covered=estimator.covered,
        status=of["status"].ravel().astype(np.int64),
        flags=of["flags"].ravel().astype(np.int64),
        residual=of["residual"],
        likelihood=of.get("likelihood", np.zeros((t.size, 1))).ravel(),
    )
