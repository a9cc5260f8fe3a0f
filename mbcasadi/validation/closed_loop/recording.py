"""The recording of a closed loop: its ticks, which files keep; and what collects them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.short_text import summarised
from mbcasadi.validation.closed_loop.columns import Columns
from mbcasadi.validation.closed_loop.recorded_ticks import RecordedTicks
from mbcasadi.validation.closed_loop.recording_files import load_recording, save_recording

Array = NDArray[np.float64]


@summarised
@dataclass(frozen=True)
class Recording(RecordedTicks):
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

    @checked
    def save(self, path: str | Path) -> Path:
        """Write the recording as `.npz`, `.csv` or `.h5` (`.hdf5`), by the suffix; return the path.

        An earlier file is replaced once the new one is complete. Columns have names and units:
        in CSV in the heading, `q.crank [rad]`; in npz as JSON in the array `columns`; in HDF5 as
        attributes `names` and `units` of each dataset. All digits are kept.

        Raises:
            ProblemError: another suffix, or no such folder.
            MissingExtraError: HDF5 needs h5py.
        """
        return save_recording(self, Path(path))

    @staticmethod
    @checked
    def load(path: str | Path) -> "Recording":
        """Read what `save` wrote; CSV has no limits of the columns.

        Raises:
            ProblemError: no such file, another suffix, or no recording.
            MissingExtraError: HDF5 needs h5py.
        """
        ticks = load_recording(Path(path))
        return Recording(**{each.name: getattr(ticks, each.name) for each in fields(ticks)})


class Recorder:
    """Collects rows, and returns them as arrays."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Array]] = []
        self._monitor: list[dict[str, Array]] = []

    def add(self, row: Mapping[str, ArrayLike], monitor: dict[str, Array]) -> None:
        """Append one tick; the values of `row` are copied."""
        self._rows.append({name: np.array(value, dtype=float) for name, value in row.items()})
        self._monitor.append(monitor)

    def finish(
        self,
        contact_names: tuple[str, ...],
        events: tuple[str, ...],
        columns: dict[str, Columns],
    ) -> Recording:
        """Return all rows, stacked."""
        arrays = {name: np.array([row[name] for row in self._rows]) for name in self._rows[0]}
        status, flags = (arrays.pop(name).astype(np.int64) for name in ("status", "flags"))
        monitor = {
            name: np.array([row[name] for row in self._monitor]) for name in self._monitor[0]
        }
        return Recording(
            **arrays,
            status=status,
            flags=flags,
            monitor=monitor,
            contact_names=contact_names,
            events=events,
            columns=columns,
        )
