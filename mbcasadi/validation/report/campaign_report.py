"""The cases of a campaign, their outcomes, and the summary."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import TYPE_CHECKING

from mbcasadi.argument_kinds import checked
from mbcasadi.shapes import require_numbers, require_whole
from mbcasadi.short_text import summarised
from mbcasadi.validation.metrics import Metric, Verdict
from mbcasadi.validation.report.plain_data import Plain, package_versions, plain_data
from mbcasadi.validation.report.summary import SummaryRow, summary_rows
from mbcasadi.validation.report.terminal import campaign_table

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Case:
    """One run of a campaign.

    Attributes:
        seed: of the parameter errors and of the initial state.
        perturb: relative parameter errors; each body draws its own within them.
        delay: ticks.
        start_error: rad or m, largest error of each coordinate at the start.
    """

    seed: int
    perturb: Mapping[str, float]
    delay: int
    start_error: float


@checked
def cases(
    seeds: Sequence[int],
    perturbs: Sequence[Mapping[str, float]] = ({},),
    delays: Sequence[int] = (0,),
    start_errors: Sequence[float] = (0.0,),
) -> list[Case]:
    """Return every combination of seeds, errors and delays.

    Args:
        seeds: of the parameter errors and of the initial state.
        perturbs: relative parameter errors by name, as in `validate`.
        delays: ticks.
        start_errors: rad or m, largest error of each coordinate at the start.

    Raises:
        ProblemError: an error of the start that is negative or no number, a delay or a seed that is
            no whole number.
    """
    for delay, seed in product(delays, seeds):
        require_whole(0, delay=delay, seed=seed)
    for start_error in start_errors:
        require_numbers(start_error=start_error)
    return [
        Case(seed, dict(perturb), delay, start_error)
        for perturb in perturbs
        for delay in delays
        for start_error in start_errors
        for seed in seeds
    ]


@summarised
@dataclass(frozen=True)
class Outcome:
    """Metrics, verdicts and events of one case."""

    case: Case
    metrics: tuple[Metric, ...]
    verdicts: tuple[Verdict, ...]
    events: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether every criterion is fulfilled."""
        return all(verdict.passed for verdict in self.verdicts)

    def metric(self, name: str) -> float:
        """Return the value of a metric, NaN where the run does not have it."""
        return next((m.value for m in self.metrics if m.name == name), math.nan)

    def to_dict(self) -> dict[str, object]:
        """Return case and outcome as plain data."""
        return {
            **asdict(self.case),
            "passed": self.passed,
            "metrics": {m.name: m.value for m in self.metrics},
            "failed": [v.metric for v in self.verdicts if not v.passed],
            "events": list(self.events),
        }


@summarised
@dataclass(frozen=True)
class Campaign:
    """All outcomes, in the order of the cases."""

    outcomes: tuple[Outcome, ...]

    def _summary(self) -> dict[str, object]:
        return {"passed": self.passed, "cases": len(self.outcomes)}

    @property
    def passed(self) -> bool:
        """Whether every criterion of every case is fulfilled."""
        return all(outcome.passed for outcome in self.outcomes)

    def summary(self) -> list[SummaryRow]:
        """Return one row for each metric: median, worst case and its index."""
        return summary_rows(
            [outcome.metrics for outcome in self.outcomes],
            [outcome.verdicts for outcome in self.outcomes],
        )

    def to_dict(self) -> dict[str, Plain]:
        """Return everything as plain data that JSON can hold."""
        return plain_data(
            {
                "passed": self.passed,
                "versions": package_versions(),
                "summary": [asdict(row) for row in self.summary()],
                "cases": [outcome.to_dict() for outcome in self.outcomes],
            }
        )

    def to_json(self) -> str:
        """Return the campaign as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    def table(self) -> "Table":
        """Return the summary as a `rich` table.

        Raises:
            MissingExtraError: rich is not installed.
        """
        passed = sum(outcome.passed for outcome in self.outcomes)
        return campaign_table(f"{passed} of {len(self.outcomes)} runs passed", self.summary())
