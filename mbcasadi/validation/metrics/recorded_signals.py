"""Functions that a controller carries for reports, evaluated at the ticks of a recording."""

from collections.abc import Mapping

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller, ReportedLimits
from mbcasadi.errors import ProblemError
from mbcasadi.validation.closed_loop import KNOWN_INPUTS, Recording
from mbcasadi.validation.metrics.comparison import evaluate_rows

Array = NDArray[np.float64]

PREDICTION_INPUTS = ("u", "z_next")
"""Inputs that a prediction may have beside the controller's."""

LIMIT_INPUTS = ("u", "u_last")
"""Inputs that a bounded value may have beside the controller's."""

RECORDED_INPUTS = ("q", "v", "act", "ref", "tuning", "p", "mask", "z", "u")
"""Inputs whose values are columns of a recording with the same name."""

CHUNK = 500
"""Points of one call: inputs may be references over a horizon, thousands of numbers each."""


def require_reportable(controller: Controller) -> None:
    """Raise unless prediction and limits of a controller can be evaluated.

    Raises:
        ProblemError: an input that no recording has, or outputs and names that do not fit.
    """
    if controller.prediction is not None:
        _require_inputs(controller, "prediction", controller.prediction, PREDICTION_INPUTS)
        _require_plan(controller, controller.prediction)
    if controller.limits is not None:
        _require_inputs(controller, "limits", controller.limits.value, LIMIT_INPUTS)
        _require_bounds(controller, controller.limits)


def _require_inputs(
    controller: Controller, role: str, function: ca.Function, more: tuple[str, ...]
) -> None:
    known = (*KNOWN_INPUTS, *more)
    unknown = [name for name in function.name_in() if name not in known]
    if unknown or not function.n_in():
        raise ProblemError(
            f"controller {controller.name!r}: {role} has the inputs {unknown}; a recording "
            f"provides {', '.join(known)} only"
        )


def _require_plan(controller: Controller, prediction: ca.Function) -> None:
    names, nu = prediction.name_out(), controller.u_min.size
    fits = sorted(names) == ["u", "x"]
    if fits:
        x, u = prediction.size_out("x"), prediction.size_out("u")
        fits = x == (len(controller.prediction_rows), u[1] + 1) and u[0] == nu and u[1] > 0
    if not fits:
        shapes = {name: prediction.size_out(name) for name in names}
        raise ProblemError(
            f"controller {controller.name!r}: the prediction gives {shapes}; expected x "
            f"({len(controller.prediction_rows)}, N + 1), a name for each row, and u ({nu}, N)"
        )


def _require_bounds(controller: Controller, limits: ReportedLimits) -> None:
    value, count = limits.value, len(limits.signal.components)
    shapes = {name: value.size_out(name) for name in value.name_out()}
    sizes = [limits.lower.size, limits.upper.size, len(limits.soft), len(limits.signal.units)]
    if shapes != {"value": (count, 1)} or sizes != [count] * len(sizes):
        raise ProblemError(
            f"controller {controller.name!r}: limits give {shapes}, with lower, upper, soft and "
            f"units of sizes {sizes}; expected value ({count}, 1) and {count} of each, as there "
            "are names"
        )


def evaluate_at_ticks(
    function: ca.Function, recording: Recording, ticks: NDArray[np.int64]
) -> dict[str, Array]:
    """Return name → (n, columns, rows) of each output at n ticks.

    Inputs are those of the controller and its outputs `u`, `z_next`; `z_next` is the z of the
    tick that follows, which the last tick does not have.

    Args:
        function: with inputs that a recording has.
        recording: a closed loop.
        ticks: (n,) indices.
    """
    inputs = {n: getattr(recording, n)[ticks] for n in RECORDED_INPUTS}
    inputs["t"], inputs["f_c"] = recording.t[ticks, None], recording.equality_force[ticks]
    if "f_measured" in function.name_in():
        inputs["f_measured"] = recording.f_measured[ticks]
    if "z_next" in function.name_in():
        inputs["z_next"] = recording.z[ticks + 1]
    return evaluate_points(function, inputs)


def evaluate_points(function: ca.Function, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return name → (n, columns, rows) of each output at n points, inputs (n, size) by name."""
    rows = [inputs[name] for name in function.name_in()]
    n = len(next(iter(inputs.values())))
    chunks = [
        evaluate_rows(function, *(values[first : first + CHUNK] for values in rows))
        for first in range(0, n, CHUNK)
    ]
    return {
        name: np.concatenate(flat).reshape(n, function.size2_out(name), function.size1_out(name))
        for name, flat in zip(function.name_out(), zip(*chunks, strict=True), strict=True)
    }
