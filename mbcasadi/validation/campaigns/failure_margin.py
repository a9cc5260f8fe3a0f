"""Margins to failure: by how much one error may grow until a controller fails."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Source
from mbcasadi.progress import ProgressReporter
from mbcasadi.shapes import require_positive, require_whole
from mbcasadi.short_text import summarised
from mbcasadi.validation.campaigns.campaign import CampaignOptions, run_cases
from mbcasadi.validation.campaigns.case import NOT_NEGATIVE, Case, at_point
from mbcasadi.validation.campaigns.outcome import Outcome
from mbcasadi.validation.campaigns.preparation import prepared
from mbcasadi.validation.campaigns.trials import Trials
from mbcasadi.validation.closed_loop import Controllable
from mbcasadi.validation.metrics.text import metric_text
from mbcasadi.validation.report.pages import Plain, plain_data
from mbcasadi.validation.trial import Trial

TOLERANCE = 0.01  # width of the bracket, of the largest size


@summarised
@dataclass(frozen=True)
class FailureMargin:
    """The size of an error at which a controller first fails.

    Attributes:
        over: name of the error.
        largest: size up to which it was searched.
        passes: largest size found to pass below the first failure; NaN where size zero fails.
        fails: smallest size found to fail; NaN where none fails.
        outcomes: of all sizes that were run, by size.
        notes: on how the controller has run.
    """

    over: str
    largest: float
    passes: float
    fails: float
    outcomes: dict[float, Outcome]
    notes: tuple[str, ...] = ()

    def _summary(self) -> dict[str, object]:
        return {"over": self.over, "passes": self.passes, "fails": self.fails}

    @property
    def failure(self) -> Outcome | None:
        """The outcome at the smallest size that fails."""
        return self.outcomes.get(self.fails)

    @property
    def passes_again(self) -> bool:
        """Whether a larger size passes although a smaller one fails."""
        larger = [size for size in self.outcomes if abs(size) > abs(self.fails)]
        return any(bool(self.outcomes[size].passed) for size in larger)

    def __str__(self) -> str:
        if self.failure is None:
            return f"passes for all sizes of {self.over} that were run, up to {self.largest:.4g}"
        why = "; ".join((*self.failure.events, *map(metric_text, self.failure.failed[:1])))
        if np.isnan(self.passes):
            return f"fails without any error of {self.over} already: {why}"
        again = "; larger sizes pass again" if self.passes_again else ""
        ends = f"{self.over} = {self.passes:.4g} and {self.fails:.4g}"
        return f"first fails between {ends}: {why}{again}"

    def to_dict(self) -> dict[str, Plain]:
        """Return the margin as plain data that JSON can hold."""
        rows = [
            {"size": size, **outcome.to_dict()} for size, outcome in sorted(self.outcomes.items())
        ]
        data = asdict(replace(self, outcomes={}))
        return plain_data(data | {"outcomes": rows, "text": str(self)})


@checked
def margin(
    controller: Controllable,
    model: Source,
    trial: Trial,
    *,
    over: str,
    largest: float,
    steps: int = 8,
    tolerance: float | None = None,
    options: CampaignOptions | None = None,
) -> FailureMargin:
    """Return the size of an error at which a controller first fails.

    A scan from zero to `largest` finds the first size that fails; bisection between it and the one
    before narrows the bracket. Failure need not grow with the size: between two sizes of the scan
    that pass, a failure is not seen.

    Args:
        controller, model: as in `campaign`.
        trial: conditions of all runs; all bodies have its errors alike.
        over: a parameter of `perturb` ("mass", "friction", …; all bodies alike), "delay",
            "start_error", "disturbance" or "sensor_noise" (factors).
        largest: end of the scan, in the unit of the error; negative to search below zero.
        steps: sizes of the scan beside zero.
        tolerance: width of the bracket, in the unit of the error; 1 % of `largest` by default. For
            "delay" it is one tick.
        options: as in `campaign`; executor, jobs and store are for the scan.

    Raises:
        ProblemError: a scan of no length or without steps; runs that no criterion judges.
        MbcasadiError: as `campaign`.
    """
    require_whole(1, steps=steps)
    if not 0 < abs(largest) < np.inf:
        raise ProblemError(f"largest = {largest}; expected a finite size, not zero")
    if largest < 0 and over in NOT_NEGATIVE:
        raise ProblemError(f"largest = {largest}; {over} is not negative")
    width = 1.0 if over == "delay" else tolerance or TOLERANCE * abs(largest)
    require_positive(tolerance=width)
    seed = trial.scenario.seed or 0
    usual = Case(seed, dict(trial.perturb), trial.delay, each_body=False)
    sizes = [float(size) for size in np.linspace(0.0, largest, steps + 1)]
    if over == "delay":
        sizes = [float(size) for size in dict.fromkeys(map(round, sizes))]
    plan = [at_point(usual, usual.seed, {over: size}) for size in sizes]
    where = options or CampaignOptions()
    report = ProgressReporter(where.progress)
    with prepared(controller, model, trial.of_all_cases, plan, report) as ready:
        scan = run_cases(ready, plan, where, report)
        outcomes = dict(zip(sizes, scan.outcomes, strict=True))
        if any(outcome.passed is None for outcome in scan.outcomes):
            raise ProblemError(
                "no criterion says whether a run of this controller is good; give reference= or "
                "criteria="
            )
        trials = Trials(ready.kit, ready.law)

        def run(size: float) -> Outcome:
            report.note(f"{over} = {size:.4g}")
            return trials.run(len(outcomes), at_point(usual, usual.seed, {over: size}))

        bracket = _narrowed(_first_failure(outcomes), outcomes, run, width, whole=over == "delay")
    return FailureMargin(over, largest, *bracket, outcomes, ready.notes)


class _Bracket(NamedTuple):
    passes: float
    fails: float


def _first_failure(outcomes: dict[float, Outcome]) -> _Bracket:
    """Return the first size of the scan that fails, and the one before it."""
    before = np.nan
    for size, outcome in outcomes.items():
        if not outcome.passed:
            return _Bracket(before, size)
        before = size
    return _Bracket(before, np.nan)


def _narrowed(
    bracket: _Bracket,
    outcomes: dict[float, Outcome],
    run: Callable[[float], Outcome],
    width: float,
    *,
    whole: bool,
) -> _Bracket:
    """Return the bracket, halved until it is narrow; what is run is added to the outcomes."""
    passes, fails = bracket
    while abs(fails - passes) > width:
        middle = (passes + fails) / 2
        middle = float(round(middle)) if whole else middle
        outcomes[middle] = run(middle)
        passes, fails = (middle, fails) if outcomes[middle].passed else (passes, middle)
    return _Bracket(passes, fails)
