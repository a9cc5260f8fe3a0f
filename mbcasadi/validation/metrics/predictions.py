"""Plans of a controller, compared with what then happened.

At tick k a controller that plans gives states x_k[j] and controls u_k[j], j samples after the
moment at which its control acts; d is the delay that it accounts for:

    e_k[j] = x(k + d + j) ⊖ x_k[j],   e_k[j] = u(k + j) - u_k[j]

x is the state of the plant. `⊖` is MuJoCo's `mj_differentiatePos`: joint by joint, rotations as
rotation vectors, rad. After one sample the error is that of the controller's model; further ahead
it also contains the changes of the plan since.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.description import Controller
from mbcasadi.plant import Plant
from mbcasadi.short_text import summarised
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics.control_metrics import control_names
from mbcasadi.validation.metrics.metric import Metric, named, unit_scale
from mbcasadi.validation.metrics.recorded_signals import StateComponents, evaluate_at_ticks
from mbcasadi.validation.metrics.tracking_metrics import root_mean_square

Array = NDArray[np.float64]
Ticks = NDArray[np.int64]

DRAWN_PLANS = 12
# Points of the path; fewer where each costs an evaluation of the controller's own rows.
PATH_POINTS, OWN_PATH_POINTS = 800, 200
MOST_PLANS = 200  # of one run; spread evenly over a longer one

# Rows that move less than this share of their unit's scale (`unit_scale`) stand still: an error
# over such a motion says nothing.
SMALLEST_MOTION = 1e-5


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


@dataclass(frozen=True)
class PredictionStatistics:
    """Errors of one predicted row; one number for each of `Predictions.lags`, or NaN.

    Attributes:
        name, unit: of the row: `q.`, `v.` and `u.` of a joint or motor, or the controller's own.
        rms, peak: of the error, over the ticks that are compared.
        motion: RMS of the row's displacement in the same time.
        scale: of its unit: 1 rad, the extent of the model, both per second; 1 for other units.
    """

    name: str
    unit: str
    rms: tuple[float, ...]
    peak: tuple[float, ...]
    motion: tuple[float, ...]
    scale: float = 1.0


@summarised
@dataclass(frozen=True)
class Predictions:
    """Plans of a run against what happened.

    Attributes:
        lags: samples ahead: "start", when the control acts; "next", "quarter", "half" and "end" of
            the horizon.
        period: s, from one sample to the next.
        horizon, delay: N and d.
        states, controls: rows of x and of u.
        plans: number of ticks whose plan was compared.
        curves: some of the plans, to be drawn.
    """

    lags: dict[str, int]
    period: float
    horizon: int
    delay: int
    states: tuple[PredictionStatistics, ...]
    controls: tuple[PredictionStatistics, ...]
    plans: int
    curves: PlanCurves

    @checked
    def share(self, lag: int) -> float:
        """Return the error of the states over their motion; NaN where nothing moves.

        `sqrt(Σ rms² / Σ motion²)` over the rows in one unit, then the worst unit: 0 is a perfect
        prediction, 1 no better than to predict that nothing moves. A unit whose rows move by less
        than 1e-5 of its scale, RMS, is left out.
        """
        shares = []
        for unit in {row.unit for row in self.states}:
            rows = [row for row in self.states if row.unit == unit]
            error = np.linalg.norm([row.rms[lag] for row in rows])
            motion = np.linalg.norm([row.motion[lag] for row in rows])
            least = SMALLEST_MOTION * rows[0].scale
            shares += [float(error / motion)] if motion > least else []
        return max(shares, default=float("nan"))

    def to_dict(self) -> dict[str, object]:
        """Return everything but the curves as plain data."""
        rows = {"states": self.states, "controls": self.controls}
        return {
            "samples ahead": self.lags,
            "horizon": self.horizon,
            "delay": self.delay,
            "plans": self.plans,
            **{name: [asdict(row) for row in part] for name, part in rows.items()},
        }


class _Errors(NamedTuple):
    """Error and motion at one lag, (n, rows) each, of the states or of the controls."""

    error: Array
    motion: Array


def predictions(
    controller: Controller, recording: Recording, plant: Plant, settle: float = 0.0
) -> Predictions | None:
    """Return plans against what happened; None where the controller has no valid plan.

    Only plans of ticks without a safe output count, and none of the first d: the controls that
    were pending then are not the controller's own.

    Args:
        controller: has the prediction.
        recording: of the closed loop.
        plant: of the run.
        settle: s at the start that are left out.
    """
    prediction = controller.prediction
    if prediction is None:
        return None
    N, d = int(prediction.size2_out("u")), controller.delay
    components = StateComponents(controller, recording, plant)
    plans = _valid_plans(controller, recording, components, settle)
    if plans is None:
        return None
    lags = ({"start": 0} if d else {}) | {
        "next": 1, "quarter": max(1, N // 4), "half": max(1, N // 2), "end": N
    }  # fmt: skip
    states = [_state_errors(components, plans, lag, d) for lag in lags.values()]
    controls = [_control_errors(recording, components, plans, lag, d) for lag in lags.values()]
    names, units = control_names(controller)
    return Predictions(
        lags=lags,
        period=controller.period,
        horizon=N,
        delay=d,
        states=_statistics(components.names, components.units, states, plant.model),
        controls=_statistics([f"u.{name}" for name in names], units, controls, plant.model),
        plans=int(plans.ticks.size),
        curves=plan_curves(controller, recording, components, plans),
    )


def _valid_plans(
    controller: Controller, recording: Recording, components: StateComponents, settle: float
) -> Plans | None:
    """Return up to `MOST_PLANS` plans without NaN or infinity, spread over the valid ticks."""
    assert controller.prediction is not None
    d = controller.delay
    valid = ~np.isin(recording.status, controller.safe_statuses) & (recording.t >= settle)
    ticks = d + np.flatnonzero(valid[d : max(d, recording.ticks - d - 1)])
    if not ticks.size:
        return None
    ticks = ticks[np.linspace(0, ticks.size - 1, min(MOST_PLANS, ticks.size)).astype(int)]
    plan = evaluate_at_ticks(controller.prediction, recording, ticks)
    finite = np.isfinite(plan["x"]).all(axis=(1, 2)) & np.isfinite(plan["u"]).all(axis=(1, 2))
    if not finite.any():
        return None
    return Plans(ticks[finite], components.select(plan["x"][finite]), plan["u"][finite])


def prediction_metrics(rows: Predictions | None) -> Iterator[Metric]:
    """Yield the relative error at each lag; nothing without predictions."""
    if rows is None:
        return
    for i, name in enumerate(rows.lags):
        share = rows.share(i)
        if np.isfinite(share):
            yield from named({f"prediction.{name}": share})


def _state_errors(components: StateComponents, plans: Plans, lag: int, delay: int) -> _Errors:
    known = plans.ticks + delay + lag < components.known_ticks
    later = components.states_at(plans.ticks[known] + delay + lag)
    return _Errors(
        error=components.difference(plans.x[known, lag], later),
        motion=components.difference(components.states_at(plans.ticks[known]), later),
    )


def _control_errors(
    recording: Recording, components: StateComponents, plans: Plans, lag: int, delay: int
) -> _Errors:
    known = plans.ticks + delay + lag < components.known_ticks
    known &= lag < plans.u.shape[1]  # no control is planned for the last sample
    later = recording.u[plans.ticks[known] + lag]
    plan = plans.u[known, min(lag, plans.u.shape[1] - 1)]
    return _Errors(error=later - plan, motion=later - recording.u[plans.ticks[known]])


def _statistics(
    names: Sequence[str], units: Sequence[str], lags: Sequence[_Errors], model: mujoco.MjModel
) -> tuple[PredictionStatistics, ...]:
    """Return RMS and peak of each row at each lag."""
    return tuple(
        PredictionStatistics(
            name=name,
            unit=unit,
            rms=tuple(root_mean_square(lag.error[:, i]) for lag in lags),
            peak=tuple(
                float(np.abs(lag.error[:, i]).max()) if len(lag.error) else np.nan for lag in lags
            ),
            motion=tuple(root_mean_square(lag.motion[:, i]) for lag in lags),
            scale=unit_scale(model, unit) or 1.0,
        )
        for i, (name, unit) in enumerate(zip(names, units, strict=True))
    )


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
