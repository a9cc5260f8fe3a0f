"""One validated run: what was asked, what was measured, what it means."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from mbcasadi.codegen import TickTimes
from mbcasadi.description import Controller
from mbcasadi.validation.closed_loop.recording import Recording
from mbcasadi.validation.metrics.comparison import Comparison
from mbcasadi.validation.metrics.criteria import Verdict
from mbcasadi.validation.metrics.margins import Margin
from mbcasadi.validation.metrics.metrics import Metric, Tracked
from mbcasadi.validation.metrics.outer_law_metrics import OuterRun
from mbcasadi.validation.metrics.predictions import Predictions
from mbcasadi.validation.metrics.softness import Softness
from mbcasadi.validation.metrics.status_metrics import StatusRow, status_rows
from mbcasadi.validation.run.conditions import WhatIf


@dataclass(frozen=True)
class Run:
    """One closed loop of a controller's generated C and MuJoCo.

    Attributes:
        name: heading in the report.
        controller: as data.
        settings: what was asked for, in words or numbers, in order.
        recording: all ticks.
        comparison: our dynamics beside MuJoCo's, where the model has equality constraints.
        times: of single ticks of the C.
        tracked: each component of the tasks.
        metrics, verdicts: numbers, and the criteria on them.
        margins: each bounded control, and each row that the law keeps between limits.
        predictions: what the law planned beside what happened, where it plans.
        softness: the sweep, where it was asked for.
        what_if: what delay and model error cost, where it was asked for.
        outer: what a slower law above did, where there is one.
        frames: PNG pictures of the motion, with `frame_times` in s.
        notes: what the reader should know: something not compared, no renderer, a divergence.
    """

    name: str
    controller: Controller
    settings: dict[str, Any]
    recording: Recording
    metrics: tuple[Metric, ...]
    verdicts: tuple[Verdict, ...]
    tracked: tuple[Tracked, ...] = ()
    comparison: Comparison | None = None
    times: TickTimes | None = None
    margins: tuple[Margin, ...] = ()
    predictions: Predictions | None = None
    softness: Softness | None = None
    what_if: WhatIf | None = None
    outer: OuterRun | None = None
    frames: tuple[bytes, ...] = ()
    frame_times: tuple[float, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def passed(self) -> bool:
        """Whether every criterion held."""
        return all(verdict.passed for verdict in self.verdicts)

    def metric(self, name: str) -> float:
        """Return the value of a metric, NaN where the run does not have it."""
        return next((m.value for m in self.metrics if m.name == name), math.nan)

    @property
    def statuses(self) -> dict[str, int]:
        """How often the controller answered with each status, in words."""
        return {row.words: row.ticks for row in self.status_rows}

    @property
    def status_rows(self) -> tuple[StatusRow, ...]:
        """Each status that occurred: how often, since when, how long at a stretch."""
        return status_rows(self.controller, self.recording)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the recording as plain data."""
        return {
            "name": self.name,
            "passed": self.passed,
            "settings": self.settings,
            "criteria": [asdict(verdict) for verdict in self.verdicts],
            "metrics": {m.name: {"value": m.value, "unit": m.unit} for m in self.metrics},
            "components": [asdict(row) for row in self.tracked],
            "status": self.statuses,
            "statuses": [asdict(row) for row in self.status_rows],
            "margins": [asdict(row) for row in self.margins],
            "predictions": None if self.predictions is None else self.predictions.to_dict(),
            "softness": None if self.softness is None else asdict(self.softness),
            "outer": None if self.outer is None else self.outer.to_dict(),
            "what_if": None if self.what_if is None else self.what_if.to_dict(),
            "notes": list(self.notes),
        }
