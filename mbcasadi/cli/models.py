"""Commands that look at a model: `inspect` and `check`."""

import math
from typing import Annotated

import typer

from mbcasadi.cli import console, printing
from mbcasadi.cli.arguments import locate
from mbcasadi.cli.options import AsJson, Model


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
