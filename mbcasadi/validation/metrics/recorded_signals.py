"""Functions that a controller carries for reports, evaluated at the ticks of a recording."""

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller, Limits
from mbcasadi.errors import ProblemError
from mbcasadi.validation.closed_loop.compiled_law import KNOWN_INPUTS
from mbcasadi.validation.closed_loop.recording import Recording
from mbcasadi.validation.metrics.comparison import in_columns

Array = NDArray[np.float64]

PLANNED = ("u", "z_next")
"""What a prediction may take beside the controller's inputs."""

ACTED = ("u", "u_last")
"""What a value between limits may take beside them."""

AT_ONCE = 500
"""Points that one call evaluates: inputs may be a horizon's references, thousands of numbers."""


def require_reportable(controller: Controller) -> None:
    """Raise unless prediction and limits of a controller can be reported.

    Raises:
        ProblemError: an input that no recording has, or outputs and names that do not fit.
    """
    if controller.prediction is not None:
        _require_inputs(controller, "prediction", controller.prediction, PLANNED)
        _require_plan(controller, controller.prediction)
    if controller.limits is not None:
        _require_inputs(controller, "limits", controller.limits.value, ACTED)
        _require_bounds(controller, controller.limits)


def _require_inputs(
    controller: Controller, what: str, function: ca.Function, more: tuple[str, ...]
) -> None:
    known = (*KNOWN_INPUTS, *more)
    unknown = [name for name in function.name_in() if name not in known]
    if unknown or not function.n_in():
        raise ProblemError(
            f"controller {controller.name!r}: {what} wants the inputs {unknown}; a recording has "
            f"{', '.join(known)}"
        )


def _require_plan(controller: Controller, prediction: ca.Function) -> None:
    names, nu = prediction.name_out(), controller.u_min.size
    fits = sorted(names) == ["u", "x"]
    if fits:
        x, u = prediction.size_out("x"), prediction.size_out("u")
        fits = x == (len(controller.prediction_rows), u[1] + 1) and u[0] == nu and u[1] > 0
    if not fits:
        found = {name: prediction.size_out(name) for name in names}
        raise ProblemError(
            f"controller {controller.name!r}: the prediction gives {found}; expected x "
            f"({len(controller.prediction_rows)}, N + 1), a name for each row, and u ({nu}, N)"
        )


def _require_bounds(controller: Controller, limits: Limits) -> None:
    value, count = limits.value, len(limits.signal.components)
    found = {name: value.size_out(name) for name in value.name_out()}
    sizes = [limits.lower.size, limits.upper.size, len(limits.soft), len(limits.signal.units)]
    if found != {"value": (count, 1)} or sizes != [count] * len(sizes):
        raise ProblemError(
            f"controller {controller.name!r}: limits give {found}, with lower, upper, soft and "
            f"units of sizes {sizes}; expected value ({count}, 1) and {count} of each, as there "
            "are names"
        )


def evaluated(
    function: ca.Function, recording: Recording, ticks: NDArray[np.int64]
) -> dict[str, Array]:
    """Return name → (n, columns, rows) of each output at these ticks.

    Inputs are what the law was given and `u`, `z_next` what it answered; `z_next` is the z of the
    tick that follows, which the last tick does not have.
    """
    inputs = {n: getattr(recording, n)[ticks] for n in ("q", "v", "act", "ref", "mask", "z", "u")}
    inputs["t"], inputs["f_c"] = recording.t[ticks, None], recording.equality_force[ticks]
    if "z_next" in function.name_in():
        inputs["z_next"] = recording.z[ticks + 1]
    return called(function, inputs)


def called(function: ca.Function, inputs: dict[str, Array]) -> dict[str, Array]:
    """Return name → (n, columns, rows) of each output at n points, inputs (n, size) by name."""
    given = [inputs[name] for name in function.name_in()]
    n = len(next(iter(inputs.values())))
    parts = [
        in_columns(function, *(rows[first : first + AT_ONCE] for rows in given))
        for first in range(0, n, AT_ONCE)
    ]
    return {
        name: np.concatenate(flat).reshape(n, function.size2_out(name), function.size1_out(name))
        for name, flat in zip(function.name_out(), zip(*parts, strict=True), strict=True)
    }
