"""The comparison of one model of a corpus, in a process of its own."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from mbcasadi.errors import MbcasadiError, ModelError, UnsupportedFeatureError
from mbcasadi.mjcf import load
from mbcasadi.system import read_mjcf
from mbcasadi.validation.agreement.agreement import agreement_with_mujoco
from mbcasadi.validation.agreement.corpus.files import format_of
from mbcasadi.validation.agreement.corpus.row import CorpusRow, outcome_of, reason_of

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
