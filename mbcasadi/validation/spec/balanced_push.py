"""How large a push an LQR answers within the ranges of its controls.

Behind a push the linear system starts with the velocity that it leaves, and the controls go by
`δu = -K x`. Where an actuator is at its limit, a pose that only feedback keeps is lost.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from mbcasadi.control.regulators import equilibrium, linearize, lqr_gain
from mbcasadi.errors import AssemblyError, ProblemError
from mbcasadi.system import System

Array = NDArray[np.float64]

ANSWERED = 0.5
"""Of the range of a control, that the answer takes: the rest is for errors and the delay."""

WATCHED = 5.0
"""S behind a push."""


def answered_share(
    system: System, q: Array, change: Array, weights: tuple[Array, Array], period: float
) -> float:
    """Return the share of a push, at most 1, that takes `ANSWERED` of the controls' ranges.

    Args:
        system: the mechanism.
        q: (nq,) pose near an equilibrium.
        change: (nv,) of the velocity by the whole push.
        weights: (2 nv,) of deviations, (nu,) of controls.
        period: s, for which controls are held.

    Returns:
        The share; 1 where there is no such regulator, which is said when it is built.
    """
    try:
        linear = linearize(system, equilibrium(system, q))
        K = lqr_gain(linear, *weights, period=period).K
    except (AssemblyError, ProblemError):
        return 1.0
    nx, nu = linear.dfdu.shape
    held = expm(period * np.block([[linear.dfdx, linear.dfdu], [np.zeros((nu, nx + nu))]]))
    step = held[:nx, :nx] - held[:nx, nx:] @ K
    x = np.zeros(nx)
    x[linear.n_q : linear.n_q + linear.n_v] = np.linalg.lstsq(linear.Z_v, change, rcond=None)[0]
    low, high = (system.limits.ctrl - linear.u[:, None]).T
    most = 0.0
    for _ in range(round(WATCHED / period)):
        answer = -K @ x
        most = max(most, float(np.max(np.maximum(answer / high, answer / low), initial=0.0)))
        x = step @ x
    return min(1.0, ANSWERED / most) if most > 0 else 1.0
