"""Bad inputs never reach the equations, and nothing unbounded leaves them.

Comparisons are written so that NaN fails them, and choices as `condition ? a : b`, so that a NaN
that is not chosen has no effect.
"""

import casadi as ca
import numpy as np

LARGEST_INPUT = 1e12
"""Inputs whose absolute values add up to more than this count as bad."""


LEAST_QUAT2 = 0.25
"""Quaternions with a smaller squared length count as bad; others are normalised, as in MuJoCo."""


MASK_ON = 0.5
"""Entries of the mask above this are on."""


def sanitised_active(z: ca.SX) -> ca.SX:
    """Return -1, 0 or 1 for each entry, whatever it holds."""
    return (z > MASK_ON) - (z < -MASK_ON)


def clamped(u: ca.SX, lower: np.ndarray, upper: np.ndarray) -> ca.SX:
    """Return u, finite and inside its limits, whatever it holds."""
    entries = []
    for i in range(u.numel()):
        entry = ca.if_else(ca.fabs(u[i]) <= LARGEST_INPUT, u[i], 0)
        if np.isfinite(upper[i]):
            entry = ca.fmin(entry, upper[i])
        if np.isfinite(lower[i]):
            entry = ca.fmax(entry, lower[i])
        entries.append(entry)
    return ca.vertcat(u[:0, 0], *entries)
