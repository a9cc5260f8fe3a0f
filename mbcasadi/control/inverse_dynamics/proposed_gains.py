"""Gains of a task from bandwidth and damping, and the largest that a period and a delay permit.

Inverse dynamics turns each row of a task into a double integrator under `-kp e - kd de/dt`, held
over a period and late by a delay. The gain factor of its margin is also that of the inertia: with
`weakest` 0.4 the loop is stable while the mechanism is at most 1/0.4 times as heavy as its model.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.control.inverse_dynamics.parts.observer import DisturbanceObserver, learning_gain
from mbcasadi.control.margins.loop_margins import STABLE, Loop, LoopMargin, loop_margins
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import require_numbers, require_positive, require_whole
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]

FASTEST = 1.0
"""Bandwidths are sought up to this, over the period."""

SLOWEST = 1e-5

OBSERVER_SHARE = 0.25
"""Bandwidth of a proposed observer, relative to that of the task."""

STEPS = 40
CHECKS = 9


@summarised
@dataclass(frozen=True)
class ProposedGains:
    """Gains of a task, and the margin that they leave.

    Attributes:
        kp, kd: 1/s², 1/s.
        bandwidth: √kp, 1/s.
        observer: that the margin counts, or None.
        margin: of the loop.
    """

    kp: float
    kd: float
    bandwidth: float
    observer: DisturbanceObserver | None
    margin: LoopMargin

    def __str__(self) -> str:
        """Return gains and margin in words."""
        learns = ""
        if self.observer is not None:
            learns = f", observer with {self.observer.bandwidth:.3g} 1/s"
        gains = f"kp {self.kp:.4g} 1/s², kd {self.kd:.4g} 1/s, bandwidth {self.bandwidth:.3g} 1/s"
        return f"{gains}{learns}\n  {self.margin}"


@checked
def gains_from_bandwidth(bandwidth: float, damping: float = 1.0) -> dict[str, float]:
    """Return `kp = bandwidth²` and `kd = 2 damping bandwidth`, for a task's `**` arguments.

    Args:
        bandwidth: 1/s; an error decays in about 5/bandwidth s.
        damping: ratio; 1 is critical.
    """
    require_positive(bandwidth=bandwidth, damping=damping)
    return {"kp": bandwidth**2, "kd": 2 * damping * bandwidth}


@checked
def propose_gains(
    period: float,
    *,
    delay: int = 1,
    damping: float = 1.0,
    lag: float = 0.0,
    observer: bool = False,
    phase_margin: float = 45.0,
    gain_margin: float = 2.0,
) -> ProposedGains:
    """Return the largest gains of a task that leave a margin.

    Args:
        period: s.
        delay: ticks from a measurement to the moment at which its control acts.
        damping: ratio of the gains, 1 for critical.
        lag: s, time constant of the actuators, 0 for none.
        observer: with a disturbance observer of a quarter of the bandwidth.
        phase_margin: degrees that the loop keeps.
        gain_margin: factor that the loop tolerates both ways: the inertia may be wrong by it.

    Raises:
        ProblemError: numbers that make no sense, or no gains that leave such a margin.
    """
    require_positive(period=period, damping=damping, phase_margin=phase_margin)
    require_numbers(lag=lag)
    require_whole(0, delay=delay)
    if not 1 < gain_margin < np.inf:
        raise ProblemError(f"gain_margin is {gain_margin}; expected a factor above 1, such as 2")

    def leaves_margin(bandwidth: float) -> bool:
        """Whether the loop is stable at the borders of the margin, and half-way to them."""
        learns = DisturbanceObserver(OBSERVER_SHARE * bandwidth) if observer else None
        try:
            loop = task_loop(period, delay, lag, (bandwidth, damping), learns)
        except ProblemError:  # no observer is as fast
            return False
        angles = np.deg2rad(phase_margin) * np.linspace(0, 1, CHECKS)
        factors = [*np.exp(1j * angles), *gain_margin ** np.linspace(-1, 1, CHECKS)]
        return all(loop.radius(np.array([factor]), np.zeros(1)) < STABLE for factor in factors)

    low, high = SLOWEST / period, FASTEST / period
    if not leaves_margin(low):
        raise ProblemError(
            f"no gains leave {phase_margin:g}° and a factor of {gain_margin:g} with damping "
            f"{damping:g}; expected less margin, or more damping"
        )
    for _ in range(STEPS):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if leaves_margin(middle) else (low, middle)
    learns = DisturbanceObserver(OBSERVER_SHARE * low) if observer else None
    found = loop_margins(task_loop(period, delay, lag, (low, damping), learns))
    assert found is not None  # it is stable at the borders of its margin
    gains = gains_from_bandwidth(low, damping)
    return ProposedGains(gains["kp"], gains["kd"], low, learns, found.together)


def task_loop(
    period: float,
    delay: int,
    lag: float,
    gains: tuple[float, float],
    observer: DisturbanceObserver | None,
) -> Loop:
    """Return the loop of one row of a task.

    Args:
        period, delay, lag, observer: as in `propose_gains`.
        gains: bandwidth, 1/s, and damping.

    Raises:
        ProblemError: an observer that is too fast.
    """
    bandwidth, damping = gains
    A, B = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])
    if lag > 0:
        A = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, -1 / lag]])
        B = np.array([[0.0], [0.0], [1 / lag]])
    D = np.zeros((1, len(A)))
    D[0, :2] = bandwidth**2, 2 * damping * bandwidth
    return Loop(A, B, _with_observer(D, observer, period, delay), period, delay, ("task",))


def _with_observer(
    D: Array, observer: DisturbanceObserver | None, period: float, delay: int
) -> tuple[Array, Array, Array, Array]:
    """Return A_c, B_c, C_c, D_c of `u = -D x - d`; its state is (d, last v, last accelerations)."""
    nx = D.shape[1]
    if observer is None:
        return np.zeros((0, 0)), np.zeros((0, nx)), np.zeros((1, 0)), D
    gain, n = learning_gain(observer, period, delay), 3 + delay
    A_c, B_c = np.zeros((n, n)), np.zeros((n, nx))
    A_c[0, 0], A_c[0, 1], A_c[0, n - 1] = 1.0, -gain / period, -gain
    B_c[0, 1], B_c[1, 1] = gain / period, 1.0
    B_c[2] = -D[0]
    A_c[range(3, n), range(2, n - 1)] = 1.0
    C_c = np.zeros((1, n))
    C_c[0, 0] = 1.0
    return A_c, B_c, C_c, D
