"""Text about a run of the examples of closed loops with MPC."""

import numpy as np

from mbcasadi.validation import Run


def motors(run: Run) -> str:
    """Return the largest share of a limit, the ticks by status, and the time of a tick."""
    record, controller = run.recording, run.controller
    extent = np.maximum(-controller.u_min, controller.u_max)
    used = np.abs(record.u / extent).max()
    status = np.bincount(record.status, minlength=5)
    words = ", ".join(
        f"{100 * n / record.ticks:.3g} % {word}"
        for n, word in zip(status, controller.statuses, strict=True)
        if n
    )
    tick = f"{1e6 * run.metric('time.median'):.3g} µs of {1e3 * controller.period:g} ms"
    return f"motors at {100 * used:.0f} % of their limits at most; {words}; {tick} a tick"
