"""Tables on the terminal."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from mbcasadi.cli.console import number, table

if TYPE_CHECKING:  # so that `--help` does not wait for CasADi and MuJoCo
    from mbcasadi.cli.inspection import Inspection
    from mbcasadi.validation.agreement import Agreement


def inspection(found: "Inspection", screen: Console) -> None:
    """Print what `inspect` found."""
    sizes = "  ".join(f"{key} {value}" for key, value in found.sizes.items())
    screen.print(f"[bold]{found.name}[/bold]   {sizes}")
    words = "refused, see below" if found.ranks is None else found.ranks.in_words
    screen.print(f"constraints: {words}\n")
    if found.controls:
        columns = ("actuator", "u min>", "u max>", "force min>", "force max>")
        screen.print(table("Controls", columns, found.controls), "")
    limited = [row for row in found.joints if row[1] > float("-inf") or row[2] < float("inf")]
    if limited:
        screen.print(table("Joint limits", ("joint", "min>", "max>"), limited), "")
    counts = ", ".join(f"{letter} {number(count)}" for letter, count in found.operations.items())
    screen.print(f"[bold]Operations[/bold] of each Function: {counts}\n")
    screen.print(table("Coverage", ("treatment", "feature", "what it means"), found.coverage), "")
    for warning in found.warnings:
        screen.print(f"MuJoCo's compiler: {warning}", markup=False)


def agreement(found: "Sequence[Agreement]", tolerance: float, screen: Console) -> None:
    """Print the worst error of each quantity; frames that agree share a row for each Function."""
    rows = []
    for label, entry in _worst_of_frames(found, tolerance):
        if math.isnan(entry.error):
            verdict = "not compared"
        else:
            verdict = "agrees" if entry.error <= tolerance else "DIFFERS"
        rows.append((label, f"{entry.error:.1e}", entry.unit, verdict, entry.note))
    columns = ("quantity", "worst relative error>", "unit", f"at {tolerance:g}", "note")
    screen.print(table("Agreement with MuJoCo", columns, rows))


def _worst_of_frames(
    found: "Sequence[Agreement]", tolerance: float
) -> list[tuple[str, "Agreement"]]:
    """Return (label, entry); frames that agree are told by the worst of each kind and Function."""
    rows: list[tuple[str, Agreement]] = []
    frames: dict[tuple[str, str], list[Agreement]] = {}
    for entry in found:
        frame, _, function = entry.quantity.partition("': ")
        if function and entry.error <= tolerance:
            frames.setdefault((frame.split(" '")[0], function), []).append(entry)
        else:
            rows.append((entry.quantity, entry))
    for (kind, function), group in frames.items():
        worst = max(group, key=lambda entry: entry.error)
        name = worst.quantity.split("'")[1]
        rows.append((f"{kind}: {function}, worst of {len(group)}: '{name}'", worst))
    return rows


def export(found: dict[str, Any], screen: Console) -> None:
    """Print what was written and how long the compiler took."""
    screen.print(
        f"{found['name']}: {found['operations']} operations, {found['lines']} lines of C, "
        f"compiled in {found['compile_seconds']:.1f} s"
    )
    screen.print(found["folder"], markup=False, soft_wrap=True)


def benchmarks(
    rows: list[dict[str, Any]], settings: dict[str, dict[str, Any]], screen: Console
) -> None:
    """Print the rows of benchmarks, times in microseconds, and how each suite was run."""
    cells = [
        (
            row["model"],
            row["quantity"],
            _microseconds(row["ours"]),
            row["peer"],
            _microseconds(row["peer_time"]),
            row["ratio"],
        )
        for row in rows
    ]
    columns = ("model", "quantity", "ours, us>", "peer", "peer, us>", "ratio>")
    screen.print(table("Benchmarks", columns, cells))
    for name, setting in settings.items():
        for key, value in setting.items():
            screen.print(f"{name}: {key}: {value}", markup=False)


def _microseconds(seconds: float | None) -> float | None:
    return None if seconds is None else 1e6 * seconds
