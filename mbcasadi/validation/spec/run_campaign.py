"""The controller of a spec in many plants."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import RenderingError, SimulationError
from mbcasadi.plant.video import require_video
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
            disturbance=trial.pushes,
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
    report: ReportOptions | None = None,
) -> Report:
    """Run one case of a campaign again, with a full report.

    Args:
        spec, model, plan: of the campaign.
        number: of the case.
        fast: of the campaign.
        report: as in `validate`.

    Raises:
        ProblemError: the campaign has no such case.
    """
    report, trial = report or ReportOptions(), spec.validation
    criteria = criteria_of_spec(spec)
    experiment = build_reported(spec, model, report.progress)
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
            disturbance=trial.pushes,
            scenario=scenario,
            criteria=criteria,
            fast=fast,
            report=report,
        )


@checked
def film_worst(
    spec: Spec,
    model: Path,
    plan: Sequence[Case],
    result: Campaign,
    count: int,
    folder: Path,
    *,
    fast: bool = False,
    progress: Progress | None = None,
) -> dict[int, Path]:
    """Run the worst cases of a campaign again and write their videos.

    Args:
        spec, model, plan, fast: of the campaign.
        result: what the campaign found.
        count: of cases.
        folder: gets `case_NUMBER.mp4`; made if it does not exist.
        progress: called with what is being done and a share from 0 to 1.

    Returns:
        Number of a case → its video; a case that cannot start has none, and where no renderer
        works there is none at all, and `progress` reports why.

    Raises:
        MissingExtraError: imageio or its ffmpeg is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    require_video(folder / "case.mp4")
    videos: dict[int, Path] = {}
    for outcome in result.worst(len(result.outcomes)):
        if len(videos) == count:
            break
        path = folder / f"case_{outcome.number}.mp4"
        options = ReportOptions(explain=False, progress=progress)
        try:
            run = run_case(spec, model, plan, outcome.number, fast=fast, report=options)
            videos[outcome.number] = run.video(path)
        except SimulationError:
            continue  # it could not start
        except RenderingError as error:
            if progress is not None:
                progress(f"no videos: {error}", 1.0)
            break
    return videos
