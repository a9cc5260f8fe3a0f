"""Tasks that are far from their references: light postures damp them, and lead them home.

Where a task cannot get, beyond reach or behind a stop, it still pulls as much as joints follow.
That throws an arm from branch to branch, and holds it in one whose way home a stop closes. The
error e of a point or a rotation is far where it is longer than FAR, what joints do within
`FAR_SHARE` of their ranges: the least `FAR_SHARE range_k / |J⁺_ki|`, the median over poses and
rows. With e_home, the error in the pose that light postures desire (of a tenth of the heaviest
task's weight or less) and, for what lags behind a reference is not lost, LAG of its rate,

    s = min(1, FAR / |e|),    h = min(1, max(LED FAR, |e_home|) / |e|),

both the least of a task's points and rotations, the task's weight w, beside the largest weight l of
these postures, is the smaller one of

    max(w s⁴, 10 l),    max(w h⁴, l / 100),

and the pull `kp e` of these postures is multiplied by `max(s⁴, 1 - h⁴)`. So a far task is damped,
as a Levenberg-Marquardt step by its error [Sugihara, IEEE Trans. Robotics 27(5), 2011], and gets
where it can, since postures do not pull against it (h = 1). Where their pose is nearer to the
reference than the present one they lead: stops are a box, in which nothing holds a posture back.
With levels, and without such postures, tasks are as they are.
"""

from dataclasses import replace

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.inverse_dynamics.followed_errors import (
    at_most,
    leading_rows,
    vectors,
)
from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.inverse_dynamics.scales import Followed
from mbcasadi.control.inverse_dynamics.task_stack import TaskStack
from mbcasadi.control.tasks.posture_task import PostureTask, desired_pose
from mbcasadi.control.tasks.task import HEAVIER, own_slices
from mbcasadi.control.tick.instant import Instant
from mbcasadi.linalg.scalars import in_scalars

Array = NDArray[np.float64]

LED = 0.3
"""Share of FAR from which postures may lead."""

LIGHTEST = 0.01
"""Least weight of a task that postures lead, relative to theirs."""


LAG = 0.1
"""s."""


def far_tasks(setup: Setup, tasks: TaskStack, bounds: Followed | None) -> TaskStack:
    """Return the tasks with the weights and the pulls of postures that hold for far errors.

    Args:
        setup: the options.
        tasks: with their weights as they are.
        bounds: what joints follow; None where nothing is bounded.
    """
    light = _postures(setup)
    if bounds is None or not light:
        return tasks
    offset, weight = in_scalars(
        "far",
        lambda k: _far(setup, k, bounds.near, [row for _, rows in light for row in rows]),
        {key: ca.densify(getattr(tasks, key)) for key in USED},
    )
    return replace(tasks, offset=offset, weight=weight)


USED = ("offset", "error", "home_error", "kp", "weight")


def _far(setup: Setup, k: dict[str, ca.SX], near: Array, light: list[int]) -> list[ca.SX]:
    """Return offsets and weights (k,); light: the rows of postures."""
    offset, weight, pull = ca.SX(k["offset"]), ca.SX(k["weight"]), ca.SX(1)
    least = ca.mmax(weight[light, 0])
    for rows in _rows(setup):
        own = [
            (at, length)
            for at, length in zip(vectors(setup), near.tolist(), strict=True)
            if at[0] in rows and np.isfinite(length)
        ]
        if not own:
            continue
        far = [ca.norm_2(k["error"][at, 0]) for at, _ in own]
        home = [ca.norm_2(k["home_error"][at, 0]) for at, _ in own]
        bounds = [length for _, length in own]
        s = _least([at_most(b, e) for b, e in zip(bounds, far, strict=True)])
        h = _least(
            [at_most(ca.fmax(LED * b, x), e) for b, x, e in zip(bounds, home, far, strict=True)]
        )
        w = weight[rows, 0]
        damped = ca.fmax(w * s**4, ca.fmin(HEAVIER * least, w))
        weight[rows] = ca.fmin(damped, ca.fmax(w * h**4, ca.fmin(LIGHTEST * least, w)))
        pull = ca.fmin(pull, ca.fmax(s**4, 1 - h**4))
    offset[light] += (1 - pull) * k["kp"][light, 0] * k["error"][light, 0]
    return [offset, weight]


def _least(values: list[ca.SX]) -> ca.SX:
    return ca.mmin(ca.vertcat(*values))


def home_error(setup: Setup, now: Instant) -> ca.SX:
    """Return e_home of all tasks (k,); nothing where it is not read."""
    light = _postures(setup)
    if not setup.bounded_errors or not light:
        return ca.SX(0, 1)
    system, q, v = setup.system, now.q, now.v
    ref = {name: now.ref[place, 0] for name, place in now.slices.items()}
    for task, _ in light:
        q = desired_pose(task, system, q, own_slices(task, system, ref)["q"])
    there = [task.residual(system, q, v, own_slices(task, system, ref)) for task in setup.tasks]
    return ca.vertcat(*(ca.sqrt(each.error**2 + (LAG * each.v_ref) ** 2) for each in there))


def _rows(setup: Setup) -> list[list[int]]:
    """Return the rows of each task."""
    ends = np.cumsum([len(gains.weight) for gains in setup.gains]).tolist()
    return [list(range(a, b)) for a, b in zip([0, *ends], ends, strict=False)]


def _postures(setup: Setup) -> list[tuple[PostureTask, list[int]]]:
    """Return the postures that do not lead, and their rows; none with levels."""
    if setup.levels:
        return []
    leads = leading_rows(setup)
    return [
        (task, rows)
        for task, rows in zip(setup.tasks, _rows(setup), strict=True)
        if isinstance(task, PostureTask) and not leads[rows].any()
    ]
