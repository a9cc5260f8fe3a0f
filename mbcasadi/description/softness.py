"""MuJoCo's soft rows: what `solref` and `solimp` mean, as numbers.

A row with the violation r and its rate w has the force `f = -(a + b w + k d r) / R`, within its
bounds, where a is the acceleration along the row and `R = (1 - d)/d A`, with the impedance d and
MuJoCo's estimate A of the row's inverse inertia (`diagApprox`). Friction has k = 0: where nothing
accelerates it is a damper, of the slope b/R.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

IMPEDANCES = (1e-4, 0.9999)
"""Within which MuJoCo keeps impedances."""

MIN_WIDTH = 1e-15
"""MuJoCo's `mjMINVAL`: a narrower transition has the mean impedance."""


@dataclass(frozen=True)
class SoftRow:
    """The numbers of a soft row.

    Attributes:
        damping, stiffness: b, 1/s, and k, 1/s².
        solimp: (5,) impedance without and with full violation, width, midpoint, power.
    """

    damping: float
    stiffness: float
    solimp: Array

    def impedance(self, violation: float = 0.0) -> float:
        """Return d at a violation, in the unit of the width."""
        least, most = np.clip(self.solimp[:2], *IMPEDANCES)
        width, middle, power = self.solimp[2:]
        if width <= MIN_WIDTH:
            return float(least + most) / 2
        x = min(abs(violation) / width, 1.0)
        if power <= 1:
            y = x
        elif x <= middle:
            y = x**power / middle ** (power - 1)
        else:
            y = 1 - (1 - x) ** power / (1 - middle) ** (power - 1)
        return float(least + y * (most - least))

    def softness(self, violation: float = 0.0) -> float:
        """Return `R/A = (1 - d)/d` at a violation."""
        d = self.impedance(violation)
        return (1 - d) / d


def soft_row(solref: Array, solimp: Array, least_time: float) -> SoftRow:
    """Return the numbers of a row.

    Args:
        solref: (2,) time constant, s, and damping ratio; or -stiffness and -damping.
        solimp: (5,) as in `SoftRow`.
        least_time: s, which a time constant is at least.
    """
    most = float(np.clip(solimp[1], *IMPEDANCES))
    first, second = float(solref[0]), float(solref[1])
    if first <= 0:
        return SoftRow(-second / most, -first / most**2, solimp)
    time = max(first, least_time)
    return SoftRow(2 / (most * time), 1 / (most * time * second) ** 2, solimp)
