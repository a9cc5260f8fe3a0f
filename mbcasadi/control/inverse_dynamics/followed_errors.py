"""Errors of tasks, bounded by what joints with limits can follow.

A task approaches its reference with the speed `kp e / kd` where its error e is large. What the
joints cannot brake from that speed goes past the reference, and gains that leave a margin for small
errors leave none for large ones. So errors enter as `f e`, with

    kp f |e| / kd  <=  (2 a |e|)^½,

where a is the acceleration that the joints can follow with the braking d that is relied on before
their stops, by default without what servos add to the inertia: with the rows J of a point or a
rotation the least `d_k / |J⁺_ki|` of the joints k, the median over poses and rows.
Errors below `2 a (kd / kp)²`, that is 8 a / kp with critical damping, are as they are. What is fed
back, `kp f e + kd ė`, is no longer than `STRONGEST a`: more would be a matter of the actuators'
limits, which turn its direction, and can hold an arm beside a stop. Rows of a point or of a
rotation are shortened as one vector, others each by itself.

Tasks of a tenth of another one's weight or less are as they are: they choose among the motions that
heavier ones leave, and a posture that pulls less lets a redundant arm come home in another branch.
They also lead far tasks home, see `far_errors.py`.
"""

from dataclasses import replace

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.inverse_dynamics.scales import Followed
from mbcasadi.control.inverse_dynamics.task_stack import TaskStack
from mbcasadi.control.tasks.posture_task import PostureTask
from mbcasadi.control.tasks.task import HEAVIER
from mbcasadi.linalg.scalars import in_scalars

Array = NDArray[np.float64]

VECTOR = 3
"""At most as many rows of one unit are a vector."""

STRONGEST = 3.0
"""Largest acceleration that is fed back, relative to that which joints can be relied on for: about
what the actuators give."""

MOVES = 1e-6
"""Share of the largest entry of J⁺ below which a joint takes no part in a row."""


FAR_SHARE = 0.1
"""Share of the joints' ranges from which an error is far."""


def followed(setup: Setup, J: list[Array]) -> Followed | None:
    """Return what is followed; None where errors are not bounded.

    Args:
        setup: the options.
        J: (k, nv) Jacobians of all tasks at the sampled poses.
    """
    if not setup.bounded_errors:
        return None
    leads, limited = leading_rows(setup), setup.followed
    accelerations = [
        np.inf if np.isnan(each.acceleration) else each.acceleration for each in limited
    ]
    ranges, bounds = [FAR_SHARE * each.range for each in limited], []
    for numbers in (accelerations, ranges):
        of_dofs = np.full(setup.system.nv, np.inf)
        of_dofs[[each.dof for each in limited]] = numbers
        bounds.append(
            [
                _usual([at[rows] for at in J], of_dofs) if leads[rows].any() else np.inf
                for rows in vectors(setup)
            ]
        )
    return Followed(*map(np.array, bounds))


def leading_rows(setup: Setup) -> NDArray[np.bool_]:
    """Return which rows of all tasks have more than a tenth of the heaviest one's weight."""
    weights = np.concatenate([gains.weight for gains in setup.gains])
    return np.asarray(HEAVIER * weights > weights.max())


def _usual(J: list[Array], most: Array) -> float:
    """Return the usual acceleration of these rows whose least motion is within `most` (nv,)."""
    rates = []
    for rows in J:
        taken = np.abs(np.linalg.pinv(rows))
        moves = taken > MOVES * taken.max(initial=0.0)
        each = np.where(moves, most[:, None] / np.where(moves, taken, 1.0), np.inf)
        rates.append(each.min(axis=0, initial=np.inf))
    return float(np.median(rates))


def followed_tasks(setup: Setup, tasks: TaskStack, bounds: Followed | None) -> TaskStack:
    """Return the tasks with bounded errors.

    Args:
        setup: the options.
        tasks: with their errors as they are.
        bounds: from `followed`.
    """
    if bounds is None:
        return tasks
    offset = in_scalars(
        "follow",
        lambda k: [
            k["offset"] + k["feedback"] - _followed_feedback(setup, k, bounds.accelerations)
        ],
        {key: ca.densify(getattr(tasks, key)) for key in USED},
    )[0]
    return replace(tasks, offset=offset)


USED = ("offset", "feedback", "error", "kp", "kd")


def _followed_feedback(setup: Setup, k: dict[str, ca.SX], followed: Array) -> ca.SX:
    """Return `kp f e + kd ė` (k,), shortened where it is too long."""
    feedback = ca.SX(k["feedback"])
    for rows, a in zip(vectors(setup), followed.tolist(), strict=True):
        if not np.isfinite(a):
            continue
        kp, kd = ca.mmax(k["kp"][rows, 0]), ca.mmin(k["kd"][rows, 0])
        pull = k["kp"][rows, 0] * k["error"][rows, 0]
        size = ca.norm_2(k["error"][rows, 0])
        share = at_most(kd * ca.sqrt(2 * a * size), kp * size)
        feedback[rows] -= ca.if_else(kd > 0, 1 - share, 0) * pull
        feedback[rows] *= at_most(STRONGEST * a, ca.norm_2(feedback[rows, 0]))
    return feedback


def at_most(most: ca.SX | float, length: ca.SX) -> ca.SX:
    """Return the factor that shortens a length to the largest one."""
    longer = length > most
    return ca.if_else(longer, most / ca.if_else(longer, length, 1), 1)


def vectors(setup: Setup) -> list[list[int]]:
    """Return the rows that are bounded together."""
    found, first = [], 0
    for task in setup.tasks:
        units = task.units(setup.system)
        for unit in dict.fromkeys(units):
            rows = [first + i for i, own in enumerate(units) if own == unit]
            together = len(rows) <= VECTOR and not isinstance(task, PostureTask)
            found += [rows] if together else [[row] for row in rows]
        first += len(units)
    return found
