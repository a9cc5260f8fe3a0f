"""A linear MPC problem with its states, and of a mechanism with its multipliers, as unknowns.

    min ½ wᵀ H w + (G θ + g_0)ᵀ w,   E w + E_θ θ + e_0 = 0,   lower <= C w + D θ + c_0 <= upper

Implicit constraints: w = (moves, slacks, x_0 … x_N), `x_{k+1} = A_k x_k + B_k u_k + d_k`.

Explicit constraints: the states are `(δq, δv)` of all coordinates, and each interval has its
accelerations and multipliers as unknowns too:

    δa_k = -M⁻¹ (∂r/∂q δq_k + ∂r/∂v δv_k - B δu_k - Aᵀ δλ_k),   A δa_k = 0
    (δq, δv)_{k+1} = (δq, δv)_k + h φ(h L F) (δv_k, δa_k),   φ(Z) = Z⁻¹ (exp Z - 1)

with F, L of `control.regulators.multiplier_form`. `exp(h L F) - 1 = h φ(h L F) L F` makes
the second line the exact hold, so both forms are one problem. Rows of A may repeat; of the δλ with
the same effect the least is taken, which has no part in null(Aᵀ).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.loads import null
from mbcasadi.control.regulators.lqr import require_equilibrium
from mbcasadi.control.regulators.multiplier_form import DESCRIPTOR_RANK_TOL, descriptor_form
from mbcasadi.mpc.linear.condensing import (
    SLACK_CURVATURE,
    CondensedProblem,
    assemble_qp,
    condense_problem,
    unknowns_of,
)
from mbcasadi.mpc.linear.prediction import Prediction, parameters_of
from mbcasadi.mpc.linear.prediction_model import Array, Output
from mbcasadi.mpc.linear.problem import LinearProblem


@dataclass(frozen=True)
class SparseProblem:
    """The QP in the form of the module's docstring.

    Attributes:
        qp: cost and inequalities over w.
        E, E_theta, e_0: (p, n), (p, nθ), (p,): independent rows.
        prediction: states and controls as maps of w.
        forces: slices of w with `δλ_k`, one for each interval; none with implicit constraints.
    """

    qp: CondensedProblem
    E: Array
    E_theta: Array
    e_0: Array
    prediction: Prediction
    forces: tuple[slice, ...] = ()


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


def sparse_problem(problem: LinearProblem) -> SparseProblem:
    """Return the problem with x_0 … x_N as unknowns."""
    model, places = problem.model, parameters_of(problem)
    w = _Unknowns(problem, model.nx, 0)
    start = np.zeros((model.nx, places.size))
    start[:, places.x0] = np.eye(model.nx)
    rows = [(-w.x(0), start, np.zeros(model.nx))]
    for k in range(problem.horizon):
        A, B, drift = model.interval(k)
        step = A @ w.x(k) + B @ w.u(k) - w.x(k + 1)
        rows.append((step, np.zeros_like(start), drift))
    return _assemble_sparse(problem, w, rows, np.eye(model.nx), _least(problem))


def multiplier_problem(
    problem: LinearProblem, mechanism: Multipliers, Q: Array, outputs: Sequence[Output]
) -> SparseProblem:
    """Return the problem with coordinates, accelerations and multipliers as unknowns.

    Args:
        problem: in the free coordinates x.
        mechanism: from `multipliers_of`, with the problem's period.
        Q: (2 nv, 2 nv) weight of all coordinates, of which `problem` has `liftᵀ Q lift`.
        outputs: rows of all coordinates, of which `problem` has `C lift`.
    """
    nv, nc = mechanism.of_lam.shape
    down = np.linalg.pinv(mechanism.lift)
    end = problem.terminal and replace(problem.terminal, of_x=problem.terminal.of_x @ down)
    natural = replace(problem, Q=Q, P=down.T @ problem.P @ down, terminal=end)
    natural = replace(natural, outputs=tuple(outputs))
    w, places = _Unknowns(natural, 2 * nv, nv + nc), parameters_of(problem)
    start = np.zeros((2 * nv, places.size))
    start[:, places.x0] = mechanism.lift
    rows = [(-w.x(0), start, np.zeros(2 * nv))]
    idle = null(mechanism.of_lam, DESCRIPTOR_RANK_TOL).T
    for k in range(problem.horizon):
        a, lam = w.extra(k)[:nv], w.extra(k)[nv:]
        acceleration = (
            mechanism.of_state @ w.x(k) + mechanism.of_u @ w.u(k) + mechanism.of_lam @ lam
        )
        step = w.x(k) + mechanism.hold @ np.vstack([w.x(k)[nv:], a]) - w.x(k + 1)
        for row in (acceleration - a, mechanism.rows @ a, idle @ lam, step):
            rows.append((row, np.zeros((len(row), places.size)), np.zeros(len(row))))
    sparse = _assemble_sparse(natural, w, rows, mechanism.lift, _least(problem))
    forces = (slice(w.first(k) + nv, w.first(k) + nv + nc) for k in range(problem.horizon))
    return replace(sparse, forces=tuple(forces))


class _Unknowns:
    """The slices of w: moves, slacks, states, then the further unknowns of each interval."""

    def __init__(self, problem: LinearProblem, nx: int, extra: int) -> None:
        self.problem, self.nx, self.extras = problem, nx, extra
        self.states = unknowns_of(problem)
        self.behind = self.states + nx * (problem.horizon + 1)
        self.n = self.behind + extra * problem.horizon

    def first(self, k: int) -> int:
        return self.behind + k * self.extras

    def u(self, k: int) -> Array:
        nu = self.problem.model.nu
        return self._pick(self.problem.blocks[k] * nu, nu)

    def x(self, k: int) -> Array:
        return self._pick(self.states + k * self.nx, self.nx)

    def extra(self, k: int) -> Array:
        return self._pick(self.first(k), self.extras)

    def _pick(self, first: int, count: int) -> Array:
        rows = np.zeros((count, self.n))
        rows[:, first : first + count] = np.eye(count)
        return rows


def _assemble_sparse(
    problem: LinearProblem,
    w: _Unknowns,
    rows: Sequence[tuple[Array, Array, Array]],
    lift: Array,
    least: float,
) -> SparseProblem:
    """Return the problem over w, its equality rows without repetitions."""
    none, N = np.zeros(parameters_of(problem).size), problem.horizon

    def affine(pick: Array) -> tuple[Array, Array, Array]:
        return pick, np.tile(none, (len(pick), 1)), np.zeros(len(pick))

    prediction = Prediction(
        [affine(w.x(k)) for k in range(N + 1)], [affine(w.u(k)) for k in range(N)], lift
    )
    independent_rows = [_independent(*row) for row in rows]
    E, E_theta, e_0 = (np.concatenate(row) for row in zip(*independent_rows, strict=True))
    return SparseProblem(assemble_qp(problem, prediction, least), E, E_theta, e_0, prediction)


def _least(problem: LinearProblem) -> float:
    """Return the least ρ₂ of a soft row in the condensed form: all forms are one problem."""
    return SLACK_CURVATURE * float(
        np.abs(condense_problem(replace(problem, outputs=(), terminal=None)).H).max(initial=1.0)
    )


def _independent(E: Array, E_theta: Array, e_0: Array) -> tuple[Array, Array, Array]:
    """Return the rows of one kind that are independent of each other."""
    if not len(E):
        return E, E_theta, e_0
    _, R, order = scipy.linalg.qr(E.T, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(R))
    independent_rows = np.sort(order[: int(np.sum(sizes > DESCRIPTOR_RANK_TOL * sizes.max()))])
    return E[independent_rows], E_theta[independent_rows], e_0[independent_rows]
