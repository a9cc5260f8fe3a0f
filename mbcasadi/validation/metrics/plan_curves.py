"""Some plans of a run, and what then happened, as curves to be drawn."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics.state_components import StateComponents

Array = NDArray[np.float64]
Ticks = NDArray[np.int64]

DRAWN_PLANS = 12
# Points of the path; fewer where each costs an evaluation of the controller's own rows.
PATH_POINTS, OWN_PATH_POINTS = 800, 200


class Plans(NamedTuple):
    """Ticks (n,), and their planned states (n, N + 1, rows) and controls (n, N, nu)."""

    ticks: Ticks
    x: Array
    u: Array


@dataclass(frozen=True)
class PlanCurves:
    """Plans to draw, in the rows of the states; configurations as steps from the start.

    Attributes:
        t: (n, N + 1) s.
        x, u: (n, N + 1, rows), (n, N, nu).
        path_t, path, u_path: (m,), (m, rows), (m, nu) what happened.
    """

    t: Array
    x: Array
    u: Array
    path_t: Array
    path: Array
    u_path: Array


def plan_curves(
    controller: Controller, recording: Recording, components: StateComponents, plans: Plans
) -> PlanCurves:
    """Return up to `DRAWN_PLANS` plans and the path of the plant.

    Args:
        controller: has period and delay.
        recording: of the closed loop.
        components: rows in which states are compared.
        plans: all that were compared.
    """
    drawn = np.linspace(0, len(plans.ticks) - 1, min(DRAWN_PLANS, len(plans.ticks))).astype(int)
    start = components.states_at(np.array([0]))
    samples = np.arange(plans.x.shape[1])
    points = OWN_PATH_POINTS if components.own_rows else PATH_POINTS
    path = np.unique(np.linspace(0, recording.ticks - 2, points).astype(int))

    def from_start(states: Array) -> Array:
        return components.difference(np.repeat(start, len(states), axis=0), states)

    t = recording.t[plans.ticks[drawn], None] + controller.period * (controller.delay + samples)
    return PlanCurves(
        t=t,
        x=np.array([from_start(plans.x[i]) for i in drawn]),
        u=plans.u[drawn],
        path_t=recording.t[path],
        path=from_start(components.states_at(path)),
        u_path=recording.u[np.maximum(path - controller.delay, 0)],
    )
