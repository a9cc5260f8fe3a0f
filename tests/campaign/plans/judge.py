"""A tick judged by its problem, which is assembled from derivatives of the problem's Functions.

About the guess of a tick the subproblem of a real-time iteration is

    min Σ ½ |r + J δ|² + Σ (ρ₁ e + ½ ρ₂ e²)    over deviations δ along the chart of the states,

with linear motion and rows. Derivatives are CasADi's own, of the composed Functions, and the QP is
solved by Clarabel: neither has a line in common with the linearisation along tangents, or with the
recursions of the C.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import casadi as ca
import clarabel
import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from campaign.second_solver import settings
from mbcasadi import mpc
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.description.status import Status

COST = 1e-5  # of the terms of the cost
NEAR = 1e-7  # distance of a row from its bound, which costs its multiplier times as much
VIOLATED = 2e-6  # of the length of all rows: a controller promises 1e-6
INFEASIBLE = 1e-5  # by which rows of unit length are violated
ZERO = 1e-9  # length of a row that says nothing: of a contact that is off
BIG = 1e9  # numbers about which no other solver decides


class Verdict(NamedTuple):
    """What is said of a tick: "right", "wrong", "needless", "refused", "undecided"; and why."""

    word: str
    why: str = ""


class Qp(NamedTuple):
    """`min ½ zᵀ H z + gᵀ z`, `E z = e`, `low <= C z <= high`; prices of violated rows."""

    H: sparse.csc_matrix
    g: np.ndarray
    E: sparse.csc_matrix
    e: np.ndarray
    C: sparse.csc_matrix
    low: np.ndarray
    high: np.ndarray
    prices: np.ndarray


@dataclass(frozen=True)
class Judge:
    """The Functions of a controller's problem."""

    law: mpc.RealTimeIteration

    @cached_property
    def guess(self) -> ca.Function:
        """(q, v, ref, z) → (X, U, P, x0, valid) of a tick."""
        memory = self.law.memory
        inputs = memory.inputs()
        guess = memory.guess(inputs, self.law.controller.z0)
        outputs = [guess.X, guess.U, guess.P, *memory.start(inputs, guess)]
        return ca.Function("guess", [*inputs.values()], outputs)

    @cached_property
    def inside(self) -> ca.Function:
        """(x, u, p, x_end) → values and slopes of motion, residual and path by (δ, υ)."""
        ocp, nd = self.law.ocp, self.size
        sizes = {"x": ocp.nx, "u": ocp.nu, "p": ocp.np_, "x_end": ocp.nx}
        x, u, p, x_end = inputs = [ca.MX.sym(key, n) for key, n in sizes.items()]
        w = ca.MX.sym("w", nd + ocp.nu)
        at = self._moved(x, w[:nd]), u + w[nd:], p
        values = [self._gap(x_end, ocp.dynamics(*at)), ocp.residual(*at), ocp.path(*at)]
        return _with_slopes("inside", w, values, inputs)

    @cached_property
    def at_end(self) -> ca.Function:
        """(x, p) → values and slopes of terminal residual, rows of the end and state by δ."""
        ocp, d = self.law.ocp, ca.MX.sym("d", self.size)
        x, p = ca.MX.sym("x", ocp.nx), ca.MX.sym("p", ocp.np_)
        moved = self._moved(x, d)
        values = [ocp.terminal(moved, p), ocp.end(moved, p), moved]
        return _with_slopes("at_end", d, values, [x, p])

    @cached_property
    def gap(self) -> ca.Function:
        """(x, y) → y ⊖ x."""
        x, y = ca.MX.sym("x", self.law.ocp.nx), ca.MX.sym("y", self.law.ocp.nx)
        return ca.Function("gap_of", [x, y], [self._gap(x, y)])

    @property
    def size(self) -> int:
        """Size of a deviation of the state."""
        form = self.law.ocp.motion
        return self.law.ocp.nx if form is None else form.tangent.size2_out(0)

    def _moved(self, x: ca.MX, d: ca.MX) -> ca.MX:
        form = self.law.ocp.motion
        return x + d if form is None else form.moved(x, d)

    def _gap(self, x: ca.MX, y: ca.MX) -> ca.MX:
        form = self.law.ocp.motion
        return y - x if form is None else form.gap(x, y)

    def verdict(self, given: dict[str, np.ndarray], answer: list[np.ndarray]) -> Verdict:
        """Return what is to be said of an answer (u, z_next, status) to the inputs."""
        u, z_next, status = answer
        low, high = self.law.ocp.u_bounds.T
        if not np.all(np.isfinite(u)) or np.any(u < low - 1e-9) or np.any(u > high + 1e-9):
            return Verdict("wrong", "a control beyond its range, or not finite")
        if not np.all(np.isfinite(z_next)):
            return Verdict("wrong", "a memory that is not finite")
        solved = status <= Status.SUBOPTIMAL
        order = [given[key] for key in ("q", "v", "ref", "z")]
        X, U, P, x0, valid = (part.full() for part in self.guess(*order))
        if not valid:
            return Verdict("wrong", "solved from bad inputs") if solved else Verdict("refused")
        qp = self.problem(X, U, P, x0.ravel())
        if qp is None or max(np.abs(part).max(initial=0) for part in (qp.g, qp.e)) > BIG:
            return Verdict("undecided", "numbers without meaning")
        best, word = optimum(qp)
        if not solved:
            if word == "infeasible":
                return Verdict("right", "infeasible")
            if status == Status.INFEASIBLE and word == "solved" and self._hard_at_start(U, P, x0):
                return Verdict("right", "a row at the given state")
            if status == Status.INFEASIBLE and word == "solved":
                return Verdict("wrong", "a problem with a solution is called infeasible")
            return Verdict("needless" if word == "solved" else "undecided", f"status {status:.0f}")
        if word == "infeasible":
            return Verdict("wrong", "an infeasible problem is called solved")
        if word != "solved":
            return Verdict("undecided", f"Clarabel: {word}")
        controls = np.array(self.law.memory.split(ca.DM(z_next)).U)
        if self.law.memory.moving is None:  # z_next has the plan of the next tick
            controls = np.column_stack([u, controls[:, :-1]])
        own = motion_of(qp, (controls - U).T.ravel(), self.law.ocp.horizon, self.size)
        return compare(qp, own, best)

    def _hard_at_start(self, U: np.ndarray, P: np.ndarray, x0: np.ndarray) -> bool:
        ocp = self.law.ocp
        if ocp.given_bounds is None:
            return False
        value = np.array(ocp.path(x0, U[:, 0], P[:, 0])).ravel()[list(ocp.given_rows)]
        return bool(
            np.any(value < ocp.given_bounds[:, 0]) or np.any(value > ocp.given_bounds[:, 1])
        )

    def problem(self, X: np.ndarray, U: np.ndarray, P: np.ndarray, x0: np.ndarray) -> Qp | None:
        """Return the QP about a guess, z = (δ_0, υ_0, …, δ_N); None where it holds no numbers."""
        ocp, nd, nu = self.law.ocp, self.size, self.law.ocp.nu
        N, nz = ocp.horizon, self.size + ocp.nu
        n = N * nz + nd
        states = np.flatnonzero(np.isfinite(ocp.x_bounds).any(axis=1))
        path = ocp.path
        with_control = set(path.jac_sparsity(0, path.index_in("u")).row())
        H, g = sparse.lil_matrix((n, n)), np.zeros(n)
        E, e = [_block(np.eye(nd), 0, n)], [np.array(self.gap(X[:, 0], x0)).ravel()]
        rows, low, high, prices = [], [], [], []
        hard = np.full((1, 2), np.inf)

        def bound(
            J: np.ndarray, at: int, value: np.ndarray, limits: np.ndarray, price: np.ndarray
        ) -> None:
            if len(J):
                limits = np.where(np.abs(limits) < UNBOUNDED, limits, np.copysign(np.inf, limits))
                rows.append(_block(J, at, n))
                low.append(limits[:, 0] - value)
                high.append(limits[:, 1] - value)
                prices.append(price)

        for k in range(N):
            here = X[:, k], U[:, k], P[:, k]
            x_end = ocp.dynamics(*here)
            _, r, c, dF, dr, dc = (part.full() for part in self.inside(*here, x_end))
            F = self.gap(X[:, k + 1], x_end).full()
            if not all(np.all(np.isfinite(part)) for part in (F, r, c, dF, dr, dc)):
                return None
            at = slice(k * nz, (k + 1) * nz)
            H[at, at] = dr.T @ dr
            g[at] += dr.T @ r.ravel()
            ahead = _block(np.hstack([-dF, np.eye(nd)]), k * nz, n)
            E.append(ahead)
            e.append(F.ravel())
            bound(np.eye(nu), k * nz + nd, U[:, k], ocp.u_bounds, np.repeat(hard, nu, 0))
            if k:
                _, _, x, _, _, dx = (part.full() for part in self.at_end(X[:, k], P[:, k]))
                limits = ocp.x_bounds[states]
                free = np.repeat(hard, states.size, 0)
                bound(dx[states], k * nz, x.ravel()[states], limits, free)
            chosen = [i for i in range(len(c)) if k or i in with_control]
            every = _prices(ocp.path_penalties, len(c))
            bound(dc[chosen], k * nz, c.ravel()[chosen], ocp.path_bounds[chosen], every[chosen])
        r, c, x, dr, dc, dx = (part.full() for part in self.at_end(X[:, N], P[:, N]))
        if not all(np.all(np.isfinite(part)) for part in (r, c, dr, dc)):
            return None
        H[N * nz :, N * nz :] = dr.T @ dr
        g[N * nz :] += dr.T @ r.ravel()
        limits = ocp.x_bounds[states]
        bound(dx[states], N * nz, x.ravel()[states], limits, np.repeat(hard, states.size, 0))
        bound(dc, N * nz, c.ravel(), ocp.end_bounds, _prices(ocp.end_penalties, len(c)))
        return Qp(
            sparse.csc_matrix(H),
            g,
            sparse.csc_matrix(sparse.vstack(E)),
            np.concatenate(e),
            sparse.csc_matrix(sparse.vstack(rows)),
            np.concatenate(low),
            np.concatenate(high),
            np.vstack(prices),
        )


def _with_slopes(name: str, w: ca.MX, values: list[ca.MX], others: list[ca.MX]) -> ca.Function:
    """Return the values and their derivatives at w = 0."""
    inner = ca.Function(
        f"{name}_w", [w, *others], [*values, *(ca.jacobian(value, w) for value in values)]
    )
    outputs = inner.call([ca.MX.zeros(w.shape), *others])
    return ca.Function(name, others, [ca.densify(part) for part in outputs])


def _prices(penalties: np.ndarray | None, count: int) -> np.ndarray:
    return np.full((count, 2), np.inf) if penalties is None else np.asarray(penalties)


def _block(J: np.ndarray, at: int, n: int) -> sparse.coo_matrix:
    """Return rows of n columns with J from a column on."""
    part = sparse.coo_matrix(J)
    return sparse.coo_matrix((part.data, (part.row, part.col + at)), shape=(len(J), n))


class Best(NamedTuple):
    """The least cost, and the sum of the multipliers of all rows."""

    cost: float
    multipliers: float


def optimum(qp: Qp) -> tuple[Best, str]:
    """Return the optimum by Clarabel, and "solved", "infeasible", or what Clarabel says."""
    n, soft = qp.g.size, np.flatnonzero(np.isfinite(qp.prices[:, 0]))
    k = soft.size
    H = sparse.block_diag([qp.H, sparse.diags(qp.prices[soft, 1])], format="csc")
    g = np.concatenate([qp.g, qp.prices[soft, 0]])
    slack = sparse.csc_matrix((np.ones(k), (soft, np.arange(k))), shape=(len(qp.low), k))
    upper, lower = np.isfinite(qp.high), np.isfinite(qp.low)
    same = upper & lower & (qp.low == qp.high) & ~np.isfinite(qp.prices[:, 0])
    blocks = [
        sparse.hstack([qp.E, sparse.csc_matrix((len(qp.e), k))]),
        sparse.hstack([qp.C[same], slack[same]]),
        sparse.hstack([qp.C[upper & ~same], -slack[upper & ~same]]),
        sparse.hstack([-qp.C[lower & ~same], -slack[lower & ~same]]),
        sparse.hstack([sparse.csc_matrix((k, n)), -sparse.eye(k)]),
    ]
    A = sparse.vstack(blocks, format="csc")
    b = [qp.e, qp.high[same], qp.high[upper & ~same], -qp.low[lower & ~same], np.zeros(k)]
    b = np.concatenate(b)
    equal = len(qp.e) + int(same.sum())
    length = np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).ravel())
    unit = 1 / np.where(length > ZERO, length, 1.0)
    A, b = sparse.csc_matrix(sparse.diags(unit) @ A), b * unit
    size = 1 + np.abs(g).max(initial=0)
    cones = [clarabel.ZeroConeT(equal), clarabel.NonnegativeConeT(len(b) - equal)]
    H, g = sparse.csc_matrix(sparse.triu(H)) / size, g / size
    answer = clarabel.DefaultSolver(H, g, A, b, cones, settings(1e-9)).solve()
    status = str(answer.status)
    if status == "Solved":
        multipliers = np.abs(answer.z[len(qp.e) :]) * unit[len(qp.e) :]
        return Best(float(answer.obj_val) * size, float(multipliers.sum()) * size), "solved"
    lacks = least_violation(A, b, equal)
    return Best(np.nan, np.nan), "infeasible" if lacks > INFEASIBLE else status


def least_violation(A: sparse.csc_matrix, b: np.ndarray, equal: int) -> float:
    """Return by how much rows of unit length must be violated, by HiGHS; NaN where it fails."""
    m, n = A.shape
    unit = np.ones((m, 1))
    unit[:equal] = 0
    wide = sparse.csc_matrix(sparse.hstack([A, -unit]))
    cost, largest = np.zeros(n + 1), 1 + np.abs(b).max(initial=0)
    cost[-1] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = linprog(
            cost,
            wide[equal:],
            b[equal:] / largest,
            wide[:equal],
            b[:equal] / largest,
            [(None, None)] * n + [(0, None)],
            method="highs",
        )
    return float(found.x[-1]) * largest if found.x is not None else np.nan


def motion_of(qp: Qp, controls: np.ndarray, N: int, nd: int) -> np.ndarray:
    """Return z of changes of the controls (N nu,), its states by the problem's own motion."""
    nu = controls.size // N
    nz, z = nd + nu, np.zeros(N * (nd + nu) + nd)
    E = qp.E.tocsr()
    z[:nd] = qp.e[:nd]
    for k in range(N):
        z[k * nz + nd : (k + 1) * nz] = controls[k * nu : (k + 1) * nu]
        rows = slice((k + 1) * nd, (k + 2) * nd)
        z[(k + 1) * nz : (k + 1) * nz + nd] = qp.e[rows] - E[rows] @ z
    return z


def compare(qp: Qp, z: np.ndarray, best: Best) -> Verdict:
    """Return whether z keeps the hard rows and costs no more than the optimum."""
    value = qp.C @ z
    beyond = np.maximum(np.maximum(value - qp.high, qp.low - value), 0)
    size, hard = 1 + np.linalg.norm(value), ~np.isfinite(qp.prices[:, 0])
    worst = (beyond / size)[hard].max(initial=0)
    if worst > VIOLATED:
        return Verdict("wrong", f"a hard row is violated by {worst:.1e}")
    soft = ~hard
    price = qp.prices[soft, 0] @ beyond[soft] + 0.5 * qp.prices[soft, 1] @ beyond[soft] ** 2
    cost = 0.5 * z @ (qp.H @ z) + qp.g @ z + price
    scale = 1 + abs(best.cost) + 0.5 * z @ (qp.H @ z) + price
    excess = cost - best.cost
    if excess > COST * scale + NEAR * best.multipliers:
        return Verdict("wrong", f"costs {excess / scale:.1e} more than the optimum")
    return Verdict("right")
