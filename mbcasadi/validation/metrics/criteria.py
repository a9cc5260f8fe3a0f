"""What a run has to reach."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mbcasadi.errors import UnknownNameError
from mbcasadi.validation.metrics.metrics import Metric

#: Metrics for which more is better; a limit on any other is an upper one.
LOWER_BOUNDED = {
    "cone.plant",
    "cone.controller",
    "status.solved",
    "limits.least",
    "limits.soft_least",
}

# A force on the edge of its pyramid is on the cone, up to the rounding of the QP.
ON_THE_CONE = 1e-6

#: Criteria of a run that names none. A metric that a run does not have is not judged.
DEFAULTS: dict[str, float] = {
    "torque.excess": 0.0,
    "status.safe_output": 0.0,
    "tracking.rms_share": 0.05,
    "closure.plant": 1e-3,
    "cone.plant": 0.0,
    "cone.controller": -ON_THE_CONE,
}

NAMES = (
    "tracking.rms",
    "tracking.max",
    "tracking.rms_share",
    "tracking.max_share",
    "tracking.rms_share_free",
    "closure.plant",
    "closure.rows",
    "closure.model",
    "agreement.force_median",
    "agreement.force_max",
    "agreement.a_median",
    "agreement.a_max",
    "torque.excess",
    "torque.saturated",
    "torque.max",
    "cone.plant",
    "cone.controller",
    "contact.lost",
    "contact.slip",
    "status.solved",
    "status.safe_output",
    "status.longest_failure",
    "status.check",
    "limits.least",
    "limits.soft_least",
    "limits.beyond",
    "limits.near",
    "prediction.start",
    "prediction.next",
    "prediction.quarter",
    "prediction.half",
    "prediction.end",
    "time.median",
    "time.p99",
    "time.max",
    "time.preparation",
    "time.feedback",
    "time.share",
    "time.late",
    "outer.safe_output",
    "outer.longest_failure",
    "outer.time",
    "outer.share",
)


@dataclass(frozen=True)
class Verdict:
    """One criterion and what became of it.

    Attributes:
        metric: its name.
        limit: bound of the metric.
        at_least: the metric must not be below the limit; otherwise not above it.
        value: what the run reached.
        passed: the criterion held.
    """

    metric: str
    limit: float
    at_least: bool
    value: float
    passed: bool


def judge(
    metrics: Sequence[Metric], criteria: Mapping[str, float] | None, finished: bool
) -> tuple[Verdict, ...]:
    """Return a verdict for each criterion.

    A criterion that was asked for by name fails where the run has no such metric (a value of
    NaN is no pass). A run that stopped early fails as a whole, by the criterion `finished`.

    Raises:
        UnknownNameError: a criterion is no metric; the message lists the valid names.
    """
    found = {metric.name: metric.value for metric in metrics}
    wanted = dict(DEFAULTS if criteria is None else criteria)
    for name in wanted:
        _require_metric(name)
    if criteria is None:
        wanted = {name: limit for name, limit in wanted.items() if name in found}
    verdicts = [Verdict("finished", 1.0, True, float(finished), finished)]
    for name, limit in wanted.items():
        value, at_least = found.get(name, float("nan")), name in LOWER_BOUNDED
        passed = value >= limit if at_least else value <= limit
        verdicts.append(Verdict(name, limit, at_least, value, bool(passed)))
    return tuple(verdicts)


def scopes(criteria: Mapping[str, float] | None) -> tuple[str, ...]:
    """Return the components or tasks that criteria name, as in `tracking.rms:trunk`."""
    parts = [name.split(":", 1)[1] for name in criteria or {} if ":" in name]
    return tuple(dict.fromkeys(parts))


def _require_metric(name: str) -> None:
    base, colon, _ = name.partition(":")
    if base not in NAMES or (colon and not base.startswith("tracking.")):
        raise UnknownNameError(
            f"unknown criterion {name!r}; there are: {', '.join(NAMES)}; those of tracking may "
            "name a task or a component: 'tracking.rms:trunk'"
        )
