"""What an outer law did in a run: its answers, and the time of its ticks beside its own period."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mbcasadi.codegen import TickTimes
from mbcasadi.validation.closed_loop.outer_law import OuterLaw
from mbcasadi.validation.metrics.metrics import Metric
from mbcasadi.validation.metrics.status_metrics import StatusRow, fell_back, rows_of


@dataclass(frozen=True)
class OuterRun:
    """An outer law over a run.

    Attributes:
        name: of the law.
        period: s, of its ticks.
        status_rows: each status that occurred.
        failed: share of ticks with a safe output.
        longest_failure: ticks of the longest run of them.
        times: of its ticks in C.
    """

    name: str
    period: float
    status_rows: tuple[StatusRow, ...]
    failed: float
    longest_failure: int
    times: TickTimes

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the times as plain data."""
        rows = [asdict(row) for row in self.status_rows]
        return {"name": self.name, "period": self.period, "statuses": rows}


def outer_run(outer: OuterLaw, inner_period: float) -> OuterRun:
    """Return what an outer law did since `begin`."""
    controller, period = outer.law.controller, outer.every * inner_period
    status = np.ravel(outer.record["status"]).astype(np.int64)
    failed, longest, _ = fell_back(controller, status)
    return OuterRun(
        name=controller.name,
        period=period,
        status_rows=rows_of(controller, status, np.arange(status.size, dtype=float) * period),
        failed=failed,
        longest_failure=longest,
        times=outer.times(),
    )


def outer_metrics(found: OuterRun | None) -> Iterator[Metric]:
    """Yield failures and times of the outer law; nothing where there is none."""
    if found is None:
        return
    words = "share of the outer law's ticks that fell back to a safe output"
    yield Metric("outer.safe_output", found.failed, "", words)
    words = "longest run of the outer law's ticks with a safe output"
    yield Metric("outer.longest_failure", float(found.longest_failure), "ticks", words)
    words = "time of one tick of the outer law in C, 99th percentile"
    yield Metric("outer.time", found.times.p99, "s", words)
    yield Metric("outer.share", found.times.p99 / found.period, "", f"{words}, over its period")
