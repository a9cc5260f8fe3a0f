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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

import casadi as ca
import numpy as np

from mbcasadi.description import LeastDistanceStages
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.description.status import Flag, Status
from mbcasadi.linalg.symbols import Sym
from mbcasadi.mpc.linear.condensing import (
    CondensedForm,
    LeastDistanceProblem,
)
from mbcasadi.mpc.linear.interface import Expression, Interface, ProblemInputs
from mbcasadi.mpc.linear.model import Array
from mbcasadi.mpc.linear.parameters import (
    acting_control,
    next_past_controls,
    parameters,
    parameters_fun,
    parameters_of,
    past_controls_size,
    problem_inputs,
)
from mbcasadi.mpc.linear.problem import LinearProblem
from mbcasadi.mpc.lq.sparse import number
from mbcasadi.mpc.lq.tick import flags_of, outputs_of, solver_results, stage_function
from mbcasadi.qp.input_guard import active_signs
from mbcasadi.qp.kkt_residuals import judge
from mbcasadi.qp.solver import CLAIMED, candidate_fun

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
    condensed: CondensedForm
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

    def _inputs(self) -> "StageInputs":
        return tick_inputs(self.problem, self.interface, self.kind, self.m)

    def _build(self) -> ca.Function:
        now, qp = self._inputs(), self.qp
        theta, valid = parameters(self.problem, now.inputs.x0, now.inputs.ref, now.past)
        shift = ca.DM(qp.E) @ theta
        lba, uba = (shift_bound(bound, shift) for bound in (qp.l_0, qp.u_0))
        y_0 = -(
            ca.DM(qp.K[self.recovered_unknowns]) @ theta + ca.DM(qp.k_0[self.recovered_unknowns])
        )
        safe = unbounded_control(self.problem, theta)
        outputs = {
            "A_qp": self.kind(ca.sparsify(ca.DM(qp.A))),  # half is zero: later moves, earlier rows
            "lba": lba,
            "uba": uba,
            "active0": active_signs(now.symbols["z"][: self.m, 0]),
            "carry": ca.vertcat(lba, uba, y_0, safe, valid),
        }
        return stage_function("build", now.symbols, outputs)

    def _finish(self) -> ca.Function:
        now, (m, n), nu = self._inputs(), self.qp.A.shape, self.problem.model.nu
        slacks = self.condensed.slacks
        solver = solver_results(self.kind, n, m, 2 * m + 2 * nu + slacks + 1)
        lba, uba, y_0, safe, valid = ca.vertsplit(
            solver["carry"], np.cumsum([0, m, m, nu + slacks, nu, 1]).tolist()
        )
        solution = TickSolution(
            u=y_0[:nu, 0] + ca.DM(self.qp.L_inv[:nu]) @ solver["x"],
            otherwise=safe,
            e=y_0[nu:, 0] + ca.DM(self.qp.L_inv[n - slacks :]) @ solver["x"],
            residual=self._residual(solver["x"], solver["lam_a"], lba, uba),
            flag=solver["flag"],
            valid=valid,
            active=active_signs(solver["active"]),
        )
        outputs = end_of_tick(now, solution, self.tolerance, self.condensed)
        return stage_function("finish", now.symbols | solver, outputs)

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
        form, qp = self.condensed.form, self.condensed.qp
        theta, first = ca.MX.zeros(parameters_of(self.problem).size), 0
        w, x = ca.SX(qp.H.shape[0], 1), ca.SX(form.start(theta).numel(), 1)
        places = zip(form.stages(theta), qp.controls, qp.states, strict=False)
        for stage, controls, states in places:
            count, of = controls.stop - controls.start, stage.interval
            A, B = (number(block) for block in (of.A, of.B))
            w[controls] = y[first : first + count, 0]
            x = A @ x + B @ w[controls]
            w[states], first = x, first + count
        w[qp.slacks] = y[first:, 0]
        return qp.C @ w

    def prediction(
        self, stages: LeastDistanceStages, function: ca.Function, solver: str
    ) -> ca.Function:
        """Return (inputs) → (x, u), one column for each sample; NaN where there is no valid plan.

        Args:
            stages: both Functions.
            function: the whole controller.
            solver: plugin of CasADi.
        """
        theta_fun = parameters_fun(self.problem, self.interface, self.m)
        symbols = {name: ca.MX.sym(name, function.sparsity_in(name)) for name in function.name_in()}
        theta = theta_fun(*symbols.values())
        x = candidate_fun(stages, solver)(*symbols.values())
        y = ca.DM(self.qp.L_inv) @ x - (ca.DM(self.qp.K) @ theta + ca.DM(self.qp.k_0))
        Y, Y_theta, y_0 = (ca.DM(part) for part in self.condensed.maps)
        x_0, w = theta[parameters_of(self.problem).x0], Y @ y + Y_theta @ theta + y_0
        status = function.call(list(symbols.values()))[function.index_out("status")]
        valid = status <= Status.SUBOPTIMAL
        plan = self.condensed.form.plan(self.condensed.qp, w, x_0)
        x_plan, u_plan = self.interface.plan(*(ca.if_else(valid, part, np.nan) for part in plan))
        return stage_function("prediction", symbols, {"x": x_plan, "u": u_plan})


class StageInputs(NamedTuple):
    """What a tick begins with: the inputs by name, the problem's inputs, and stored controls."""

    problem: LinearProblem
    interface: Interface
    symbols: dict[str, Expression]
    inputs: ProblemInputs
    past: Expression


class TickSolution(NamedTuple):
    """A candidate: control, the regulator without bounds, slacks, residuals and the solver's flag.

    `valid` is one where the inputs are good, `active` the active set; no rows without one.
    """

    u: Expression
    otherwise: Expression
    e: Expression
    residual: Expression
    flag: Expression
    valid: Expression
    active: Expression


def tick_inputs(
    problem: LinearProblem, interface: Interface, kind: type[Sym], rows: int
) -> StageInputs:
    """Return symbols of a tick; `rows` entries of z come before the stored controls."""
    nz = rows + past_controls_size(problem)
    symbols, inputs = problem_inputs(interface, kind, nz)
    return StageInputs(problem, interface, dict(symbols), inputs, symbols["z"][rows:nz, 0])


def end_of_tick(
    now: StageInputs, solution: TickSolution, tolerance: float, condensed: CondensedForm
) -> Mapping[str, Expression]:
    """Return the outputs of a tick, by name.

    Args:
        now: the inputs.
        solution: the candidate.
        tolerance: bound of each residual for it to be accepted.
        condensed: names the rows of the active set.
    """
    problem, interface, symbols, inputs, past = now
    valid = solution.valid > CLAIMED
    status = judge(solution.residual, flag=solution.flag, valid=valid, tolerance=tolerance)
    optimal = status <= Status.SUBOPTIMAL
    safe, (command, measured) = interface.hold.safe, interface.offered(symbols)
    u = ca.if_else(optimal, solution.u, solution.otherwise)
    before = symbols["z"][symbols["z"].numel() - safe.size :, 0]
    u_free, u, remembered = safe.step(before, command, measured, valid, u)
    flags = flags_of((u_free, u), optimal, solution.e, tolerance) + Flag.GATED * inputs.gated
    active = solution.active
    if active.numel():
        resting = ca.DM(condensed.resting)
        active = ca.if_else(optimal, active, resting)[list(condensed.later), 0]
    z_next = ca.vertcat(
        active,
        next_past_controls(problem, past, u),
        interface.next_estimate(inputs, acting_control(problem, past, u)),
        remembered,
    )
    doubted = ca.logic_and(inputs.doubted, status == Status.SOLVED)
    status = ca.if_else(doubted, Status.SUBOPTIMAL, status)
    return outputs_of(interface.send(u), z_next, status, flags, (solution.residual, valid))


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
