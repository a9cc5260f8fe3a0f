"""The command `inspect`, and its tables."""

from typing import TYPE_CHECKING

from rich.markup import escape

from mbcasadi.cli import console
from mbcasadi.cli.console import number_text, table
from mbcasadi.cli.options import JsonOnly, Model, command, find_model

if TYPE_CHECKING:  # so that `--help` does not import CasADi and MuJoCo
    from rich.console import Console

    from mbcasadi.cli.inspection import Inspection


@command
def inspect(model: Model, output: JsonOnly) -> None:
    """Print sizes, coverage, limits, constraint ranks and operation counts of a model."""
    from mbcasadi.cli.inspection import inspect_system
    from mbcasadi.system import read_mjcf

    inspection = inspect_system(read_mjcf(find_model(model)))
    if output.as_json:
        console.emit_json(inspection.to_dict())
    else:
        print_inspection(inspection, console.stdout())


def print_inspection(model: "Inspection", screen: "Console") -> None:
    """Print all tables of an inspection."""
    sizes = "  ".join(f"{key} {value}" for key, value in model.sizes.items())
    screen.print(f"[bold]{escape(model.name)}[/bold]   {sizes}")
    ranks = "refused, see below" if model.ranks is None else model.ranks.text
    screen.print(f"constraints: {ranks}\n", markup=False)
    if model.controls:
        columns = ("actuator", "u min>", "u max>", "force min>", "force max>")
        screen.print(table("Controls", columns, model.controls), "")
    limited = [row for row in model.joints if row[1] > float("-inf") or row[2] < float("inf")]
    if limited:
        screen.print(table("Joint limits", ("joint", "min>", "max>"), limited), "")
    for kind, names in model.actuators.items():
        screen.print(f"{kind} actuators ({len(names)}): {', '.join(names)}", markup=False)
    _print_frames(model, screen)
    counts = ", ".join(f"{name} {number_text(count)}" for name, count in model.operations.items())
    screen.print(f"[bold]Operations[/bold] of each Function: {counts}\n")
    screen.print(table("Coverage", ("treatment", "feature", "advice"), model.coverage), "")
    for warning in model.warnings:
        screen.print(f"MuJoCo's compiler: {warning}", markup=False)


def _print_frames(model: "Inspection", screen: "Console") -> None:
    """Print the frames by kind, the key frames, and the geoms that could be feet."""
    for kind, plural in (("site", "sites"), ("body", "bodies")):
        names = [name for of_kind, name, _ in model.frames if of_kind == kind]
        if names:
            screen.print(f"{plural} ({len(names)}): {', '.join(names)}", markup=False)
    if model.keyframes:
        screen.print(f"key frames: {', '.join(model.keyframes)}", markup=False)
    screen.print("")
    if model.feet:
        columns = ("geom", "shape", "body", "lowest point, m>", "friction>")
        screen.print(table("Geoms that could be feet", columns, model.feet), "")
