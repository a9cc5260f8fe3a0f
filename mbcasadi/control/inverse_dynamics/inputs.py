"""Bad inputs never reach the equations, and nothing unbounded leaves them.

Comparisons are written so that NaN fails them, and choices as `condition ? a : b`, so that a NaN
that is not chosen has no effect.
"""

import casadi as ca
import numpy as np

from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.inverse_dynamics.problem import Inputs
from mbcasadi.qp.input_guard import LARGEST_INPUT, LEAST_QUAT2, MASK_ON
from mbcasadi.system.coordinates import quaternion_places


def guarded(setup: Setup, raw: dict[str, ca.SX]) -> tuple[Inputs, ca.SX]:
    """Return inputs that are safe to compute with, and 1 where they are the given ones.

    Bad inputs (NaN, infinite, degenerate quaternions) are replaced by the model's authored
    configuration at rest, all contacts on.
    """
    system = setup.system
    nominal = nominal_inputs(setup)
    size = ca.SX(0)
    for name, value in raw.items():
        if name != "z":
            size = size + ca.sum1(ca.fabs(value))
    valid = size <= LARGEST_INPUT
    for place in quaternion_places(system):
        valid = ca.logic_and(valid, ca.sumsqr(raw["q"][place : place + 4]) >= LEAST_QUAT2)
    safe = {
        name: ca.densify(ca.if_else(valid, value, nominal[name]))
        for name, value in raw.items()
        if name != "z"
    }
    q = ca.SX(safe["q"])
    for place in quaternion_places(system):
        quat = q[place : place + 4]
        q[place : place + 4] = quat / ca.sqrt(ca.sumsqr(quat))
    return Inputs(q, safe["v"], safe.get("act"), safe["ref"], safe["mask"] > MASK_ON), valid


def nominal_inputs(setup: Setup) -> dict[str, ca.DM]:
    """Return inputs that ask to rest at the model's authored configuration."""
    system = setup.system
    q0 = np.zeros(system.nq) if system.tree is None else np.asarray(system.tree.q0, dtype=float)
    return {
        "q": ca.DM(q0),
        "v": ca.DM.zeros(system.nv),
        "act": ca.DM.zeros(system.na),
        "ref": ca.DM(reference_at(setup, q0)),
        "mask": ca.DM.ones(len(setup.mask_names)),
    }


def reference_at(setup: Setup, q: np.ndarray) -> np.ndarray:
    """Return the reference that asks to stay at q, at rest."""
    ref = np.zeros(setup.nref)
    for task in setup.tasks:
        for quantity, value in task.present(setup.system, q).items():
            ref[setup.reference[f"{task.name}.{quantity}"]] = value
    return ref
