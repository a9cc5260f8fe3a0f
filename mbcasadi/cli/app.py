"""The commands: each reads its arguments, calls the rooms, and prints what they answer."""

import math
from typing import Annotated, Any

import typer

from mbcasadi.cli import console, printing, suites
from mbcasadi.cli.models import locate

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
