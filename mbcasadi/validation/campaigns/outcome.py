"""The outcome of one case."""

import math
from dataclasses import asdict, dataclass

from mbcasadi.argument_kinds import checked
from mbcasadi.short_text import summarised
from mbcasadi.validation.campaigns.case import Case
from mbcasadi.validation.metrics import Metric, Verdict, passed


@summarised
@dataclass(frozen=True)
class Outcome:
    """Metrics, verdicts and events of one case.

    Attributes:
        number: place of the case in the campaign.
        case: what was run.
        metrics: of the run; none where it could not start, or a worker died.
        verdicts: one for each criterion; "finished" is the first.
        events: what ended the run early.
    """

    number: int
    case: Case
    metrics: tuple[Metric, ...]
    verdicts: tuple[Verdict, ...]
    events: tuple[str, ...]

    def _summary(self) -> dict[str, object]:
        return {"number": self.number, "case": self.text, "passed": self.passed}

    @property
    def passed(self) -> bool | None:
        """Whether every criterion is fulfilled; None where no criterion judges the run."""
        return passed(verdict.passed for verdict in self.verdicts)

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the criteria that are not fulfilled."""
        return tuple(verdict.metric for verdict in self.verdicts if verdict.passed is False)

    @checked
    def metric(self, name: str) -> float:
        """Return the value of a metric, NaN where the run does not have it."""
        return next((m.value for m in self.metrics if m.name == name), math.nan)

    @property
    def text(self) -> str:
        """The parameters of the case that are not as the model has them."""
        case = self.case
        sign = "±" if case.each_body else ""
        parts = [f"seed {case.seed}"]
        for name, value in case.parameters.items():
            if value != (1.0 if name == "disturbance" else 0.0):
                parts.append(f"{name} {sign if name in case.perturb else ''}{value:.4g}")
        return ", ".join(parts)

    def to_dict(self) -> dict[str, object]:
        """Return case and outcome as plain data."""
        return {
            "number": self.number,
            **asdict(self.case),
            "passed": self.passed,
            "metrics": {m.name: m.value for m in self.metrics},
            "failed": list(self.failed),
            "events": list(self.events),
        }
