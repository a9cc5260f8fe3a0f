"""A linear MPC problem as stages of a linear-quadratic one, its states among the unknowns.

Every form of the QP is made from these stages, which are numbers but for the parameters θ.
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
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import scipy

from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.loads import null
from mbcasadi.control.regulators.lqr import require_equilibrium
from mbcasadi.control.regulators.multiplier_form import DESCRIPTOR_RANK_TOL, descriptor_form
from mbcasadi.mpc.linear.model import Array, Output
from mbcasadi.mpc.linear.parameters import parameters_of
from mbcasadi.mpc.linear.problem import LinearProblem
from mbcasadi.mpc.lq.interval import BoundedValues, Interval
from mbcasadi.mpc.lq.sparse import SparseQP, SparseStage, sparse_qp
from mbcasadi.mpc.ocp.constraints import penalties_of, row_set


class RowName(NamedTuple):
    """What a row is: of a move, or of a sample.

    Attributes:
        name: of the bounded value, and which side where there is a row for each.
        at: index of the move or sample.
        firm: it is never violated: a bound of a control, or the sign of a slack.
    """

    name: str
    at: int
    firm: bool = False

    def __str__(self) -> str:
        return f"{self.name}[{self.at}]"


@dataclass(frozen=True)
class StagewiseForm:
    """How a problem is posed with its states as unknowns.

    Attributes:
        problem: in the coordinates of the unknowns.
        lift: states of the unknowns, (m, nx), of those of θ.
        mechanism: its multipliers where they are unknowns too.
    """

    problem: LinearProblem
    lift: Array
    mechanism: "Multipliers | None" = None

    @property
    def holds_control(self) -> bool:
        """Whether the last control is a part of the state."""
        problem = self.problem
        lasting = len(set(problem.blocks)) < problem.horizon
        return problem.has_rates or lasting or problem.terminal is not None

    def qp(self, theta: ca.MX) -> SparseQP:
        """Return the QP at these parameters."""
        return sparse_qp(self.start(theta), self.stages(theta))

    def stages(self, theta: ca.MX) -> list[SparseStage]:
        """Return the intervals and the end."""
        return [self._stage(k, theta)[0] for k in range(self.problem.horizon + 1)]

    @property
    def names(self) -> list[RowName]:
        """What each row of the QP is, in their order."""
        theta = ca.MX.sym("theta", parameters_of(self.problem).size)
        collected = [self._stage(k, theta)[1] for k in range(self.problem.horizon + 1)]
        names = [name for rows in collected for name in rows.names()]
        return names + [name for rows in collected for name in rows.signs()]

    def start(self, theta: ca.MX) -> ca.MX:
        """Return the first state of the unknowns."""
        places, problem = parameters_of(self.problem), self.problem
        x_0 = ca.DM(self.lift) @ theta[places.x0]
        if self.holds_control:
            last = theta[places.last] if problem.has_rates else ca.MX(problem.model.nu, 1)
            x_0 = ca.vertcat(x_0, last)
        return x_0

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

    @property
    def _sizes(self) -> tuple[int, int, int, int]:
        """Numbers of coordinates, last controls in the state, controls and further controls."""
        nu, at = self.problem.model.nu, self.mechanism
        extra = 0 if at is None else sum(at.of_lam.shape)
        return len(self.lift), nu * self.holds_control, nu, extra

    def _stage(self, k: int, theta: ca.MX) -> tuple[SparseStage, "_Rows"]:
        """Return a stage and its rows: over (x, last, u, further), where a lasting u is `last`."""
        problem, (n, n_held, nu, extra) = self.problem, self._sizes
        if k == problem.horizon:
            return self._end(theta)
        begins = problem.blocks[k] not in problem.blocks[:k]
        unknowns = np.eye(n + n_held + nu + extra)
        u, change = unknowns[n + n_held :][:nu], np.hstack([np.zeros((nu, n)), -np.eye(nu, n_held)])
        change = np.hstack([change, np.eye(nu, nu + extra)])
        if not begins:
            unknowns[n + n_held : n + n_held + nu] = unknowns[n : n + n_held]
            unknowns = np.delete(unknowns, range(n + n_held, n + n_held + nu), axis=1)
            u, change = u @ unknowns, change @ unknowns
        rows = _Rows()
        if begins:
            moves = [RowName(f"u{i}", problem.blocks[k], firm=True) for i in range(nu)]
            rows.add(moves, u, problem.u_bounds)
            moves = [RowName(f"du{i}", problem.blocks[k]) for i in range(nu)]
            rows.add(moves, change, problem.du_bounds)
        x = unknowns[:n]
        for output in problem.outputs:
            if np.any(output.D) or k:
                rows.add_output(k, output.C @ x + output.D @ u, output)
        motion, drift = self._motion(k)
        H = x.T @ problem.Q @ x + u.T @ problem.R @ u + change.T @ problem.S @ change
        h = -ca.DM(x.T @ problem.Q) @ self._reference(theta, max(k, 1))
        h -= ca.DM(u.T @ problem.R) @ theta[parameters_of(problem).s]
        interval = _interval(H, h, np.vstack([motion @ unknowns, u[:n_held]]), rows, n + n_held)
        drifting = replace(interval, d=ca.DM(np.append(drift, np.zeros(n_held))))
        equal = self._equations()
        of_unknowns = None if equal is None else equal @ unknowns
        return SparseStage(drifting, rows.bounded(), of_unknowns), rows

    def _motion(self, k: int) -> tuple[Array, Array]:
        """Return the next coordinates over all unknowns, and their drift."""
        (n, n_held, nu, _), at = self._sizes, self.mechanism
        if at is None:
            A, B, drift = self.problem.model.interval(k)
            return np.hstack([A, np.zeros((n, n_held)), B]), drift
        nv, nc = at.of_lam.shape
        of_state = np.eye(n) + np.hstack([np.zeros((n, nv)), at.hold[:, :nv]])
        none = np.zeros((n, n_held + nu)), np.zeros((n, nc))
        return np.hstack([of_state, none[0], at.hold[:, nv:], none[1]]), np.zeros(n)

    def _equations(self) -> Array | None:
        """Return the rows of the accelerations and multipliers over all unknowns."""
        (n, n_held, nu, _), at = self._sizes, self.mechanism
        if at is None:
            return None
        nv, nc = at.of_lam.shape
        rows, idle = _independent(at.rows), null(at.of_lam, DESCRIPTOR_RANK_TOL).T
        before = n + n_held + nu
        of_state = np.hstack([at.of_state, np.zeros((nv, n_held)), at.of_u, -np.eye(nv), at.of_lam])
        of_rows = np.hstack([np.zeros((len(rows), before)), rows, np.zeros((len(rows), nc))])
        return np.vstack([of_state, of_rows, np.hstack([np.zeros((len(idle), before + nv)), idle])])

    def _end(self, theta: ca.MX) -> tuple[SparseStage, "_Rows"]:
        problem, (n, n_held, _, _), rows = self.problem, self._sizes, _Rows()
        x = np.eye(n, n + n_held)
        for output in problem.outputs:
            if not np.any(output.D):
                rows.add_output(problem.horizon, output.C @ x, output)
        if problem.terminal is not None:
            of_x = np.hstack([problem.terminal.of_x, problem.terminal.of_u])
            names = [RowName(f"terminal{i}", problem.horizon) for i in range(len(of_x))]
            rows.add(names, of_x, np.tile([-np.inf, 1.0], (len(of_x), 1)))
        h = -ca.DM(x.T @ problem.P) @ self._reference(theta, problem.horizon)
        interval = _interval(x.T @ problem.P @ x, h, np.eye(n + n_held), rows, n + n_held)
        return SparseStage(interval, rows.bounded()), rows


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


def stagewise_form(problem: LinearProblem) -> StagewiseForm:
    """Return the form whose unknowns are controls, states and slacks; `least` ρ₂ of a soft row."""
    return StagewiseForm(problem, np.eye(problem.model.nx))


def multiplier_form(
    form: StagewiseForm, mechanism: Multipliers, Q: Array, outputs: Sequence[Output]
) -> StagewiseForm:
    """Return the form with coordinates, accelerations and multipliers as unknowns.

    Args:
        form: of the problem in the free coordinates x.
        mechanism: from `multipliers_of`, with the problem's period.
        Q: (2 nv, 2 nv) weight of all coordinates, of which the problem has `liftᵀ Q lift`.
        outputs: rows of all coordinates, of which the problem has `C lift`.
    """
    problem, down = form.problem, np.linalg.pinv(mechanism.lift)
    end = problem.terminal and replace(problem.terminal, of_x=problem.terminal.of_x @ down)
    natural = replace(problem, Q=Q, P=down.T @ problem.P @ down, terminal=end)
    natural = replace(natural, outputs=tuple(outputs))
    return StagewiseForm(natural, mechanism.lift, mechanism)


class _Rows:
    """The bounded values of a stage as they are collected, over its state and controls."""

    def __init__(self) -> None:
        self.rows: list[tuple[RowName, Array, Array, Array]] = []

    def add(
        self,
        labels: Sequence[RowName],
        values: Array,
        limits: Array,
        prices: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        """Add those values that have a bound, soft where they have a price."""
        penalties = penalties_of("outputs", *prices, limits)
        for row in zip(labels, values, limits, penalties, strict=True):
            if np.any(np.isfinite(row[2])):
                self.rows.append(row)

    def add_output(self, k: int, values: Array, output: Output) -> None:
        """Add the rows of an output at a sample."""
        limits = np.column_stack([output.lower, output.upper])
        prices = output.linear_penalty, output.quadratic_penalty
        self.add([RowName(name, k) for name in output.rows], values, limits, prices)

    @property
    def values(self) -> list[Array]:
        """The values, over state and controls."""
        return [values for _, values, _, _ in self.rows]

    def bounded(self) -> BoundedValues:
        """Return their rows."""
        shape = len(self.rows), 2
        limits, prices = (np.reshape([row[i] for row in self.rows], shape) for i in (2, 3))
        return BoundedValues(controls=False, states=(), rows=row_set(limits, prices))

    def names(self) -> list[RowName]:
        """Return what each row is."""
        rows = self.bounded().rows
        sides = zip(rows.places, rows.sides, strict=True)
        return [self.rows[i][0]._replace(name=self.rows[i][0].name + side) for i, side in sides]

    def signs(self) -> list[RowName]:
        """Return what each row of a slack's sign is."""
        rows = self.bounded().rows
        labels = (self.rows[rows.owners[i]][0] for i in rows.signed)
        return [RowName(f"{label.name}.slack", label.at, firm=True) for label in labels]


def _interval(H: Array, h: ca.MX, motion: Array, rows: _Rows, nx: int) -> Interval[Any]:
    """Return an interval without drift, whose unknowns are nx states, then controls.

    Args:
        H, h: its cost.
        motion: the next state.
        rows: its values.
        nx: number of states.
    """
    values = np.reshape(rows.values, (len(rows.values), len(H)))
    wholes = {"A": motion, "Q": H[:nx], "G_x": values}, {"B": motion, "S": H[:nx], "G_u": values}
    blocks = {key: part[:, :nx] for key, part in wholes[0].items()}
    blocks |= {key: part[:, nx:] for key, part in wholes[1].items()} | {"R": H[nx:, nx:]}
    numbers = {key: ca.sparsify(ca.DM(part)) for key, part in blocks.items()}
    none = {"d": ca.DM(len(motion), 1), "g": ca.DM(len(values), 1)}
    return Interval(data=(), q=h[:nx, 0], r=h[nx:, 0], **numbers, **none)


def _independent(rows: Array) -> Array:
    """Return the rows that are independent of each other."""
    if not len(rows):
        return rows
    _, R, order = scipy.linalg.qr(rows.T, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(R))
    kept: Array = rows[np.sort(order[: int(np.sum(sizes > DESCRIPTOR_RANK_TOL * sizes.max()))])]
    return kept
