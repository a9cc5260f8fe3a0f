"""The outcome of a comparison, and its verdict."""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.shapes import require_name
from mbcasadi.validation.agreement.manifold import Array
from mbcasadi.validation.agreement.mujoco_values import Draw
from mbcasadi.validation.agreement.quantities import Evaluation

EXACT = 1e-10  # rounding of two independent algorithms, thirty bodies deep


class Agreement(NamedTuple):
    """How well one quantity of a system agrees with MuJoCo.

    Attributes:
        quantity: name of the `System` member, or of a frame's Function.
        error: worst relative error over all states, infinite where the member is NaN; NaN where
            nothing could be compared.
        state: index of the state with the worst error.
        unit: of the quantity.
        note: why nothing could be compared, or how the reference was computed.
    """

    quantity: str
    error: float
    state: int
    unit: str
    note: str = ""

    @property
    def agrees(self) -> bool:
        """Whether both agree to rounding; False where nothing could be compared."""
        return self.error <= EXACT


class Difference(NamedTuple):
    """How well one quantity of two models agrees.

    Attributes:
        quantity: name of a `System` member, of a frame's Function, or of what the rows of
            constraints mean together.
        error: largest relative error over all states; NaN where nothing could be compared.
        scale: largest entry of the second model's value there.
        unit: of the quantity.
        note: why nothing could be compared, or how.
        state, other_state: where the error is largest, in the coordinates of the first and of the
            second model: q, v, u, act, and the arguments q0, q1, dv of `difference` and
            `integrate`.
        value, other_value: of the first and the second model there, both in the second's order.
    """

    quantity: str
    error: float
    scale: float
    unit: str
    note: str = ""
    state: Draw | None = None
    other_state: Draw | None = None
    value: Array | None = None
    other_value: Array | None = None


class AgreementVerdict(NamedTuple):
    """The outcome of a comparison.

    Attributes:
        passed: everything was compared, or may be missing, and agrees.
        differing: quantities whose error is above the tolerance.
        not_compared: quantities that have no value on one of the two sides, and may not be
            missing: members that the system refuses, or that MuJoCo gives no value of.
        allowed: those that may be missing.
    """

    passed: bool
    differing: tuple[str, ...]
    not_compared: tuple[str, ...]
    allowed: tuple[str, ...]


@checked
def judge(
    entries: Sequence[Agreement | Difference],
    tolerance: float = EXACT,
    allow_missing: Sequence[str] = (),
) -> AgreementVerdict:
    """Return the verdict on the entries of `compare` or `agreement_with_mujoco`.

    A refused member is no agreement: the dynamics of a model whose `passive_force` is refused
    cannot be formed, and a model whose `potential_energy` is refused is checked in part only. So
    each quantity that was not compared fails the check, unless it is named in `allow_missing`.

    Args:
        entries: of the comparison.
        tolerance: largest relative error.
        allow_missing: quantities that need not be compared.

    Raises:
        UnknownNameError: a name in `allow_missing` is no quantity of the comparison.
    """
    for name in allow_missing:
        require_name("quantity", name, [entry.quantity for entry in entries])
    missing = [entry.quantity for entry in entries if math.isnan(entry.error)]
    differing = tuple(entry.quantity for entry in entries if entry.error > tolerance)
    not_compared = tuple(name for name in missing if name not in allow_missing)
    compared_any = len(missing) < len(entries)
    return AgreementVerdict(
        passed=compared_any and not differing and not not_compared,
        differing=differing,
        not_compared=not_compared,
        allowed=tuple(name for name in missing if name in allow_missing),
    )


COLUMNS = ("quantity", "largest error", "verdict", "scale", "unit")


@dataclass(frozen=True, repr=False)
class ModelAgreement:
    """Two models, quantity by quantity.

    Attributes:
        names: of the two models.
        differences: one for each quantity.
        tolerance: largest relative error that is an agreement.
        allowed: quantities that need not be compared.
        notes: how coordinates and rows were matched.
    """

    names: tuple[str, str]
    differences: tuple[Difference, ...]
    tolerance: float
    allowed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def _judged(self) -> AgreementVerdict:
        return judge(self.differences, self.tolerance, self.allowed)

    @property
    def differing(self) -> tuple[str, ...]:
        """Quantities with an error above the tolerance."""
        return self._judged.differing

    @property
    def not_compared(self) -> tuple[str, ...]:
        """Quantities that only one of the models has, and that may not be missing."""
        return self._judged.not_compared

    @property
    def agrees(self) -> bool:
        """Whether all quantities were compared, but for those allowed, and agree."""
        return self._judged.passed

    @property
    def worst(self) -> Difference:
        """The quantity with the largest error, and where it has it."""
        compared = [d for d in self.differences if not math.isnan(d.error)]
        return max(compared, key=lambda d: d.error, default=self.differences[0])

    def __getitem__(self, quantity: str) -> Difference:
        """Return one quantity's difference.

        Raises:
            KeyError: there is none of this name.
        """
        return {d.quantity: d for d in self.differences}[quantity]

    def _verdict(self, difference: Difference) -> str:
        """Return "agrees", "DIFFERS" or "not compared"."""
        if math.isnan(difference.error):
            return "not compared"
        return "agrees" if difference.error <= self.tolerance else "DIFFERS"

    def __repr__(self) -> str:
        compared = len(self.differences) - sum(math.isnan(d.error) for d in self.differences)
        head = f"ModelAgreement('{self.names[0]}' and '{self.names[1]}'"
        worst = self.worst
        text = f"{compared} quantities agree to {worst.error:.1g}"
        if self.differing:
            count = len(self.differing)
            text = f"{count} of {compared} quantities differ, {worst.quantity} by {worst.error:.2g}"
        missing = f", {len(self.not_compared)} not compared" if self.not_compared else ""
        return f"{head}: {text}{missing})"

    def __str__(self) -> str:
        rows = [COLUMNS, *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        reasons = [f"{d.quantity}: {d.note}" for d in self.differences if d.note]
        return "\n".join([repr(self), *lines, *self.notes, *reasons])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{x}</th>" for x in COLUMNS)
        cells = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in self._rows()]
        rows = "".join(f"<tr>{row}</tr>" for row in cells)
        caption = f"<caption>{html.escape(repr(self))}</caption>"
        return f"<table>{caption}<tr>{head}</tr>{rows}</table>"

    def _rows(self) -> list[tuple[str, ...]]:
        """Return the cells of each quantity; frames that agree share one row."""
        agreeing = [d for d in self.differences if self._verdict(d) == "agrees"]
        frames = [d for d in agreeing if is_frame(d.quantity)]
        shown = [d for d in self.differences if not any(d is f for f in frames)]
        if frames:
            worst = max(frames, key=lambda d: d.error)
            shown.append(worst._replace(quantity=f"{len(frames)} of frames"))
        return [
            (d.quantity, f"{d.error:.1e}", self._verdict(d), f"{d.scale:.3g}", d.unit)
            for d in shown
        ]

    def to_dict(self) -> dict[str, object]:
        """Return the outcome as plain data, without states."""
        rows = [
            {"quantity": d.quantity, "error": d.error, "scale": d.scale, "unit": d.unit,
             "verdict": self._verdict(d), "note": d.note}
            for d in self.differences
        ]  # fmt: skip
        return {
            "models": list(self.names),
            "passed": self.agrees,
            "tolerance": self.tolerance,
            "differing": list(self.differing),
            "not_compared": list(self.not_compared),
            "notes": list(self.notes),
            "rows": rows,
        }


def is_frame(name: str) -> bool:
    """Return whether a quantity is a Function of a frame."""
    return "': " in name


def relative_error(value: Array, reference: Evaluation) -> float:
    """Return the largest difference over the largest reference, both over their sizes.

    Infinite where the value is NaN or has another shape. NaN entries of the reference are left
    out; where it has no other ones, the error is NaN.
    """
    if value.size != reference.value.size:
        return math.inf
    expected = reference.value / reference.size
    compared = ~np.isnan(expected)
    if expected.size and not np.any(compared):
        return math.nan
    difference = np.abs(np.reshape(value, expected.shape) / reference.size - expected)[compared]
    error = float(np.max(difference, initial=0.0))
    largest = float(np.max(np.abs(expected[compared]), initial=0.0))
    return math.inf if math.isnan(error) else error / max(largest, reference.share)


def is_worse(error: float, than: float) -> bool:
    """Return whether an error is larger than another one, which may be NaN."""
    return error > than or (math.isnan(than) and not math.isnan(error))
