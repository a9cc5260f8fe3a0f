"""Commands that make and run controllers: `export`, `validate`, `campaign`, `demo`."""

from pathlib import Path
from typing import Annotated

import typer

from mbcasadi.cli import console, printing
from mbcasadi.cli.arguments import locate, pairs, require_writable
from mbcasadi.cli.options import (
    AsJson,
    Duration,
    Model,
    Perturb,
    Render,
    ReportFile,
    Rigid,
    SpecFile,
)
from mbcasadi.cli.reporting import show_report


@console.reported
def export(
    model: Model,
    controller: SpecFile,
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    overwrite: Annotated[bool, typer.Option(help="Replace an earlier export.")] = False,
    as_json: AsJson = False,
) -> None:
    """Generate a controller's C for a model, and compile it."""
    from mbcasadi.codegen import export_c
    from mbcasadi.validation.spec import experiment, read_spec

    path, spec = locate(model), read_spec(controller)
    with console.progress(as_json) as tick:
        tick("building the controller", 0.0)
        made = experiment(spec, path).controller
        project = export_c(made, out, overwrite=overwrite, progress=lambda text: tick(text, 0.3))
        tick("compiling", 0.6)
        built = project.build()
    found = {
        "name": project.name,
        "folder": str(project.folder),
        "operations": project.operations,
        "lines": project.lines,
        "compile_seconds": built.seconds,
        "library": str(built.path),
    }
    if as_json:
        console.emit_json(found)
    else:
        printing.export(found, console.screen())


@console.reported
def validate(
    model: Model,
    controller: SpecFile,
    duration: Duration = None,
    rigid: Rigid = None,
    perturb: Perturb = None,
    delay: Annotated[int | None, typer.Option(min=0, help="Ticks.")] = None,
    softness: Annotated[
        bool, typer.Option(help="Sweep solimp and solref: what softness explains.")
    ] = False,
    what_if: Annotated[
        bool, typer.Option(help="Repeat without delay and errors: what they cost.")
    ] = False,
    render: Render = False,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Run a controller's generated C against MuJoCo and judge it by its criteria."""
    from mbcasadi.validation.spec import read_spec, run_spec

    spec = read_spec(controller).under(
        duration=duration, rigid=rigid, delay=delay, perturb=pairs(perturb)
    )
    if report is not None:
        require_writable(report)
    with console.progress(as_json) as tick:
        found = run_spec(
            spec, locate(model), softness=softness, what_if=what_if, render=render, progress=tick
        )
        if report is not None:
            tick("writing the report", 1.0)
            found.save(report)
    show_report(found, report, as_json)


@console.reported
def campaign(
    model: Model,
    controller: SpecFile,
    runs: Annotated[int, typer.Option(min=1, help="Plants, each with errors of its own.")] = 10,
    perturb: Perturb = None,
    delay: Annotated[
        list[int] | None, typer.Option(min=0, help="Ticks; repeatable, all combinations.")
    ] = None,
    start_error: Annotated[
        float, typer.Option(min=0, help="Largest error of each coordinate at the start.")
    ] = 0.0,
    duration: Duration = None,
    rigid: Rigid = None,
    as_json: AsJson = False,
) -> None:
    """Run one controller's generated C in many plants with random errors."""
    from mbcasadi.validation.spec import read_spec, run_campaign

    spec = read_spec(controller).under(duration=duration, rigid=rigid, perturb=pairs(perturb))
    with console.progress(as_json) as tick:
        found = run_campaign(
            spec, locate(model), runs, delays=delay, start_error=start_error, progress=tick
        )
    if as_json:
        console.emit_json(found.to_dict())
    else:
        console.screen().print(found.table())
    console.leave(found.passed)


@console.reported
def demo(
    report: Annotated[Path, typer.Option(help="Where to write the report.")] = Path("report.html"),
    render: Render = True,
    as_json: AsJson = False,
) -> None:
    """Run three controllers as generated C against MuJoCo and write one report."""
    from mbcasadi.validation.demo import demo as run_demo

    require_writable(report)
    with console.progress(as_json) as tick:
        found = run_demo(render=render, progress=tick)
        tick("writing the report", 1.0)
        found.save(report)
    show_report(found, report, as_json)
