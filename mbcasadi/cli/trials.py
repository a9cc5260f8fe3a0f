"""Commands that run controllers in MuJoCo: `validate`, `campaign`, `margin`, `demo`."""

import shlex
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mbcasadi.cli import console
from mbcasadi.cli.options import (
    Conditions,
    ConditionsOfAll,
    ControllerFile,
    Jobs,
    Model,
    Output,
    Saved,
    command,
    find_model,
    parse_ranges,
    record_of,
)
from mbcasadi.errors import ProblemError

if TYPE_CHECKING:  # so that `--help` does not import CasADi and MuJoCo
    from mbcasadi.validation import Campaign, Case, Report
    from mbcasadi.validation.spec import Spec

SHOWN = ("softness", "what_if", "explain", "render", "video", "viewer")
ReportContents = record_of("validation.report.report_options.ReportOptions", SHOWN, optional=False)
DESIGNS = "monte_carlo, sobol, latin_hypercube, grid or saltelli"


@command
def validate(
    model: Model,
    file: ControllerFile,
    conditions: Annotated[Any, Conditions],
    contents: Annotated[Any, ReportContents],
    output: Saved,
) -> None:
    """Run a controller's generated C against MuJoCo and judge it by its criteria."""
    from mbcasadi.validation import ReportOptions
    from mbcasadi.validation.spec import run_spec

    spec = file.read(conditions)
    with console.progress(output.quiet) as progress:
        options = ReportOptions(**vars(contents), progress=progress)
        result = run_spec(spec, find_model(model), options)
        if output.report is not None:
            progress("writing the report", 1.0)
            result.save(output.report)
    show_report(result, output)


@command
def demo(
    output: Output,
    report: Annotated[Path, typer.Option(help="Where to write the report.")] = Path("report.html"),
    render: Annotated[bool, typer.Option(help="Render frames, if there is a renderer.")] = True,
) -> None:
    """Run three controllers as generated C against MuJoCo and write one report."""
    from mbcasadi.validation.demo import demo as run_demo

    saved = Saved(output.as_json, output.quiet, report)
    with console.progress(output.quiet) as progress:
        result = run_demo(render=render, progress=progress)
        progress("writing the report", 1.0)
        result.save(report)
    show_report(result, saved)


@dataclass(frozen=True)
class Search:
    """What a margin is searched over."""

    over: Annotated[
        str,
        typer.Option(help="Error that grows: mass, friction, …, delay, start_error, disturbance."),
    ]
    largest: Annotated[
        float, typer.Option(help="Size up to which it is searched; negative: below zero.")
    ]
    steps: Annotated[int, typer.Option(min=1, help="Sizes of the scan beside zero.")] = 8
    tolerance: Annotated[
        float | None, typer.Option(help="Width of the bracket; 1 % of the largest by default.")
    ] = None
    jobs: Jobs = None


@command
def margin(
    model: Model,
    file: ControllerFile,
    search: Search,
    conditions: Annotated[Any, Conditions],
    output: Output,
) -> None:
    """Find the size of an error at which a controller's generated C first fails.

    A scan finds the first size that fails, bisection narrows it. The exit status is 0 only if no
    size fails.
    """
    from mbcasadi.validation.spec import run_margin

    spec = file.read(conditions)
    with console.progress(output.quiet) as progress:
        found = run_margin(spec, find_model(model), **vars(search), progress=progress)
    if output.as_json:
        console.emit_json(found.to_dict())
    else:
        console.print_lines([str(found), *found.notes])
    console.exit_unless(found.failure is None)


@dataclass(frozen=True)
class Plan:
    """The cases of a campaign."""

    runs: Annotated[
        int, typer.Option(min=1, help="Number of plants; each draws its own errors.")
    ] = 10
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            help="Range of an error that all bodies share, such as mass=-0.1:0.2, delay=0:3, "
            "start_error=0:0.1; repeatable. --runs points of --design are drawn.",
        ),
    ] = None
    design: Annotated[str, typer.Option(help=f"Points of the ranges: {DESIGNS}.")] = "sobol"
    seed: Annotated[int, typer.Option(min=0, help="Of the first case, and of the design.")] = 0
    delays: Annotated[
        list[int] | None,
        typer.Option("--delay", min=0, help="Ticks; repeatable, all combinations."),
    ] = None
    start_error: Annotated[
        float, typer.Option(min=0, help="Largest error of each coordinate at the start.")
    ] = 0.0

    def cases(self, spec: "Spec") -> "list[Case]":
        """Return the cases."""
        from mbcasadi.validation.spec import cases_of_spec

        return cases_of_spec(spec, **(vars(self) | {"ranges": parse_ranges(self.ranges)}))


@dataclass(frozen=True)
class Running:
    """Where and how the cases of a campaign run."""

    jobs: Jobs = None
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to run on.")] = None
    store: Annotated[
        Path | None,
        typer.Option(help="SQLite file that keeps the outcomes; the same command goes on."),
    ] = None
    time_limit: Annotated[
        float | None, typer.Option(help="s, of a case; one that takes longer fails.")
    ] = None


@dataclass(frozen=True)
class Single:
    """One case alone, or the worst ones as videos."""

    case: Annotated[
        int | None, typer.Option(min=0, help="Run only this case, with a full report.")
    ] = None
    video: Annotated[
        Path | None, typer.Option(help="Write a video of it to this .mp4 or .gif file.")
    ] = None
    videos: Annotated[
        int, typer.Option(min=0, help="Videos of so many of the worst cases, in --report.")
    ] = 0


@command
def campaign(
    model: Model,
    file: ControllerFile,
    plan: Plan,
    conditions: Annotated[Any, ConditionsOfAll],
    running: Running,
    single: Single,
    output: Saved,
) -> None:
    """Run one controller's generated C in many plants with random errors."""
    from mbcasadi.validation import ReportOptions
    from mbcasadi.validation.spec import run_case

    spec, path = file.read(conditions), find_model(model)
    cases = plan.cases(spec)
    if single.video is not None and single.case is None:
        raise ProblemError("--video shows one case; give its number by --case")
    page = output.report is not None and output.report.suffix == ".html"
    if single.videos and (not page or single.case is not None):
        raise ProblemError("--videos are shown in the page of a campaign: --report FILE.html")
    if single.case is None:
        result = _run_all(spec, path, cases, running, single.videos, output)
        _show(result, output)
        return
    with console.progress(output.quiet) as progress:
        options = ReportOptions(video=single.video, progress=progress)
        report = run_case(spec, path, cases, single.case, options)
        if output.report is not None:
            report.save(output.report)
    show_report(report, output)


def _run_all(
    spec: "Spec", path: Path, cases: "list[Case]", running: Running, videos: int, output: Saved
) -> "Campaign":
    """Run the cases of a campaign, and write its report."""
    from mbcasadi.validation.spec import film_worst, run_campaign

    options = dict(vars(running))
    try:
        with console.progress(output.quiet) as progress, _executor(options.pop("dask")) as executor:
            result = run_campaign(
                spec, path, cases, executor=executor, progress=progress, **options
            )
            if output.report is not None:
                with TemporaryDirectory() as folder:
                    shown = film_worst(
                        spec, path, cases, result, videos, Path(folder), progress=progress
                    )
                    progress("writing the report", 1.0)
                    result.save(output.report, videos=shown)
    except KeyboardInterrupt:
        store = running.store
        kept = f"; the same command goes on with what {store} has" if store else ""
        console.fail_interrupted(kept)
    return result


def _executor(address: str | None) -> Any:
    """Return a context with the executor of a Dask cluster, or None."""
    if address is None:
        return nullcontext(None)
    from mbcasadi.validation.campaigns.workers import dask_executor

    return dask_executor(address)


def _show(result: "Campaign", output: Saved) -> None:
    """Print a campaign and exit with status 0 only if all of its cases passed."""
    if output.as_json:
        console.emit_json(result.to_dict())
    else:
        console.stdout().print(result.table())
        lines = list(result.findings())
        if result.failures():
            again = shlex.join(["mbcasadi", *_of_one_case(sys.argv[1:]), "--case"])
            worst = [each for each in result.worst(3) if each.passed is False]
            lines += [f"again: {again} {each.number}" for each in worst]
        console.print_lines(lines, output.report)
    console.exit_unless(result.passed)


def _of_one_case(arguments: list[str]) -> list[str]:
    """Return arguments without `--report FILE`, which one case would overwrite, and `--videos`."""
    kept = list(arguments)
    for option in ("--report", "--videos"):
        if option in kept:
            place = kept.index(option)
            del kept[place : place + 2]
    return kept


def show_report(report: "Report", output: Saved) -> None:
    """Print a report and exit with status 0 only if all of its criteria are fulfilled."""
    if output.as_json:
        saved = None if output.report is None else str(output.report)
        console.emit_json(report.to_dict() | {"file": saved})
        console.exit_unless(report.passed)
        return
    from mbcasadi.validation.report import findings, what_if_table

    screen = console.stdout()
    screen.print(report.table())
    for run in report.runs:
        name = f"{run.name}: " if len(report.runs) > 1 else ""  # the table has that of one run
        softness = [] if run.softness is None else [run.softness.sentence]
        for sentence in (*run.notes, *findings(run), *softness):
            screen.print(f"{name}{sentence}", markup=False)
        if run.what_if is not None:
            screen.print(what_if_table(run.what_if, f"{name}cost of delay and errors"))
            screen.print(run.what_if.sentence, markup=False)
    console.print_lines([], output.report)
    console.exit_unless(report.passed)
