"""Tables on the terminal."""

from rich.console import Console

from mbcasadi.cli.console import table
from mbcasadi.cli.inspection import Inspection


def inspection(found: Inspection, screen: Console) -> None:
    """Print what `inspect` found."""
    sizes = "  ".join(f"{key} {value}" for key, value in found.sizes.items())
    screen.print(f"[bold]{found.name}[/bold]   {sizes}")
    screen.print(f"constraints: {found.rank_in_words}\n")
    if found.controls:
        columns = ("actuator", "u min>", "u max>", "force min>", "force max>")
        screen.print(table("Controls", columns, found.controls), "")
    limited = [row for row in found.joints if row[1] > float("-inf") or row[2] < float("inf")]
    if limited:
        screen.print(table("Joint limits", ("joint", "min>", "max>"), limited), "")
    counts = list(found.operations.items())
    screen.print(table("Operations of each Function", ("Function", "operations>"), counts), "")
    screen.print(table("Coverage", ("treatment", "feature", "what it means"), found.coverage), "")
    for warning in found.warnings:
        screen.print(f"MuJoCo's compiler: {warning}", markup=False)
