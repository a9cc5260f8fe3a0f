"""The result of a simulation: NumPy arrays, one row for each time."""

import csv
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import SimulationError
from mbcasadi.extras import optional_module
from mbcasadi.short_text import summarised
from mbcasadi.simulation.events import EventRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]


@summarised
@dataclass(frozen=True)
class Trajectory:
    """Motion of a mechanism, one row for each of nt times.

    The time of an event or switch appears twice: before it and after it.

    Attributes:
        t: (nt,) s.
        q, v, a: (nt, nq), (nt, nv), (nt, nv) configuration, velocity, acceleration.
        lam: (nt, nc) multipliers of minimum Euclidean norm, which depend on the units of rows that
            repeat. Where a row vanishes they grow without bound, and at the very pose they say
            nothing about it.
        f_c: (nt, nv) constraint force.
        u, act: (nt, nu), (nt, na) control and activations.
        mask: (nt, nc) which rows were active.
        energy: (nt,) kinetic and potential energy, J; NaN where the system has no potential.
        drift: (nt,) largest residual of the active rows of phi, in the rows' units.
        drift_velocity: (nt,) largest residual of the active rows of psi.
        rank: (nt,) rank of the active rows.
        events: records of the events and switches, in order.
        steps, rejected, evaluations: accepted and rejected steps, and how often the equations of
            motion were evaluated.
        stopped: name of the event that ended the simulation, "" if it ran to its end.
    """

    t: Array
    q: Array
    v: Array
    a: Array
    lam: Array
    f_c: Array
    u: Array
    act: Array
    mask: Array
    energy: Array
    drift: Array
    drift_velocity: Array
    rank: NDArray[np.int64]
    events: tuple[EventRecord, ...] = ()
    steps: int = 0
    rejected: int = 0
    evaluations: int = 0
    stopped: str = ""

    def _summary(self) -> dict[str, object]:
        return {
            "time": f"{self.t[0]:.4g} to {self.t[-1]:.4g} s" if len(self.t) else "",
            "samples": len(self.t),
            "nq": self.q.shape[1],
            "events": [event.name for event in self.events],
            "largest drift": max(self.drift, default=0.0),
            "stopped": self.stopped or "no",
        }

    def arrays(self) -> dict[str, Array]:
        """Return all arrays by name."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}

    @checked
    def save_npz(self, path: str | os.PathLike[str]) -> Path:
        """Write all arrays for `numpy.load`; the file appears when it is complete."""
        with _complete_or_not(Path(path)) as part, part.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **self.arrays())
        return Path(path)

    @checked
    def save_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write a table with a line for each time and a heading such as `q0`; complete or not."""
        columns = {name: value.reshape(len(self.t), -1) for name, value in self.arrays().items()}
        heading = [
            name if getattr(self, name).ndim == 1 else f"{name}{i}"
            for name, value in columns.items()
            for i in range(value.shape[1])
        ]
        with (
            _complete_or_not(Path(path)) as part,
            part.open("w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.writer(file)
            writer.writerow(heading)
            writer.writerows(np.hstack(list(columns.values())).tolist())
        return Path(path)

    def plot(self) -> "Figure":
        """Return a matplotlib figure: configuration, velocity, energy and drift over time.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        module = optional_module("matplotlib.figure", "tools", "Trajectory.plot")
        figure: Figure = module.Figure(figsize=(8, 9), layout="constrained")
        axes = figure.subplots(4, 1, sharex=True)
        for axis, (label, values) in zip(axes, _panels(self).items(), strict=True):
            axis.plot(self.t, values, linewidth=1)
            axis.set_ylabel(label)
            for event in self.events:
                axis.axvline(event.time, color="0.7", linewidth=0.8)
        axes[3].set_yscale("log")
        axes[3].set_xlabel("t [s]")
        return figure


def _panels(trajectory: Trajectory) -> dict[str, Array]:
    floor = np.finfo(float).tiny  # zero has no place on a logarithmic axis
    return {
        "q": trajectory.q,
        "v": trajectory.v,
        "energy [J]": trajectory.energy,
        "drift": np.maximum(np.column_stack([trajectory.drift, trajectory.drift_velocity]), floor),
    }


@contextmanager
def _complete_or_not(path: Path) -> Iterator[Path]:
    """Give a file beside `path` to write to, which takes its place when that has succeeded."""
    if path.is_dir():
        raise SimulationError(f"{path} is a folder; expected the name of a file")
    with tempfile.NamedTemporaryFile(
        dir=path.parent, prefix=path.name, suffix=".part", delete=False
    ) as file:
        part = Path(file.name)
    try:
        yield part
    except BaseException:
        part.unlink()
        raise
    part.chmod(0o666 & ~_umask())
    part.replace(path)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
