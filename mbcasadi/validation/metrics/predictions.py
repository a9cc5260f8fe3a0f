"""What a law planned, beside what then happened.

At tick k a law that plans gives states x_k[j] and controls u_k[j], j samples after the moment at
which its control acts; d is the delay that it counts on:

    e_k[j] = x(k + d + j) ⊖ x_k[j],   e_k[j] = u(k + j) - u_k[j]

x is what the plant did. `⊖` is MuJoCo's `mj_differentiatePos`: joint by joint, rotations as
rotation vectors, rad. After one sample the error is that of the law's model; further ahead it also
holds that the law has changed its plan since.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller
from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop.recording import Recording
from mbcasadi.validation.metrics.metrics import Metric
from mbcasadi.validation.metrics.recorded_signals import evaluated
from mbcasadi.validation.metrics.state_components import StateRows

Array = NDArray[np.float64]
Ticks = NDArray[np.int64]

MOST_PLANS = 200  # of one run; a longer one is thinned
FANS = 12  # plans that are drawn
WORDS = {
    "start": "when the control acts",
    "next": "one sample ahead",
    "quarter": "a quarter of the horizon ahead",
    "half": "half the horizon ahead",
    "end": "at the end of the horizon",
}


@dataclass(frozen=True)
class Predicted:
    """How well one row was predicted; one number for each of `Predictions.lags`, or NaN.

    Attributes:
        name, unit: of the row: `q.`, `v.` and `u.` of a joint or motor, or the law's own.
        rms, peak: of the error, over the ticks that are compared.
        moved: RMS of how far the row moved in the same time.
    """

    name: str
    unit: str
    rms: tuple[float, ...]
    peak: tuple[float, ...]
    moved: tuple[float, ...]


@dataclass(frozen=True)
class Fans:
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
class Predictions:
    """Plans of a run against what happened.

    Attributes:
        lags: samples ahead, by the names of `WORDS`.
        period: s, from one sample to the next.
        horizon, delay: N and d.
        states, controls: rows of x and of u.
        plans: number of ticks whose plan was compared.
        fans: some of the plans.
    """

    lags: dict[str, int]
    period: float
    horizon: int
    delay: int
    states: tuple[Predicted, ...]
    controls: tuple[Predicted, ...]
    plans: int
    fans: Fans

    def share(self, lag: int) -> float:
        """Return the error of the states over their motion; NaN where nothing moves.

        `sqrt(Σ rms² / Σ moved²)` over the rows in one unit, then the worst unit: 0 is a perfect
        prediction, 1 no better than to expect that nothing moves.
        """
        shares = []
        for unit in {row.unit for row in self.states}:
            mine = [row for row in self.states if row.unit == unit]
            error = np.linalg.norm([row.rms[lag] for row in mine])
            motion = np.linalg.norm([row.moved[lag] for row in mine])
            shares += [float(error / motion)] if motion > 0 else []
        return max(shares, default=float("nan"))

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the fans as plain data."""
        rows = {"states": self.states, "controls": self.controls}
        return {
            "samples ahead": self.lags,
            "horizon": self.horizon,
            "delay": self.delay,
            "plans": self.plans,
            **{name: [asdict(row) for row in part] for name, part in rows.items()},
        }


def predictions(
    controller: Controller, recording: Recording, plant: Plant, settle: float = 0.0
) -> Predictions | None:
    """Return plans against what happened; None where the law plans nothing, or nothing good.

    Only plans of ticks that did not fall back to a safe output count, and none of the first d: the
    controls that were under way then are not the law's own. Plans before `settle` s are left out.
    """
    if controller.prediction is None:
        return None
    N, d = int(controller.prediction.size2_out("u")), controller.delay
    good = ~np.isin(recording.status, controller.safe_statuses) & (recording.t >= settle)
    able = d + np.flatnonzero(good[d : max(d, recording.ticks - d - 1)])
    if not able.size:
        return None
    ticks = able[np.linspace(0, able.size - 1, min(MOST_PLANS, able.size)).astype(int)]
    rows = StateRows(controller, recording, plant)
    planned = evaluated(controller.prediction, recording, ticks)
    finite = np.isfinite(planned["x"]).all(axis=(1, 2)) & np.isfinite(planned["u"]).all(axis=(1, 2))
    ticks, x, u = ticks[finite], rows.planned(planned["x"][finite]), planned["u"][finite]
    if not ticks.size:
        return None
    lags = ({"start": 0} if d else {}) | {
        "next": 1, "quarter": max(1, N // 4), "half": max(1, N // 2), "end": N
    }  # fmt: skip
    errors = [_errors(rows, recording, ticks, x, u, lag, d) for lag in lags.values()]
    return Predictions(
        lags=lags,
        period=controller.period,
        horizon=N,
        delay=d,
        states=_summed(rows.names, rows.units, [part[:2] for part in errors]),
        controls=_summed(*_controls(controller), [part[2:] for part in errors]),
        plans=int(ticks.size),
        fans=_fans(rows, recording, controller, (ticks, x, u)),
    )


def prediction_metrics(found: Predictions | None) -> Iterator[Metric]:
    """Yield the relative error at each distance."""
    for i, name in enumerate(found.lags if found is not None else ()):
        assert found is not None
        words = f"error of the plan {WORDS[name]}, RMS over the motion in that time, worst unit"
        share = found.share(i)
        if np.isfinite(share):
            yield Metric(f"prediction.{name}", share, "", words)


def _controls(controller: Controller) -> tuple[tuple[str, ...], tuple[str, ...]]:
    signal = next((s for s in controller.outputs if s.name == "u"), None)
    count = controller.u_min.size
    if signal is None or len(signal.components) != count:
        return tuple(f"u.{i}" for i in range(count)), ("",) * count
    return tuple(f"u.{name}" for name in signal.components), signal.units


def _errors(
    rows: StateRows, recording: Recording, ticks: Ticks, x: Array, u: Array, lag: int, delay: int
) -> tuple[Array, Array, Array, Array]:
    """Return error and motion of the states, then of the controls, (n, rows) each."""
    there = ticks + delay + lag < rows.known
    then = rows.actual(ticks[there] + delay + lag)
    moved = rows.step(rows.actual(ticks[there]), then)
    planned = there & (lag < u.shape[1])
    acted = recording.u[ticks[planned] + lag]
    wanted = u[planned, min(lag, u.shape[1] - 1)]
    return (
        rows.step(x[there, lag], then),
        moved,
        acted - wanted,
        acted - recording.u[ticks[planned]],
    )


def _summed(
    names: tuple[str, ...], units: tuple[str, ...], parts: list[Any]
) -> tuple[Predicted, ...]:
    """Return RMS and peak of each row at each lag."""
    return tuple(
        Predicted(
            name,
            unit,
            tuple(_rms(error[:, i]) for error, _ in parts),
            tuple(float(np.abs(error[:, i]).max()) if len(error) else np.nan for error, _ in parts),
            tuple(_rms(moved[:, i]) for _, moved in parts),
        )
        for i, (name, unit) in enumerate(zip(names, units, strict=True))
    )


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2))) if values.size else float("nan")


def _fans(
    rows: StateRows, recording: Recording, controller: Controller, plans: tuple[Ticks, Array, Array]
) -> Fans:
    ticks, x, u = plans
    chosen = np.linspace(0, len(ticks) - 1, min(FANS, len(ticks))).astype(int)
    start = rows.actual(np.array([0]))
    late, period = controller.delay, controller.period
    samples = np.arange(x.shape[1])
    most = MOST_PLANS if rows.own else 4 * MOST_PLANS
    path = np.unique(np.linspace(0, recording.ticks - 2, most).astype(int))
    happened = rows.actual(path)

    def from_start(states: Array) -> Array:
        return rows.step(np.repeat(start, len(states), axis=0), states)

    return Fans(
        t=recording.t[ticks[chosen], None] + period * (late + samples),
        x=np.array([from_start(x[i]) for i in chosen]),
        u=u[chosen],
        path_t=recording.t[path],
        path=from_start(happened),
        u_path=recording.u[np.maximum(path - late, 0)],
    )
