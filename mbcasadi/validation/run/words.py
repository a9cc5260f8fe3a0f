"""A run in one line: what its controls used, how its ticks ended, what they cost."""

import math

import numpy as np

from mbcasadi.description import Controller
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics import status_rows


def run_in_words(controller: Controller, recording: Recording, tick: float) -> str:
    """Return a line on the largest control, on the ticks by status, and on the time of a tick.

    Args:
        controller: of the run.
        recording: of the run.
        tick: s, NaN where no C was timed.
    """
    parts = []
    extent = np.maximum(-controller.u_min, controller.u_max)
    bounded = np.isfinite(extent) & (extent > 0)
    if recording.ticks and bounded.any():
        used = np.abs(recording.u[:, bounded] / extent[bounded]).max()
        parts.append(f"controls at {100 * used:.0f} % of their limits at most")
    rows = status_rows(controller, recording.status, recording.t)
    shares = [f"{100 * row.ticks / recording.ticks:.3g} % {row.text}" for row in rows]
    parts.append(", ".join(shares))
    if not math.isnan(tick):
        parts.append(f"{1e6 * tick:.3g} µs of {1e3 * controller.period:g} ms a tick")
    return "; ".join(part for part in parts if part)
