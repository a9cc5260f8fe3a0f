"""One case of a campaign again, alone and with a full report."""

from collections.abc import Sequence
from dataclasses import replace

from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Source
from mbcasadi.validation.campaigns.case import Case
from mbcasadi.validation.campaigns.preparation import prepared
from mbcasadi.validation.campaigns.trials import Trials
from mbcasadi.validation.closed_loop import (
    Controllable,
    Disturbance,
    ProgressReporter,
    ScenarioOptions,
    TimeSignal,
)
from mbcasadi.validation.metrics import Criteria
from mbcasadi.validation.report import Report, ReportOptions
from mbcasadi.validation.validate import validate


@checked
def case_report(
    controller: Controllable,
    model: Source,
    duration: float,
    cases: Sequence[Case],
    number: int,
    *,
    period: float | None = None,
    reference: TimeSignal = None,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    rigid: bool = False,
    disturbance: Disturbance = None,
    fast: bool = False,
    scenario: ScenarioOptions | None = None,
    criteria: Criteria | None = None,
    report: ReportOptions | None = None,
) -> Report:
    """Run one case of a campaign again, in this process, and return the report of `validate`.

    Its motion, and all metrics that the campaign has, are those of the campaign bit by bit, on a
    machine with the same compiler and libraries.

    Args:
        controller, model, duration, cases: of the campaign.
        number: of the case.
        period, reference, q0, v0, rigid, disturbance, fast, scenario, criteria: of the campaign.
        report: name, sweeps, repetitions and frames of the report; progress.

    Returns:
        A report with one run.

    Raises:
        ProblemError: the campaign has no such case.
        SimulationError: the case cannot start.
        MbcasadiError: as `campaign` and `validate`.
    """
    report = report or ReportOptions()
    if not 0 <= number < len(cases):
        raise ProblemError(
            f"there is no case {number}; the {len(cases)} cases have the numbers 0 to "
            f"{len(cases) - 1}"
        )
    with prepared(
        controller, model, duration, cases, period=period,
        reference=reference, q0=q0, v0=v0, rigid=rigid, disturbance=disturbance,
        fast=fast, scenario=scenario, criteria=criteria, report=ProgressReporter(report.progress),
    ) as ready:  # fmt: skip
        case, trials = cases[number], Trials(ready.kit, ready.law)
        loop = trials.scenario(trials.plant(case), case)
        return validate(
            trials.law,
            model,
            duration,
            reference=loop.reference,
            q0=loop.q0,
            v0=loop.v0,
            rigid=rigid,
            perturb=case.perturb,
            delay=case.delay,
            disturbance=loop.disturbance,
            scenario=replace(trials.options, seed=case.plant_seed),
            criteria=criteria,
            report=report,
        )
