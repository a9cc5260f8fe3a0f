"""The output of a controller at one state, and how its Function is called by names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.control.tick.inputs import tuning_values
from mbcasadi.description import Controller
from mbcasadi.description.status import OUTPUTS, Flag, Status
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]


@summarised
@dataclass(frozen=True, repr=False)
class ControlSolution:
    """What a controller gives at one state.

    Attributes:
        u: (nu,) controls.
        z_next: (nz,) next state.
        status, status_text: the code and its text; see `Controller.statuses`.
        flags: the bits of what was changed to reach a valid output, see `Flag`.
        residual, residual_names: (k,) what is missing, in the controller's own terms.
        planned_states, planned_controls: (N + 1, nx), (N, nu) what the controller plans, one row
            for each sample from the moment at which u acts; None where it has no plan.
        further: its other outputs, by name.
    """

    u: Array
    z_next: Array
    status: int
    status_text: str
    flags: Flag
    residual: Array
    residual_names: tuple[str, ...]
    planned_states: Array | None = None
    planned_controls: Array | None = None
    further: Mapping[str, Array] = field(default_factory=dict)

    def _summary(self) -> dict[str, object]:
        return {
            "status": self.status_text,
            "u": self.u,
            "residuals": self.residuals(),
            "flags": self.flags,
        }

    @property
    def solved(self) -> bool:
        """Whether the status is 0."""
        return self.status == Status.SOLVED

    def residuals(self) -> dict[str, float]:
        """Return the residuals by name."""
        return dict(zip(self.residual_names, self.residual.tolist(), strict=True))


def solve_by_name(
    controller: Controller,
    inputs: Mapping[str, ArrayLike | None],
    tuning: Mapping[str, float] | None = None,
) -> ControlSolution:
    """Return the controller's output for inputs by name.

    Args:
        controller: as data.
        inputs: by name; None stands for one that is not given. Defaults: `z0`, a mask of ones.
        tuning: entries of the input `tuning` by name; the others have their defaults.

    Raises:
        ProblemError: an input that the controller does not have, or one that is missing.
        UnknownNameError: no such entry of `tuning`.
        ShapeError: a wrong shape. NaN and infinity do not raise: they give a status.
    """
    function = controller.function
    given = {name: value for name, value in inputs.items() if value is not None}
    require_inputs(controller.name, given, function.name_in())
    sizes = {name: function.numel_in(name) for name in function.name_in()}
    defaults = {"z": controller.z0, "tuning": tuning_values(controller.tuning, tuning)}
    defaults["p"] = controller.default_parameters
    if "mask" in sizes:
        defaults["mask"] = np.ones(sizes["mask"])
    missing = [name for name in sizes if name not in given and name not in defaults]
    if missing:
        raise ProblemError(f"'{controller.name}' needs {', '.join(missing)}; give it to solve(...)")
    values = {
        name: column(name, given.get(name, defaults.get(name, ())), size, finite=False)
        for name, size in sizes.items()
    }
    outputs = called(function, values)
    known = {name: outputs.get(name, np.zeros(0)) for name in OUTPUTS}
    states, controls = _plan(controller, values | outputs)
    code, residual = int(known["status"][0]), known["residual"]
    return ControlSolution(
        u=known["u"],
        z_next=known["z_next"],
        status=code,
        status_text=controller.statuses[code],
        flags=Flag(int(known["flags"][0])) if known["flags"].size else Flag(0),
        residual=residual,
        residual_names=_components(controller, "residual", residual.size),
        planned_states=states,
        planned_controls=controls,
        further={name: value for name, value in outputs.items() if name not in OUTPUTS},
    )


def require_inputs(
    name: str, given: Sequence[str] | Mapping[str, object], valid: list[str]
) -> None:
    """Raise `ProblemError` for an input that a controller does not have."""
    for each in given:
        if each not in valid:
            raise ProblemError(f"'{name}' has no input {each!r}; its inputs: {', '.join(valid)}")


def called(function: ca.Function, values: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs of a Function, flat, by name."""
    return {name: np.array(out).ravel() for name, out in function(**values).items()}


def _plan(controller: Controller, values: Mapping[str, Array]) -> tuple[Array | None, Array | None]:
    """Return planned states and controls, one row for each sample, or None."""
    prediction = controller.prediction
    if prediction is None:
        return None, None
    x, u = prediction.call([values[name] for name in prediction.name_in()])
    return np.array(x).T, np.array(u).T


def _components(controller: Controller, output: str, size: int) -> tuple[str, ...]:
    """Return the names of an output's rows."""
    names = [signal.components for signal in controller.outputs if signal.name == output]
    return names[0] if names and len(names[0]) == size else tuple(f"{i}" for i in range(size))
