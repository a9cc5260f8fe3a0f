"""The controller of a spec against MuJoCo: one run, many plants, the error at which it fails."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mbcasadi.argument_kinds import checked
from mbcasadi.control.inverse_dynamics.controller import built_when_needed
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.errors import RenderingError, SimulationError
from mbcasadi.plant import Source
from mbcasadi.plant.video import require_video
from mbcasadi.progress import LoggedProgress, Progress
from mbcasadi.validation.campaigns import (
    Campaign,
    CampaignOptions,
    Case,
    FailureMargin,
    campaign,
    case_report,
    cases,
    margin,
    sampled_cases,
)
from mbcasadi.validation.campaigns.case import Design
from mbcasadi.validation.report import Report, ReportOptions
from mbcasadi.validation.spec.common import Spec
from mbcasadi.validation.spec.kinds import build_experiment
from mbcasadi.validation.trial import Trial
from mbcasadi.validation.trial_report import run_trial


@contextmanager
def _built(
    spec: Spec, model: str | Path, progress: Progress | None
) -> Iterator[tuple[Controller | HasController, Source, Trial]]:
    """Yield the controller of a spec, the model, and the whole trial."""
    report = progress or LoggedProgress()
    report("building the controller", 0.0)
    with built_when_needed():
        experiment = build_experiment(spec, model)
    with experiment.complete(spec.trial) as complete:
        yield experiment.controller, spec.model(model), complete


@checked
def run_spec(spec: Spec, model: str | Path, report: ReportOptions | None = None) -> Report:
    """Build the controller of a spec, export it to C and run that C against MuJoCo.

    Args:
        spec: the controller, its motion, and the conditions of the trial.
        model: MJCF or URDF file.
        report: as in `validate`.

    Raises:
        UnknownNameError: a criterion is no metric.
        MbcasadiError: the model, the spec, the export or the plant; see `build_experiment`,
            `validate`.
    """
    report = report or ReportOptions()
    with _built(spec, model, report.progress) as (controller, source, trial):
        return run_trial(controller, source, trial, report)


@checked
def cases_of_spec(
    spec: Spec,
    runs: int = 10,
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
    perturb, delay = spec.trial.perturb, spec.trial.delay
    if not ranges:
        return cases(range(seed, seed + runs), [perturb], delays or [delay], [start_error])
    usual: dict[str, Any] = {"perturb": perturb, "start_error": start_error}
    delay = (delays or [delay])[0]
    return sampled_cases(ranges, runs, design=design, seed=seed, delay=delay, **usual)


@checked
def run_campaign(
    spec: Spec,
    model: Path,
    plan: Sequence[Case],
    *,
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
        executor, jobs, store, time_limit: as in `campaign`.
        progress: called with what is being done and a share from 0 to 1.
    """
    with _built(spec, model, progress) as (controller, source, trial):
        return campaign(
            controller,
            source,
            trial.of_all_cases,
            plan,
            CampaignOptions(executor, jobs, store, time_limit, progress),
        )


@checked
def run_case(
    spec: Spec,
    model: Path,
    plan: Sequence[Case],
    number: int,
    report: ReportOptions | None = None,
) -> Report:
    """Run one case of a campaign again, with a full report.

    Args:
        spec, model, plan: of the campaign.
        number: of the case.
        report: as in `validate`.

    Raises:
        ProblemError: the campaign has no such case.
    """
    report = report or ReportOptions()
    with _built(spec, model, report.progress) as (controller, source, trial):
        return case_report(controller, source, trial.of_all_cases, plan, number, report)


@checked
def film_worst(
    spec: Spec,
    model: Path,
    plan: Sequence[Case],
    result: Campaign,
    count: int,
    folder: Path,
    *,
    progress: Progress | None = None,
) -> dict[int, Path]:
    """Run the worst cases of a campaign again and write their videos.

    Args:
        spec, model, plan: of the campaign.
        result: what the campaign found.
        count: of cases.
        folder: gets `case_NUMBER.mp4`; made if it does not exist.
        progress: called with what is being done and a share from 0 to 1.

    Returns:
        Number of a case → its video; a case that cannot start has none, and where no renderer
        works there is none at all, and `progress` reports why.

    Raises:
        MissingExtraError: imageio or its ffmpeg is not installed, and `count` is not 0.
    """
    videos: dict[int, Path] = {}
    if not count:
        return videos
    folder.mkdir(parents=True, exist_ok=True)
    require_video(folder / "case.mp4")
    for outcome in result.worst(len(result.outcomes)):
        if len(videos) == count:
            break
        options = ReportOptions(explain=False, progress=progress)
        try:
            report = run_case(spec, model, plan, outcome.number, options)
            videos[outcome.number] = report.video(folder / f"case_{outcome.number}.mp4")
        except SimulationError:
            continue  # it could not start
        except RenderingError as error:
            report_progress = progress or LoggedProgress()
            report_progress(f"no videos: {error}", 1.0)
            break
    return videos


@checked
def run_margin(
    spec: Spec,
    model: Path,
    over: str,
    largest: float,
    *,
    steps: int = 8,
    tolerance: float | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> FailureMargin:
    """Return the margin of a spec's generated C to failure; the trial's errors act in all runs.

    Args:
        spec: the controller, its motion, and the conditions of the trial.
        model: MJCF or URDF file.
        over, largest, steps, tolerance, jobs: as in `margin`.
        progress: called with what is being done and a share from 0 to 1.

    Raises:
        MbcasadiError: as `margin` and `build_experiment`.
    """
    with _built(spec, model, progress) as (controller, source, trial):
        return margin(
            controller,
            source,
            trial,
            over=over,
            largest=largest,
            steps=steps,
            tolerance=tolerance,
            options=CampaignOptions(jobs=jobs, progress=progress),
        )
