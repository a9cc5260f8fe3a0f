"""Tables on the terminal."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mbcasadi.cli.console import number_text, table

if TYPE_CHECKING:  # so that `--help` does not import CasADi and MuJoCo
    from mbcasadi.cli.inspection import Inspection
    from mbcasadi.description import Frame
    from mbcasadi.validation.agreement import Agreement, AgreementVerdict, SensorGap


def print_inspection(model: "Inspection", console: Console) -> None:
    """Print all tables of an inspection."""
    sizes = "  ".join(f"{key} {value}" for key, value in model.sizes.items())
    console.print(f"[bold]{escape(model.name)}[/bold]   {sizes}")
    ranks = "refused, see below" if model.ranks is None else model.ranks.text
    console.print(f"constraints: {ranks}\n", markup=False)
    if model.controls:
        columns = ("actuator", "u min>", "u max>", "force min>", "force max>")
        console.print(table("Controls", columns, model.controls), "")
    limited = [row for row in model.joints if row[1] > float("-inf") or row[2] < float("inf")]
    if limited:
        console.print(table("Joint limits", ("joint", "min>", "max>"), limited), "")
    for kind, names in model.actuators.items():
        console.print(f"{kind} actuators ({len(names)}): {', '.join(names)}", markup=False)
    _print_frames(model, console)
    counts = ", ".join(f"{name} {number_text(count)}" for name, count in model.operations.items())
    console.print(f"[bold]Operations[/bold] of each Function: {counts}\n")
    console.print(table("Coverage", ("treatment", "feature", "advice"), model.coverage), "")
    for warning in model.warnings:
        console.print(f"MuJoCo's compiler: {warning}", markup=False)


def _print_frames(model: "Inspection", console: Console) -> None:
    """Print the frames by kind, the key frames, and the geoms that could be feet."""
    for kind, plural in (("site", "sites"), ("body", "bodies")):
        names = [name for of_kind, name, _ in model.frames if of_kind == kind]
        if names:
            console.print(f"{plural} ({len(names)}): {', '.join(names)}", markup=False)
    if model.keyframes:
        console.print(f"key frames: {', '.join(model.keyframes)}", markup=False)
    console.print("")
    if model.feet:
        columns = ("geom", "shape", "body", "lowest point, m>", "friction>")
        console.print(table("Geoms that could be feet", columns, model.feet), "")


def agreement_table(entries: "Sequence[Agreement]", tolerance: float) -> Table:
    """Return the worst error of each quantity; frames that agree share a row for each Function."""
    rows = []
    for label, entry in _group_frames(entries, tolerance):
        if math.isnan(entry.error):
            verdict = "not compared"
        else:
            verdict = "agrees" if entry.error <= tolerance else "DIFFERS"
        rows.append((label, f"{entry.error:.1e}", entry.unit, verdict, entry.note))
    columns = ("quantity", "worst relative error>", "unit", f"at {tolerance:g}", "note")
    return table("Agreement with MuJoCo", columns, rows)


def verdict_lines(verdict: "AgreementVerdict") -> Iterator[str]:
    """Yield why a check fails, and what it leaves out with permission."""
    if verdict.differing:
        yield f"not passed: different from MuJoCo: {', '.join(verdict.differing)}"
    if verdict.not_compared:
        yield (
            f"not passed: not compared: {', '.join(verdict.not_compared)}; change the model as "
            "noted, or allow it with --allow-missing NAME"
        )
    if verdict.allowed:
        yield f"not compared, as allowed: {', '.join(verdict.allowed)}"


def gap_lines(gaps: "Sequence[SensorGap]") -> Iterator[str]:
    """Yield how far readings of rigid constraints are from MuJoCo's, the worst of each kind."""
    for kind in dict.fromkeys(gap.kind for gap in gaps):
        measured = [gap for gap in gaps if gap.kind == kind and gap.reading]
        if measured:
            worst = max(measured, key=lambda gap: gap.relative)
            yield (
                f"{kind} '{worst.sensor}': rigid constraints read up to {worst.gap:.2g} of "
                f"{worst.reading:.3g} beside MuJoCo's soft ones ({worst.relative:.1%})"
            )


def frame_lines(frames: "Sequence[Frame]", compared: int) -> Iterator[str]:
    """Yield how many frames of each kind were compared, where it is not all of them."""
    for kind, plural in (("site", "sites"), ("body", "bodies")):
        count = sum(frame.kind == kind for frame in frames)
        if count > compared:
            yield f"{compared} of {count} {plural} compared; --frames {count} compares all"


def _group_frames(
    entries: "Sequence[Agreement]", tolerance: float
) -> list[tuple[str, "Agreement"]]:
    """Return (label, entry); of frames that agree only the worst of each kind and Function."""
    rows: list[tuple[str, Agreement]] = []
    frames: dict[tuple[str, str], list[Agreement]] = {}
    for entry in entries:
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
