"""Rows of tasks that heavier tasks, or levels before theirs, leave no freedom.

A posture of weight 1e-3 beside the pose of a hand of weight 1 is met as far as the hand leaves it:
its error is no fault of the controller. A row is secondary where a combination of it with others of
its weight is, at every pose of the model's samples, one of heavier rows too: those decide it. With
`S` the rows of its weight, `H` the heavier ones, as maps of the actuator forces within constraints
and contacts, and `Z = null(H)`, these are the rows with an entry in `null((S Z)ᵀ)` without
`null(Sᵀ)`.
"""

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.inverse_dynamics.call_inputs import call_inputs
from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.tasks.task import HEAVIER

Array = NDArray[np.float64]

POSES = 3
"""Poses of the model's samples at which rows are compared."""

DEPENDENT = 1e-6
"""Singular value of rows of unit length that counts as zero, and entry that counts as one."""


def secondary_rows(setup: Setup, inspect: ca.Function, z0: Array) -> tuple[str, ...]:
    """Return the names of these rows.

    Args:
        setup: the options.
        inspect: `inspection_fun` of the controller.
        z0: its initial state.
    """
    names = [f"{t.name}.{row}" for t in setup.tasks for row in t.components(setup.system)]
    weight = np.concatenate([gains.weight for gains in setup.gains]) if setup.tasks else np.ones(0)
    rank = _ranks(setup, weight)
    if not len(names) or rank.min() * HEAVIER > rank.max():
        return ()
    found = np.ones(len(names), dtype=bool)
    for q, _ in setup.system.scales.states[:POSES]:
        found &= _dependent(_task_map(setup, inspect, z0, q), rank)
    return tuple(name for name, each in zip(names, found, strict=True) if each)


def _ranks(setup: Setup, weight: Array) -> Array:
    """Return the weight of each row, that of a level far above those of the levels after it."""
    if not setup.levels:
        return weight
    level = {name: k for k, names in enumerate(setup.levels) for name in names}
    rows = [(t.name, len(t.components(setup.system))) for t in setup.tasks]
    return np.concatenate([np.full(n, HEAVIER ** (2 * -level[name])) for name, n in rows])


def _task_map(setup: Setup, inspect: ca.Function, z0: Array, q: Array) -> Array:
    """Return (rows, nu) the tasks' accelerations by the actuator forces at a pose at rest."""
    given = call_inputs(setup, z0, q, np.zeros(setup.system.nv), None, {})
    read = {name: value for name, value in given.items() if name in inspect.name_in()}
    values = inspect(**read, x=np.zeros(inspect.numel_in("x")))
    return np.array(values["task_map"])


def _dependent(task_map: Array, rank: Array) -> NDArray[np.bool_]:
    """Return the rows that heavier ones decide, at one pose."""
    norms = np.linalg.norm(task_map, axis=1, keepdims=True)
    rows = task_map / np.where(norms > 0, norms, 1.0)
    found = rank == 0.0
    for each in np.unique(rank[rank > 0]):
        heavier, peers = rank >= HEAVIER * each, (rank >= each) & (rank < HEAVIER * each)
        if not heavier.any():
            continue
        own = rows[peers]
        left = own @ (np.eye(rows.shape[1]) - _projector(rows[heavier].T))
        taken = np.diag(_projector(own) - _projector(left))
        found[peers] |= (taken > DEPENDENT) & (rank[peers] == each)
    return np.asarray(found)


def _projector(columns: Array) -> Array:
    """Return the projector on the range of a matrix."""
    U, values, _ = np.linalg.svd(columns, full_matrices=False)
    basis = U[:, values > DEPENDENT]
    return np.asarray(basis @ basis.T)
