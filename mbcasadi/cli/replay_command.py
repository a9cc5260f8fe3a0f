"""The command `replay`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mbcasadi.cli import console
from mbcasadi.cli.arguments import require_writable
from mbcasadi.cli.options import AsJson, Quiet, ReportFile

if TYPE_CHECKING:  # so that `--help` does not import CasADi and MuJoCo
    from mbcasadi.codegen import LogReplay


@console.handle_errors
def replay(
    folder: Annotated[Path, typer.Argument(help="Export with supervision whose C wrote the log.")],
    log: Annotated[Path, typer.Argument(help="File of the log's memory.")],
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Of u, as a share of its largest value; 0: bit for bit. By default 0 where "
            "compiler and processor are those of the log.",
        ),
    ] = None,
    library: Annotated[
        Path | None, typer.Option(help="Compiled library to use; built here by default.")
    ] = None,
    report: ReportFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compute the ticks of a supervised controller's log again, and compare.

    The exit status is 0 only if every tick is as it was.
    """
    from mbcasadi.codegen import open_project

    if report is not None:
        require_writable(report)
    with console.progress(quiet) as progress:
        project = open_project(folder, progress=lambda text: progress(text, 0.3))
        result = project.replay(log, tolerance=tolerance, library=library)
        if report is not None:
            from mbcasadi.validation.report.replay_page import save_replay

            progress("writing the report", 0.9)
            save_replay(result, report, f"{project.name}: {log.name}")
    if as_json:
        console.emit_json(result.to_dict() | {"file": None if report is None else str(report)})
    else:
        _show(result)
        if report is not None:
            console.stdout().print(f"report: {report.absolute()}", markup=False, soft_wrap=True)
    console.exit_unless(result.passed)


def _show(result: "LogReplay") -> None:
    """Print the events and the result."""
    from mbcasadi.validation.report.replay_page import MOST_ROWS, event_changes

    screen, changes = console.stdout(), list(event_changes(result))
    columns = ("tick>", "t / s>", "events from here on", "first fault")
    if changes:
        title = f"{result.log.ticks.size} ticks"
        screen.print(console.table(title, columns, changes[:MOST_ROWS]))
    if len(changes) > MOST_ROWS:
        screen.print(f"and {len(changes) - MOST_ROWS} more", markup=False)
    if result.interruptions:
        screen.print(f"{result.interruptions} starts, resets or gaps", markup=False)
    if result.log.torn:
        screen.print(f"records that are not whole, left out: {result.log.torn}", markup=False)
    screen.print(result.sentence(), markup=False)
