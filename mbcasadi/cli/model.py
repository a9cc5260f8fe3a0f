"""The command `inspect`, and its tables."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from mbcasadi.cli import console
from mbcasadi.cli.console import JsonOnly, number_text, table
from mbcasadi.cli.options import Model, command, find_model
from mbcasadi.errors import ProblemError

if TYPE_CHECKING:  # so that `--help` does not import CasADi and MuJoCo
    from rich.console import Console

    from mbcasadi.cli.inspection import Inspection, Row

REFUSED = "what drives its joints is refused by the equations, see Coverage"


@command
def inspect(
    model: Model,
    output: JsonOnly,
    image: Annotated[
        Path | None,
        typer.Option(help="Draw limbs, feet and tools in this .png, .svg or .pdf file."),
    ] = None,
) -> None:
    """Print what robot a model is, its limits, coverage, constraint ranks and operation counts."""
    from mbcasadi.cli.inspection import inspect_system
    from mbcasadi.system import read_mjcf

    system = read_mjcf(find_model(model))
    inspection = inspect_system(system)
    if image is not None:
        if inspection.robot is None:
            raise ProblemError(f"--image: {REFUSED}; leave it out")
        from mbcasadi.cli.robot_picture import draw_robot

        draw_robot(system, inspection.robot, image)
    if output.as_json:
        console.emit_json(inspection.to_dict())
    else:
        print_inspection(inspection, console.stdout())
        if image is not None:
            console.stdout().print(f"drawn: {image}", markup=False)


def print_inspection(model: "Inspection", screen: "Console") -> None:
    """Print all tables of an inspection."""
    sizes = "  ".join(f"{key} {value}" for key, value in model.sizes.items())
    robot = f"{model.name}: {REFUSED}" if model.robot is None else model.robot.text
    screen.print(f"{robot}\n", markup=False)
    screen.print(f"[bold]{escape(model.name)}[/bold]   {sizes}")
    ranks = "refused, see below" if model.ranks is None else model.ranks.text
    screen.print(f"constraints: {ranks}\n", markup=False)
    limited = [row for row in model.joints if row["min"] > -math.inf or row["max"] < math.inf]
    control = ("actuator", "u min>", "u max>", "force min>", "force max>")
    _print_rows("Controls", control, model.controls, screen)
    _print_rows("Joint limits", ("joint", "min>", "max>"), limited, screen)
    for kind, names in model.actuators.items():
        screen.print(f"{kind} actuators ({len(names)}): {', '.join(names)}", markup=False)
    _print_frames(model, screen)
    counts = ", ".join(f"{name} {number_text(count)}" for name, count in model.operations.items())
    screen.print(f"[bold]Operations[/bold] of each Function: {counts}\n")
    coverage = ("treatment", "feature", "advice")
    _print_rows("Coverage", coverage, model.coverage, screen)
    for warning in model.warnings:
        screen.print(f"MuJoCo's compiler: {warning}", markup=False)


def _print_frames(model: "Inspection", screen: "Console") -> None:
    """Print the frames by kind, the key frames, and the geoms that could be feet."""
    for kind, plural in (("site", "sites"), ("body", "bodies")):
        names = [frame["name"] for frame in model.frames if frame["kind"] == kind]
        if names:
            screen.print(f"{plural} ({len(names)}): {', '.join(names)}", markup=False)
    if model.keyframes:
        screen.print(f"key frames: {', '.join(model.keyframes)}", markup=False)
    screen.print("")
    columns = ("geom", "shape", "body", "lowest point, m>", "friction>")
    _print_rows("Geoms that could be feet", columns, model.feet, screen)


def _print_rows(
    title: str, columns: Sequence[str], rows: "Sequence[Row]", screen: "Console"
) -> None:
    """Print a table, if it has rows."""
    if rows:
        screen.print(table(title, columns, [[*row.values()] for row in rows]), "")
