"""What a user gives as a controller, as something that a closed loop runs.

| given | runs |
|---|---|
| a controller of `mbcasadi`, `description.Controller` | its generated C (`compile_controller`) |
| `CProject`, or the path of an exported folder | the folder's library |
| `SharedLibrary` | its function |
| `ca.Function`, also of `ca.external` | CasADi evaluates it |
| `Policy` | its functions |
| another callable | it is called as `(t, q, v) → u` |
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import casadi as ca
from numpy.typing import ArrayLike

from mbcasadi.codegen import CProject, open_project
from mbcasadi.control.inverse_dynamics.controller import InverseDynamicsQP
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.errors import ExportError, ProblemError
from mbcasadi.plant import Plant
from mbcasadi.shapes import PERIOD_ROUNDING, described, require_positive
from mbcasadi.validation.closed_loop.controllers.casadi_function import (
    ExportedFolder,
    casadi_function,
)
from mbcasadi.validation.closed_loop.controllers.python_callable import (
    Policy,
    Predictor,
    policy_run,
    python_callable,
)
from mbcasadi.validation.closed_loop.controllers.shared_library import (
    SharedLibrary,
    library_function,
)
from mbcasadi.validation.closed_loop.runnable import Runnable

Own = TypeVar("Own", bound=Controller | HasController | Runnable)

Controllable = (
    Controller
    | HasController
    | Runnable
    | ca.Function
    | CProject
    | SharedLibrary
    | Policy
    | Predictor  # refused with advice
    | str
    | Path
    | Callable[[float, ArrayLike, ArrayLike], ArrayLike]
)
"""What `validate` and `campaign` take as a controller."""

OF_OTHERS: dict[type, Callable[..., Runnable]] = {
    ca.Function: casadi_function,
    CProject: ExportedFolder,
    SharedLibrary: library_function,
    Policy: policy_run,
}
LIBRARIES = (".so", ".dylib", ".dll")
OWN = (Controller, Runnable, InverseDynamicsQP, HasController)
"""What runs as it is. An `InverseDynamicsQP` is known by its class: to look for its attribute
`controller`, as a test for the protocol does before Python 3.12, would build its equations, and
those that run are of the law that is fitted to the plant."""


def as_runnable(
    controller: Controllable, plant: Plant, period: float | None = None
) -> Controller | HasController | Runnable:
    """Return what a closed loop runs; controllers of ours are returned as they are.

    Args:
        controller: a `Controller`, a `CProject` or its folder, a `SharedLibrary`, a
            `ca.Function`, a `Policy`, or another callable `(t, q, v) → u`.
        plant: on which it is to run.
        period: s; the plant's time step by default, and that of the controller where it has one.

    Raises:
        ProblemError: none of these kinds; inputs or outputs that do not fit the plant; a period
            that is not the controller's own.
        ExportError: a folder without an export, or one that cannot be built.
    """
    if period is not None:
        require_positive(period=period)
    if isinstance(controller, OWN):
        return _of_its_period(controller, period)
    given = open_project(_export(controller)) if isinstance(controller, (str, Path)) else controller
    step = plant.timestep if period is None else period
    for kind, runs in OF_OTHERS.items():
        if isinstance(given, kind):
            return _of_its_period(runs(given, plant, step), period)
    if isinstance(given, Predictor):
        raise ProblemError(
            f"controller is {described(given)} with predict(observation); expected "
            "validation.Policy(observe, policy, action), which says what it observes"
        )
    if callable(given):
        return python_callable(given, plant, step)
    raise ProblemError(
        f"cannot validate {described(given)}; expected a controller of mbcasadi, a ca.Function, "
        "an exported folder, a shared_library, a Policy, or a function (t, q, v) → u"
    )


def _of_its_period(given: Own, period: float | None) -> Own:
    if period is None:
        return given
    data = given if isinstance(given, Controller) else given.controller
    if abs(period - data.period) > PERIOD_ROUNDING * data.period:
        raise ProblemError(
            f"period = {period:g} s, but the controller {data.name!r} has its own, "
            f"{data.period:g} s; leave period out, or make the controller with this one"
        )
    return given


def _export(path: str | Path) -> Path:
    """Return the path of a folder.

    Raises:
        ExportError: it is none; the message says what to give.
    """
    folder = Path(path)
    if folder.is_dir():
        return folder
    if folder.suffix in LIBRARIES:
        raise ExportError(
            f"{folder} is a library; give validation.shared_library({str(folder)!r}, symbol, "
            "inputs), which says what its function takes"
        )
    raise ExportError(f"{folder} is no folder; expected one that export_c wrote")
