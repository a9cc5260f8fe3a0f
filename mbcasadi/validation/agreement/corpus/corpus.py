"""`check_corpus`: every model below a folder against MuJoCo, each in a process of its own."""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import MbcasadiError, ModelError, UnsupportedFeatureError
from mbcasadi.mjcf import load
from mbcasadi.progress import Progress, ProgressReporter
from mbcasadi.shapes import require_positive, require_whole
from mbcasadi.system import read_mjcf
from mbcasadi.validation.agreement.agreement import EXACT
from mbcasadi.validation.agreement.compare import agreement_with_mujoco
from mbcasadi.validation.agreement.corpus.files import CorpusFiles, corpus_files, format_of
from mbcasadi.validation.agreement.corpus.isolated import STARTING, BrokenOff, run_isolated
from mbcasadi.validation.agreement.corpus.report import (
    CorpusReport,
    CorpusRow,
    Outcome,
    outcome_of,
    reason_of,
)
from mbcasadi.validation.versions import package_versions

COMPILING = "MuJoCo's compiler"
READING = "reading"
COMPARING = "comparing"
"""The stages of a comparison."""


@dataclass(frozen=True)
class CorpusOptions:
    """How each model is compared.

    Attributes:
        states: number of random states.
        seed: of the random states.
        frames: number of named sites, and of bodies, to compare.
        tolerance: largest relative error that is an agreement.
    """

    states: int
    seed: int
    frames: int
    tolerance: float


def check_one(
    path: Path, name: str, options: CorpusOptions, enter: Callable[[str], None]
) -> CorpusRow:
    """Compare one model with MuJoCo.

    Args:
        path: of the model.
        name: that the row gives it.
        options: of the comparison.
        enter: called with the name of each stage as it begins.
    """
    begin = perf_counter()
    kind = format_of(path)

    def row(**fields: object) -> CorpusRow:
        return CorpusRow(name, kind, seconds=perf_counter() - begin, **fields)  # type: ignore[arg-type]

    enter(COMPILING)
    try:
        model, _ = load(path)
    except ModelError as error:
        return row(outcome="unreadable", reason=str(error))
    sizes = {size: int(getattr(model, size)) for size in ("nq", "nv", "nu", "na")}
    if not model.nv:
        return row(outcome="nothing moves", **sizes)
    try:
        enter(READING)
        system = read_mjcf(path)
        enter(COMPARING)
        entries = agreement_with_mujoco(
            system, model, states=options.states, seed=options.seed, frames=options.frames
        )
    except UnsupportedFeatureError as error:
        return row(outcome="refused", reason=str(error), **sizes)
    except MbcasadiError as error:
        return row(outcome="failed", reason=f"{type(error).__name__}: {error}", **sizes)
    compared = [entry for entry in entries if not math.isnan(entry.error)]
    worst = max(compared, key=lambda entry: entry.error, default=None)
    return row(
        outcome=outcome_of(entries, options.tolerance),
        reason=reason_of(entries, options.tolerance),
        **sizes,
        nc=system.nc,
        compared=len(compared),
        worst=worst.quantity if worst else "",
        error=worst.error if worst else math.nan,
        refused=tuple(entry.quantity for entry in entries if math.isnan(entry.error)),
        different=tuple(entry.quantity for entry in entries if entry.error > options.tolerance),
    )


STATES = 5
"""Random states of each model; a single model is checked at 20."""

TIMEOUT = 600.0
"""s, of each model."""


@checked
def check_corpus(
    folder: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    states: int = STATES,
    seed: int = 0,
    tolerance: float = EXACT,
    frames: int = 2,
    timeout: float = TIMEOUT,
    progress: Progress | None = None,
) -> CorpusReport:
    """Compare every model below a folder with MuJoCo, each in a process that may crash or hang.

    Models are MJCF and URDF files, by their root element; a file that another one includes, or
    whose root is `mujocoinclude`, is a part of a model. No result depends on `jobs`.

    Args:
        folder: its whole tree is searched.
        jobs: number of processes; the cores by default.
        states: number of random states.
        seed: of the random states.
        tolerance: largest relative error that is an agreement.
        frames: number of named sites, and of bodies, to compare.
        timeout: s, for each model.
        progress: called with what is being done and the fraction that is done.

    Raises:
        ModelError: there is no such folder, or no model in it.
    """
    require_whole(1, states=states, **({} if jobs is None else {"jobs": jobs}))
    require_whole(0, seed=seed, frames=frames)
    require_positive(tolerance=tolerance, timeout=timeout)
    files = corpus_files(Path(folder))
    options = CorpusOptions(states, seed, frames, tolerance)
    root = Path(folder).resolve()
    names = [path.relative_to(root).as_posix() for path in files.models]
    arguments = [(path, name, options) for path, name in zip(files.models, names, strict=True)]
    rows: dict[int, CorpusRow] = {}
    report = ProgressReporter(progress)
    report(f"{len(names)} models", 0.0)
    for place, result in run_isolated(check_one, arguments, jobs or os.cpu_count() or 1, timeout):
        if isinstance(result, BrokenOff):
            rows[place] = _broken_row(files.models[place], names[place], result)
        else:
            rows[place] = result
        row = rows[place]
        text = f"{len(rows)} of {len(names)}: {row.model}: {row.outcome}"
        report(text, len(rows) / len(names))
    return CorpusReport(
        folder=str(folder),
        rows=tuple(rows[place] for place in sorted(rows)),
        parts=_named_parts(files, root),
        tolerance=tolerance,
        states=states,
        versions=package_versions(),
    )


def _broken_row(path: Path, name: str, broken: BrokenOff) -> CorpusRow:
    """Return the row of a model whose comparison did not end."""
    outcome: Outcome = "timed out" if broken.timed_out else "failed"
    if broken.stage in {COMPILING, STARTING}:
        outcome = "unreadable"
    reason = f"{broken.stage}: {broken.reason}"
    return CorpusRow(name, format_of(path), outcome, reason, seconds=broken.seconds)


def _named_parts(files: CorpusFiles, root: Path) -> dict[str, str]:
    """Return path of each part → path of a file that includes it, or ""."""
    return {
        part.relative_to(root).as_posix(): ("" if by == part else by.relative_to(root).as_posix())
        for part, by in files.parts.items()
    }
