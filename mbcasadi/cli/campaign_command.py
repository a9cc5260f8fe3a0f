"""The command `campaign`."""

import shlex
import sys
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from mbcasadi.cli import console
from mbcasadi.cli.arguments import (
    find_model,
    parse_numbers,
    parse_pushes,
    parse_ranges,
    require_writable,
)
from mbcasadi.cli.options import (
    AllowCode,
    AsJson,
    Duration,
    Fast,
    Model,
    Perturb,
    Pushes,
    Quiet,
    ReportFile,
    Rigid,
    SpecFile,
    VideoFile,
)
from mbcasadi.cli.report_output import show_report
from mbcasadi.errors import ProblemError

if TYPE_CHECKING:  # so that `--help` does not import CasADi and MuJoCo
    from mbcasadi.validation import Campaign

DESIGNS = "monte_carlo, sobol, latin_hypercube, grid or saltelli"


@console.handle_errors
def campaign(
    model: Model,
    controller: SpecFile,
    runs: Annotated[
        int, typer.Option(min=1, help="Number of plants; each draws its own errors.")
    ] = 10,
    perturb: Perturb = None,
    push: Pushes = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            help="Range of an error that all bodies share, such as mass=-0.1:0.2, delay=0:3, "
            "start_error=0:0.1; repeatable. --runs points of --design are drawn.",
        ),
    ] = None,
    design: Annotated[str, typer.Option(help=f"Points of the ranges: {DESIGNS}.")] = "sobol",
    seed: Annotated[int, typer.Option(min=0, help="Of the first case, and of the design.")] = 0,
    delay: Annotated[
        list[int] | None, typer.Option(min=0, help="Ticks; repeatable, all combinations.")
    ] = None,
    start_error: Annotated[
        float, typer.Option(min=0, help="Largest error of each coordinate at the start.")
    ] = 0.0,
    duration: Duration = None,
    rigid: Rigid = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; the cores by default.")
    ] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to run on.")] = None,
    store: Annotated[
        Path | None,
        typer.Option(help="SQLite file that keeps the outcomes; the same command goes on."),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="s, of a case; one that takes longer fails.")
    ] = None,
    case: Annotated[
        int | None, typer.Option(min=0, help="Run only this case, with a full report.")
    ] = None,
    fast: Fast = False,
    video: VideoFile = None,
    videos: Annotated[
        int, typer.Option(min=0, help="Videos of so many of the worst cases, in --report.")
    ] = 0,
    report: ReportFile = None,
    allow_code: AllowCode = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run one controller's generated C in many plants with random errors."""
    from mbcasadi.validation import ReportOptions
    from mbcasadi.validation.spec import (
        cases_of_spec,
        film_worst,
        read_spec,
        run_campaign,
        run_case,
    )

    spec = read_spec(controller, allow_code=allow_code).with_trial(
        duration=duration,
        rigid=rigid,
        perturb=parse_numbers(perturb),
        disturbance=parse_pushes(push),
        fast=fast or None,
    )
    plan = cases_of_spec(
        spec,
        runs,
        delays=delay,
        start_error=start_error,
        ranges=parse_ranges(ranges),
        design=cast(Any, design),
        seed=seed,
    )
    path = find_model(model)
    if report is not None:
        require_writable(report)
    if video is not None and case is None:
        raise ProblemError("--video shows one case; give its number by --case")
    if videos and (report is None or report.suffix != ".html" or case is not None):
        raise ProblemError("--videos are shown in the page of a campaign: --report FILE.html")
    if case is not None:
        with console.progress(quiet) as progress:
            options = ReportOptions(video=video, progress=progress)
            single = run_case(spec, path, plan, case, options)
            if report is not None:
                single.save(report)
        show_report(single, report, as_json)
        return
    try:
        with console.progress(quiet) as progress, _executor(dask) as executor:
            result = run_campaign(
                spec,
                path,
                plan,
                executor=executor,
                jobs=jobs,
                store=store,
                time_limit=time_limit,
                progress=progress,
            )
            if report is not None:
                with TemporaryDirectory() as folder:
                    shown = film_worst(
                        spec, path, plan, result, videos, Path(folder),
                        progress=progress,
                    )  # fmt: skip
                    progress("writing the report", 1.0)
                    result.save(report, videos=shown)
    except KeyboardInterrupt:
        kept = f"; the same command goes on with what {store} has" if store else ""
        console.fail_interrupted(kept)
    _show(result, report, as_json)


def _executor(address: str | None) -> Any:
    """Return a context with the executor of a Dask cluster, or None."""
    if address is None:
        return nullcontext(None)
    from mbcasadi.validation.campaigns.workers import dask_executor

    return dask_executor(address)


def _show(result: "Campaign", saved: Path | None, as_json: bool) -> None:
    """Print a campaign and exit with status 0 only if all of its cases passed."""
    if as_json:
        console.emit_json(result.to_dict())
    else:
        screen = console.stdout()
        screen.print(result.table())
        for sentence in result.findings():
            screen.print(sentence, markup=False)
        if result.failures():
            command = shlex.join(["mbcasadi", *_of_one_case(sys.argv[1:]), "--case"])
            for outcome in result.worst(3):
                if outcome.passed is False:
                    screen.print(f"again: {command} {outcome.number}", markup=False, soft_wrap=True)
        if saved is not None:
            screen.print(f"report: {saved.absolute()}", markup=False, soft_wrap=True)
    console.exit_unless(result.passed)


def _of_one_case(arguments: list[str]) -> list[str]:
    """Return arguments without `--report FILE`, which one case would overwrite, and `--videos`."""
    kept = list(arguments)
    for option in ("--report", "--videos"):
        if option in kept:
            place = kept.index(option)
            del kept[place : place + 2]
    return kept
