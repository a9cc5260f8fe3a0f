"""The outcome of a comparison of two models."""

import html
import math
from dataclasses import dataclass
from typing import NamedTuple

from mbcasadi.validation.agreement.manifold import Array
from mbcasadi.validation.agreement.sides import Draw


class Difference(NamedTuple):
    """How well one quantity agrees.

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
    def differing(self) -> tuple[str, ...]:
        """Quantities with an error above the tolerance."""
        return tuple(d.quantity for d in self.differences if d.error > self.tolerance)

    @property
    def not_compared(self) -> tuple[str, ...]:
        """Quantities that only one of the models has, and that may not be missing."""
        missing = [d.quantity for d in self.differences if math.isnan(d.error)]
        return tuple(name for name in missing if name not in self.allowed)

    @property
    def agrees(self) -> bool:
        """Whether all quantities were compared, but for those allowed, and agree."""
        return bool(self.differences) and not self.differing and not self.not_compared

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
        rows = [("quantity", "largest error", "verdict", "scale", "unit"), *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        reasons = [f"{d.quantity}: {d.note}" for d in self.differences if d.note]
        return "\n".join([repr(self), *lines, *self.notes, *reasons])

    def _repr_html_(self) -> str:
        cells = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in self._rows()]
        head = "".join(f"<th>{x}</th>" for x in ("quantity", "error", "verdict", "scale", "unit"))
        rows = "".join(f"<tr>{row}</tr>" for row in cells)
        caption = f"<caption>{html.escape(repr(self))}</caption>"
        return f"<table>{caption}<tr>{head}</tr>{rows}</table>"

    def _rows(self) -> list[tuple[str, str, str, str, str]]:
        """Return the cells of each quantity; frames that agree share one row."""
        frames = [d for d in self.differences if "': " in d.quantity and self._agrees(d)]
        shown = [d for d in self.differences if not any(d is f for f in frames)]
        if frames:
            worst = max(frames, key=lambda d: d.error)
            shown.append(worst._replace(quantity=f"{len(frames)} of frames"))
        return [
            (d.quantity, f"{d.error:.1e}", self._verdict(d), f"{d.scale:.3g}", d.unit)
            for d in shown
        ]

    def _agrees(self, difference: Difference) -> bool:
        return difference.error <= self.tolerance

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
