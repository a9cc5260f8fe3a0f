"""Commands on a model: `inspect` and `check`."""

import math
from typing import Annotated

import typer

from mbcasadi.cli import console, tables
from mbcasadi.cli.arguments import find_model
from mbcasadi.cli.options import AsJson, Model


@console.handle_errors
def inspect(model: Model, as_json: AsJson = False) -> None:
    """Print sizes, coverage, limits, constraint ranks and operation counts of a model."""
    from mbcasadi.cli.inspection import inspect_system
    from mbcasadi.system import read_mjcf

    inspection = inspect_system(read_mjcf(find_model(model)))
    if as_json:
        console.emit_json(inspection.to_dict())
    else:
        tables.print_inspection(inspection, console.stdout())


@console.handle_errors
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

    path = find_model(model)
    with console.progress(as_json) as progress:
        progress(f"reading {path.name}", 0.0)
        system = read_mjcf(path)
        progress(f"comparing at {states} states", 0.3)
        entries = compare(system, load(path)[0], states=states, seed=seed)
    compared = [entry for entry in entries if not math.isnan(entry.error)]
    passed = bool(compared) and all(entry.error <= tolerance for entry in compared)
    if as_json:
        rows = [entry._asdict() for entry in entries]
        console.emit_json(
            {"model": system.name, "tolerance": tolerance, "passed": passed, "rows": rows}
        )
    else:
        console.stdout().print(tables.agreement_table(entries, tolerance))
    console.exit_unless(passed)
