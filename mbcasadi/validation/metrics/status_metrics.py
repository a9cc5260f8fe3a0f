"""The statuses that a controller and its outer law reported, and for how long."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen import TickTimes
from mbcasadi.description import Controller
from mbcasadi.validation.closed_loop import OuterLaw, Recording
from mbcasadi.validation.metrics.metric import Metric, named


@dataclass(frozen=True)
class StatusRow:
    """One status that occurred.

    Attributes:
        text: its meaning.
        safe: u was the safe output.
        ticks, share: how often.
        first: s, time of its first tick.
        longest: ticks of its longest run.
    """

    text: str
    safe: bool
    ticks: int
    share: float
    first: float
    longest: int


class SafeOutputs(NamedTuple):
    """How often a controller fell back to its safe output.

    Attributes:
        share: of all ticks.
        longest: ticks of the longest run of them.
        start: index of the first tick of that run.
    """

    share: float
    longest: int
    start: int


def status_rows(
    controller: Controller, status: NDArray[np.int64], t: NDArray[np.float64]
) -> tuple[StatusRow, ...]:
    """Return a row for each status that occurred, by their codes; none where there is no status.

    Args:
        controller: has the meaning of each code.
        status: (n,) codes.
        t: (n,) s.
    """
    if "status" in controller.unreported:
        return ()
    texts, rows = dict(enumerate(controller.statuses)), []
    for code in np.unique(status):
        equal = status == code
        rows.append(
            StatusRow(
                text=texts.get(int(code), f"status {code}"),
                safe=int(code) in controller.safe_statuses,
                ticks=int(equal.sum()),
                share=float(equal.mean()),
                first=float(t[np.argmax(equal)]),
                longest=longest_run(equal)[0],
            )
        )
    return tuple(rows)


def longest_run(values: NDArray[np.bool_]) -> tuple[int, int]:
    """Return length and first index of the longest run of True; (0, 0) where there is none."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], values, [False]]).astype(int)))
    starts, ends = edges[::2], edges[1::2]
    if not starts.size:
        return 0, 0
    longest = int(np.argmax(ends - starts))
    return int(ends[longest] - starts[longest]), int(starts[longest])


def safe_outputs(controller: Controller, status: NDArray[np.int64]) -> SafeOutputs:
    """Return how often the safe output occurred in (n,) status codes."""
    safe = np.isin(status, controller.safe_statuses)
    return SafeOutputs(float(safe.mean()), *longest_run(safe))


def status_metrics(controller: Controller, recording: Recording) -> Iterator[Metric]:
    """Yield shares of solved ticks and of safe outputs, and the largest self-check residual.

    Nothing is yielded for a controller without a status.
    """
    if "status" in controller.unreported:
        return
    safe = safe_outputs(controller, recording.status)
    solved = (recording.status == 0).mean()
    yield from named({"status.solved": solved, "status.safe_output": safe.share})
    since = f"from {recording.t[safe.start]:g} s" if safe.longest else ""
    yield from named({"status.longest_failure": safe.longest}, note=since)
    yield from named({"status.check": recording.check.max()})


@dataclass(frozen=True)
class OuterLawRun:
    """An outer law over a run.

    Attributes:
        name: of the law.
        period: s, of its ticks.
        status_rows: each status that occurred.
        safe_outputs: how often it fell back to its safe output.
        times: of its ticks in C; None where they were not timed.
        speeds: (nt, 3) that are commanded of the base at each tick of the inner law, m/s, m/s,
            rad/s; None for none.
    """

    name: str
    period: float
    status_rows: tuple[StatusRow, ...]
    safe_outputs: SafeOutputs
    times: TickTimes | None
    speeds: NDArray[np.float64] | None

    def to_dict(self) -> dict[str, object]:
        """Return everything but times and speeds as plain data."""
        rows = [asdict(row) for row in self.status_rows]
        return {"name": self.name, "period": self.period, "statuses": rows}


def outer_law_run(outer: OuterLaw, inner_period: float, *, timed: bool = True) -> OuterLawRun:
    """Return the run of an outer law since its `reset`; `inner_period` in s."""
    controller, period = outer.law.controller, outer.every * inner_period
    status = np.ravel(outer.record["status"]).astype(np.int64)
    return OuterLawRun(
        name=controller.name,
        period=period,
        status_rows=status_rows(controller, status, np.arange(status.size, dtype=float) * period),
        safe_outputs=safe_outputs(controller, status),
        times=outer.times() if timed else None,
        speeds=outer.speeds,
    )


def outer_law_metrics(run: OuterLawRun | None) -> Iterator[Metric]:
    """Yield failures and times of the outer law; nothing where there is none."""
    if run is None:
        return
    values = {
        "outer.safe_output": run.safe_outputs.share,
        "outer.longest_failure": run.safe_outputs.longest,
    }
    if run.times is not None:
        values |= {"outer.time": run.times.p99, "outer.share": run.times.p99 / run.period}
    yield from named(values)
