"""The control of a controller that cannot run and has no state."""

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description.controller import Controller


def safe_command(controller: Controller) -> NDArray[np.float64]:
    """Return u (nu,) of a controller that has neither a state nor a measurement, a constant.

    It is that of `Controller.emergency` at z0. Without one it is what the law gives for NaN, where
    its status says that this is the safe output; else zero. It is within the limits.
    """
    emergency, u = controller.emergency, np.zeros(controller.u_min.size)
    if emergency is not None:
        z0 = controller.z0[emergency.first :][: emergency.function.numel_in(0)]
        u = np.asarray(emergency.function(z0, 1)[0]).ravel()
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
    results = f.call([values[name] for name in f.name_in()])
    outputs = {name: np.asarray(x) for name, x in zip(f.name_out(), results, strict=True)}
    is_safe = float(outputs["status"].item()) in controller.safe_statuses
    return outputs["u"].ravel() if is_safe else otherwise
