"""The cases of a campaign, what became of them, and the summary."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mbcasadi.validation.metrics.criteria import LOWER_BOUNDED, Verdict
from mbcasadi.validation.metrics.metrics import Metric
from mbcasadi.validation.report.plain_data import plain, versions
from mbcasadi.validation.report.terminal import campaign_table


@dataclass(frozen=True)
class Case:
    """One run of a campaign.

    Attributes:
        seed: of the parameter errors and of the starting point.
        perturb: relative parameter errors; each body draws its own within them.
        delay: ticks.
        start_error: rad or m, largest error of each coordinate at the start.
    """

    seed: int
    perturb: Mapping[str, float]
    delay: int
    start_error: float


@dataclass(frozen=True)
class Outcome:
    """What became of one case."""

    case: Case
    metrics: tuple[Metric, ...]
    verdicts: tuple[Verdict, ...]
    events: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether every criterion held."""
        return all(verdict.passed for verdict in self.verdicts)

    def metric(self, name: str) -> float:
        """Return the value of a metric, NaN where the run does not have it."""
        return next((m.value for m in self.metrics if m.name == name), float("nan"))


@dataclass(frozen=True)
class Campaign:
    """All outcomes, in the order of the cases."""

    outcomes: tuple[Outcome, ...]

    @property
    def passed(self) -> bool:
        """Whether every criterion of every case held."""
        return all(outcome.passed for outcome in self.outcomes)

    def summary(self) -> list[dict[str, Any]]:
        """Return one row for each metric: median, worst case and which one it was."""
        names = dict.fromkeys(m.name for o in self.outcomes for m in o.metrics)
        judged = {v.metric: v for o in self.outcomes for v in o.verdicts}
        rows = []
        for name in names:
            values = np.array([outcome.metric(name) for outcome in self.outcomes])
            lower = name in LOWER_BOUNDED
            worst = int(np.nanargmin(values) if lower else np.nanargmax(values))
            failed = sum(
                not v.passed for o in self.outcomes for v in o.verdicts if v.metric == name
            )
            rows.append(
                {
                    "metric": name,
                    "median": float(np.nanmedian(values)),
                    "worst": float(values[worst]),
                    "worst_case": worst,
                    "limit": judged[name].limit if name in judged else None,
                    "failed": failed if name in judged else None,
                }
            )
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data that JSON can hold."""
        found: dict[str, Any] = plain(
            {
                "passed": self.passed,
                "versions": versions(),
                "summary": self.summary(),
                "cases": [
                    {
                        "seed": o.case.seed,
                        "perturb": dict(o.case.perturb),
                        "delay": o.case.delay,
                        "start_error": o.case.start_error,
                        "passed": o.passed,
                        "metrics": {m.name: m.value for m in o.metrics},
                        "failed": [v.metric for v in o.verdicts if not v.passed],
                        "events": list(o.events),
                    }
                    for o in self.outcomes
                ],
            }
        )
        return found

    def to_json(self) -> str:
        """Return the campaign as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    def table(self) -> Any:
        """Return the summary as a `rich` table.

        Raises:
            MissingExtraError: rich is not installed.
        """
        passed = sum(outcome.passed for outcome in self.outcomes)
        return campaign_table(f"{passed} of {len(self.outcomes)} runs passed", self.summary())


def cases(
    seeds: Sequence[int],
    perturbs: Sequence[Mapping[str, float]] = ({},),
    delays: Sequence[int] = (0,),
    start_errors: Sequence[float] = (0.0,),
) -> list[Case]:
    """Return every combination of the given seeds, errors and delays."""
    return [
        Case(seed, dict(perturb), delay, start)
        for perturb in perturbs
        for delay in delays
        for start in start_errors
        for seed in seeds
    ]
