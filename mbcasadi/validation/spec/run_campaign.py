"""The controller of a spec in many plants."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path

from mbcasadi.argument_kinds import checked
from mbcasadi.validation.campaigns import (
    Campaign,
    Case,
    campaign,
    case_report,
    cases,
    sampled_cases,
)
from mbcasadi.validation.campaigns.designs import Design
from mbcasadi.validation.closed_loop import Progress
from mbcasadi.validation.report import Report, ReportOptions
from mbcasadi.validation.spec.common import Spec
from mbcasadi.validation.spec.run_spec import build_reported, criteria_of_spec


@checked
def cases_of_spec(
    spec: Spec,
    runs: int,
    *,
    delays: Sequence[int] | None = None,
    start_error: float = 0.0,
    ranges: Mapping[str, Sequence[float]] | None = None,
    design: Design = "sobol",
    seed: int = 0,
) -> list[Case]:
    """Return the cases of a campaign.

    Args:
        spec: its trial has the errors, and the delay where none is given.
        runs: without ranges: plants for each delay, with seeds from `seed` on; each body draws its
            own errors within those of the spec. With ranges: points of the design.
        delays: ticks; with ranges, the first one is that of all cases.
        start_error: rad or m, largest error of each coordinate at the start.
        ranges, design, seed: as in `sampled_cases`.

    Raises:
        ProblemError: as `cases` and `sampled_cases`.
    """
    trial = spec.validation
    if ranges:
        return sampled_cases(
            ranges,
            runs,
            design=design,
            seed=seed,
            perturb=trial.perturb,
            delay=(delays or [trial.delay])[0],
            start_error=start_error,
        )
    return cases(range(seed, seed + runs), [trial.perturb], delays or [trial.delay], [start_error])


@checked
def run_campaign(
    spec: Spec,
    model: Path,
    plan: Sequence[Case],
    *,
    fast: bool = False,
    executor: Executor | None = None,
    jobs: int | None = None,
    store: Path | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Campaign:
    """Run the generated C of a spec in many plants.

    Args:
        spec: the controller, its motion, and the conditions of the trial.
        model: MJCF or URDF file.
        plan: the cases; see `cases_of_spec`.
        fast, executor, jobs, store, time_limit: as in `campaign`.
        progress: called with what is being done and a share from 0 to 1.
    """
    criteria, trial = criteria_of_spec(spec), spec.validation
    experiment = build_reported(spec, model, progress)
    with experiment.scenario(trial) as scenario:
        return campaign(
            experiment.controller,
            str(model),
            trial.duration,
            plan,
            reference=experiment.reference,
            q0=experiment.q0,
            rigid=trial.rigid,
            scenario=scenario,
            criteria=criteria,
            fast=fast,
            executor=executor,
            jobs=jobs,
            store=store,
            time_limit=time_limit,
            progress=progress,
        )


@checked
def run_case(
    spec: Spec,
    model: Path,
    plan: Sequence[Case],
    number: int,
    *,
    fast: bool = False,
    render: bool = False,
    video: Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """Run one case of a campaign again, with a full report.

    Args:
        spec, model, plan: of the campaign.
        number: of the case.
        fast: of the campaign.
        render: render frames, where a renderer is present.
        video: file for its motion, `.mp4` or `.gif`.
        progress: called with what is being done and a share from 0 to 1.

    Raises:
        ProblemError: the campaign has no such case.
    """
    criteria, trial = criteria_of_spec(spec), spec.validation
    experiment = build_reported(spec, model, progress)
    with experiment.scenario(trial) as scenario:
        return case_report(
            experiment.controller,
            str(model),
            trial.duration,
            plan,
            number,
            reference=experiment.reference,
            q0=experiment.q0,
            rigid=trial.rigid,
            scenario=scenario,
            criteria=criteria,
            fast=fast,
            report=ReportOptions(render=render, video=video, progress=progress),
        )
