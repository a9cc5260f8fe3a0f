"""The Function of what a controller puts out where it cannot run: its checks, and its name in C."""

import casadi as ca

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
