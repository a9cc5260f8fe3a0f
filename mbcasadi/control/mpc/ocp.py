"""An optimal control problem as data, in discrete time.

    min  Σ_{k<N} ½ ‖r(x_k, u_k, p_k)‖² + ½ ‖r_N(x_N, p_N)‖²
    s.t. x_{k+1} = F(x_k, u_k, p_k),   x_0 given,
         g_min <= g(x_k, u_k, p_k) <= g_max,   gN_min <= g_N(x_N, p_N) <= gN_max,
         x_min <= x_k <= x_max (k >= 1),   u_min <= u_k <= u_max.

Weights are inside the residuals, so that Gauss-Newton needs their Jacobians only. Every solver of
this room takes this one description.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.tasks import Slot

Array = NDArray[np.float64]


@dataclass(frozen=True)
class OptimalControlProblem:
    """The problem; sizes nx, nu, np_ are those of `dynamics`.

    Attributes:
        name: a C identifier.
        horizon: number of intervals N.
        period: length of one interval, s.
        dynamics: (x, u, p) → (x_next).
        residual: (x, u, p) → (r).
        terminal: (x, p) → (r).
        path: (x, u, p) → (g), `g` may be empty.
        path_bounds: (ng, 2).
        end: (x, p) → (g), may be empty.
        end_bounds: (ne, 2).
        x_bounds, u_bounds: (nx, 2), (nu, 2); infinite where there are none.
        slots: what p holds at one stage, by name.
        state: (q, v) → (x), what is measured.
    """

    name: str
    horizon: int
    period: float
    dynamics: ca.Function
    residual: ca.Function
    terminal: ca.Function
    path: ca.Function
    path_bounds: Array
    end: ca.Function
    end_bounds: Array
    x_bounds: Array
    u_bounds: Array
    slots: tuple[Slot, ...]
    state: ca.Function

    @property
    def nx(self) -> int:
        """Size of the state."""
        return int(self.dynamics.size1_in("x"))

    @property
    def nu(self) -> int:
        """Size of the control."""
        return int(self.dynamics.size1_in("u"))

    @property
    def np_(self) -> int:
        """Size of the parameters of one stage."""
        return int(self.dynamics.size1_in("p"))
