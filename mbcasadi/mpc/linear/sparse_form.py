"""A linear MPC problem with its states, and of a mechanism with its multipliers, as unknowns.

Implicit constraints: `x_{k+1} = A_k x_k + B_k u_k + d_k`.

Explicit constraints: the states are `(δq, δv)` of all coordinates, and each interval has its
accelerations and multipliers as controls too:

    δa_k = -M⁻¹ (∂r/∂q δq_k + ∂r/∂v δv_k - B δu_k - Aᵀ δλ_k),   A δa_k = 0
    (δq, δv)_{k+1} = (δq, δv)_k + h φ(h L F) (δv_k, δa_k),   φ(Z) = Z⁻¹ (exp Z - 1)

with F, L of `control.regulators.multiplier_form`. `exp(h L F) - 1 = h φ(h L F) L F` makes
the second line the exact hold, so both forms are one problem. Rows of A may repeat; of the δλ with
the same effect the least is taken, which has no part in null(Aᵀ).

Where changes of u count, or a move lasts, the last control is a part of the state.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
import scipy

from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.loads import null
from mbcasadi.control.regulators.multiplier_form import (
    DESCRIPTOR_RANK_TOL,
    descriptor_form,
    require_equilibrium,
)
from mbcasadi.mpc.linear.condensing import SLACK_CURVATURE, SOFT_REACH, condense_problem
from mbcasadi.mpc.linear.model import Array, Output
from mbcasadi.mpc.linear.prediction import parameters_of
from mbcasadi.mpc.linear.problem import LinearProblem
from mbcasadi.mpc.lq.interval import Bounded, Interval
from mbcasadi.mpc.lq.sparse import SparseQP, Stage, sparse_qp
from mbcasadi.mpc.ocp.constraints import row_set


@dataclass(frozen=True)
class SparseForm:
    """How a problem is posed with its states as unknowns.

    Attributes:
        problem: in the coordinates of the unknowns.
        lift: states of the unknowns, (m, nx), of those of θ.
        least: least ρ₂ of a soft row, that of the condensed form: all forms are one problem.
        mechanism: its multipliers where they are unknowns too.
    """

    problem: LinearProblem
    lift: Array
    least: float
    mechanism: "Multipliers | None" = None

    @property
    def holds_control(self) -> bool:
        """Whether the last control is a part of the state."""
        problem = self.problem
        lasting = len(set(problem.blocks)) < problem.horizon
        return problem.has_rates or lasting or problem.terminal is not None

    def qp(self, theta: ca.MX) -> SparseQP:
        """Return the QP at these parameters."""
        places, problem = parameters_of(self.problem), self.problem
        x_0 = ca.DM(self.lift) @ theta[places.x0]
        if self.holds_control:
            last = theta[places.last] if problem.has_rates else ca.MX(problem.model.nu, 1)
            x_0 = ca.vertcat(x_0, last)
        samples = range(problem.horizon)
        return sparse_qp(x_0, [*(self._stage(k, theta) for k in samples), self._end(theta)])

    def plan(self, qp: SparseQP, w: ca.MX, x_0: ca.MX) -> tuple[ca.MX, ca.MX]:
        """Return states of θ and controls, a column for each sample."""
        n, nu = len(self.lift), self.problem.model.nu
        x = ca.horzcat(*(w[place][:n] for place in qp.states))
        u: list[ca.MX] = []
        for move, place in zip(self.problem.blocks, qp.controls, strict=True):
            u.append(w[place][:nu] if move == len(set(self.problem.blocks[: len(u)])) else u[-1])
        return ca.horzcat(x_0, ca.DM(np.linalg.pinv(self.lift)) @ x), ca.horzcat(*u)

    def forces(self, qp: SparseQP) -> list[slice]:
        """Return the slices of w with δλ_k, one for each interval; none without multipliers."""
        if self.mechanism is None:
            return []
        count = self.mechanism.of_lam.shape[1]
        return [slice(place.stop - count, place.stop) for place in qp.controls]

    def _reference(self, theta: ca.MX, k: int) -> ca.MX:
        """Return r_k, k >= 1, in the coordinates of the unknowns."""
        places, nx = parameters_of(self.problem), self.lift.shape[1]
        first = places.r.start + (nx * (k - 1) if self.problem.preview else 0)
        return ca.DM(self.lift) @ theta[first : first + nx]

    def _stage(self, k: int, theta: ca.MX) -> Stage:
        problem, n, nu = self.problem, len(self.lift), self.problem.model.nu
        held, free = nu * self.holds_control, problem.blocks[k] not in problem.blocks[:k]
        A, of_u, more, drift = self._motion(k)
        size, extra, move = n + held, more.shape[1], nu * free
        s = theta[parameters_of(problem).s]
        rows, Q, S = _Rows(), np.zeros((size, size)), np.zeros((size, move + extra))
        R, q = np.zeros((move + extra,) * 2), ca.MX(size, 1)
        Q[:n, :n], q[:n] = problem.Q, -ca.DM(problem.Q) @ self._reference(theta, max(k, 1))
        change = np.hstack([np.zeros((nu, n)), -np.eye(nu, held)])
        if free:
            R[:nu, :nu] = problem.R + problem.S
            r = ca.vertcat(-ca.DM(problem.R) @ s, ca.MX(extra, 1))
            if problem.has_rates:
                Q[n:, n:], S[n:, :nu] = problem.S, -problem.S
            own = np.eye(nu, move + extra)
            rows.add(np.zeros((nu, size)), own, problem.u_bounds)
            rows.add(change, own, problem.du_bounds)
        else:
            Q[n:, n:], q[n:], r = problem.R, -ca.DM(problem.R) @ s, ca.MX(extra, 1)
        for output in problem.outputs:
            of_last = output.D @ (np.zeros((nu, held)) if free else np.eye(nu))
            of_own = output.D @ np.eye(nu, move + extra) * free
            if np.any(output.D) or k:
                rows.add_output(np.hstack([output.C, of_last]), of_own, output, self.least)
        effect = np.hstack([of_u, more]) if free else more
        kept = np.eye(held, move + extra) if free else np.zeros((held, extra))
        onward = np.eye(held) * (not free)
        interval = _interval(
            A=np.block([[A, of_u[:, :held] * (not free)], [np.zeros((held, n)), onward]]),
            B=np.vstack([effect, kept]),
            d=np.append(drift, np.zeros(held)),
            Q=Q, S=S, R=R, q=q, r=r,
            **rows.values(size, move + extra),
        )  # fmt: skip
        return Stage(interval, rows.bounded(), self._equations(size, free))

    def _motion(self, k: int) -> tuple[Array, Array, Array, Array]:
        """Return the motion by state, control and further unknowns, and its drift."""
        n, nu, at = len(self.lift), self.problem.model.nu, self.mechanism
        if at is None:
            A, B, drift = self.problem.model.interval(k)
            return A, B, np.zeros((n, 0)), drift
        nv, nc = at.of_lam.shape
        of_state = np.eye(n) + np.hstack([np.zeros((n, nv)), at.hold[:, :nv]])
        return (
            of_state,
            np.zeros((n, nu)),
            np.hstack([at.hold[:, nv:], np.zeros((n, nc))]),
            np.zeros(n),
        )

    def _equations(self, size: int, free: bool) -> tuple[Array, Array] | None:
        """Return the rows of the accelerations and multipliers over state and controls."""
        at, nu = self.mechanism, self.problem.model.nu
        if at is None:
            return None
        nv, nc = at.of_lam.shape
        rows, idle = _independent(at.rows), null(at.of_lam, DESCRIPTOR_RANK_TOL).T
        E_x = np.zeros((nv + len(rows) + len(idle), size))
        E_x[:nv, : 2 * nv] = at.of_state
        if not free:
            E_x[:nv, 2 * nv :] = at.of_u
        E_u = np.vstack([
            np.hstack([at.of_u, -np.eye(nv), at.of_lam]),
            np.hstack([np.zeros((len(rows), nu)), rows, np.zeros((len(rows), nc))]),
            np.hstack([np.zeros((len(idle), nu + nv)), idle]),
        ])  # fmt: skip
        return E_x, E_u[:, 0 if free else nu :]

    def _end(self, theta: ca.MX) -> Stage:
        problem, n, nu = self.problem, len(self.lift), self.problem.model.nu
        size, rows = n + nu * self.holds_control, _Rows()
        Q, q = np.zeros((size, size)), ca.MX(size, 1)
        Q[:n, :n], q[:n] = problem.P, -ca.DM(problem.P) @ self._reference(theta, problem.horizon)
        for output in problem.outputs:
            if not np.any(output.D):
                of_x = np.hstack([output.C, np.zeros((len(output.C), size - n))])
                rows.add_output(of_x, np.zeros((len(of_x), 0)), output, self.least)
        if problem.terminal is not None:
            of_x = np.hstack([problem.terminal.of_x, problem.terminal.of_u])
            rows.add(of_x, np.zeros((len(of_x), 0)), np.tile([-np.inf, 1.0], (len(of_x), 1)))
        interval = _interval(
            A=np.eye(size), B=np.zeros((size, 0)), d=np.zeros(size),
            Q=Q, S=np.zeros((size, 0)), R=np.zeros((0, 0)), q=q, r=ca.MX(0, 1),
            **rows.values(size, 0),
        )  # fmt: skip
        return Stage(interval, rows.bounded())


@dataclass(frozen=True)
class Multipliers:
    """A mechanism near an equilibrium with its multipliers, for one sample time.

    Attributes:
        of_state, of_u, of_lam: (nv, 2 nv), (nv, nu), (nv, nc): `δa` of (δq, δv), δu, δλ.
        rows: (nc, nv) A, rows may repeat.
        hold: (2 nv, 2 nv) `h φ(h L F)`.
        lift: (2 nv, nx) `(δq, δv) = lift x`.
    """

    of_state: Array
    of_u: Array
    of_lam: Array
    rows: Array
    hold: Array
    lift: Array


def multipliers_of(linear: Linearization, period: float) -> Multipliers:
    """Return the mechanism with its multipliers.

    Raises:
        ProblemError: no equilibrium, or a singular inertia; see `descriptor_form`.
    """
    require_equilibrium(linear)
    full, nv = descriptor_form(linear), linear.system.nv
    reaction = np.linalg.pinv(full.G @ full.S, DESCRIPTOR_RANK_TOL)
    along = full.dfdx - full.S @ reaction @ full.G @ full.dfdx
    size = 2 * nv
    block = np.block([[along, np.eye(size)], [np.zeros((size, 2 * size))]])
    return Multipliers(
        of_state=full.dfdx[nv:],
        of_u=full.dfdu[nv:],
        of_lam=full.S[nv:],
        rows=full.G[linear.system.nc :, nv:],
        hold=scipy.linalg.expm(block * period)[:size, size:],
        lift=np.vstack([linear.to_dq, linear.to_dv]),
    )


def sparse_form(problem: LinearProblem) -> SparseForm:
    """Return the form whose unknowns are controls, states and slacks."""
    return SparseForm(problem, np.eye(problem.model.nx), _least(problem))


def multiplier_form(
    problem: LinearProblem, mechanism: Multipliers, Q: Array, outputs: Sequence[Output]
) -> SparseForm:
    """Return the form with coordinates, accelerations and multipliers as unknowns.

    Args:
        problem: in the free coordinates x.
        mechanism: from `multipliers_of`, with the problem's period.
        Q: (2 nv, 2 nv) weight of all coordinates, of which `problem` has `liftᵀ Q lift`.
        outputs: rows of all coordinates, of which `problem` has `C lift`.
    """
    down = np.linalg.pinv(mechanism.lift)
    end = problem.terminal and replace(problem.terminal, of_x=problem.terminal.of_x @ down)
    natural = replace(problem, Q=Q, P=down.T @ problem.P @ down, terminal=end)
    natural = replace(natural, outputs=tuple(outputs))
    return SparseForm(natural, mechanism.lift, _least(problem), mechanism)


class _Rows:
    """The bounded values of a stage as they are collected."""

    def __init__(self) -> None:
        self.of_x: list[Array] = []
        self.of_u: list[Array] = []
        self.limits: list[Array] = []
        self.prices: list[Array] = []

    def add(
        self, of_x: Array, of_u: Array, limits: Array, price: tuple[float, float] = (np.inf, np.inf)
    ) -> None:
        """Add those rows that have a bound."""
        bounded = np.isfinite(limits).any(axis=1)
        parts = (of_x, of_u, limits, np.tile(price, (len(limits), 1)))
        stores = (self.of_x, self.of_u, self.limits, self.prices)
        for store, part in zip(stores, parts, strict=True):
            store.extend(part[bounded])

    def add_output(self, of_x: Array, of_u: Array, output: Output, least: float) -> None:
        """Add the rows of an output, soft where it has a price."""
        limits = np.column_stack([output.lower, output.upper])
        curvature = max(output.quadratic_penalty, output.linear_penalty / SOFT_REACH, least)
        price = (output.linear_penalty, curvature) if output.soft else (np.inf, np.inf)
        self.add(of_x, of_u, limits, price)

    def values(self, nx: int, nu: int) -> dict[str, Array]:
        """Return the values as blocks of an interval."""
        count = len(self.limits)
        shapes = (("G_x", self.of_x, nx), ("G_u", self.of_u, nu))
        blocks = {key: np.reshape(part, (count, size)) for key, part, size in shapes}
        return blocks | {"g": np.zeros(count)}

    def bounded(self) -> Bounded:
        """Return their rows."""
        count = len(self.limits)
        limits, prices = (np.reshape(part, (count, 2)) for part in (self.limits, self.prices))
        return Bounded(controls=False, states=(), rows=row_set(limits, prices))


def _interval(**blocks: Any) -> Interval[ca.MX]:
    """Return the interval of these blocks, arrays as matrices of CasADi."""
    numbers = {
        key: ca.sparsify(ca.DM(part)) if isinstance(part, np.ndarray) else part
        for key, part in blocks.items()
    }
    return Interval(data=(), **numbers)


def _least(problem: LinearProblem) -> float:
    """Return the least ρ₂ of a soft row in the condensed form."""
    return SLACK_CURVATURE * float(
        np.abs(condense_problem(replace(problem, outputs=(), terminal=None)).H).max(initial=1.0)
    )


def _independent(rows: Array) -> Array:
    """Return the rows that are independent of each other."""
    if not len(rows):
        return rows
    _, R, order = scipy.linalg.qr(rows.T, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(R))
    kept: Array = rows[np.sort(order[: int(np.sum(sizes > DESCRIPTOR_RANK_TOL * sizes.max()))])]
    return kept
