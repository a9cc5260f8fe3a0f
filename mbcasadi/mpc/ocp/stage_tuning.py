"""Numbers of a problem that may change between ticks: the slice `tuning` of p.

What an option `tunable` names becomes an entry, with the parts' own numbers as defaults:

- "weights": of costs, `Q.<state>`, `R.<actuator>`, `S.<actuator>`, `Q_end.<state>` (`Q.factor` of a
  matrix that is not diagonal), `feet.weight.<axis>`, `actuator_force.weight.<actuator>`,
  `<task>.weight.<row>`;
- "gains": `<task>.kp.<row>`, `<task>.kd.<row>`;
- "friction": `<contact>.friction`, as planned with;
- "limits": `u.<actuator>.lower`, `.upper`, and `du`, `q`, `v` alike, of `StageBounds`; those of
  joints, distances, planes and angular momentum as in inverse dynamics. Bounds that are infinite
  stay so.

Everything else is a constant of the C.
"""

from collections.abc import Mapping, Sequence

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import TuningParameter
from mbcasadi.errors import ProblemError
from mbcasadi.qp.input_guard import is_within
from mbcasadi.qp.rows import Bounded, moved_ends
from mbcasadi.shapes import require_choice, require_name

Array = NDArray[np.float64]

TUNABLE = ("weights", "gains", "friction", "limits")
"""What may be tuned in an optimal control problem."""

TUNING = "tuning"
"""Slice of p, the last one, the same at all samples."""


class StageTuning:
    """The entries of a stage, in the order in which its parts name them.

    Attributes:
        tunable: of `TUNABLE`.
        symbols: of the entries, by name.
        entries: their defaults and bounds.
        ordered: names of entries of which the first one may not be larger than the second.
    """

    def __init__(self, tunable: Sequence[str] = ()) -> None:
        for each in tunable:
            require_choice("tunable", each, TUNABLE)
        self.tunable = tuple(tunable)
        self.symbols = dict[str, ca.SX]()
        self.entries = list[TuningParameter]()
        self.ordered = list[tuple[str, str]]()

    def add(self, entry: TuningParameter) -> ca.SX:
        """Return the symbol of a new entry.

        Raises:
            ProblemError: another part has an entry of this name.
        """
        if entry.name in self.symbols:
            raise ProblemError(
                f"two tunable numbers are named {entry.name!r}; expected one Cost with each of Q, "
                "R, S and Q_end, and one StageBounds, or another name of a task"
            )
        self.entries.append(entry)
        self.symbols[entry.name] = ca.SX.sym(entry.name)
        return self.symbols[entry.name]

    def numbers(
        self, kind: str, names: Sequence[str], values: Array, unit: str = "", least: float = 0.0
    ) -> ca.SX | ca.DM:
        """Return (n,) numbers of a part, entries where their kind is tunable.

        Args:
            kind: of `TUNABLE`.
            names: of the entries.
            values: (n,) defaults.
            unit: of all.
            least: of all.
        """
        if kind not in self.tunable:
            return ca.DM(np.asarray(values, dtype=float))
        each = zip(names, np.asarray(values, dtype=float).tolist(), strict=True)
        symbols = [self.add(TuningParameter(name, x, least, unit=unit)) for name, x in each]
        return ca.vertcat(ca.SX(0, 1), *symbols)

    def rows(self, names: Sequence[str], values: ca.SX, ends: Array) -> list[Bounded] | None:
        """Return bounded values as rows with tunable ends; None where limits are not tunable.

        Args:
            names: of the values, also those of their rows.
            values: (n,).
            ends: (n, 2) defaults; rows without any are left out.
        """
        if "limits" not in self.tunable:
            return None
        rows = []
        for i, (low, high) in enumerate(np.asarray(ends, dtype=float).tolist()):
            sides = [f"{names[i]}.lower", f"{names[i]}.upper"]
            tuned = [
                self.add(TuningParameter(side, end, -np.inf)) if np.isfinite(end) else end
                for side, end in zip(sides, (low, high), strict=True)
            ]
            if np.isfinite([low, high]).all():
                self.ordered.append((sides[0], sides[1]))
            if np.isfinite([low, high]).any():
                rows.append(moved_ends(Bounded(values[i], low, high, name=names[i]), *tuned))
        return rows

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The slice of p; none where nothing is tunable.

        Raises:
            ProblemError: nothing that may be tuned is there.
        """
        if not self.entries and self.tunable:
            raise ProblemError(
                f"tunable={self.tunable}, and no part has such numbers; expected parts with "
                "weights, gains, friction or finite limits"
            )
        names, units = (tuple(getattr(x, key) for x in self.entries) for key in ("name", "unit"))
        return (Slot(TUNING, names, units),) if self.entries else ()


def is_tuned(
    tuning: ca.MX, entries: Sequence[TuningParameter], ordered: Sequence[tuple[str, str]]
) -> ca.MX:
    """Return whether the entries of a tuning are within their bounds, and in order."""
    places = {entry.name: i for i, entry in enumerate(entries)}
    valid = is_within(tuning, [x.lower for x in entries], [x.upper for x in entries])
    for low, high in ordered:
        valid = ca.logic_and(valid, tuning[places[low], 0] <= tuning[places[high], 0])
    return valid


def tuned_column(
    entries: Sequence[TuningParameter],
    ordered: Sequence[tuple[str, str]],
    values: Mapping[str, float],
) -> Array:
    """Return the entries with these values, defaults elsewhere.

    Raises:
        UnknownNameError: no such entry.
        ProblemError: a value out of its bounds, or ends that are not in order.
    """
    numbers = {entry.name: entry.default for entry in entries}
    for name, value in values.items():
        require_name("entry of tuning", name, [*numbers])
        numbers[name] = value
    require_tuned(entries, ordered, np.array([*numbers.values()], dtype=float))
    return np.array([*numbers.values()], dtype=float)


def require_tuned(
    entries: Sequence[TuningParameter], ordered: Sequence[tuple[str, str]], column: Array
) -> None:
    """Raise `ProblemError` unless numbers are within their bounds, and in order."""
    numbers = dict(zip([entry.name for entry in entries], column.tolist(), strict=True))
    for entry in entries:
        if not entry.lower <= numbers[entry.name] <= entry.upper:
            raise ProblemError(
                f"tuning {entry.name!r} = {numbers[entry.name]:g}; expected a number from "
                f"{entry.lower:g} to {entry.upper:g}"
            )
    for low, high in ordered:
        if numbers[low] > numbers[high]:
            raise ProblemError(
                f"tuning {low!r} = {numbers[low]:g} and {high!r} = {numbers[high]:g}; expected the "
                "first one not above the second"
            )
