"""Plans of an outer law beside what then happened, to be drawn over time and over the robot."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop import OuterLaw, Recording
from mbcasadi.validation.metrics.predictions import PATH_POINTS, PlanCurves
from mbcasadi.validation.metrics.recorded_signals import StateComponents, evaluate_points

Array = NDArray[np.float64]
DRAWN = 8  # plans of one run


@dataclass(frozen=True)
class OuterPlans:
    """Some plans of an outer law whose state is that of the plant.

    Attributes:
        names, units: of the rows of the curves, steps of q joint by joint, then v.
        curves: plans from the moments at which they act, and the path of the plant.
        q: (n, N + 1, nq) planned configurations.
        ticks: (n,) of the inner law, at which the plans act.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    curves: PlanCurves
    q: Array
    ticks: NDArray[np.int64]


def outer_plans(outer: OuterLaw | None, recording: Recording, plant: Plant) -> OuterPlans | None:
    """Return plans spread over a run; None without an outer law that plans states of the plant.

    Plans without a solution, and those that would act behind the run, are left out.

    Args:
        outer: after the run.
        recording: of the run.
        plant: of the run.
    """
    if outer is None or recording.ticks < 2:
        return None
    controller, prediction = outer.law.controller, outer.law.controller.prediction
    if prediction is None or not outer.record.keys() >= set(prediction.name_in()):
        return None
    components = StateComponents(controller, recording, plant)
    rows = controller.prediction_rows
    if len(rows) < plant.nq + plant.nv or components.own_rows or not components.names:
        return None
    status = np.ravel(outer.record["status"])
    solved = np.flatnonzero(~np.isin(status, controller.safe_statuses))
    acts = (solved + outer.planner.delay) * outer.every
    solved = solved[acts < recording.ticks]
    if not solved.size:
        return None
    few = solved[np.linspace(0, solved.size - 1, min(DRAWN, solved.size)).astype(int)]
    inputs = {name: np.array(outer.record[name])[few] for name in prediction.name_in()}
    plan = evaluate_points(prediction, inputs)
    ticks = (few + outer.planner.delay) * outer.every
    x = components.select(plan["x"])
    start = components.states_at(np.array([0]))
    period = outer.every * (recording.t[1] - recording.t[0])
    path = np.unique(np.linspace(0, recording.ticks - 1, PATH_POINTS).astype(int))

    def from_start(states: Array) -> Array:
        return components.difference(np.repeat(start, len(states), axis=0), states)

    curves = PlanCurves(
        t=recording.t[ticks, None] + period * np.arange(x.shape[1]),
        x=np.array([from_start(states) for states in x]),
        u=plan["u"],
        path_t=recording.t[path],
        path=from_start(components.states_at(path)),
        u_path=recording.u[path],
    )
    return OuterPlans(components.names, components.units, curves, x[..., : plant.nq], ticks)
