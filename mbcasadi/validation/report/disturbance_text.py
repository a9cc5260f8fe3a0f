"""The disturbance of a run in words: how large it is, on what, and when it acts."""

from collections.abc import Iterator

import numpy as np

from mbcasadi.validation.closed_loop import Recording


def disturbance_text(recording: Recording, period: float) -> str:
    """Return the largest forces of a disturbance, by unit, and when it acts.

    Args:
        recording: of the run.
        period: s, of a tick; the force of a tick acts until the next one.
    """
    acting = np.flatnonzero(np.any(recording.disturbance, axis=1))
    if not acting.size:
        return "a generalised force, zero during the run"
    first, last = recording.t[acting[0]], recording.t[acting[-1]] + period
    pauses = ", with pauses" if np.any(np.diff(acting) > 1) else ""
    return f"up to {' and '.join(_largest(recording))}, from {first:.4g} s to {last:.4g} s{pauses}"


def _largest(recording: Recording) -> Iterator[str]:
    """Yield the largest force of each unit, with the coordinate that it acts on."""
    columns = recording.columns["disturbance"]
    size = np.abs(recording.disturbance).max(axis=0)
    for unit in dict.fromkeys(columns.units):
        of_unit = [k for k, each in enumerate(columns.units) if each == unit]
        k = max(of_unit, key=lambda index: size[index])
        if size[k]:
            yield f"{size[k]:.3g} {unit} on {columns.names[k]}"
