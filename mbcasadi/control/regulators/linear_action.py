"""What a linear regulator does with a state: integral action, and controls that act late.

    s_{k+1} = s_k + h E x_k,      u_k = u_0 - K (x, s)_{k+delay},

where E selects deviations of coordinates, and (x, s) at the tick when u_k begins to act follows
from the controls that are still waiting. With a K of least cost for no delay this is the law of
least cost for the delay. With no row of E and no delay it is `u = u_0 - K x`.

Where the control is clipped, s moves to where `u_0 - K (x, s)` is at its limit, so that it does not
wind up (Hanus' conditioning).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from mbcasadi.control.regulators.discrete import hold_matrices
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.operating_point import Array
from mbcasadi.errors import ProblemError
from mbcasadi.qp.input_guard import clamp
from mbcasadi.system.coordinates import rate_names
from mbcasadi.system.names_by_kind import require_name_of

HELD = 1e-9
"""Singular value, relative to the largest, of deviations that no control holds at will."""


@dataclass(frozen=True)
class LinearAction:
    """A gain on (x, s), and what a tick remembers for it.

    Attributes:
        linear: the linear system, of either kind.
        K: (nu, nx + rows of E) gain.
        E: (k, nx) rows whose sums s count.
        delay: ticks from a measurement to the moment at which its control acts.
        limits: (nu, 2) of u.
        period: s.
    """

    linear: Linearization
    K: Array
    E: Array
    delay: int
    limits: Array
    period: float

    @property
    def states(self) -> dict[str, Array]:
        """Initial value of each state, by name."""
        states = {"integral": np.zeros(len(self.E))} if len(self.E) else {}
        return states | ({"waiting": np.tile(self.linear.u, self.delay)} if self.delay else {})

    def control(self, x: ca.SX, u_0: ca.SX, z: Mapping[str, ca.SX]) -> ca.SX:
        """Return u (nu,) before limits.

        Args:
            x: (nx,) deviation.
            u_0: (nu,) control of the setpoint.
            z: states by name.
        """
        ahead = ca.vertcat(x, z.get("integral", ca.SX(0, 1)))
        A, B = self._sample()
        for u in self._waiting(z):
            ahead = ca.DM(A) @ ahead + ca.DM(B) @ (u - u_0)
        return u_0 - ca.DM(self.K) @ ahead

    def acting(self, u: ca.SX, z: Mapping[str, ca.SX]) -> ca.SX:
        """Return the control (nu,) that acts from this tick to the next."""
        return [*self._waiting(z), self.applied(u)][0]

    def applied(self, u: ca.SX) -> ca.SX:
        """Return u within its limits."""
        return clamp(u, self.limits[:, 0], self.limits[:, 1])

    def next_states(self, counted: ca.SX, u: ca.SX, z: Mapping[str, ca.SX]) -> dict[str, ca.SX]:
        """Return the states behind a tick, by name.

        Args:
            counted: (k,) `E x`, or what was measured of it.
            u: (nu,) control before limits.
            z: states by name.
        """
        states = {}
        if len(self.E):
            back = np.linalg.pinv(self.K[:, self.linear.nx :])
            moved = z["integral"] + self.period * counted
            states["integral"] = moved + ca.DM(back) @ (u - self.applied(u))
        if self.delay:
            states["waiting"] = ca.vertcat(*self._waiting(z)[1:], self.applied(u))
        return states

    def _waiting(self, z: Mapping[str, ca.SX]) -> list[ca.SX]:
        """Return the controls (nu,) that do not act yet, the next one first."""
        return ca.vertsplit(z["waiting"], self.linear.nu) if self.delay else []

    def _sample(self) -> tuple[Array, Array]:
        """Return A and B of (x, s) for one period."""
        linear, rows = self.linear, len(self.E)
        A, B = linear.dfdx, linear.dfdu
        if linear.period is None:
            A, B, _ = hold_matrices(A, B, linear.drift, self.period)
        return with_sums(A, B, self.period * self.E) if rows else (A, B)


def with_sums(A: Array, B: Array, E: Array) -> tuple[Array, Array]:
    """Return the matrices of (x, s), `s_next = s + E x`."""
    k, nx = E.shape
    whole = np.block([[A, np.zeros((nx, k))], [E, np.eye(k)]])
    return whole, np.vstack([B, np.zeros((k, B.shape[1]))])


def integrated_rows(linear: Linearization, names: Sequence[str]) -> Array:
    """Return E (k, nx), the deviations of these coordinates as rows over x.

    Raises:
        UnknownNameError: no such coordinate.
        ProblemError: no control holds them at will: more of them than controls, or dependent ones.
    """
    known = rate_names(linear.system)
    for name in names:
        require_name_of(linear.system, "coordinate", name, known)
    E = linear.to_dq[[known.index(name) for name in names]]
    if not names:
        return E
    held = np.block([[linear.dfdx, linear.dfdu], [E, np.zeros((len(E), linear.nu))]])
    size = np.abs(held).max(axis=1, keepdims=True)
    s = np.linalg.svd(held / np.where(size > 0, size, 1.0), compute_uv=False)
    if len(s) < held.shape[0] or s[-1] < HELD * s[0]:
        raise ProblemError(
            f"integral action on {', '.join(names)}: {linear.nu} controls cannot hold all of them "
            "at will near this equilibrium; expected at most one independent coordinate for each "
            "control"
        )
    return E
