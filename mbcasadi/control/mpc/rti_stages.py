"""A real-time iteration cut around its QP: prepare and build, then finish.

`prepare` knows the guess only: it linearises, and a Riccati recursion whitens the cost. With the
measured state, one run forward gives the bounds of the least-distance problem. `finish` moves the
guess, judges the answer by the problem with states (motion forward, costates backward), and hands
the guess on, shifted by one interval.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.control.check import positive
from mbcasadi.control.guard import LARGEST_INPUT, clamped, sanitised_active
from mbcasadi.control.least_distance import UNBOUNDED
from mbcasadi.control.mpc.ocp import Array, OptimalControlProblem
from mbcasadi.control.mpc.rti_parts import Bounds, Parts
from mbcasadi.control.mpc.rti_state import Known, Memory
from mbcasadi.control.mpc.stages import judge
from mbcasadi.control.stages import CLAIMED, FAILED, SUBOPTIMAL
from mbcasadi.description import LeastDistanceStages

PREPARED = ("lin", "gain", "A_qp")


class Subproblem(NamedTuple):
    """What `prepare` finds: one column of `rti_parts` for each interval, and the rows."""

    lin: ca.MX
    gain: ca.MX
    A_qp: ca.MX


@dataclass(frozen=True)
class RtiStages:
    """What both stages are built from.

    Attributes:
        ocp, parts, bounded: the problem and its intervals.
        memory: where z holds what.
        z0: what z begins with, and where it makes no sense.
        shift: whether a tick hands on the guess for the next interval.
        tolerance: bound of each residual for an answer to count.
    """

    ocp: OptimalControlProblem
    parts: Parts
    bounded: Bounds
    memory: Memory
    z0: Array
    shift: bool
    tolerance: float

    def stages(self) -> LeastDistanceStages:
        """Return both Functions."""
        return LeastDistanceStages(self._build(), self._finish())

    def prepare(self) -> ca.Function:
        """Return (X, U, P) → (lin, gain, A_qp): all that the measured state is not needed for."""
        ocp, N = self.ocp, self.ocp.horizon
        X, U = ca.MX.sym("X", ocp.nx, N + 1), ca.MX.sym("U", ocp.nu, N)
        P, back = ca.MX.sym("P", ocp.np_, N + 1), list(reversed(range(N)))
        lin = self.parts.linearise.map(N)(X[:, :N], U, P[:, :N], X[:, 1:])
        last = self.parts.ending(X[:, N], P[:, N])
        _, gain = self.parts.riccati.mapaccum("riccati_all", N, 1)(last, lin[:, back])
        gain = gain[:, back]
        none = ca.MX.zeros(ocp.nx, N * ocp.nu)
        loop = self.parts.rows.mapaccum("rows_all", N, 1)
        _, rows = loop(none, lin, gain, ca.DM.eye(N))
        names = ["X", "U", "P"]
        return ca.Function("prepare", [X, U, P], [lin, gain, rows.T], names, list(PREPARED))

    @property
    def _m(self) -> int:
        return self.bounded.size * self.ocp.horizon

    def _motion(self, known: Known, lin: ca.MX, gain: ca.MX, w: Any) -> tuple[ca.MX, ca.MX]:
        """Return deviations ξ_0..ξ_N and υ_0..υ_{N-1} from the guess."""
        N, xi = self.ocp.horizon, known.x0 - known.X[:, 0]
        loop = self.parts.motion.mapaccum("motion_all", N, 1)
        later, upsilon = loop(xi, ca.reshape(w, self.ocp.nu, N), lin, gain)
        return ca.horzcat(xi, later), upsilon

    def _values(self, X: ca.MX, U: ca.MX) -> ca.MX:
        """Return what the rows bound, interval by interval."""
        return ca.vec(ca.vertcat(U, self.bounded.choose @ X[:, 1:]))

    def _limits(self) -> tuple[Array, Array]:
        low, high = np.tile(self.bounded.limits, (self.ocp.horizon, 1)).T
        return np.maximum(low, -UNBOUNDED), np.minimum(high, UNBOUNDED)

    def _build(self) -> ca.Function:
        given = self.memory.inputs()
        known = self.memory.known(given, self.z0)
        found = Subproblem(*self.prepare().call([known.X, known.U, known.P]))
        still = ca.MX.zeros(self.ocp.nu * self.ocp.horizon)
        xi, upsilon = self._motion(known, found.lin, found.gain, still)
        at_0 = self._values(known.X + xi, known.U + upsilon)
        lower, upper = (
            ca.DM(limit) - ca.DM((np.abs(limit) < UNBOUNDED).astype(float)) * at_0
            for limit in self._limits()
        )
        active = sanitised_active(known.active)
        carry = ca.vertcat(ca.vec(found.lin), ca.vec(found.gain))
        outputs: list[Any] = [found.A_qp, lower, upper, active, carry]
        names = ["A_qp", "lba", "uba", "active0", "carry"]
        return ca.Function(
            "build", list(given.values()), [ca.densify(x) for x in outputs], list(given), names
        )

    def _finish(self) -> ca.Function:
        ocp, N, m, given = self.ocp, self.ocp.horizon, self._m, self.memory.inputs()
        known = self.memory.known(given, self.z0)
        sizes = [self.parts.linearise.numel_out(0), self.parts.riccati.numel_out(1)]
        found: dict[str, Any] = {
            key: ca.MX.sym(key, size)
            for key, size in (
                ("carry", N * sum(sizes)), ("x", N * ocp.nu), ("lam_a", m), ("active", m),
                ("flag", 1),
            )
        }  # fmt: skip
        flat: Any = ca.vertsplit(found["carry"], [0, N * sizes[0], N * sum(sizes)])
        lin, gain = (ca.reshape(part, size, N) for part, size in zip(flat, sizes, strict=True))
        xi, upsilon = self._motion(known, lin, gain, found["x"])
        residual = self._residual(known, lin, (xi, upsilon), found["lam_a"])
        status = judge(residual, found["flag"] > CLAIMED, known.valid, self.tolerance)
        solved = status <= SUBOPTIMAL
        X = known.X + ca.if_else(solved, xi, 0)
        U: Any = known.U + ca.if_else(solved, upsilon, 0)
        active: Any = ca.if_else(solved, sanitised_active(found["active"]), 0)
        u = clamped(U[:, 0], *ocp.u_bounds.T)
        sent = self.memory.sent_next(known, u)
        outputs: list[Any] = [
            u,
            self._handed_on((X, U, sent, active), known.P, status),
            status,
            ca.if_else(known.valid, residual, np.inf),
        ]
        return ca.Function(
            "finish",
            [*given.values(), *found.values()],
            [ca.densify(part) for part in outputs],
            [*given, *found],
            ["u", "z_next", "status", "residual"],
        )

    def _handed_on(self, kept: tuple[Any, ...], P: ca.MX, status: Any) -> ca.MX:
        """Return z_next; after an answer that failed or left all numbers, the first guess.

        What is under way stays under way.
        """
        X, U, sent, active = kept
        if self.shift:
            end, rows = self.ocp.horizon - 1, self.bounded.size
            beyond = self.ocp.dynamics(X[:, end + 1], U[:, end], P[:, end + 1])
            X, U = ca.horzcat(X[:, 1:], beyond), ca.horzcat(U[:, 1:], U[:, end])
            active = ca.vertcat(active[rows:], active[self._m - rows :])
        first = self.memory.split(ca.DM(self.z0))
        size = ca.sum1(ca.fabs(ca.vertcat(ca.vec(X), ca.vec(U))))
        keeps = ca.logic_and(status != FAILED, size <= LARGEST_INPUT)
        guess = (ca.if_else(keeps, one, at_0) for one, at_0 in zip((X, U), first, strict=False))
        parts = [*guess, sent, ca.if_else(keeps, active, 0)]
        return ca.vertcat(*(ca.vec(part) for part in parts))

    def _residual(self, known: Known, lin: ca.MX, moved: tuple[ca.MX, ca.MX], lam: ca.MX) -> ca.MX:
        """Return primal, stationarity and complementarity, relative to bounds and gradient."""
        (xi, upsilon), N = moved, self.ocp.horizon
        value = self._values(known.X + xi, known.U + upsilon)
        low, high = self._limits()
        above: Any = value - ca.DM(high)
        below: Any = ca.DM(low) - value
        extent: Any = 1 + ca.norm_2(value)
        primal: Any = ca.norm_2(positive(above) + positive(below)) / extent
        end = self.parts.ending(known.X[:, N], known.P[:, N])
        costate = end[:, : self.ocp.nx] @ xi[:, N] + end[:, self.ocp.nx]
        back, mu = list(reversed(range(N))), ca.reshape(lam, self.bounded.size, N)
        loop = self.parts.adjoint.mapaccum("adjoint_all", N, 1)
        _, slope, sizes = loop(costate, lin[:, back], xi[:, back], upsilon[:, back], mu[:, back])
        scale = ca.sqrt(ca.sum2(sizes))
        gap = ca.sum1(ca.fabs(lam * ca.if_else(lam > 0, above, below)))
        return ca.vertcat(primal, ca.norm_2(ca.vec(slope)) / scale, gap / (scale * extent))
