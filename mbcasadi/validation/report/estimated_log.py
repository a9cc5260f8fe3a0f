"""A robot's log as an estimator sees it: how good its samples are, and what was made of them."""

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.estimation import Estimates, Estimator, LoggedInputs
from mbcasadi.short_text import summarised
from mbcasadi.text_files import write_whole

Array = NDArray[np.float64]


class SensorRow(NamedTuple):
    """A sensor in the log.

    Attributes:
        name: of the sensor.
        valid: share of the ticks with a sample of it.
    """

    name: str
    valid: float


class InnovationRow(NamedTuple):
    """Distances of samples from what was expected, in standard deviations.

    Attributes:
        name: of the sensor, or of the landmark.
        used: share of the ticks that have one.
        rms, largest: of these. Of n components rms is √n where the noise is as the file says:
            1 for an encoder, 1.7 for a foot.
    """

    name: str
    used: float
    rms: float
    largest: float


class Part(NamedTuple):
    """A matrix (ticks, n) and the names of its columns."""

    values: Array
    names: tuple[str, ...]


@summarised
@dataclass(frozen=True)
class EstimatedLog:
    """What an estimator says about a robot's log.

    Attributes:
        estimator: that was run.
        logged: its inputs from the log.
        said: its outputs.
    """

    estimator: Estimator
    logged: LoggedInputs
    said: Estimates

    def _summary(self) -> dict[str, object]:
        return {"estimator": self.estimator.name, "ticks": self.said.t.size}

    @property
    def sensors(self) -> tuple[SensorRow, ...]:
        """The sensors of the estimator, and how often each has a sample."""
        share = self.logged.inputs["valid"].mean(axis=0)
        rows = {s.valid: SensorRow(s.name, float(share[s.valid])) for s in self.estimator.sensors}
        return tuple(rows[k] for k in sorted(rows))

    @property
    def innovations(self) -> tuple[InnovationRow, ...]:
        """What was expected of samples, and what came."""
        rows = []
        for name, distance in zip(self._names("residual"), self.said.residual.T, strict=True):
            there = distance[distance != 0]
            rms = float(np.sqrt(np.mean(there**2))) if there.size else 0.0
            used = there.size / distance.size
            rows.append(InnovationRow(name, used, rms, float(there.max(initial=0.0))))
        return tuple(rows)

    @property
    def statuses(self) -> dict[str, int]:
        """Number of ticks by the text of the estimator's status."""
        texts = self.estimator.statuses
        counts = np.bincount(self.said.status, minlength=len(texts))
        return {text: int(n) for text, n in zip(texts, counts, strict=True) if n}

    @property
    def parts(self) -> dict[str, Part]:
        """What was estimated by name: t, q, v, states, deviation, status, flags, residual."""
        said, scalar = self.said, ("",)
        parts = {
            "t": Part(said.t[:, None], scalar),
            "q": Part(said.q, self._names("q")),
            "v": Part(said.v, self._names("v")),
            "states": Part(said.states, self._names("states")),
            "deviation": Part(said.deviation, self.estimator.deviation.components),
            "status": Part(said.status[:, None].astype(float), scalar),
            "flags": Part(said.flags[:, None].astype(float), scalar),
            "residual": Part(said.residual, self._names("residual")),
        }
        return {name: part for name, part in parts.items() if part.names}

    def _names(self, output: str) -> tuple[str, ...]:
        outputs = {s.name: s.components for s in self.estimator.outputs}
        return outputs.get(output, ())

    @checked
    def sentences(self) -> tuple[str, ...]:
        """Return ticks, steps of time, statuses, and what nothing observes, in words."""
        dt, t = self.logged.inputs["dt"].ravel(), self.said.t
        usual, period = float(np.median(dt)), self.estimator.period
        text = f"{t.size} ticks over {t[-1] - t[0] + dt[0]:.4g} s, {usual:.4g} s apart"
        if dt.max() > LONG_GAP * usual:
            text += f", the longest gap {dt.max():.4g} s"
        if abs(usual / period - 1) > SAME_PERIOD:
            text += f"; the estimator's period is {period:.4g} s"
        counts = ", ".join(f"{text} ({n})" for text, n in self.statuses.items())
        unseen = "; ".join(self.estimator.unobservable)
        return (text, f"status: {counts}", *([f"nothing observes: {unseen}"] if unseen else []))

    @checked
    def to_dict(self) -> dict[str, object]:
        """Return the tables as plain data, without the states."""
        return {
            "estimator": self.estimator.name,
            "ticks": int(self.said.t.size),
            "statuses": self.statuses,
            "sensors": [row._asdict() for row in self.sensors],
            "innovations": [row._asdict() for row in self.innovations],
            "unobservable": list(self.estimator.unobservable),
        }

    @checked
    def save_states(self, path: str | Path) -> Path:
        """Write `parts`: a column `q.NAME` for each component, in SI units; return the path.

        Args:
            path: `.csv`, or `.npz` whose names are in the array `columns`; `read_log` reads both.

        Raises:
            ProblemError: another suffix, or a file that cannot be written.
        """
        path, parts = Path(path), self.parts
        if path.suffix == ".csv":
            return write_whole(path, _csv_text(parts))
        if path.suffix != ".npz":
            raise ProblemError(f"{path}: estimates are saved as .csv or .npz, by the suffix")
        names = {name: {"names": part.names} for name, part in parts.items() if any(part.names)}
        arrays: dict[str, Any] = {}
        arrays |= {name: p.values if name in names else p.values[:, 0] for name, p in parts.items()}
        try:
            np.savez_compressed(path, columns=np.array(json.dumps(names)), **arrays)
        except OSError as error:
            raise ProblemError(f"cannot write {path}: {error.strerror or error}") from error
        return path


LONG_GAP = 1.5
"""Usual steps from which on the longest gap is named."""
SAME_PERIOD = 0.1
"""Share by which the usual step may differ from the period without a word."""


def _csv_text(parts: dict[str, Part]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(
        [f"{name}.{c}" if c else name for name, part in parts.items() for c in part.names]
    )
    writer.writerows(np.hstack([part.values for part in parts.values()]).tolist())
    return text.getvalue()
