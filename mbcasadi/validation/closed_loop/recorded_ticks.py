"""The ticks of a closed loop as arrays, one row for each control tick."""

from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.short_text import summarised
from mbcasadi.validation.closed_loop.columns import Columns

Array = NDArray[np.float64]


@summarised
@dataclass(frozen=True)
class RecordedTicks:
    """Ticks of a closed loop; `Recording` says what each field is."""

    t: Array
    q: Array
    v: Array
    act: Array
    a: Array
    ref: Array
    tuning: Array
    p: Array
    mask: Array
    z: Array
    u: Array
    u_applied: Array
    status: NDArray[np.int64]
    flags: NDArray[np.int64]
    check: Array
    actuator_force: Array
    disturbance: Array
    equality_active: Array
    equality_force: Array
    other_force: Array
    closure: Array
    residual: Array
    energy: Array
    contact_names: tuple[str, ...]
    contact_force: Array
    contact_normal: Array
    contact_tangential: Array
    contact_margin: Array
    contact_capacity: Array
    contact_position: Array
    monitor: dict[str, Array] = field(default_factory=dict)
    events: tuple[str, ...] = ()
    f_measured: Array = field(default_factory=lambda: np.zeros((0, 0)))
    mocap: Array = field(default_factory=lambda: np.zeros((0, 0)))
    columns: dict[str, Columns] = field(default_factory=dict)

    def _summary(self) -> dict[str, object]:
        return {
            "ticks": self.ticks,
            "duration": f"{self.t[-1]:.4g} s" if len(self.t) else "",
            "nq": self.q.shape[1],
            "nu": self.u.shape[1],
            "contacts": self.contact_names,
            "events": self.events,
        }

    @property
    def ticks(self) -> int:
        """Number of ticks."""
        return len(self.t)

    @property
    def mocap_or_none(self) -> Array | None:
        """`mocap`, or None in a recording without it."""
        return self.mocap if self.mocap.size else None

    @checked
    def later(self, first: int) -> Self:
        """Return the ticks from `first` on.

        Raises:
            ProblemError: there is no such tick.
        """
        if not 0 <= first < self.ticks:
            raise ProblemError(f"first is {first}; expected a tick from 0 to {self.ticks - 1}")
        rows: dict[str, Any] = {
            part.name: value[first:]
            for part in fields(self)
            if isinstance(value := getattr(self, part.name), np.ndarray)
            and len(value) == self.ticks
        }
        monitor = {name: value[first:] for name, value in self.monitor.items()}
        return replace(self, **rows, monitor=monitor)
