"""MPC of one rigid body, condensed at run time: two Functions that are exported to C.

The Hessian is the identity in the unknowns of a Riccati recursion,

    cost = Σ ½ |w_k|² + const,   w_k = U_k (f_k + K_k x_k + κ_k)

so the least-distance form takes N small steps, without a factor of the whole Hessian. The
solution is checked by the problem with states: the motion is run forward, the costates backward.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from mbcasadi.control.safe_output.mechanism_hold import hold_of_controls
from mbcasadi.control.safe_output.safe_output import SafeOutput
from mbcasadi.description import LeastDistanceStages
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.description.status import OUTPUTS, Flag, Status
from mbcasadi.mpc.legged.checked_inputs import CheckedInputs, checked_inputs
from mbcasadi.mpc.legged.rigid_body import (
    NX,
    ROWS,
    Array,
    IntervalFunctions,
    SingleRigidBody,
    rows_of,
)
from mbcasadi.qp.input_guard import active_signs, is_saturated
from mbcasadi.qp.kkt_residuals import judge


@dataclass(frozen=True)
class RigidBodyStages:
    """The problem of both stages.

    Attributes:
        body, horizon, Q: the robot, N, and the weight of its state.
        intervals: Functions of one interval.
        tolerance: bound of each residual for a solution to be accepted.
        period: sample time, s.
    """

    body: SingleRigidBody
    horizon: int
    Q: Array
    intervals: IntervalFunctions
    tolerance: float
    period: float

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

    def _inputs(self) -> dict[str, ca.MX]:
        N, feet = self.horizon, self.body.feet
        sizes = {"x0": NX, "feet": 3 * feet, "ref": NX * N, "mask": feet * N, "z": self.rows * N}
        sizes["z"] += self.safe.size
        return {key: ca.MX.sym(key, size) for key, size in sizes.items()}

    def _build(self) -> ca.Function:
        inputs = self._inputs()
        checked = checked_inputs(self.body, self.intervals.geometry, inputs)
        gains = self._gains(checked)
        forces = self._motion(checked, gains, ca.MX.zeros(self.nf * self.horizon))[0]
        lower, upper = self._bounds(checked, forces)
        carry = ca.vertcat(*(ca.vec(part) for gain in gains for part in gain))
        active = active_signs(inputs["z"][: self.rows * self.horizon, 0])
        outputs: list[ca.MX] = [self._matrix(checked, gains), lower, upper, active, carry]
        names = ["A_qp", "lba", "uba", "active0", "carry"]
        return ca.Function("build", list(inputs.values()), outputs, list(inputs), names)

    def prediction(self, candidate: ca.Function) -> ca.Function:
        """Return (x0, feet, ref, mask, z) → (x, u): the plan, from a Function that solves the QP.

        x (12, N + 1) begins with the measured state, u (3 feet, N) with the forces of the output
        where the solution is accepted.
        """
        inputs = self._inputs()
        checked = checked_inputs(self.body, self.intervals.geometry, inputs)
        forces, states = self._motion(checked, self._gains(checked), candidate(**inputs)["x"])
        outputs = [ca.horzcat(checked.x0, *states), ca.horzcat(*forces)]
        return ca.Function("prediction", list(inputs.values()), outputs, list(inputs), ["x", "u"])

    def _gains(self, checked: CheckedInputs) -> list[list[ca.MX]]:
        """Return (U_inv, K, kappa) of each interval by the Riccati recursion."""
        P, p = ca.MX(ca.DM(self.Q)), -ca.DM(self.Q) @ checked.refs[-1]
        gains: list[list[ca.MX]] = []
        for k in reversed(range(self.horizon)):
            r = checked.refs[k - 1] if k else ca.MX.zeros(NX)
            P, p, *gain = self.intervals.riccati(P, p, checked.turn, checked.G[k], r)
            gains.insert(0, gain)
        return gains

    def _matrix(self, checked: CheckedInputs, gains: list[list[ca.MX]]) -> ca.MX:
        """Return A_qp, block lower triangular, column after column."""
        N, entries = self.horizon, []
        for j in range(N):
            block, X = self.intervals.first(gains[j][0], checked.turn, checked.G[j])
            blocks = [block]
            for k in range(j + 1, N):
                block, X = self.intervals.later(X, gains[k][1], checked.turn, checked.G[k])
                blocks.append(block)
            entries.append(ca.vec(ca.horzcat(*blocks).T))
        lower_blocks = np.kron(np.tril(np.ones((N, N))), np.ones((self.rows, self.nf)))
        return ca.MX(ca.sparsify(ca.DM(lower_blocks)).sparsity(), ca.vertcat(*entries))

    def _motion(
        self, checked: CheckedInputs, gains: list[list[ca.MX]], w: ca.MX
    ) -> tuple[list[ca.MX], list[ca.MX]]:
        """Return f_0..f_{N-1} and x_1..x_N."""
        x, forces, states = checked.x0, [], []
        for k, part in enumerate(ca.vertsplit(w, self.nf)):
            f, x = self.intervals.motion(x, part, *gains[k], checked.turn, checked.G[k])
            forces.append(f)
            states.append(x)
        return forces, states

    def _limits(self, checked: CheckedInputs) -> tuple[ca.MX, ca.MX]:
        """Return the bounds of all rows; for a foot off the ground they admit zero."""
        infinite, feet = UNBOUNDED, self.body.feet
        lower_parts = ca.DM([-infinite, 0, -infinite, 0, 0]), ca.DM([0, 0, 0, 0, self.body.f_min])
        upper = ca.repmat(
            ca.DM([0, infinite, 0, infinite, self.body.f_max]), feet * self.horizon, 1
        )
        on = ca.vertcat(*checked.on)
        lower = ca.repmat(lower_parts[0], feet * self.horizon, 1) + ca.kron(on, lower_parts[1])
        return lower, ca.MX(upper)

    def _bounds(self, checked: CheckedInputs, forces: list[ca.MX]) -> tuple[ca.MX, ca.MX]:
        """Return the bounds of A_qp w; infinite ones stay infinite."""
        pyramid = rows_of(self.body)
        at_0 = ca.vertcat(*(pyramid @ f for f in forces))
        bounded_below = np.tile([0.0, 1.0, 0.0, 1.0, 1.0], self.body.feet * self.horizon)
        bounded_above = np.tile([1.0, 0.0, 1.0, 0.0, 1.0], self.body.feet * self.horizon)
        lower, upper = self._limits(checked)
        return lower - ca.DM(bounded_below) * at_0, upper - ca.DM(bounded_above) * at_0

    def _finish(self) -> ca.Function:
        inputs, m, n = self._inputs(), self.rows * self.horizon, self.nf * self.horizon
        checked = checked_inputs(self.body, self.intervals.geometry, inputs)
        shapes = [(self.nf, self.nf), (self.nf, NX), (self.nf, 1)] * self.horizon
        ends = np.cumsum([0, *(a * b for a, b in shapes)]).tolist()
        sizes = {"carry": ends[-1], "x": n, "lam_a": m, "active": m, "flag": 1}
        qp: dict[str, ca.MX] = {key: ca.MX.sym(key, size) for key, size in sizes.items()}
        blocks = [
            ca.reshape(part, *shape)
            for part, shape in zip(ca.vertsplit(qp["carry"], ends), shapes, strict=True)
        ]
        gains = [blocks[3 * k : 3 * k + 3] for k in range(self.horizon)]
        forces, states = self._motion(checked, gains, qp["x"])
        residual = self._residual(checked, forces, states, qp["lam_a"])
        status = judge(
            residual,
            flag=qp["flag"],
            valid=checked.valid,
            tolerance=self.tolerance,
        )
        solved = status <= Status.SUBOPTIMAL
        u = ca.if_else(solved, forces[0], self._standing_forces(checked))
        standing = ca.MX(ca.DM(self.safe.start))
        u, u_clipped, held = self.safe.step(
            inputs["z"][m:, 0], standing, ca.MX(0), checked.valid, u
        )
        active = ca.if_else(solved, active_signs(qp["active"]), 0)
        z_next = ca.vertcat(active[self.rows :, 0], active[m - self.rows :, 0], held)
        outputs: list[ca.MX] = [
            u_clipped,
            z_next,
            status,
            Flag.SATURATED * is_saturated(u, u_clipped),
            ca.if_else(checked.valid, residual, np.inf),
        ]
        return ca.Function(
            "finish",
            [*inputs.values(), *qp.values()],
            [ca.densify(part) for part in outputs],
            [*inputs, *qp],
            list(OUTPUTS),
        )

    @property
    def safe(self) -> SafeOutput:
        """The output after bad input: the last forces, then the weight shared by all feet."""
        weight = np.tile(self.body.standing_force, self.body.feet) / self.body.feet
        return hold_of_controls(np.column_stack(self.force_limits()), self.period, weight).safe

    def force_limits(self) -> tuple[Array, Array]:
        """Return constant limits of all forces."""
        side = self.body.friction * self.body.f_max
        low, high = [-side, -side, 0.0], [side, side, self.body.f_max]
        return np.tile(low, self.body.feet), np.tile(high, self.body.feet)

    def _standing_forces(self, checked: CheckedInputs) -> ca.MX:
        """Return the weight, shared by the feet on the ground: the safe output."""
        on = checked.on[0]
        return ca.kron(on, ca.DM(self.body.standing_force)) / ca.fmax(ca.sum1(on), 1)

    def _residual(
        self, checked: CheckedInputs, forces: list[ca.MX], states: list[ca.MX], lam: ca.MX
    ) -> ca.MX:
        """Return primal, stationarity and complementarity, relative to weight and gradient."""
        value = ca.vertcat(*(rows_of(self.body) @ f for f in forces))
        lower, upper = self._limits(checked)
        above, below = value - upper, lower - value
        primal = ca.norm_2(ca.fmax(above, 0) + ca.fmax(below, 0)) / self.body.weight
        costate, slopes, size = ca.MX.zeros(NX), ca.MX(0), ca.MX(0)
        mus = ca.vertsplit(lam, self.rows)
        for k in reversed(range(self.horizon)):
            costate, slope, part = self.intervals.adjoint(
                costate, states[k], checked.refs[k], forces[k], mus[k], checked.turn, checked.G[k]
            )
            slopes, size = slopes + ca.sumsqr(slope), size + part
        scale = ca.sqrt(size) + np.finfo(float).tiny
        gap = ca.sum1(ca.fabs(lam * ca.if_else(lam > 0, above, below)))
        return ca.vertcat(primal, ca.sqrt(slopes) / scale, gap / (scale * self.body.weight))
