"""The input guard: bad inputs never reach the equations, and outputs are bounded.

Comparisons are written so that NaN fails them, and choices as `condition ? a : b`, so that a NaN
that is not chosen has no effect.
"""

import casadi as ca
import numpy as np

from mbcasadi.control.problem import Inputs
from mbcasadi.control.setup import Setup
from mbcasadi.system import System

LARGEST_INPUT = 1e12
"""Inputs whose absolute values add up to more than this count as bad."""

LEAST_QUAT2 = 0.25
"""Quaternions with a smaller squared length count as bad; others are normalised, as in MuJoCo."""

MASK_ON = 0.5
"""Entries of the mask above this are on."""


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
    """Return the inputs that hold the model's authored configuration at rest."""
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
    """Return the reference that holds q at rest."""
    ref = np.zeros(setup.nref)
    for task in setup.tasks:
        for quantity, value in task.present(setup.system, q).items():
            ref[setup.reference[f"{task.name}.{quantity}"]] = value
    return ref


def quaternion_places(system: System) -> list[int]:
    """Return the first row in q of each quaternion."""
    if system.tree is None:
        return []
    shift = {"free": 3, "ball": 0}
    return [j.qpos + shift[j.kind] for j in system.tree.joints if j.kind in shift]


def sanitised_active(z: ca.SX) -> ca.SX:
    """Return -1, 0 or 1 for each entry, whatever it holds."""
    return (z > MASK_ON) - (z < -MASK_ON)


def clamped(u: ca.SX, lower: np.ndarray, upper: np.ndarray) -> ca.SX:
    """Return u, finite and inside its limits, whatever it holds."""
    entries = []
    for i in range(u.numel()):
        entry = ca.if_else(ca.fabs(u[i]) <= LARGEST_INPUT, u[i], 0)
        if np.isfinite(upper[i]):
            entry = ca.fmin(entry, upper[i])
        if np.isfinite(lower[i]):
            entry = ca.fmax(entry, lower[i])
        entries.append(entry)
    return ca.vertcat(u[:0, 0], *entries)
