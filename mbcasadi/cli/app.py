"""The commands: each reads its arguments, calls the rooms, and prints what they answer."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from mbcasadi.cli import console, printing, suites
from mbcasadi.cli.arguments import locate, pairs, require_writable
from mbcasadi.cli.reporting import show_report

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Constrained multibody models and controllers: CasADi from MuJoCo, C, and a judge.",
)

Model = Annotated[
    str, typer.Argument(help="MJCF or URDF file, or the name of a model of the package.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")]
SpecFile = Annotated[
    Path, typer.Option("--controller", "-c", help="TOML file of the controller and its motion.")
]


@app.command()
@console.reported
def inspect(model: Model, as_json: AsJson = False) -> None:
    """Print sizes, coverage, limits, constraint ranks and operation counts of a model."""
    from mbcasadi.cli.inspection import inspect_system
    from mbcasadi.system import read_mjcf

    found = inspect_system(read_mjcf(locate(model)))
    if as_json:
        console.emit_json(found.as_json())
    else:
        printing.inspection(found, console.screen())


@app.command()
@console.reported
def check(
    model: Model,
    tolerance: Annotated[float, typer.Option(help="Largest relative error.")] = 1e-10,
    states: Annotated[int, typer.Option(min=1, help="Random states.")] = 20,
    seed: Annotated[int, typer.Option(help="Of the random states.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Compare every quantity of a model with MuJoCo at random states."""
    from mbcasadi.mjcf import load
    from mbcasadi.system import read_mjcf
    from mbcasadi.validation.agreement import compare

    path = locate(model)
    with console.progress(as_json) as tick:
        tick(f"reading {path.name}", 0.0)
        system = read_mjcf(path)
        tick(f"comparing at {states} states", 0.3)
        found = compare(system, load(path)[0], states=states, seed=seed)
    compared = [entry for entry in found if not math.isnan(entry.error)]
    passed = bool(compared) and all(entry.error <= tolerance for entry in compared)
    if as_json:
        rows = [entry._asdict() for entry in found]
        console.emit_json(
            {"model": system.name, "tolerance": tolerance, "passed": passed, "rows": rows}
        )
    else:
        printing.agreement(found, tolerance, console.screen())
    console.leave(passed)


@app.command()
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


@app.command()
@console.reported
def validate(
    model: Model,
    controller: SpecFile,
    duration: Annotated[float | None, typer.Option(min=0, help="s.")] = None,
    rigid: Annotated[bool | None, typer.Option(help="Rigid recipe for the loops.")] = None,
    perturb: Annotated[
        list[str] | None, typer.Option(help="Error of the plant, e.g. mass=0.1; repeatable.")
    ] = None,
    delay: Annotated[int | None, typer.Option(min=0, help="Ticks.")] = None,
    softness: Annotated[bool, typer.Option(help="Sweep solimp: what softness explains.")] = False,
    render: Annotated[bool, typer.Option(help="Draw pictures, where possible.")] = False,
    report: Annotated[
        Path | None, typer.Option(help="Write the report here, .html or .json.")
    ] = None,
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
        found = run_spec(spec, locate(model), softness=softness, render=render, progress=tick)
        if report is not None:
            tick("writing the report", 1.0)
            found.save(report)
    show_report(found, report, as_json)


@app.command(help=f"Run benchmarks side by side with their peers. Suites: {suites.listed()}.")
@console.reported
def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[SUITE]...", help="Suites; all by default.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Fewer repetitions, for a first look.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run the suites that `benchmarks` holds."""
    runs = [(name, suites.suite(name)) for name in names or suites.available()]
    rows: list[dict[str, Any]] = []
    with console.progress(as_json) as tick:
        for k, (name, run) in enumerate(runs):
            tick(f"benchmark {name}", k / len(runs))
            rows += run(quick=quick)["rows"]
    if as_json:
        console.emit_json({"rows": rows})
    else:
        printing.benchmarks(rows, console.screen())
