"""The output of `check --corpus`."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from mbcasadi.cli import console
from mbcasadi.errors import ProblemError

if TYPE_CHECKING:  # so that `--help` does not import CasADi and MuJoCo
    from mbcasadi.validation.agreement import CorpusReport

LONGEST = 160  # characters of a reason in the table; JSON and Markdown have all of it


def check_corpus_folder(
    folder: Path, as_json: bool, *, quiet: bool, markdown: Path | None, **options: Any
) -> None:
    """Check the models below a folder, and exit with status 0 only if none is wrong.

    Args:
        folder, markdown: as the command takes them.
        as_json: print JSON and nothing else.
        quiet: no progress.
        options: of `check_corpus`; None is its default.
    """
    from mbcasadi.validation.agreement import check_corpus

    if markdown is not None:
        _require_writable(markdown)
    given = {name: value for name, value in options.items() if value is not None}
    with console.progress(quiet) as progress:
        report = check_corpus(folder, progress=progress, **given)
    if markdown is not None:
        markdown.write_text(report.to_markdown(), encoding="utf-8")
    if as_json:
        console.emit_json(report.to_dict())
    else:
        screen = console.stdout()
        screen.print(corpus_table(report))
        for line in _lines(report):
            screen.print(line, markup=False, soft_wrap=True)
        if markdown is not None:
            screen.print(f"report: {markdown.absolute()}", markup=False, soft_wrap=True)
    console.exit_unless(report.passed)


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
    return console.table(f"Models in {report.folder} against MuJoCo", columns, cells)


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


def _require_writable(path: Path) -> None:
    parent = path.absolute().parent
    if path.suffix != ".md" or not parent.is_dir() or not os.access(parent, os.W_OK):
        raise ProblemError(f"{path}: expected a file that ends with .md, in a folder that exists")
