"""The outcomes of cases, and what many of them say: pass rate, worst cases, sensitivity."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
import scipy
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.short_text import summarised
from mbcasadi.validation.campaigns.case import FACTORS, Case
from mbcasadi.validation.metrics import METRICS, NO_METRICS, Metric, Verdict, base_name, passed


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
            if value != (1.0 if name in FACTORS else 0.0):
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


Array = NDArray[np.float64]
CONFIDENCE = 0.95
LEAST_OUTCOMES = 8  # for a correlation
CONSTANT = 1e-12  # a metric that varies by less, relative to its size, does not vary


@summarised
@dataclass(frozen=True)
class PassRate:
    """Share of cases that passed.

    Attributes:
        passed, total: cases.
        rate: their ratio.
        low, high: Wilson's interval for the share among all cases that the design may draw.
        confidence: of this interval.
    """

    passed: int
    total: int
    rate: float
    low: float
    high: float
    confidence: float

    def __str__(self) -> str:
        low, high, sure = (f"{100 * x:.4g} %" for x in (self.low, self.high, self.confidence))
        return (
            f"{self.passed} of {self.total} runs passed: {100 * self.rate:.4g} %, between {low} "
            f"and {high} with {sure} confidence"
        )


def pass_rate(passed: int, total: int, confidence: float = CONFIDENCE) -> PassRate:
    """Return the pass rate with Wilson's interval."""
    interval = scipy.stats.binomtest(passed, total).proportion_ci(confidence, method="wilson")
    low, high = float(interval.low), float(interval.high)
    return PassRate(passed, total, passed / total, low, high, confidence)


@summarised
@dataclass(frozen=True)
class Sensitivity:
    """How a metric depends on a parameter of the cases.

    Attributes:
        metric, parameter: names.
        correlation: Spearman's rank correlation.
        size_correlation: the same with the size of the parameter, where it has both signs; else
            NaN. It shows a metric that is worse at both ends of a range.
        p_value: probability of the larger of them, or more, if there were no dependence.
        regression: standardised coefficient of a linear regression of ranks on all parameters.
        sobol_first, sobol_total: indices of the variance; NaN unless the design is "saltelli".
    """

    metric: str
    parameter: str
    correlation: float
    size_correlation: float
    p_value: float
    regression: float
    sobol_first: float
    sobol_total: float

    @property
    def strength(self) -> float:
        """The larger of the two correlations, without its sign."""
        return float(np.nanmax(np.abs([self.correlation, self.size_correlation])))

    def __str__(self) -> str:
        if abs(self.size_correlation) > abs(self.correlation):
            return f"the size of {self.parameter}: rank correlation {self.size_correlation:+.2f}"
        return f"{self.parameter}: rank correlation {self.correlation:+.2f}"


def parameter_table(cases: Sequence[Case]) -> tuple[list[str], Array]:
    """Return the names of the parameters that vary, and their values (ncases, d)."""
    rows = [case.parameters for case in cases]
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = np.array([[row.get(name, 0.0) for name in names] for row in rows]).reshape(
        len(rows), len(names)
    )
    varied = np.flatnonzero(np.ptp(table, axis=0) > 0) if len(rows) else np.zeros(0, dtype=int)
    return [names[i] for i in varied], table[:, varied]


def sensitivities(outcomes: Sequence[Outcome], metrics: Sequence[str]) -> list[Sensitivity]:
    """Return how each metric depends on each parameter that varies.

    Args:
        outcomes: of the campaign, in the order of its cases.
        metrics: names; those that do not vary, or are missing, are left out.
    """
    names, table = parameter_table([outcome.case for outcome in outcomes])
    rows = []
    for metric in metrics if names else ():
        values = np.array([outcome.metric(metric) for outcome in outcomes])
        kept = np.isfinite(values)
        size = np.abs(values[kept]).max(initial=0.0)
        if kept.sum() < max(LEAST_OUTCOMES, len(names) + 2) or (
            np.ptp(values[kept]) <= CONSTANT * size
        ):
            continue
        first, total = sobol_indices(table, values)
        slopes = rank_regression(table[kept], values[kept])
        for i, name in enumerate(names):
            if np.ptp(table[kept, i]) == 0:
                continue
            numbers = (*_correlations(table[kept, i], values[kept]), slopes[i], first[i], total[i])
            rows.append(Sensitivity(metric, name, *map(float, numbers)))
    return rows


def _correlations(parameter: Array, values: Array) -> tuple[float, float, float]:
    """Return the rank correlation with a parameter and with its size, and the p-value."""
    plain = scipy.stats.spearmanr(parameter, values)
    if parameter.min() >= 0 or parameter.max() <= 0 or np.ptp(np.abs(parameter)) == 0:
        return float(plain.statistic), np.nan, float(plain.pvalue)
    sized = scipy.stats.spearmanr(np.abs(parameter), values)
    p_value = sized.pvalue if abs(sized.statistic) > abs(plain.statistic) else plain.pvalue
    return float(plain.statistic), float(sized.statistic), float(p_value)


def rank_regression(table: Array, values: Array) -> Array:
    """Return the standardised coefficients of a linear regression of ranks."""
    ranks = scipy.stats.rankdata(np.column_stack([table, values]), axis=0)
    spread = ranks.std(axis=0)
    scaled = (ranks - ranks.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.asarray(np.linalg.lstsq(scaled[:, :-1], scaled[:, -1], rcond=None)[0])


def sobol_indices(table: Array, values: Array) -> tuple[Array, Array]:
    """Return first-order and total indices of each parameter, NaN where the design has none.

    The design is recognised by its numbers: A, B, then A with column i of B for each i.
    """
    d = table.shape[1]
    n = len(table) // (d + 2)
    nothing = np.full(d, np.nan)
    if n < 2 or n * (d + 2) != len(table) or not np.isfinite(values).all():
        return nothing, nothing
    A, B, *mixed = table.reshape(d + 2, n, d)
    expected = [np.where(np.arange(d) == i, B, A) for i in range(d)]
    if not all(np.array_equal(a, b) for a, b in zip(mixed, expected, strict=True)):
        return nothing, nothing
    f_A, f_B, *f_AB = values.reshape(d + 2, 1, n)
    answers = {"f_A": f_A, "f_B": f_B, "f_AB": np.array(f_AB)}
    found = scipy.stats.sobol_indices(func=answers, n=n)
    return np.ravel(found.first_order), np.ravel(found.total_order)


def worst_first(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes, the worst first.

    Runs that did not finish come first, then by the largest violation of a criterion, or the least
    margin to it, in units of the metric's spread over the campaign; where this is the same, by the
    second largest, and so on.
    """
    names = {verdict.metric for outcome in outcomes for verdict in outcome.verdicts}
    spreads = {}
    for name in names - set(NO_METRICS):
        values = np.array([outcome.metric(name) for outcome in outcomes])
        values = values[np.isfinite(values)]
        spread = float(values.std()) if values.size else 0.0
        spreads[name] = spread or float(np.abs(values).max(initial=0.0)) or 1.0
    return sorted(outcomes, key=partial(_violations, spreads=spreads), reverse=True)


def _violations(outcome: Outcome, spreads: dict[str, float]) -> list[float]:
    """Return how far each criterion is violated, the most first; negative where it is fulfilled."""
    violations = []
    for verdict in outcome.verdicts:
        if verdict.metric in NO_METRICS:
            distance = np.inf if verdict.passed is False else -np.inf
        else:
            sign = -1.0 if METRICS[base_name(verdict.metric)].larger_is_better else 1.0
            distance = sign * (verdict.value - verdict.limit) / spreads[verdict.metric]
            distance = np.inf if np.isnan(distance) else distance
        violations.append(distance)
    return sorted(violations, reverse=True)
