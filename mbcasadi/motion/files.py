"""Motions from tables of numbers: CSV with a heading."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.motion.motions import PoseMotion, VectorMotion
from mbcasadi.motion.pose import Pose
from mbcasadi.motion.splines import spline, vector_spline
from mbcasadi.shapes import require_name

Array = NDArray[np.float64]

POSE_COLUMNS = ("x", "y", "z", "qw", "qx", "qy", "qz")


@checked
def read_pose_motion(
    path: str | Path, prefix: str = "", *, time: str = "t", rest: bool = False
) -> PoseMotion:
    """Return the spline through the poses of a CSV file; see `spline`.

    Args:
        path: of a file with a heading; a unit in brackets behind a name does not count.
        prefix: of the columns x, y, z, qw, qx, qy, qz: `q.base.` in a recording of a free joint.
        time: name of the column of times, s.
        rest: as in `spline`.

    Raises:
        ProblemError: no such file, or no numbers in it; as `spline`.
        UnknownNameError: no such column; the message lists those there are.
    """
    t, values = _columns(path, time, [f"{prefix}{name}" for name in POSE_COLUMNS])
    return spline(t, [Pose.from_qpos(row) for row in values], rest=rest)


@checked
def read_vector_motion(
    path: str | Path, names: Sequence[str], *, time: str = "t", rest: bool = False
) -> VectorMotion:
    """Return the spline through the vectors of a CSV file; see `vector_spline`.

    Args:
        path: of a file with a heading; a unit in brackets behind a name does not count.
        names: of the columns, in the vector's order.
        time: name of the column of times, s.
        rest: as in `spline`.

    Raises:
        ProblemError: no such file, no names, or no numbers; as `vector_spline`.
        UnknownNameError: no such column; the message lists those there are.
    """
    if not names:
        raise ProblemError("names is empty; expected the names of columns")
    return vector_spline(*_columns(path, time, names), rest=rest)


def _columns(path: str | Path, time: str, names: Sequence[str]) -> tuple[Array, Array]:
    """Return the times (n,) and the columns (n, k)."""
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            heading, *rows = [row for row in csv.reader(file) if row] or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ProblemError(f"{path} cannot be read: {error}; expected a CSV file") from error
    columns = [name.partition(" [")[0].strip() for name in heading]
    for name in (time, *names):
        require_name("column", name, columns)
    places = [columns.index(name) for name in (time, *names)]
    try:
        table = np.array([[float(row[k]) for k in places] for row in rows])
    except (ValueError, IndexError) as error:
        raise ProblemError(f"{path}: {error}; expected a number in each row") from error
    table = table.reshape(-1, len(places))
    return table[:, 0], table[:, 1:]
