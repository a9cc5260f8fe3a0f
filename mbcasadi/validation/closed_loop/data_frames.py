"""Recordings and tables as data frames of pandas."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mbcasadi.extras import optional_module
from mbcasadi.validation.closed_loop.recording_parts import headings_of, parts_of


def recording_frame(recording: Any) -> Any:
    """Return a recording as a data frame: a row for each tick, a column for each number."""
    parts = parts_of(recording)
    time = parts.pop("t")
    names = [name for field, part in parts.items() for name in headings_of(field, part)]
    values = dict(zip(names, _columns(parts), strict=True))
    frame = data_frame(values, headings_of("t", time)[0], time.values[:, 0])
    frame.attrs["events"] = list(recording.events)
    return frame


def data_frame(columns: Mapping[str, Any], index_name: str, index: Any) -> Any:
    """Return a data frame of columns by name.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    pandas = optional_module("pandas", "frames", "a data frame")
    return pandas.DataFrame(dict(columns), index=pandas.Index(index, name=index_name))


def _columns(parts: Mapping[str, Any]) -> list[Any]:
    return [np.asarray(column) for part in parts.values() for column in part.values.T]
