"""Inputs of an estimator from a log: one tick after the other, on one grid of times.

Sensors of white noise density are increments over a tick: the mean of what was sampled in it. Of
others the last sample in the tick counts; without one the sensor is not valid. What acted during a
tick (u, f, p) is held from its beginning, a mask at its end.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.description import Signal
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.estimation.estimator import Estimator
from mbcasadi.estimation.logs import SensorLog
from mbcasadi.shapes import require_name, require_positive
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Channel:
    """A channel of a log in other units, or with another sign or zero: `scale x + offset`.

    Attributes:
        name: of the channel.
        scale: that its values are multiplied by.
        offset: added then.
    """

    name: str
    scale: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        require_fields(self)


@summarised
@dataclass(frozen=True)
class LoggedInputs:
    """Inputs of an estimator, one row for each tick.

    Attributes:
        t: (n,) times of the ticks, s.
        inputs: by name, (n, size) each; all but z.
    """

    t: Array
    inputs: Mapping[str, Array]

    def _summary(self) -> dict[str, object]:
        return {"ticks": self.t.size, "inputs": list(self.inputs)}


OF_A_TICK = ("z", "valid", "dt")
"""Inputs that are in no log."""


class _Ticks(NamedTuple):
    """Times of ticks, and at the beginning of each."""

    end: Array
    begin: Array


@checked
def logged_inputs(
    estimator: Estimator,
    log: SensorLog,
    *,
    channels: Mapping[str, str | Channel] | None = None,
    period: float | None = None,
) -> LoggedInputs:
    """Return the inputs of an estimator from a log.

    Where all channels of its sensors have the same times there is a tick at each of them, the first
    one a period long; else one at each period, as long as all channels last. A grid that is finer
    than the samples makes ticks without: their sensors are not valid.

    Args:
        estimator: whose sensors are in the log.
        log: of the robot.
        channels: component of the inputs y, u, f, mask or p → channel, by the component's name or
            as "u.crank" where several inputs have one of that name. Those that are left out have
            channels of these names. Contacts without a channel count as standing, parameters
            without one have the model's numbers, and samples without "age.crank" came in time.
        period: s; None for the log's own times, or the estimator's period.

    Raises:
        UnknownNameError: a component without a channel, or no such component.
        ProblemError: a component that several inputs have; channels that have no time in common,
            or no number at all; a rate that is far from the estimator's, as in another unit.
    """
    signals = {s.name: s for s in estimator.inputs if s.name not in OF_A_TICK}
    chosen = _chosen(signals, channels or {})
    if period is not None:
        require_positive(period=period)
    read = {
        name: [_samples(log, chosen[name, c]) for c in s.components] for name, s in signals.items()
    }
    _require_samples(dict(zip(signals["y"].components, read["y"], strict=True)), estimator.period)
    ticks = _ticks([pair for pair in read["y"] if pair], period, estimator.period)
    inputs = {"y": _sensed(estimator, read["y"], ticks)}
    inputs["valid"] = np.ones((ticks.end.size, len(_signal(estimator, "valid").components)))
    for sensor in estimator.sensors:
        there = ~np.isnan(inputs["y"][:, list(sensor.rows)]).any(axis=1)
        inputs["valid"][:, sensor.valid] *= there
    inputs["dt"] = (ticks.end - ticks.begin)[:, None]
    for name in set(signals) - {"y"}:
        at = ticks.end if name in ("mask", "age") else ticks.begin
        least = _otherwise(estimator, signals[name])
        inputs[name] = np.column_stack(
            [_held(pair, at, x) for pair, x in zip(read[name], least, strict=True)]
        )
    return LoggedInputs(ticks.end, inputs)


def _signal(estimator: Estimator, name: str) -> Signal:
    return next(s for s in estimator.inputs if s.name == name)


class _Source(NamedTuple):
    """Where a component comes from: names that are tried, and whether one of them has to be."""

    component: str
    channels: tuple[Channel, ...]
    needed: bool


def _chosen(
    signals: Mapping[str, Signal], channels: Mapping[str, str | Channel]
) -> dict[tuple[str, str], _Source]:
    """Return (signal, component) → its source."""
    owners: dict[str, list[str]] = {}
    for name, signal in signals.items():
        for component in signal.components:
            owners.setdefault(component, [])
            if name != "age":  # whose components have the names of sensors
                owners[component].append(name)
    whole = [f"{name}.{c}" for name, signal in signals.items() for c in signal.components]
    for key in channels:
        require_name("component of the inputs", key, [*owners, *whole])
        if len(owners.get(key, ())) > 1:
            raise ProblemError(
                f"'{key}' is a component of {' and '.join(owners[key])}; expected one of "
                + ", ".join(f"'{name}.{key}'" for name in owners[key])
            )
    chosen = {}
    for name, signal in signals.items():
        for component in signal.components:
            alone = owners[component] == [name]
            keys = [f"{name}.{component}", component][: 2 if alone else 1]
            given = [channels[key] for key in keys if key in channels]
            needed = bool(given) or name in ("y", "u", "f")
            tried = [Channel(c) if isinstance(c, str) else c for c in given[:1] or keys]
            chosen[name, component] = _Source(keys[0], tuple(tried), needed)
    return chosen


def _samples(log: SensorLog, source: _Source) -> tuple[Array, Array] | None:
    """Return times and values of a component; None for one that may be left out.

    Raises:
        UnknownNameError: there is none, and it is needed.
    """
    failed = ""
    for channel in source.channels:
        try:
            t, x = log.samples(channel.name)
        except UnknownNameError as error:
            failed = str(error.args[0])
            continue
        return t, channel.scale * x + channel.offset
    if source.needed:
        raise UnknownNameError(
            f"{failed}; channels={{'{source.component}': ...}}, in a file "
            "[estimation.log.channels], says which one it is"
        )
    return None


def _require_samples(read: Mapping[str, tuple[Array, Array] | None], usual: float) -> None:
    """Raise `ProblemError` unless sensors have samples, about as often as there are ticks."""
    steps = {}
    for name, pair in read.items():
        assert pair is not None  # of y none may be left out
        there = pair[0][~np.isnan(pair[1])]
        if not there.size:
            raise ProblemError(f"the channel of '{name}' has no number; expected samples of it")
        if there.size > 1:
            steps[name] = float(np.median(np.diff(there)))
    fastest = min(steps, key=lambda name: steps[name], default=None)
    if fastest is None:
        return
    step, slowest = steps[fastest], max(usual * MANY, SLOWEST)
    if not usual / MANY <= step <= slowest:
        raise ProblemError(
            f"'{fastest}' has a sample every {step:.3g} s, and no other sensor is faster; expected "
            f"{usual / MANY:.3g} s to {slowest:.3g} s with the estimator's period of {usual:.3g} s;"
            " are the log's times in another unit (unit=1e-9 for nanoseconds)?"
        )


MANY, SLOWEST = 100, 1.0
"""Samples in a tick, or ticks from one sample to the next, at most; s, a slow log in any case."""


def _ticks(sensed: list[tuple[Array, Array]], period: float | None, usual: float) -> _Ticks:
    """Return the times of the ticks."""
    first = sensed[0][0]
    same = all(t.shape == first.shape and np.array_equal(t, first) for t, _ in sensed)
    if same and period is None and first.size:
        return _Ticks(first, np.concatenate([[first[0] - usual], first[:-1]]))
    step = usual if period is None else period
    begin = max((t[0] if t.size else np.inf) for t, _ in sensed)
    end = min((t[-1] if t.size else -np.inf) for t, _ in sensed)
    count = int((end - begin + _rounding(end)) / step) if end > begin else 0
    if count < 1:
        raise ProblemError(
            f"channels of the sensors have less than a period of {step} s in common; expected "
            "samples of all of them over the same time"
        )
    grid = np.asarray(begin + step * np.arange(count + 1), dtype=np.float64)
    return _Ticks(grid[1:], grid[:-1])


def _rounding(t: float) -> float:
    """Return by how much sums of times near t, s, may differ by rounding: also since 1970."""
    return max(1e-9, 4 * float(np.spacing(abs(t))))


def _sensed(estimator: Estimator, read: list[tuple[Array, Array] | None], ticks: _Ticks) -> Array:
    """Return y (n, ny): means of densities, last samples of others, NaN without one."""
    y = np.full((ticks.end.size, len(read)), np.nan)
    means = {row for s in estimator.sensors if s.density for row in s.rows}
    for row, pair in enumerate(read):
        assert pair is not None  # of y none may be left out
        t, x = (array[~np.isnan(pair[1])] for array in pair)
        begin, end = (_count(t, at) for at in (ticks.begin, ticks.end))
        there = end > begin
        if row in means:
            total = np.concatenate([[0.0], np.cumsum(x)])
            y[there, row] = (total[end] - total[begin])[there] / (end - begin)[there]
        else:
            y[there, row] = x[end[there] - 1]
    return y


def _held(pair: tuple[Array, Array] | None, at: Array, otherwise: float) -> Array:
    """Return the last value at or before each time; the first one before all of them."""
    if pair is None or np.all(np.isnan(pair[1])):
        return np.full(at.size, otherwise)
    t, x = pair
    t, x = t[~np.isnan(x)], x[~np.isnan(x)]
    return x[np.maximum(_count(t, at) - 1, 0)]


def _count(t: Array, at: Array) -> NDArray[np.intp]:
    """Return how many of the times t are at or before each time."""
    slack = _rounding(float(np.abs(at).max(initial=0.0)))
    return np.searchsorted(t, at + slack, side="right")


def _otherwise(estimator: Estimator, signal: Signal) -> tuple[float, ...]:
    """Return the values of an input whose channels are left out."""
    if signal.name == "p":
        return estimator.parameters
    return (1.0 if signal.name == "mask" else 0.0,) * len(signal.components)
