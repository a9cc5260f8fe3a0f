"""The stages of linear MPC around the QP solver: two Functions that are exported to C.

    build   (x0, ref, z) → (A_qp, lba, uba, active0, carry)
    finish  (x0, ref, z, carry, x, lam_a, active, flag) → (u, z_next, status, residual)

`ref` holds r, then s; `z` the active set of the last tick, shifted by one sample, then the pending
controls and those whose change enters, the newest last. x_0 of the problem is x0 predicted over
the delay, `x <- A x + B u + drift` for each pending control. All matrices are constants of the C.
The solution is checked: the residuals are computed from the QP's own numbers, and a
solver's claim of success is not used.
"""

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from mbcasadi.control.guard import LARGEST_INPUT, clamped, sanitised_active
from mbcasadi.control.least_distance import UNBOUNDED
from mbcasadi.control.mpc.linear.condensed import CondensedProblem
from mbcasadi.control.mpc.linear.least_distance_form import LeastDistanceProblem
from mbcasadi.control.mpc.linear.model import Array
from mbcasadi.control.mpc.linear.predicted import Parameters, parameters_of
from mbcasadi.control.mpc.linear.problem import LinearProblem
from mbcasadi.control.mpc.linear.sparse_form import sparse_problem
from mbcasadi.control.stages import BAD_INPUT, CLAIMED, FAILED, INFEASIBLE, SOLVED, SUBOPTIMAL
from mbcasadi.description import LeastDistanceStages

RESIDUALS = ("primal", "stationarity", "complementarity")
WRITTEN_OUT = 6000
"""Entries of A_qp up to which products are written out as scalars; above, they are loops."""

BOTH_WAYS = 4
"""Operations for each entry of A_qp in `A x` and `Aᵀ lam`."""


@dataclass(frozen=True)
class LinearStages:
    """The problem of the stages.

    Attributes:
        problem, condensed, qp: the problem in its three forms.
        tolerance: bound of each residual for a solution to be accepted.
    """

    problem: LinearProblem
    condensed: CondensedProblem
    qp: LeastDistanceProblem
    tolerance: float

    @property
    def places(self) -> Parameters:
        """The slices of θ."""
        return parameters_of(self.problem)

    @property
    def kind(self) -> Any:
        """`ca.SX` for a small problem, `ca.MX` for a large one."""
        return ca.SX if self.qp.A.size <= WRITTEN_OUT else ca.MX

    @property
    def m(self) -> int:
        """Number of rows."""
        return int(self.qp.A.shape[0])

    def inputs(self) -> dict[str, Any]:
        """Return symbols of x0, ref and z."""
        model, places = self.problem.model, self.places
        nz = self.m + self.problem.kept * model.nu
        sizes = {"x0": model.nx, "ref": places.s.stop - places.r.start, "z": nz}
        return {name: self.kind.sym(name, size) for name, size in sizes.items()}

    def stages(self) -> LeastDistanceStages:
        """Return both Functions."""
        return LeastDistanceStages(self._build(), self._finish())

    def theta(self, given: dict[str, Any]) -> tuple[Any, Any]:
        """Return θ, zero where inputs are bad, and one where they are good."""
        return known(self.problem, given["x0"], given["ref"], given["z"][self.m :, 0])

    def _build(self) -> ca.Function:
        given, qp = self.inputs(), self.qp
        theta, valid = self.theta(given)
        moved = ca.DM(qp.E) @ theta
        lba, uba = (shifted(bound, moved) for bound in (qp.l_0, qp.u_0))
        nu = self.problem.model.nu
        y_0 = -(ca.DM(qp.K[:nu]) @ theta + ca.DM(qp.k_0[:nu]))
        safe = regulated(self.problem, theta)
        A_qp = self.kind(ca.sparsify(ca.DM(qp.A)))  # half of it is zero: later moves, earlier rows
        active = sanitised_active(given["z"][: self.m, 0])
        carry = ca.vertcat(lba, uba, y_0, safe, valid)
        outputs = [A_qp, *(ca.densify(part) for part in (lba, uba, active, carry))]
        names = ["A_qp", "lba", "uba", "active0", "carry"]
        return ca.Function("build", list(given.values()), outputs, list(given), names)

    def _finish(self) -> ca.Function:
        given, kind, m, nu = self.inputs(), self.kind, self.m, self.problem.model.nu
        n = self.qp.A.shape[1]
        sizes = {"carry": 2 * m + 2 * nu + 1, "x": n, "lam_a": m, "active": m, "flag": 1}
        found = {name: kind.sym(name, size) for name, size in sizes.items()}
        lba, uba, y_0, safe, valid = ca.vertsplit(
            found["carry"], np.cumsum([0, m, m, nu, nu, 1]).tolist()
        )
        residual = self._residual(found["x"], found["lam_a"], lba, uba)
        status = judge(residual, found["flag"] > CLAIMED, valid > CLAIMED, self.tolerance)
        wanted = y_0 + ca.DM(self.qp.L_inv[:nu]) @ found["x"]
        u = ca.if_else(status <= SUBOPTIMAL, wanted, ca.if_else(valid > CLAIMED, safe, 0 * safe))
        u = clamped(u, *self.problem.u_bounds.T)
        held = sanitised_active(found["active"])
        active = ca.if_else(status <= SUBOPTIMAL, held, ca.DM(self.condensed.resting))
        moved = active[list(self.condensed.later), 0] if m else active
        z_next = ca.vertcat(moved, remembered(self.problem, given["z"][m:, 0], u))
        outputs = [u, z_next, status, ca.if_else(valid > CLAIMED, residual, np.inf)]
        return ca.Function(
            "finish",
            [*given.values(), *found.values()],
            [ca.densify(part) for part in outputs],
            [*given, *found],
            ["u", "z_next", "status", "residual"],
        )

    def _residual(self, x: Any, lam: Any, lba: Any, uba: Any) -> Any:
        value, pull = self._products(x, lam)
        above, below = value - uba, lba - value
        size = 1 + ca.norm_2(x)
        moved = 1 + ca.norm_2(x[: x.shape[0] - self.condensed.slacks, 0])  # slacks may be large
        primal = ca.norm_2(ca.fmax(above, 0) + ca.fmax(below, 0)) / moved if self.m else 0
        stationarity = ca.norm_2(x + pull) / size
        gap = ca.if_else(lam > 0, above, below)
        complementarity = ca.sum1(ca.fabs(lam * gap)) / size**2 if self.m else 0
        return ca.vertcat(primal, stationarity, complementarity)

    def _products(self, x: Any, lam: Any) -> tuple[Any, Any]:
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
        found = through(x, lam)
        return found[0], found[1]

    def _rows_of(self, y: Any) -> Any:
        """Return `C y` of moves and slacks, by the states that they cause."""
        problem, nu = self.problem, self.problem.model.nu
        states = [ca.SX(problem.model.nx, 1)]
        for k, move in enumerate(problem.blocks):
            A, B, _ = (ca.sparsify(ca.DM(part)) for part in problem.model.interval(k))
            states.append(A @ states[-1] + B @ y[move * nu : (move + 1) * nu, 0])
        C = ca.sparsify(ca.DM(sparse_problem(problem).qp.C))
        return C @ ca.vertcat(y, *states)


def known(problem: LinearProblem, x0: Any, ref: Any, past: Any) -> tuple[Any, Any]:
    """Return θ, zero where inputs are bad, and one where they are good.

    x0 is predicted over the delay with the pending controls, the oldest first.

    Args:
        problem: the problem.
        x0: (nx,) measured state.
        ref: the reference, r then s.
        past: pending controls and those whose change enters, the newest last.
    """
    model, places = problem.model, parameters_of(problem)
    column = ca.vertcat(x0, ref, past)
    valid = ca.sum1(ca.fabs(column)) <= LARGEST_INPUT
    safe = ca.if_else(valid, column, ca.DM.zeros(column.shape[0]))
    past = safe[places.s.stop :, 0]
    x = safe[: model.nx, 0]
    for k in range(problem.delay):
        A, B, drift = (ca.DM(part) for part in model.interval(0))
        x = A @ x + B @ past[k * model.nu : (k + 1) * model.nu, 0] + drift
    last = past[past.shape[0] - model.nu * problem.rated :, 0]
    return ca.vertcat(x, safe[model.nx : places.s.stop, 0], last), valid


def remembered(problem: LinearProblem, past: Any, u: Any) -> Any:
    """Return the past controls of the next tick, finite whatever the past holds."""
    past = clamped(past, *np.tile(problem.u_bounds, (problem.kept, 1)).T)
    return ca.vertcat(past, u)[problem.model.nu :, 0] if problem.kept else u[:0, 0]


def regulated(problem: LinearProblem, theta: Any) -> Any:
    """Return `s - K (x - r)`, the regulator without bounds: the safe output before clipping."""
    places, model = parameters_of(problem), problem.model
    A, B, _ = model.interval(0)
    K = np.linalg.solve(problem.R + B.T @ problem.P @ B, B.T @ problem.P @ A)
    first = theta[places.r.start : places.r.start + model.nx, 0]
    return theta[places.s, 0] - ca.DM(K) @ (theta[places.x0, 0] - first)


def judge(residual: Any, claimed: Any, valid: Any, tolerance: float) -> Any:
    """Return the status of a candidate with these residuals; NaN counts as large.

    Args:
        residual: (3,) in the order of `RESIDUALS`.
        claimed: whether the solver claims an optimum.
        valid: whether the inputs were valid.
        tolerance: bound of each residual.
    """
    small = [residual[i] <= tolerance for i in range(len(RESIDUALS))]
    optimal = ca.logic_and(small[1], small[2])
    violated = ca.logic_and(residual[0] > tolerance, ca.logic_not(claimed))
    checked = ca.if_else(
        small[0],
        ca.if_else(optimal, SOLVED, SUBOPTIMAL),
        ca.if_else(violated, INFEASIBLE, FAILED),
    )
    return ca.if_else(valid, checked, BAD_INPUT)


def shifted(bound: Array, moved: Any) -> Any:
    """Return `bound - moved`, constants where there is no bound."""
    finite = np.isfinite(bound)
    far = np.where(finite, 0.0, np.sign(np.where(finite, 1.0, bound)) * UNBOUNDED)
    return ca.DM(np.where(finite, bound, 0.0)) - ca.DM(finite.astype(float)) * moved + ca.DM(far)
