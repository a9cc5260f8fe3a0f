"""Advice on gains, by the margins of a task's loop with the known period and delay."""

from collections.abc import Container, Iterator

import numpy as np

from mbcasadi.control import InverseDynamicsQP, propose_gains
from mbcasadi.control.inverse_dynamics.proposed_gains import task_loop
from mbcasadi.control.margins.loop_margins import loop_margins
from mbcasadi.description import Controller
from mbcasadi.validation.run.servo_plant import Controlled

HIGHER = 1.5
"""Ratio of the stiffness that period and delay permit to a task's, from which it is reported."""

USUAL_MARGIN = 2.0
"""Factor that the inertia may be wrong by, below which gains are called too high."""


def gain_advice(
    given: Controlled, controller: Controller, delay: int, of_tasks: Container[str] | None = None
) -> Iterator[str]:
    """Yield a sentence on each task whose gains are too high, or could be higher.

    Args:
        given: the law; only an `InverseDynamicsQP` has gains of tasks.
        controller: its data, for the period.
        delay: ticks from a measurement to the moment at which its control acts.
        of_tasks: names of the tasks of which low gains are said; None for all.
    """
    if not isinstance(given, InverseDynamicsQP):
        return
    best = propose_gains(controller.period, delay=delay)
    where = f"a period of {1e3 * controller.period:.3g} ms" + (
        f" and a delay of {delay} tick{'s' * (delay > 1)}" if delay else ""
    )
    bounds = f"up to {_gains(best.kp, best.kd)} where the motors have no lag"
    for task, gains in zip(given.tasks, given.gains, strict=True):
        if not np.any(gains.kp > 0):
            continue
        row = int(np.argmax(gains.kp))
        kp, kd = float(gains.kp[row]), float(gains.kd[row])
        own = f"task '{task.name}' ({_gains(kp, kd)})"
        bandwidth = float(np.sqrt(kp))
        loop = task_loop(controller.period, delay, 0.0, (bandwidth, kd / (2 * bandwidth)), None)
        margin = loop_margins(loop)
        if margin is None:
            yield f"lower the gains of {own}: with {where} its loop is unstable; use {bounds}"
        elif margin.together.strongest < USUAL_MARGIN:
            yield (
                f"lower the gains of {own}: with {where} its loop tolerates only "
                f"{margin.together.strongest:.2g} times these gains; a usual margin leaves {bounds}"
            )
        elif best.kp > HIGHER * kp and (of_tasks is None or task.name in of_tasks):
            yield (
                f"the gains of {own} may be raised: with {where} {bounds}; a steady error is "
                "inversely proportional to kp"
            )


def _gains(kp: float, kd: float) -> str:
    return f"kp = {_number(kp)} 1/s², kd = {_number(kd)} 1/s"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"
