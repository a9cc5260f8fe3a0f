"""The models of a corpus with their verdicts: for programs, as data, and as Markdown."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
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


GROUPS_WITH_REASON: tuple[Outcome, ...] = (
    "different",
    "failed",
    "timed out",
    "refused",
    "exact but for",
    "unreadable",
)
COMPARED: tuple[Outcome, ...] = ("exact", "exact but for", "different")


@readable_fields
@summarised
@dataclass(frozen=True)
class CorpusReport:
    """All models of a folder against MuJoCo.

    Attributes:
        folder: as it was named.
        rows: one for each model, sorted by its path.
        parts: path of each file that is a part of models → a file that includes it, or "" where
            none does.
        tolerance: largest relative error that is an agreement.
        states: number of random states.
        versions: of the packages.
    """

    folder: str
    rows: tuple[CorpusRow, ...]
    parts: Mapping[str, str]
    tolerance: float
    states: int
    versions: Mapping[str, str]

    @property
    def counts(self) -> dict[Outcome, int]:
        """Number of models with each outcome, the good ones first."""
        return {outcome: len(self.by(outcome)) for outcome in MEANING}

    @property
    def passed(self) -> bool:
        """Whether a model was compared, and none is wrong: different, or broken off.

        A refused or unreadable model is not wrong, and is not counted as compared.
        """
        return bool(self.by(*COMPARED)) and not self.by(*WRONG)

    @property
    def worst(self) -> CorpusRow | None:
        """The compared model with the largest error."""
        return max(self.by(*COMPARED), key=lambda row: row.error, default=None)

    def by(self, *outcomes: str) -> tuple[CorpusRow, ...]:
        """Return the rows with one of these outcomes."""
        known = [outcome for outcome in outcomes if isinstance(outcome, str)]
        return tuple(row for row in self.rows if row.outcome in known)

    def _summary(self) -> dict[str, object]:
        counts: dict[str, object] = {name: count for name, count in self.counts.items() if count}
        return {"folder": self.folder, "models": len(self.rows)} | counts

    def sentence(self) -> str:
        """Return the counts in one sentence."""
        counts = ", ".join(f"{count} {outcome}" for outcome, count in self.counts.items() if count)
        worst = self.worst
        if worst is None:
            return f"{len(self.rows)} models: {counts}"
        error = f"the largest error is {worst.error:.1g}, {worst.worst} of {worst.model}"
        return f"{len(self.rows)} models: {counts}; {error}"

    def to_dict(self) -> dict[str, object]:
        """Return all fields as plain data, with the verdict and the counts."""
        counts = {str(outcome): count for outcome, count in self.counts.items()}
        fields: dict[str, object] = asdict(self)
        return fields | {"passed": self.passed, "counts": counts}

    def to_markdown(self) -> str:
        """Return the report as Markdown: the counts, the reasons, all models."""
        return "\n".join(self._markdown_lines()) + "\n"

    def _markdown_lines(self) -> Iterator[str]:
        yield from (f"# Models in {_cell(self.folder)}", "", f"{_cell(self.sentence())}.", "")
        tools = ", ".join(f"{name} {self.versions[name]}" for name in ("mbcasadi", "mujoco"))
        yield f"{tools}; {self.states} random states, tolerance {self.tolerance:g}."
        yield from ("", "| outcome | models | meaning |", "|---|---|---|")
        for outcome, count in self.counts.items():
            yield f"| {outcome} | {count} | {MEANING[outcome]} |"
        for outcome in GROUPS_WITH_REASON:
            if self.by(outcome):
                title = outcome.capitalize()
                yield from ("", f"## {title}", "", "| model | reason |", "|---|---|")
                yield from (f"| `{_cell(r.model)}` | {_cell(r.reason)} |" for r in self.by(outcome))
        yield from ("", "## All models", "")
        yield from ("| model | outcome | nv | nu | rows | error | worst in |", "|" + "---|" * 7)
        for row in self.rows:
            error = f"{row.error:.0e}" if row.compared else ""
            sizes = f"{row.nv} | {row.nu} | {row.nc}"
            worst = _cell(row.worst)
            yield f"| `{_cell(row.model)}` | {row.outcome} | {sizes} | {error} | {worst} |"
        if self.parts:
            yield from ("", f"Parts of models, not compared by themselves: {len(self.parts)}.")


def _cell(text: str) -> str:
    """Return text that can stand in a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
