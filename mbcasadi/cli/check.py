"""The command `check`: a model, or all models below a folder, against MuJoCo."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from mbcasadi.cli import console
from mbcasadi.cli.console import Output, finish, require_writable, table
from mbcasadi.cli.options import command, find_model, given, record_of
from mbcasadi.errors import ProblemError

if TYPE_CHECKING:  # so that `--help` does not import CasADi and MuJoCo
    from mbcasadi.description import Frame
    from mbcasadi.validation.agreement import (
        Agreement,
        AgreementVerdict,
        CorpusReport,
        SensorGap,
    )

LONGEST = 160  # characters of a reason in the table; JSON and Markdown have all of it
USUAL = {"tolerance": 1e-10, "states": 20, "seed": 0, "frames": 6}  # of one model


COMPARED = ("tolerance", "states", "seed", "frames")
Comparison = record_of(("validation.agreement.compare.compare", COMPARED), optional=True)
FOLDER = ("jobs", "timeout")
Folder = record_of(("validation.agreement.corpus.corpus.check_corpus", FOLDER), optional=True)


@command
def check(
    comparison: Annotated[Any, Comparison],
    folder: Annotated[Any, Folder],
    output: Output,
    model: Annotated[
        str | None, typer.Argument(help="MJCF or URDF file, or the name of a model of the package.")
    ] = None,
    allow_missing: Annotated[
        list[str] | None,
        typer.Option(help="Quantity that may remain without comparison; repeatable."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(help="Another model, with the same joints, in place of our equations."),
    ] = None,
    corpus: Annotated[
        Path | None,
        typer.Option(help="Check all models below this folder, and print what became of each."),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write the report on a corpus to this .md file.")
    ] = None,
) -> None:
    """Compare every quantity of a model, or of all models below a folder, with MuJoCo.

    A quantity that cannot be compared, because the model has a feature without equations, fails
    the check unless it is named by --allow-missing. In a corpus a refused or unreadable model is a
    line of the table; the check fails if one is wrong.
    """
    if corpus is not None:
        if model is not None or against is not None or allow_missing:
            raise ProblemError(
                "--corpus checks a folder of models, and takes no model, --against or "
                "--allow-missing; its table names what was not compared"
            )
        _check_corpus(corpus, given(comparison) | given(folder), markdown, output)
        return
    if model is None:
        raise ProblemError("expected a model, or --corpus FOLDER")
    if markdown is not None or given(folder):
        raise ProblemError("--jobs, --timeout and --markdown are for --corpus FOLDER")
    path, allowed = find_model(model), allow_missing or ()
    options = USUAL | given(comparison)
    if against is None:
        _check_model(path, options, allowed, output)
        return
    from mbcasadi.validation import compare

    other = find_model(str(against))
    with console.progress(output.quiet) as progress:
        progress(f"comparing {path.name} with {other.name}", 0.3)
        agreement = compare(path, other, **options, allow_missing=allowed)
    finish(output, agreement.to_dict, [str(agreement)], agreement.agrees)


def _check_model(
    path: Path, options: dict[str, Any], allowed: Sequence[str], output: Output
) -> None:
    """Compare one model with MuJoCo."""
    from mbcasadi.mjcf import load
    from mbcasadi.system import read_mjcf
    from mbcasadi.validation.agreement import agreement_with_mujoco, judge
    from mbcasadi.validation.agreement.sensor_gaps import rigid_gaps

    tolerance = options.pop("tolerance")
    states, seed, frames = options["states"], options["seed"], options["frames"]
    with console.progress(output.quiet) as progress:
        progress(f"reading {path.name}", 0.0)
        system = read_mjcf(path)
        progress(f"comparing at {states} states", 0.3)
        compiled = load(path)[0]
        entries = agreement_with_mujoco(system, compiled, **options)
        gaps = rigid_gaps(system, compiled, states, seed)
    verdict = judge(entries, tolerance, allowed)
    plant_only = [item.feature for item in system.coverage.items if item.treatment == "plant only"]
    settings = {"model": system.name, "tolerance": tolerance, "plant_only": plant_only}
    rows = {"rows": [entry._asdict() for entry in entries]}
    sensors = {"sensor_gaps": [gap._asdict() for gap in gaps]}
    assert system.tree is not None  # it was read from a model
    features = f"of MuJoCo's simulation alone, in no quantity: {', '.join(plant_only)}"
    items: list[str | Table] = [
        agreement_table(entries, tolerance),
        *frame_lines(system.tree.frames, frames),
        *gap_lines(gaps),
        *([features] if plant_only else []),
        *verdict_lines(verdict),
    ]
    finish(output, lambda: settings | verdict._asdict() | rows | sensors, items, verdict.passed)


def _check_corpus(
    path: Path, options: dict[str, Any], markdown: Path | None, output: Output
) -> None:
    """Check the models below a folder, and exit with status 0 only if none is wrong."""
    from mbcasadi.validation.agreement import check_corpus

    if markdown is not None:
        require_writable(markdown, ".md")
    with console.progress(output.quiet) as progress:
        report = check_corpus(path, progress=progress, **options)
    if markdown is not None:
        markdown.write_text(report.to_markdown(), encoding="utf-8")
    written = [] if markdown is None else [f"report: {markdown.absolute()}"]
    items: list[str | Table] = [corpus_table(report), *_lines(report), *written]
    finish(output, report.to_dict, items, report.passed)


def corpus_table(report: "CorpusReport") -> Table:
    """Return one row for each model, those that are wrong last."""
    order = {outcome: place for place, outcome in enumerate(report.counts)}
    cells = [
        (
            row.model,
            row.outcome,
            row.nv,
            row.nc,
            f"{row.error:.0e}" if row.compared else "-",
            _short(row.reason) or row.worst,
        )
        for row in sorted(report.rows, key=lambda row: (order[row.outcome], row.model))
    ]
    columns = ("model", "outcome", "nv>", "rows>", "error>", "why, or largest error in")
    return table(f"Models in {report.folder} against MuJoCo", columns, cells)


def _lines(report: "CorpusReport") -> Iterator[str]:
    """Yield the counts, and why the check fails."""
    yield report.sentence()
    if report.parts:
        yield f"{len(report.parts)} more files are parts of models"
    wrong = report.by("different", "failed")
    if wrong:
        yield f"not passed: wrong: {', '.join(row.model for row in wrong)}"
    elif not report.passed:
        yield "not passed: no model could be compared"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


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
