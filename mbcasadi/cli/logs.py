"""Commands on logs of robots: `estimate`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from mbcasadi.cli import console
from mbcasadi.cli.console import Saved, finish
from mbcasadi.cli.options import ControllerFile, Model, command, find_model

if TYPE_CHECKING:  # so that `--help` does not import CasADi and MuJoCo
    from mbcasadi.validation.report.estimated_log import EstimatedLog


@command
def estimate(
    model: Model,
    log: Annotated[Path, typer.Argument(help="The robot's log: .csv, .npz or .mcap.")],
    file: ControllerFile,
    output: Saved,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File of the estimated states, .csv or .npz."),
    ] = None,
) -> None:
    """Estimate the states of a robot from a log of its sensors.

    The estimator is that of the controller's file, its table `estimation`; `estimation.log` says
    which channel of the log is which measurement.
    """
    from mbcasadi.validation.spec import estimate_log_of_spec

    if out is not None:
        console.require_writable(out, ".csv", ".npz")
    spec, path = file.read(), find_model(model)
    with console.progress(output.quiet) as progress:
        found = estimate_log_of_spec(spec, path, log, progress=progress)
        if out is not None:
            found.save_states(out)
        if output.report is not None:
            from mbcasadi.validation.report.log_page import save_log_report

            progress("writing the report", 0.9)
            save_log_report(found, output.report)
    states = None if out is None else str(out)
    finish(output, lambda: found.to_dict() | {"states": states}, _items(found))


def _items(found: "EstimatedLog") -> Iterator[str | Table]:
    """Yield what is printed."""
    yield from found.sentences()
    rows = [(row.name, f"{row.valid:.1%}") for row in found.sensors]
    yield console.table("samples", ("sensor", "of the ticks>"), rows)
    columns = ("landmark or sensor", "of the ticks>", "RMS>", "largest>")
    innovations = [(r.name, f"{r.used:.1%}", r.rms, r.largest) for r in found.innovations]
    yield console.table("innovations, standard deviations", columns, innovations)
