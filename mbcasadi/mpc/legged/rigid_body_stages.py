"""MPC of one rigid body, condensed at run time: two Functions that are exported to C.

The Hessian is the identity in the unknowns of a Riccati recursion,

    cost = Σ ½ |w_k|² + const,   w_k = U_k (f_k + K_k x_k + κ_k)

so the least-distance form takes N small steps, without a factor of the whole Hessian. The
solution is checked by the problem with states: the motion is run forward, the costates backward.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.description import LeastDistanceStages
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.description.status import OUTPUTS, Flag, Status
from mbcasadi.mpc.legged.rigid_body import NX, ROWS, WRENCH, Array, Parts, SingleRigidBody, rows_of
from mbcasadi.qp.input_guard import LARGEST_INPUT, active_signs, clamp, is_saturated
from mbcasadi.qp.kkt_residuals import judge
from mbcasadi.qp.solver import CLAIMED

GUARDED = ("x0", "feet", "ref", "mask")

LONGEST_ARM = 1e3
"""m; feet farther than this from the centre of mass count as bad input: beside their moments the
weight of forces would be lost in rounding."""


class Known(NamedTuple):
    """The inputs, finite: `on` (feet,) and `G` (6, 3 feet) for each interval."""

    x0: ca.MX
    refs: list[ca.MX]
    turn: ca.MX
    G: list[ca.MX]
    on: list[ca.MX]
    valid: ca.MX


@dataclass(frozen=True)
class RigidBodyStages:
    """The problem of both stages.

    Attributes:
        body, horizon, Q: the robot, N, and the weight of its state.
        parts: Functions of one interval.
        tolerance: bound of each residual for a solution to be accepted.
    """

    body: SingleRigidBody
    horizon: int
    Q: Array
    parts: Parts
    tolerance: float

    @property
    def nf(self) -> int:
        """Number of force components."""
        return 3 * self.body.feet

    @property
    def rows(self) -> int:
        """Number of rows of one sample."""
        return ROWS * self.body.feet

    def stages(self) -> LeastDistanceStages:
        """Return both Functions."""
        return LeastDistanceStages(self._build(), self._finish())

    def _inputs(self) -> dict[str, Any]:
        N, feet = self.horizon, self.body.feet
        sizes = {"x0": NX, "feet": 3 * feet, "ref": NX * N, "mask": feet * N, "z": self.rows * N}
        return {key: ca.MX.sym(key, size) for key, size in sizes.items()}

    def _guarded(self, given: dict[str, Any]) -> Known:
        column = ca.vertcat(*(given[key] for key in GUARDED))
        arms = given["feet"] - ca.repmat(given["x0"][3:6], self.body.feet, 1)
        near = ca.sum1(ca.fabs(arms)) <= LONGEST_ARM
        valid = ca.logic_and(ca.sum1(ca.fabs(column)) <= LARGEST_INPUT, near)
        good = ca.if_else(valid, column, ca.DM.zeros(column.shape[0]))
        ends = np.cumsum([0, *(given[key].numel() for key in GUARDED)]).tolist()
        split: Any = ca.vertsplit(good, ends)
        x0, feet, ref, mask = split
        turn, G = self.parts.geometry.call([x0, feet])
        on: Any = ca.vertsplit(mask > CLAIMED, self.body.feet)
        wide: Any = [ca.repmat(ca.vec(ca.repmat(one.T, 3, 1)).T, WRENCH, 1) for one in on]
        return Known(x0, ca.vertsplit(ref, NX), turn, [G * one for one in wide], on, valid)

    def _build(self) -> ca.Function:
        given = self._inputs()
        known = self._guarded(given)
        gains = self._gains(known)
        forces = self._motion(known, gains, ca.MX.zeros(self.nf * self.horizon))[0]
        lower, upper = self._bounds(known, forces)
        carry = ca.vertcat(*(ca.vec(part) for gain in gains for part in gain))
        active = active_signs(given["z"])
        outputs: list[Any] = [self._matrix(known, gains), lower, upper, active, carry]
        names = ["A_qp", "lba", "uba", "active0", "carry"]
        return ca.Function("build", list(given.values()), outputs, list(given), names)

    def prediction(self, candidate: ca.Function) -> ca.Function:
        """Return (x0, feet, ref, mask, z) → (x, u): the plan, from a Function that solves the QP.

        x (12, N + 1) begins with the measured state, u (3 feet, N) with the forces of the output
        where the solution is accepted.
        """
        given = self._inputs()
        known = self._guarded(given)
        forces, states = self._motion(known, self._gains(known), candidate(**given)["x"])
        outputs = [ca.horzcat(known.x0, *states), ca.horzcat(*forces)]
        return ca.Function("prediction", list(given.values()), outputs, list(given), ["x", "u"])

    def _gains(self, known: Known) -> list[list[ca.MX]]:
        """Return (U_inv, K, kappa) of each interval by the Riccati recursion."""
        P, p = ca.MX(ca.DM(self.Q)), -ca.DM(self.Q) @ known.refs[-1]
        gains: list[list[ca.MX]] = []
        for k in reversed(range(self.horizon)):
            r = known.refs[k - 1] if k else ca.MX.zeros(NX)
            P, p, *gain = self.parts.riccati(P, p, known.turn, known.G[k], r)
            gains.insert(0, gain)
        return gains

    def _matrix(self, known: Known, gains: list[list[ca.MX]]) -> ca.MX:
        """Return A_qp, block lower triangular, column after column."""
        N, entries = self.horizon, []
        for j in range(N):
            block, X = self.parts.first(gains[j][0], known.turn, known.G[j])
            blocks = [block]
            for k in range(j + 1, N):
                block, X = self.parts.later(X, gains[k][1], known.turn, known.G[k])
                blocks.append(block)
            entries.append(ca.vec(ca.horzcat(*blocks).T))
        filled = np.kron(np.tril(np.ones((N, N))), np.ones((self.rows, self.nf)))
        return ca.MX(ca.sparsify(ca.DM(filled)).sparsity(), ca.vertcat(*entries))

    def _motion(
        self, known: Known, gains: list[list[ca.MX]], w: ca.MX
    ) -> tuple[list[ca.MX], list[ca.MX]]:
        """Return f_0..f_{N-1} and x_1..x_N."""
        x, forces, states = known.x0, [], []
        for k, part in enumerate(ca.vertsplit(w, self.nf)):
            f, x = self.parts.motion(x, part, *gains[k], known.turn, known.G[k])
            forces.append(f)
            states.append(x)
        return forces, states

    def _limits(self, known: Known) -> tuple[ca.MX, ca.MX]:
        """Return the bounds of all rows; for a foot off the ground they admit zero."""
        far, feet = UNBOUNDED, self.body.feet
        below = ca.DM([-far, 0, -far, 0, 0]), ca.DM([0, 0, 0, 0, self.body.f_min])
        above = ca.repmat(ca.DM([0, far, 0, far, self.body.f_max]), feet * self.horizon, 1)
        on = ca.vertcat(*known.on)
        lower = ca.repmat(below[0], feet * self.horizon, 1) + ca.kron(on, below[1])
        return lower, ca.MX(above)

    def _bounds(self, known: Known, forces: list[ca.MX]) -> tuple[ca.MX, ca.MX]:
        """Return the bounds of A_qp w; infinite ones stay infinite."""
        pyramid = rows_of(self.body)
        at_0 = ca.vertcat(*(pyramid @ f for f in forces))
        one = np.tile([0.0, 1.0, 0.0, 1.0, 1.0], self.body.feet * self.horizon)
        other = np.tile([1.0, 0.0, 1.0, 0.0, 1.0], self.body.feet * self.horizon)
        lower, upper = self._limits(known)
        return lower - ca.DM(one) * at_0, upper - ca.DM(other) * at_0

    def _finish(self) -> ca.Function:
        given, m, n = self._inputs(), self.rows * self.horizon, self.nf * self.horizon
        known = self._guarded(given)
        shapes = [(self.nf, self.nf), (self.nf, NX), (self.nf, 1)] * self.horizon
        ends = np.cumsum([0, *(a * b for a, b in shapes)]).tolist()
        sizes = {"carry": ends[-1], "x": n, "lam_a": m, "active": m, "flag": 1}
        found: dict[str, Any] = {key: ca.MX.sym(key, size) for key, size in sizes.items()}
        flat = [
            ca.reshape(part, *shape)
            for part, shape in zip(ca.vertsplit(found["carry"], ends), shapes, strict=True)
        ]
        gains = [flat[3 * k : 3 * k + 3] for k in range(self.horizon)]
        forces, states = self._motion(known, gains, found["x"])
        residual = self._residual(known, forces, states, found["lam_a"])
        status = judge(
            residual,
            solver_claims=found["flag"] > CLAIMED,
            valid=known.valid,
            tolerance=self.tolerance,
        )
        solved = status <= Status.SUBOPTIMAL
        u: Any = ca.if_else(solved, forces[0], ca.if_else(known.valid, self._standing(known), 0))
        active = ca.if_else(solved, active_signs(found["active"]), 0)
        z_next = ca.vertcat(active[self.rows :, 0], active[m - self.rows :, 0])
        limited = clamp(u, *self.force_limits())
        outputs: list[Any] = [
            limited,
            z_next,
            status,
            Flag.SATURATED * is_saturated(u, limited),
            ca.if_else(known.valid, residual, np.inf),
        ]
        return ca.Function(
            "finish",
            [*given.values(), *found.values()],
            [ca.densify(part) for part in outputs],
            [*given, *found],
            list(OUTPUTS),
        )

    def force_limits(self) -> tuple[Array, Array]:
        """Return constant limits of all forces."""
        side = self.body.friction * self.body.f_max
        low, high = [-side, -side, 0.0], [side, side, self.body.f_max]
        return np.tile(low, self.body.feet), np.tile(high, self.body.feet)

    def _standing(self, known: Known) -> ca.MX:
        """Return the weight, shared by the feet on the ground: the safe output."""
        on = known.on[0]
        return ca.kron(on, ca.DM([0, 0, self.body.weight])) / ca.fmax(ca.sum1(on), 1)

    def _residual(
        self, known: Known, forces: list[ca.MX], states: list[ca.MX], lam: ca.MX
    ) -> ca.MX:
        """Return primal, stationarity and complementarity, relative to weight and gradient."""
        value = ca.vertcat(*(rows_of(self.body) @ f for f in forces))
        lower, upper = self._limits(known)
        above, below = value - upper, lower - value
        primal = ca.norm_2(ca.fmax(above, 0) + ca.fmax(below, 0)) / self.body.weight
        costate, slopes, size = ca.MX.zeros(NX), ca.MX(0), ca.MX(0)
        mus = ca.vertsplit(lam, self.rows)
        for k in reversed(range(self.horizon)):
            costate, slope, part = self.parts.adjoint(
                costate, states[k], known.refs[k], forces[k], mus[k], known.turn, known.G[k]
            )
            slopes, size = slopes + ca.sumsqr(slope), size + part
        scale = ca.sqrt(size) + np.finfo(float).tiny
        gap = ca.sum1(ca.fabs(lam * ca.if_else(lam > 0, above, below)))
        return ca.vertcat(primal, ca.sqrt(slopes) / scale, gap / (scale * self.body.weight))
