"""Forces from outside on bodies of the plant."""

from collections.abc import Mapping

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.plant.contacts import frame_index, kinds_of_name
from mbcasadi.real_numbers import described, real_array
from mbcasadi.unknown_names import listed_names, unknown_name

Array = NDArray[np.float64]
WORLD = 0  # index of the world's body


def movable_body(model: mujoco.MjModel, name: str) -> int:
    """Return the index of a body that a force can move.

    Raises:
        UnknownNameError: no such body; the message lists the valid names.
        ProblemError: the body is fixed to the world, or the name is no text.
    """
    if not isinstance(name, str):
        raise ProblemError(f"the name of a body is {described(name)}; expected a text")
    body = frame_index(model, name, "body")
    if body >= 0 and model.body_weldid[body] != WORLD:
        return body
    bodies = [model.body(i) for i in range(model.nbody) if model.body_weldid[i] != WORLD]
    names = [each.name for each in bodies if each.name]
    if body >= 0:
        raise ProblemError(
            f"the body {name!r} is fixed to the world, so that no force moves it; expected one "
            f"of {listed_names(name, names)}"
        )
    raise unknown_name("body", name, names, elsewhere=kinds_of_name(model, name))


def apply_body_forces(
    model: mujoco.MjModel, data: mujoco.MjData, forces: Mapping[str, ArrayLike]
) -> None:
    """Apply forces (3,), N, world axes, at the centres of mass of bodies, and none to the others.

    Raises:
        UnknownNameError, ProblemError: as `movable_body`.
        ShapeError: a force that is not three finite numbers.
    """
    wrenches = np.zeros((model.nbody, 6))  # force, torque
    for name, force in forces.items():
        value = real_array(f"force on {name!r}", force)
        if value.shape != (3,) or not np.isfinite(value).all():
            raise ShapeError(f"the force on {name!r} is {value}; expected three finite numbers, N")
        wrenches[movable_body(model, name), :3] = value
    data.xfrc_applied[:] = wrenches


def external_force(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Return the generalised force (nv,) from outside, `f + Σ Jᵀ F`, at the last evaluation.

    `f` acts on the joints, `F` on a body at its centre of mass, whose Jacobian is `J`.
    """
    total = np.array(data.qfrc_applied)
    for body in np.flatnonzero(data.xfrc_applied.any(axis=1)):
        force, torque = data.xfrc_applied[body, :3], data.xfrc_applied[body, 3:]
        mujoco.mj_applyFT(model, data, force, torque, data.xipos[body], int(body), total)
    return total
