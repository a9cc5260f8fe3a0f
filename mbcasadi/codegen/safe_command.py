"""What a controller puts out where it cannot run: its checks, and the constant known at export."""

from typing import cast

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller
from mbcasadi.errors import ExportError

EMERGENCY_NAMES = (["memory", "missed"], ["u", "memory_next"])
"""Inputs and outputs of `Emergency.function`."""


def require_emergency(controller: Controller) -> None:
    """Raise `ExportError` where `Controller.emergency` does not fit the controller."""
    emergency = controller.emergency
    if emergency is None:
        return
    f, nz = emergency.function, controller.z0.size
    held, nu = int(f.numel_in(0)) if f.n_in() else 0, controller.u_min.size
    names = f.name_in(), f.name_out()
    if names != EMERGENCY_NAMES or not f.is_a("SXFunction"):
        raise ExportError(
            f"the emergency Function of controller {controller.name!r} is {f}; expected "
            "(memory, missed) -> (u, memory_next), in SX"
        )
    sizes = [int(f.numel_in(1)), int(f.numel_out(0)), int(f.numel_out(1))]
    if sizes != [1, nu, held] or not 0 <= emergency.first <= nz - held:
        raise ExportError(
            f"the emergency Function of controller {controller.name!r} is {f}, its memory from row "
            f"{emergency.first} of z on; expected missed[1], u[{nu}], memory and memory_next of "
            f"one size, inside the {nz} rows of z"
        )


def rename_emergency(function: ca.Function, name: str) -> ca.Function:
    """Return the Function under another name; its C keeps all it needs on the stack."""
    inputs = function.sx_in()
    outputs = [ca.densify(output) for output in function.call(inputs)]
    return ca.Function(name, inputs, outputs, function.name_in(), function.name_out())


def safe_command(controller: Controller, nu: int) -> NDArray[np.float64]:
    """Return u (nu,) of a controller that has neither a state nor a measurement.

    It is that of `Controller.emergency` at z0. Without one it is what the law gives for NaN, where
    its status says that this is the safe output; else zero. It is within the limits.
    """
    emergency, u = controller.emergency, np.zeros(nu)
    if emergency is not None:
        z0 = controller.z0[emergency.first :][: emergency.function.numel_in(0)]
        u = _column(emergency.function(z0, 1)[0])
    elif {"u", "status"} <= set(controller.function.name_out()):
        u = _without_measurement(controller, u)
    return np.clip(np.where(np.isfinite(u), u, 0.0), controller.u_min, controller.u_max)


def _without_measurement(
    controller: Controller, otherwise: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return u of the law for NaN, or the other one where its status is none of the safe output."""
    f = controller.function
    values = {name: np.full(f.size_in(name), np.nan) for name in f.name_in()}
    if "z" in values:
        values["z"] = controller.z0.reshape(-1, 1)
    outputs = f(**cast(dict[str, ca.DM], values))
    is_safe = float(outputs["status"]) in controller.safe_statuses
    return _column(outputs["u"]) if is_safe else otherwise


def _column(values: ca.DM) -> NDArray[np.float64]:
    return np.asarray(ca.DM(values).full(), dtype=float).ravel()
