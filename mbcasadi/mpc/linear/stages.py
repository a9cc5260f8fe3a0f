"""The stages of linear MPC around the QP solver: two Functions that are exported to C.

    build   (measured, ref, z) → (A_qp, lba, uba, active0, carry)
    finish  (measured, ref, z, carry, x, lam_a, active, flag) → (u, z_next, status, flags,
            residual)

The interface turns the measurement and `ref` into x0, r and s. `z` holds the active set of the
last step, shifted by one sample, then the pending controls and those whose change enters, the
newest last, then the estimate of the interface. x_0 of the problem is x0 predicted over the delay,
`x <- A x + B u + drift` for each pending control. All matrices are constants of the C. The
residuals are computed from the QP's own numbers; the solver's status is not used.
"""

from dataclasses import dataclass
from typing import cast

import casadi as ca
import numpy as np

from mbcasadi.description import LeastDistanceStages
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.description.status import OUTPUTS, Flag, Status
from mbcasadi.description.tolerance import tolerance
from mbcasadi.linalg.symbols import Sym
from mbcasadi.mpc.linear.condensing import CondensedProblem
from mbcasadi.mpc.linear.interface import Interface, ProblemInputs
from mbcasadi.mpc.linear.parameters import (
    acting_control,
    next_past_controls,
    parameters,
    past_controls_size,
    problem_inputs,
)
from mbcasadi.mpc.linear.prediction import parameters_of
from mbcasadi.mpc.linear.prediction_model import Array
from mbcasadi.mpc.linear.problem import LinearProblem
from mbcasadi.mpc.linear.sparse_form import sparse_problem
from mbcasadi.mpc.linear.whitened_problem import LeastDistanceProblem
from mbcasadi.qp.input_guard import active_signs, is_saturated
from mbcasadi.qp.kkt_residuals import judge
from mbcasadi.qp.solver import CLAIMED

WRITTEN_OUT = 6000
"""Entries of A_qp up to which products are written out as scalars; above, they are loops."""

BOTH_WAYS = 4
"""Operations for each entry of A_qp in `A x` and `Aᵀ lam`."""


@dataclass(frozen=True)
class LinearStages:
    """The problem of the stages.

    Attributes:
        problem, condensed, qp: the problem in its three forms.
        interface: its measurement and its control.
        tolerance: bound of each residual for a solution to be accepted.
    """

    problem: LinearProblem
    condensed: CondensedProblem
    qp: LeastDistanceProblem
    interface: Interface
    tolerance: float

    @property
    def kind(self) -> type[ca.MX]:
        """`ca.SX` for a small problem, `ca.MX` for a large one; typed as `ca.MX`."""
        return cast(type[ca.MX], ca.SX) if self.qp.A.size <= WRITTEN_OUT else ca.MX

    @property
    def m(self) -> int:
        """Number of rows."""
        return int(self.qp.A.shape[0])

    @property
    def recovered_unknowns(self) -> list[int]:
        """Unknowns that `finish` recovers: the first control and the slacks."""
        n, nu = self.qp.A.shape[1], self.problem.model.nu
        return [*range(nu), *range(n - self.condensed.slacks, n)]

    def stages(self) -> LeastDistanceStages:
        """Return both Functions."""
        return LeastDistanceStages(self._build(), self._finish())

    def _inputs(self) -> tuple[dict[str, ca.MX], ProblemInputs[ca.MX], ca.MX]:
        """Return the controller's inputs, the problem's, and the stored controls."""
        nz = self.m + past_controls_size(self.problem)
        symbols, inputs = problem_inputs(self.interface, self.kind, nz)
        return symbols, inputs, symbols["z"][self.m : nz, 0]

    def _build(self) -> ca.Function:
        (symbols, inputs, past), qp = self._inputs(), self.qp
        theta, valid = parameters(self.problem, inputs.x0, inputs.ref, past)
        shift = ca.DM(qp.E) @ theta
        lba, uba = (shift_bound(bound, shift) for bound in (qp.l_0, qp.u_0))
        y_0 = -(
            ca.DM(qp.K[self.recovered_unknowns]) @ theta + ca.DM(qp.k_0[self.recovered_unknowns])
        )
        safe = unbounded_control(self.problem, theta)
        A_qp = self.kind(ca.sparsify(ca.DM(qp.A)))  # half of it is zero: later moves, earlier rows
        active = active_signs(symbols["z"][: self.m, 0])
        carry = ca.vertcat(lba, uba, y_0, safe, valid)
        outputs = [A_qp, *(ca.densify(part) for part in (lba, uba, active, carry))]
        names = ["A_qp", "lba", "uba", "active0", "carry"]
        return ca.Function("build", list(symbols.values()), outputs, list(symbols), names)

    def _finish(self) -> ca.Function:
        (symbols, inputs, past), kind = self._inputs(), self.kind
        (m, n), nu = self.qp.A.shape, self.problem.model.nu
        slacks = self.condensed.slacks
        sizes = {"carry": 2 * m + 2 * nu + slacks + 1, "x": n, "lam_a": m, "active": m, "flag": 1}
        solver = {name: kind.sym(name, size) for name, size in sizes.items()}
        lba, uba, y_0, safe, valid = ca.vertsplit(
            solver["carry"], np.cumsum([0, m, m, nu + slacks, nu, 1]).tolist()
        )
        residual = self._residual(solver["x"], solver["lam_a"], lba, uba)
        status = judge(
            residual,
            flag=solver["flag"],
            valid=valid > CLAIMED,
            tolerance=self.tolerance,
        )
        optimal = status <= Status.SUBOPTIMAL
        u = y_0[:nu, 0] + ca.DM(self.qp.L_inv[:nu]) @ solver["x"]
        u = ca.if_else(optimal, u, safe)
        u_free, u, remembered = safe_step(self.interface, symbols, valid > CLAIMED, u)
        flags = Flag.SATURATED * is_saturated(u_free, u) + Flag.GATED * inputs.gated
        if slacks:
            e = y_0[nu:, 0] + ca.DM(self.qp.L_inv[n - slacks :]) @ solver["x"]
            relaxed = ca.logic_and(optimal, ca.mmax(e) > tolerance(self.tolerance))
            flags = flags + Flag.RELAXED * relaxed
        resting = ca.DM(self.condensed.resting)
        active = ca.if_else(optimal, active_signs(solver["active"]), resting)
        later = active[list(self.condensed.later), 0] if m else active
        acting = acting_control(self.problem, past, u)
        z_next = ca.vertcat(
            later,
            next_past_controls(self.problem, past, u),
            self.interface.next_estimate(inputs, acting),
            remembered,
        )
        doubted = ca.logic_and(inputs.doubted, status == Status.SOLVED)
        status = ca.if_else(doubted, Status.SUBOPTIMAL, status)
        residual = ca.if_else(valid > CLAIMED, residual, np.inf)
        outputs = [self.interface.send(u), z_next, status, flags, residual]
        return ca.Function(
            "finish",
            [*symbols.values(), *solver.values()],
            [ca.densify(part) for part in outputs],
            [*symbols, *solver],
            list(OUTPUTS),
        )

    def _residual(self, x: ca.MX, lam: ca.MX, lba: ca.MX, uba: ca.MX) -> ca.MX:
        value, pull = self._products(x, lam)
        above, below = value - uba, lba - value
        size = 1 + ca.norm_2(x)
        moves = 1 + ca.norm_2(x[: x.shape[0] - self.condensed.slacks, 0])  # slacks may be large
        primal = ca.norm_2(ca.fmax(above, 0) + ca.fmax(below, 0)) / moves if self.m else 0
        stationarity = ca.norm_2(x + pull) / size
        gap = ca.if_else(lam > 0, above, below)
        complementarity = ca.sum1(ca.fabs(lam * gap)) / size**2 if self.m else 0
        return ca.vertcat(primal, stationarity, complementarity)

    def _products(self, x: ca.MX, lam: ca.MX) -> tuple[ca.MX, ca.MX]:
        """Return `A x` and `Aᵀ lam`: by the states, forward and backward, where that is cheaper."""
        A = ca.sparsify(ca.DM(self.qp.A))
        if not self.m or np.count_nonzero(self.qp.L_inv) > WRITTEN_OUT:
            return A @ x, A.T @ lam
        point, force = ca.SX.sym("x", x.shape[0]), ca.SX.sym("lam", lam.shape[0])
        value = self._rows_of(ca.DM(self.qp.L_inv) @ point)
        pull = ca.jtimes(value, point, force, True)
        through = ca.Function("through", [point, force], [value, pull])
        if through.n_instructions() > BOTH_WAYS * A.nnz():
            return A @ x, A.T @ lam
        by_states = through(x, lam)
        return by_states[0], by_states[1]

    def _rows_of(self, y: ca.SX) -> ca.SX:
        """Return `C y` of moves and slacks, by the states that they cause."""
        problem, nu = self.problem, self.problem.model.nu
        states = [ca.SX(problem.model.nx, 1)]
        for k, move in enumerate(problem.blocks):
            A, B, _ = (ca.sparsify(ca.DM(part)) for part in problem.model.interval(k))
            states.append(A @ states[-1] + B @ y[move * nu : (move + 1) * nu, 0])
        C = ca.sparsify(ca.DM(sparse_problem(problem).qp.C))
        return C @ ca.vertcat(y, *states)


def safe_step(
    interface: Interface, symbols: dict[str, Sym], known: Sym, u: Sym
) -> tuple[Sym, Sym, Sym]:
    """Return u before and behind its limits, and what the safe output remembers.

    Args:
        interface: gives the safe output.
        symbols: inputs of the controller, by name.
        known: whether the inputs are good, so that u is a command.
        u: (nu,) the solution, or the regulator without bounds.
    """
    safe, z = interface.hold.safe, symbols["z"]
    command, measured = interface.offered(symbols)
    return safe.step(z[z.numel() - safe.size :, 0], command, measured, known, u)


def unbounded_control(problem: LinearProblem, theta: Sym) -> Sym:
    """Return `s - K (x - r)`, the regulator without bounds, before it is clipped."""
    places, model = parameters_of(problem), problem.model
    A, B, _ = model.interval(0)
    K = np.linalg.solve(problem.R + B.T @ problem.P @ B, B.T @ problem.P @ A)
    first = theta[places.r.start : places.r.start + model.nx, 0]
    return theta[places.s, 0] - ca.DM(K) @ (theta[places.x0, 0] - first)


def shift_bound(bound: Array, shift: Sym) -> Sym:
    """Return `bound - shift`, constants where there is no bound."""
    finite = np.isfinite(bound)
    far = np.where(finite, 0.0, np.sign(np.where(finite, 1.0, bound)) * UNBOUNDED)
    return ca.DM(np.where(finite, bound, 0.0)) - ca.DM(finite.astype(float)) * shift + ca.DM(far)
