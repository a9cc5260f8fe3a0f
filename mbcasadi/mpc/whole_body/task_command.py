"""The command of a walking robot whose hands have tasks: references over the horizon of a plan."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.mpc.whole_body.plan_functions import task_slots
from mbcasadi.mpc.whole_body.whole_body_mpc import WholeBodyMPC
from mbcasadi.shapes import column, real_array, require_numbers
from mbcasadi.unknown_names import require_name

Array = NDArray[np.float64]
TaskReference = Callable[[float], Mapping[str, ArrayLike]]
"""time, s → slices of a task's reference by quantity: `position`, `velocity`, `quaternion`, …"""


@checked
def task_command(
    mpc: WholeBodyMPC, t: float, walk: ArrayLike, references: Mapping[str, TaskReference]
) -> Array:
    """Return the command at a time: that of the walk, then references of tasks, sample by sample.

    The first sample of a plan is when it acts, `delay` periods after its measurement. Positions in
    a plan are half an interval ahead of rates, and so are their references; at the time of the
    rates the hand would be late by half an interval.

    Args:
        mpc: made with `tasks`.
        t: of the measurement, s.
        walk: (3,) speed along x and y, m/s, and turn, rad/s; heights of uneven ground behind them.
        references: task's name → reference at a time. What it leaves out, or a task that is not
            named, is held as at the pose in which the robot stands.

    Raises:
        UnknownNameError: a task or a quantity that there is not.
        ShapeError: a wrong number of entries.
    """
    require_numbers(t=t)
    ocp, tasks = mpc.plan.ocp, {task.name: task for task in mpc.tasks}
    system = mpc.law.system
    q0 = mpc.u0[: system.nq]
    slots = task_slots(system, mpc.tasks)
    own = mpc.references.numel_in("command") - (ocp.horizon + 1) * sum(s.size for s in slots)
    for name in references:
        require_name("task", name, [*tasks])
    held: dict[str, ArrayLike] = {
        f"{task.name}.{key}": real_array(key, value)
        for task in mpc.tasks
        for key, value in task.hold_reference(system, q0).items()
    }
    entries = [column("walk", walk, own)]
    lengths = np.diff(ocp.times, append=2 * ocp.times[-1] - ocp.times[-2])
    for time, length in zip(t + mpc.delay * ocp.period + ocp.times, lengths, strict=True):
        rates = held | _values(references, float(time), [*held])
        places = held | _values(references, float(time + length / 2), [*held])
        for slot in slots:
            values = rates if any("/s" in unit for unit in slot.units) else places
            entries.append(column(slot.name, values[slot.name], slot.size))
    return np.concatenate(entries)


def _values(
    references: Mapping[str, TaskReference], time: float, known: Sequence[str]
) -> dict[str, ArrayLike]:
    """Return the slices of all references at a time, s.

    Raises:
        UnknownNameError: a slice that is not known.
    """
    values = dict[str, ArrayLike]()
    for name, reference in references.items():
        for key, value in reference(time).items():
            require_name("slice", f"{name}.{key}", known)
            values[f"{name}.{key}"] = value
    return values
