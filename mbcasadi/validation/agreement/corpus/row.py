"""One model of a corpus, and its verdict."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mbcasadi.readable_signatures import readable_fields
from mbcasadi.short_text import summarised
from mbcasadi.validation.agreement.agreement import Agreement

Outcome = Literal[
    "exact",
    "exact but for",
    "nothing moves",
    "refused",
    "unreadable",
    "timed out",
    "different",
    "failed",
]

MEANING: dict[Outcome, str] = {
    "exact": "every quantity was compared and agrees",
    "exact but for": "agrees, but for single members that are refused",
    "nothing moves": "there is no joint, hence nothing to compare",
    "refused": "a feature without equations changes M, h, passive forces or rows",
    "unreadable": "MuJoCo does not compile the file",
    "timed out": "the comparison did not end within the time limit",
    "different": "a quantity differs from MuJoCo's",
    "failed": "the comparison broke off",
}
"""What each outcome says, the good ones first."""

WRONG: tuple[Outcome, ...] = ("different", "failed")

EQUATIONS = (
    "mass_matrix",
    "bias_force",
    "passive_force",
    "constraint",
    "constraint_jacobian",
    "constraint_bias",
)
"""Members without which there is no forward dynamics."""


@readable_fields
@summarised
@dataclass(frozen=True)
class CorpusRow:
    """One model of a corpus.

    Attributes:
        model: its path below the folder, with slashes.
        kind: "MJCF" or "URDF".
        outcome: the verdict; `MEANING` says what each of them means.
        reason: why it is not simply exact: what is refused, different or missing; "" where it is.
        nq, nv, nu, na, nc: its sizes; zeros where it could not be read.
        compared: number of quantities that were compared.
        worst: the quantity with the largest relative error.
        error: that error; NaN where nothing was compared.
        refused: members that were not compared.
        different: quantities with an error above the tolerance.
        seconds: that the model took.
    """

    model: str
    kind: Literal["MJCF", "URDF"]
    outcome: Outcome
    reason: str = ""
    nq: int = 0
    nv: int = 0
    nu: int = 0
    na: int = 0
    nc: int = 0
    compared: int = 0
    worst: str = ""
    error: float = math.nan
    refused: tuple[str, ...] = ()
    different: tuple[str, ...] = ()
    seconds: float = 0.0


def outcome_of(entries: Sequence[Agreement], tolerance: float) -> Outcome:
    """Return the verdict on the entries of a comparison."""
    missing = {entry.quantity for entry in entries if math.isnan(entry.error)}
    if any(entry.error > tolerance for entry in entries):
        return "different"
    if missing.intersection(EQUATIONS) or len(missing) == len(entries):
        return "refused"
    return "exact but for" if missing else "exact"


def reason_of(entries: Sequence[Agreement], tolerance: float) -> str:
    """Return what differs and how much, else what was not compared and why."""
    differing = sorted((e for e in entries if e.error > tolerance), key=lambda e: -e.error)
    if differing:
        return ", ".join(f"{entry.quantity} by {entry.error:.1g}" for entry in differing)
    notes: dict[str, list[str]] = {}
    for entry in entries:
        if math.isnan(entry.error):
            notes.setdefault(_short(entry), []).append(entry.quantity)
    return "; ".join(f"{', '.join(names)}: {note}" for note, names in notes.items())


def _short(entry: Agreement) -> str:
    """Return the note without the name of the member, which leads it in most."""
    return entry.note.removeprefix(f"{entry.quantity}: ").strip()
