"""What one problem of the cascade tells the next: where it is, and how its unknown moves it."""

from typing import NamedTuple

import casadi as ca

from mbcasadi import linalg
from mbcasadi.control.inverse_dynamics.priorities.level_factor import FREE
from mbcasadi.qp.kkt_residuals import length


class LevelPoint(NamedTuple):
    """`ỹ = center + (ZQ (s, r), w̃)` with `s = L_inv x_s`, and `r`, `w̃` the rest of x over `FREE`.

    Attributes:
        base: (n,) a feasible point: the solution of the level before, or of the first pass.
        center: (n,) the point of `x = 0`.
        ZQ: (c, c) directions, those of the level first.
        L_inv: (k, k).
        damping, unseen: (k,); `distance`, `weak2`: numbers; `free`: (c,). See `LevelFactor`.
        start: (k,) s at the center, from the solution of the level before.
        travel: bound of the length of the step in (s, r) so far, but for s at the center.
    """

    base: ca.SX
    center: ca.SX
    ZQ: ca.SX
    L_inv: ca.SX
    damping: ca.SX
    unseen: ca.SX
    distance: ca.SX
    weak2: ca.SX
    free: ca.SX
    start: ca.SX
    travel: ca.SX

    def moved(self, x: ca.SX, share: ca.SX | None = None) -> ca.SX:
        """Return ỹ at x; with a share (k,), of the level's own coordinates only this share moves.

        Args:
            x: (n,).
            share: (k,) or None.
        """
        c, k = self.ZQ.shape[0], self.L_inv.shape[0]
        s = linalg.product(self.L_inv, x[:k, 0])
        s = s if share is None else share * s
        z = linalg.product(self.ZQ, ca.vertcat(s, x[k:c, 0] / FREE))
        return self.center + ca.vertcat(z, x[c:, 0] / FREE)

    def step_length(self, x: ca.SX) -> ca.SX:
        """Return a bound of the length of (s, r) at x, from the center."""
        c, k = self.ZQ.shape[0], self.L_inv.shape[0]
        s = linalg.product(self.L_inv, x[:k, 0])
        return length(ca.vertcat(s, x[k:c, 0] / FREE))

    def rows(self, C: ca.SX) -> ca.SX:
        """Return rows over ỹ (m, n) as rows over x."""
        c, k = self.ZQ.shape[0], self.L_inv.shape[0]
        own = linalg.product(self.ZQ[:, :k], self.L_inv)
        by_x = ca.densify(ca.horzcat(own, self.ZQ[:, k:] / FREE))
        return ca.densify(ca.horzcat(linalg.product(C[:, :c], by_x), C[:, c:] / FREE))

    def gradient(self, by_units: ca.SX, s: ca.SX) -> ca.SX:
        """Return what is left of a level's gradient in its own metric.

        Args:
            by_units: (n,) derivative of the undamped Lagrangian by ỹ.
            s: (k,) the level's own coordinates.
        """
        c, k = self.ZQ.shape[0], self.L_inv.shape[0]
        by_z = linalg.product(self.ZQ.T, by_units[:c, 0])
        by_s = by_z[:k, 0] + self.damping * s
        seen = linalg.product(self.L_inv.T, (1 - self.unseen) * by_s)
        return ca.vertcat(seen, self.unseen * by_s, by_z[k:, 0], by_units[c:, 0])
