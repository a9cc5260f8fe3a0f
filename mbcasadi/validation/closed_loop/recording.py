"""The recording of a closed loop, one row for each control tick; and what collects it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.short_text import summarised
from mbcasadi.validation.closed_loop.columns import Columns
from mbcasadi.validation.closed_loop.data_frames import recording_frame
from mbcasadi.validation.closed_loop.recording_mcap import write_mcap

Array = NDArray[np.float64]


@summarised
@dataclass(frozen=True)
class Recording:
    """A closed loop, tick by tick; nt ticks, all quantities at the start of their tick.

    Attributes:
        t: (nt,) s.
        q, v, act: (nt, nq), (nt, nv), (nt, na) state of the plant.
        mocap: (nt, 7 nmocap) position, m, and quaternion of the plant's mocap bodies.
        a: (nt, nv) acceleration of the plant.
        ref, tuning, p, mask, z: (nt, ...) inputs of the controller.
        u: (nt, nu) output of the controller for these inputs.
        u_applied: (nt, nu) control that acted in the plant, `delay` ticks later than `u`.
        status: (nt,) codes 0 to 4; zero where the controller has none.
        flags: (nt,) bit sets of `description.status.Flag`; zero where the controller has none.
        check: (nt,) largest residual that the controller itself reports.
        actuator_force: (nt, nv) MuJoCo's `qfrc_actuator`.
        disturbance: (nt, nv) generalised force from outside.
        equality_active: (nt, neq) 1 where MuJoCo enforced this equality constraint, else 0.
        equality_force: (nt, nv) force of MuJoCo's equality constraints.
        other_force: (nt, nv) force of MuJoCo's contacts, limits and dry friction.
        closure: (nt,) m, worst gap of the plant's connects and welds.
        residual: (nt,) worst equality residual of any kind.
        energy: (nt,) J.
        contact_names: nc names.
        contact_force: (nt, nc, 3) N, world axes, on the robot.
        contact_normal, contact_tangential: (nt, nc) N.
        contact_margin: (nt, nc) N, worst `mu f_n - |f_t|` with the plant's friction.
        contact_capacity: (nt, nc) N, tangential force at which it slides, the sum of `mu f_n`.
        contact_position: (nt, nc, 3) m, origin of the contact's frame.
        monitor: name → (nt, size): outputs of the controller's monitor.
        f_measured: (nt, k) N, the force on each contact as n, t1, t2, then measured loop forces;
            where the controller takes it, as it was given: that of the step before.
        events: sentences on what ended the run early (a plant that diverged).
        columns: field → names, units and limits of its columns; `monitor.<name>` for monitors.
    """

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
    def later(self, first: int) -> "Recording":
        """Return the ticks from `first` on.

        Raises:
            ProblemError: there is no such tick.
        """
        if not 0 <= first < self.ticks:
            raise ProblemError(f"first is {first}; expected a tick from 0 to {self.ticks - 1}")
        return self._part(slice(first, None))

    @checked
    def before(self, end: int) -> "Recording":
        """Return the ticks before `end`; without events where the run went on.

        Raises:
            ProblemError: there is no such tick, or none before it.
        """
        if not 0 < end <= self.ticks:
            raise ProblemError(f"end is {end}; expected a number of ticks from 1 to {self.ticks}")
        part = self._part(slice(None, end))
        return part if end == self.ticks else replace(part, events=())

    def _part(self, ticks: slice) -> "Recording":
        rows: dict[str, Any] = {
            part.name: value[ticks]
            for part in fields(self)
            if isinstance(value := getattr(self, part.name), np.ndarray)
            and len(value) == self.ticks
        }
        monitor = {name: value[ticks] for name, value in self.monitor.items()}
        return replace(self, **rows, monitor=monitor)

    def to_dataframe(self) -> Any:
        """Return a `pandas.DataFrame`: a row for each tick, indexed by `t [s]`.

        Columns are named as in CSV, `q.crank [rad]`; `attrs["events"]` holds the events.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return recording_frame(self)

    @checked
    def to_mcap(self, path: str | Path) -> Path:
        """Write the recording as MCAP for Foxglove and PlotJuggler; return the path.

        It holds joint states, poses of free joints and contacts (`/tf`), contact forces, and each
        field with names and units, as messages of ROS 2: these both programs read, and know as
        robot states, transforms and wrenches; `estimation.read_log` reads them too.

        Raises:
            ProblemError: a file that cannot be written.
            MissingExtraError: mcap or mcap-ros2-support is not installed.
        """
        return write_mcap(self, path)


class Recorder:
    """Collects rows of at most so many ticks, and returns them as arrays."""

    def __init__(self, ticks: int) -> None:
        self._ticks, self._count = ticks, 0
        self._rows: dict[str, Array] = {}
        self._monitor: dict[str, Array] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing was recorded."""
        return not self._count

    def add(self, row: Mapping[str, ArrayLike], monitor: Mapping[str, ArrayLike]) -> None:
        """Append one tick; the values are copied."""
        for table, values in ((self._rows, row), (self._monitor, monitor)):
            for name, value in values.items():
                if self._count == 0:
                    table[name] = np.empty((self._ticks, *np.shape(value)))
                table[name][self._count] = value
        self._count += 1

    def finish(
        self,
        contact_names: tuple[str, ...],
        events: tuple[str, ...],
        columns: dict[str, Columns],
    ) -> Recording:
        """Return all rows, stacked."""
        arrays = {name: rows[: self._count] for name, rows in self._rows.items()}
        status, flags = (arrays.pop(name).astype(np.int64) for name in ("status", "flags"))
        monitor = {name: rows[: self._count] for name, rows in self._monitor.items()}
        return Recording(
            **arrays,
            status=status,
            flags=flags,
            monitor=monitor,
            contact_names=contact_names,
            events=events,
            columns=columns,
        )
