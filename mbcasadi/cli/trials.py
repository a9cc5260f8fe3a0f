"""Commands that run controllers in MuJoCo: `validate`, `campaign`, `margin`, `demo`."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from mbcasadi.cli import console
from mbcasadi.cli.console import Output, Saved, finish
from mbcasadi.cli.options import (
    Conditions,
    ConditionsOfAll,
    ControllerFile,
    Model,
    command,
    find_model,
    given,
    record_of,
)
from mbcasadi.errors import ProblemError

if TYPE_CHECKING:  # so that `--help` does not import CasADi and MuJoCo
    from mbcasadi.validation import Campaign, Case, Report
    from mbcasadi.validation.spec import Spec

SHOWN = ("softness", "what_if", "explain", "render", "video", "viewer", "browser")
Contents = record_of(("validation.report.report.ReportOptions", SHOWN))
CAMPAIGN = "validation.campaigns.campaign.CampaignOptions"
SEARCH = ("over", "largest", "steps", "tolerance")
Search = record_of(("validation.campaigns.failure_margin.margin", SEARCH), (CAMPAIGN, ("jobs",)))
Plan = record_of(
    ("validation.spec.run.cases_of_spec", ("runs", "delays", "start_error")),
    ("validation.campaigns.case.sampled_cases", ("ranges", "design", "seed")),
    optional=True,
)
Running = record_of((CAMPAIGN, ("jobs", "store", "time_limit")))


@dataclass(frozen=True)
class Single:
    """One case alone, or the worst ones as videos."""

    case: Annotated[int | None, typer.Option(help="Run only this case, with a full report.")] = None
    video: Annotated[Path | None, typer.Option(help="Of it, an .mp4 or .gif file.")] = None
    videos: Annotated[
        int, typer.Option(min=0, help="Of so many of the worst cases, in --report.")
    ] = 0


CompileFirst = typer.Option(
    "--compile-first", help="Run the C from the first tick on, which waits for the compiler."
)


class EarlyVerdict:
    """Shows the verdict of a run at once, and later the rest of its report.

    Args:
        progress: is hidden meanwhile.
        output: where it goes; as JSON it comes as a whole.
    """

    def __init__(self, progress: console.ShownProgress, output: Saved) -> None:
        self._progress, self._output = progress, output
        self._shown: tuple[bool | None, ...] = ()

    def show(self, report: "Report") -> None:
        """Print the criteria of a run that is judged."""
        if not self._output.as_json:
            with self._progress.hidden():
                console.show([report.table()])
            self._shown = (report.passed,)

    def rest_of(self, report: "Report") -> Iterator[str | Table]:
        """Yield what was not printed; all of it where the verdict is another one."""
        items = report_items(report)
        if self._shown == (report.passed,):
            next(items)
        yield from items


@command
def validate(
    model: Model,
    file: ControllerFile,
    conditions: Annotated[Any, Conditions],
    contents: Annotated[Any, Contents],
    output: Saved,
    compile_first: Annotated[bool, CompileFirst] = False,
) -> None:
    """Run a controller against MuJoCo and judge it by its criteria.

    A short run has the controller's Python Function while its C is compiled, which then has to give
    the same controls at all its ticks; long runs have the C.
    """
    from mbcasadi.validation import ReportOptions
    from mbcasadi.validation.spec import run_spec

    spec = file.read(conditions)
    with console.progress(output.quiet) as progress:
        first = EarlyVerdict(progress, output)
        options = ReportOptions(
            **vars(contents), early=not compile_first, judged=first.show, progress=progress
        )
        result = run_spec(spec, find_model(model), options)
        if output.report is not None:
            progress("writing the report", 1.0)
            result.save(output.report)
    finish(output, result.to_dict, first.rest_of(result), result.passed)


@command
def demo(
    output: Output,
    report: Annotated[Path, typer.Option(help="Where to write the report.")] = Path("report.html"),
    render: Annotated[bool, typer.Option(help="Render frames, if there is a renderer.")] = True,
) -> None:
    """Run three controllers as generated C against MuJoCo and write one report."""
    from mbcasadi.validation.demo import demo as run_demo

    saved = Saved(
        as_json=output.as_json, quiet=output.quiet, report=report
    )  # refused now, where it is none
    with console.progress(output.quiet) as progress:
        result = run_demo(render=render, progress=progress)
        progress("writing the report", 1.0)
        result.save(report)
    finish(saved, result.to_dict, report_items(result), result.passed)


@command
def margin(
    model: Model,
    file: ControllerFile,
    search: Annotated[Any, Search],
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
    finish(output, found.to_dict, [str(found), *found.notes], found.failure is None)


@command
def campaign(
    model: Model,
    file: ControllerFile,
    plan: Annotated[Any, Plan],
    conditions: Annotated[Any, ConditionsOfAll],
    running: Annotated[Any, Running],
    single: Single,
    output: Saved,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to run on.")] = None,
) -> None:
    """Run one controller's generated C in many plants with random errors."""
    from mbcasadi.plant.video import require_video
    from mbcasadi.validation import ReportOptions
    from mbcasadi.validation.spec import cases_of_spec, run_case

    spec, path = file.read(conditions), find_model(model)
    cases = cases_of_spec(spec, **given(plan))
    if single.video is not None and single.case is None:
        raise ProblemError("--video shows one case; give its number by --case")
    page = output.report is not None and output.report.suffix == ".html"
    if single.videos and (not page or single.case is not None):
        raise ProblemError("--videos are shown in the page of a campaign: --report FILE.html")
    if single.videos:
        require_video(Path("case.mp4"))  # now, not behind all runs
    if single.case is None:
        with _kept(running.store), _executor(dask) as executor:
            options = vars(running) | {"executor": executor}
            result = _run_all(spec, path, cases, options, single.videos, output)
        finish(output, result.to_dict, _campaign_items(result), result.passed)
        return
    with console.progress(output.quiet) as progress:
        options = ReportOptions(video=single.video, progress=progress)
        report = run_case(spec, path, cases, single.case, options)
        if output.report is not None:
            report.save(output.report)
    finish(output, report.to_dict, report_items(report), report.passed)


def _run_all(
    spec: "Spec",
    path: Path,
    cases: "list[Case]",
    options: dict[str, Any],
    videos: int,
    output: Saved,
) -> "Campaign":
    """Run the cases of a campaign, and write its report."""
    from mbcasadi.validation.spec import film_worst, run_campaign

    with console.progress(output.quiet) as progress, TemporaryDirectory() as folder:
        result = run_campaign(spec, path, cases, progress=progress, **options)
        command = {"command": shlex.join(_words())}
        result = replace(result, settings={**result.settings, **command})
        if output.report is not None:
            shown = film_worst(spec, path, cases, result, videos, Path(folder), progress=progress)
            progress("writing the report", 1.0)
            result.save(output.report, videos=shown)
    return result


@contextmanager
def _kept(store: Path | None) -> Iterator[None]:
    """Say where Ctrl-C ends a campaign that the same command goes on."""
    try:
        yield
    except KeyboardInterrupt:
        kept = f"; the same command goes on with what {store} has" if store else ""
        console.fail_interrupted(kept)


def _executor(address: str | None) -> Any:
    """Return a context with the executor of a Dask cluster, or None."""
    if address is None:
        return nullcontext(None)
    from mbcasadi.validation.campaigns.schedule import dask_executor

    return dask_executor(address)


def _campaign_items(result: "Campaign") -> Iterator[str | Table]:
    """Yield what is printed of a campaign, with the commands that run its worst cases again."""
    yield result.table()
    yield from result.findings()
    again = shlex.join([*_of_one_case(_words()), "--case"])
    for each in result.worst(3) if result.failures() else ():
        if each.passed is False:
            yield f"again: {again} {each.number}"


def _words() -> list[str]:
    """Return the words of the command line."""
    return ["mbcasadi", *sys.argv[1:]]


def _of_one_case(arguments: list[str]) -> list[str]:
    """Return arguments without `--report FILE`, which one case would overwrite, and `--videos`."""
    kept = list(arguments)
    for option in ("--report", "--videos"):
        if option in kept:
            place = kept.index(option)
            del kept[place : place + 2]
    return kept


def report_items(report: "Report") -> Iterator[str | Table]:
    """Yield what is printed of a report."""
    from mbcasadi.validation.report import findings, what_if_table

    yield report.table()
    for run in report.runs:
        name = f"{run.name}: " if len(report.runs) > 1 else ""  # the table has that of one run
        softness = [] if run.softness is None else [run.softness.sentence]
        yield from (f"{name}{sentence}" for sentence in (*run.notes, *findings(run), *softness))
        if run.what_if is not None:
            yield what_if_table(run.what_if, f"{name}cost of delay and errors")
            yield run.what_if.sentence
