"""An outer law in a run: its statuses, and the time of its ticks over its own period."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from mbcasadi.codegen import TickTimes
from mbcasadi.validation.closed_loop import OuterLaw
from mbcasadi.validation.metrics.metric import Metric
from mbcasadi.validation.metrics.status_metrics import (
    SafeOutputs,
    StatusRow,
    safe_outputs,
    status_rows,
)


@dataclass(frozen=True)
class OuterLawRun:
    """An outer law over a run.

    Attributes:
        name: of the law.
        period: s, of its ticks.
        status_rows: each status that occurred.
        safe_outputs: how often it fell back to its safe output.
        times: of its ticks in C.
    """

    name: str
    period: float
    status_rows: tuple[StatusRow, ...]
    safe_outputs: SafeOutputs
    times: TickTimes

    def to_dict(self) -> dict[str, object]:
        """Return everything but the times as plain data."""
        rows = [asdict(row) for row in self.status_rows]
        return {"name": self.name, "period": self.period, "statuses": rows}


def outer_law_run(outer: OuterLaw, inner_period: float) -> OuterLawRun:
    """Return the run of an outer law since its `reset`; `inner_period` in s."""
    controller, period = outer.law.controller, outer.every * inner_period
    status = np.ravel(outer.record["status"]).astype(np.int64)
    return OuterLawRun(
        name=controller.name,
        period=period,
        status_rows=status_rows(controller, status, np.arange(status.size, dtype=float) * period),
        safe_outputs=safe_outputs(controller, status),
        times=outer.times(),
    )


def outer_law_metrics(run: OuterLawRun | None) -> Iterator[Metric]:
    """Yield failures and times of the outer law; nothing where there is none."""
    if run is None:
        return
    meaning = "share of the outer law's ticks that fell back to a safe output"
    yield Metric("outer.safe_output", run.safe_outputs.share, "", meaning)
    meaning = "longest run of the outer law's ticks with a safe output"
    yield Metric("outer.longest_failure", float(run.safe_outputs.longest), "ticks", meaning)
    meaning = "time of one tick of the outer law in C, 99th percentile"
    yield Metric("outer.time", run.times.p99, "s", meaning)
    yield Metric("outer.share", run.times.p99 / run.period, "", f"{meaning}, over its period")
