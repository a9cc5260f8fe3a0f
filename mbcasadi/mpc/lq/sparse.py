"""A stagewise problem whose states are unknowns too: one QP with equality rows.

    w = (u_0, x_1, u_1, … , x_N, e),   min ½ wᵀ H w + gᵀ w,   E w = e_0,   lower <= C w + c <= upper

Intervals may differ in everything, sizes too; all their matrices are numbers. A mechanism's
accelerations and multipliers are further controls of an interval, its equations equality rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.linalg.symbols import Sym
from mbcasadi.mpc.lq.interval import BoundedValues, Interval
from mbcasadi.mpc.lq.rows import Array
from mbcasadi.qp.plugins import SPARSE_SOLVERS

ROUNDS = 20
"""Rounds of scaling; each halves the orders of magnitude between entries."""


@dataclass(frozen=True)
class SparseStage:
    """An interval with its rows; the last stage has a cost and rows of its state, no control.

    Attributes:
        interval: matrices are numbers, d, q, r and g numbers or expressions.
        bounded: its rows.
        equal: rows over (x, u) that are zero; none by default.
    """

    interval: Interval[ca.MX]
    bounded: BoundedValues
    equal: Array | None = None


class SparseQP(NamedTuple):
    """The QP of the module's docstring; H, E, C and bounds (m, 2) are numbers.

    `controls` and `states` are the slices of w with u_0 … u_{N-1} and x_1 … x_N, `slacks` that of
    e, of which `signed` may not be negative.
    """

    H: ca.DM
    g: ca.MX
    E: ca.DM
    e_0: ca.MX
    C: ca.DM
    c: ca.MX
    bounds: Array
    controls: list[slice]
    states: list[slice]
    slacks: slice
    signed: list[int]


def sparse_qp(x_0: ca.MX, stages: Sequence[SparseStage]) -> SparseQP:
    """Return the QP from a state x_0 over these stages."""
    intervals, N = [stage.interval for stage in stages], len(stages) - 1
    sets = [stage.bounded.rows for stage in stages]
    linear, quadratic = (
        np.concatenate([getattr(rows, key) for rows in sets]) for key in ("linear", "quadratic")
    )
    sizes = [(i.A.shape[1] if k else 0, i.B.shape[1]) for k, i in enumerate(intervals)]
    widths = [*(nx + nu for nx, nu in sizes), linear.size]
    hessians = [_hessian(interval, k > 0) for k, interval in enumerate(intervals)]
    slopes = [_slope(interval, x_0 if k == 0 else None) for k, interval in enumerate(intervals)]
    equal: list[tuple[dict[int, ca.DM], ca.MX]] = []
    rows: list[tuple[dict[int, ca.DM], ca.MX]] = []
    first = 0
    for k, stage in enumerate(stages):
        following = sizes[k + 1] if k < N else None
        equal += _equalities(stage, k, following, x_0)
        blocks, value = _values(stage, k, following, x_0)
        slack = ca.sparsify(ca.DM(stage.bounded.rows.W))
        blocks[N + 1] = _padded(slack, first, linear.size - first - slack.shape[1])
        first += slack.shape[1]
        rows.append((blocks, value))
    signed = np.flatnonzero(linear > 0).tolist()
    rows.append(({N + 1: ca.sparsify(ca.DM(np.eye(linear.size)[signed]))}, ca.MX(len(signed), 1)))
    ends = np.cumsum([0, *widths]).tolist()
    return SparseQP(
        H=ca.diagcat(*hessians, ca.sparsify(ca.diag(ca.DM(quadratic)))),
        g=ca.vertcat(*slopes, ca.MX(ca.DM(linear))),
        E=_stacked([blocks for blocks, _ in equal], widths),
        e_0=ca.vertcat(*(start for _, start in equal)),
        C=_stacked([blocks for blocks, _ in rows], widths),
        c=ca.vertcat(*(value for _, value in rows)),
        bounds=np.vstack(
            [*(part.bounds for part in sets), np.tile([0.0, np.inf], (len(signed), 1))]
        ),
        controls=[slice(ends[k] + sizes[k][0], ends[k + 1]) for k in range(N)],
        states=[slice(ends[k], ends[k] + sizes[k][0]) for k in range(1, N + 1)],
        slacks=slice(ends[-2], ends[-1]),
        signed=signed,
    )


def _equalities(
    stage: SparseStage, k: int, following: tuple[int, int] | None, x_0: ca.MX
) -> list[tuple[dict[int, ca.DM], ca.MX]]:
    """Return the motion to the next state and the stage's own equations: blocks by stage, and e_0.

    Args:
        stage: the stage.
        k: its number.
        following: numbers of states and controls of the next stage; None at the end.
        x_0: the first state.
    """
    interval, equations = stage.interval, []
    A, B = number(interval.A), number(interval.B)
    if following is not None:
        effect = B if interval.E is None else number(interval.E) @ B
        blocks = {
            k: _of_stage(-A, -effect, k),
            k + 1: _padded(ca.DM.eye(following[0]), 0, following[1]),
        }
        equations.append((blocks, A @ x_0 + interval.d if k == 0 else ca.MX(interval.d)))
    if stage.equal is not None:
        E = ca.sparsify(ca.DM(stage.equal))
        E_x, E_u = E[:, : A.shape[1]], E[:, A.shape[1] :]
        known = -E_x @ x_0 if k == 0 else ca.MX(E_x.shape[0], 1)
        equations.append(({k: _of_stage(E_x, E_u, k)}, known))
    return equations


def _values(
    stage: SparseStage, k: int, following: tuple[int, int] | None, x_0: ca.MX
) -> tuple[dict[int, ca.DM], ca.MX]:
    """Return `T y` of a stage: blocks by stage, and what is known of it; arguments as above."""
    interval, bounded = stage.interval, stage.bounded
    G_x, G_u, T = number(interval.G_x), number(interval.G_u), ca.sparsify(ca.DM(bounded.rows.T))
    (ng, nx), nu = G_x.shape, G_u.shape[1]
    own, ahead = nu * bounded.controls, len(bounded.states)
    of_x = ca.vertcat(ca.DM(own + ahead, nx), G_x)
    of_u = ca.vertcat(ca.DM.eye(nu)[:own, :], ca.DM(ahead, nu), G_u)
    known = ca.vertcat(ca.MX(own + ahead, 1), ca.MX(interval.g))
    blocks = {k: T @ _of_stage(of_x, of_u, k)}
    if ahead and following is not None:
        chosen = _padded(bounded.choose(following[0]), 0, following[1])
        width = sum(following)
        blocks[k + 1] = T @ ca.vertcat(ca.DM(own, width), chosen, ca.DM(ng, width))
    return blocks, T @ (known + of_x @ x_0 if k == 0 else known)


def solve_sparse(
    qp: SparseQP, solver: str, units: tuple[Array, Array] | None = None
) -> tuple[ca.MX, ca.MX]:
    """Return w and the residuals of the QP in these units; the solver's status is not used.

    Args:
        qp: the problem.
        solver: one of `SPARSE_SOLVERS`.
        units: of unknowns, and factors of the rows E; ones by default. See `balanced_units`.
    """
    n, p = qp.H.shape[0], qp.E.shape[0]
    unit, row = (ca.DM(part) for part in units or (np.ones(n), np.ones(p)))
    scale = ca.diag(unit)
    H = ca.sparsify(scale @ qp.H @ scale)
    A = ca.sparsify(ca.vertcat(ca.diag(row) @ qp.E, qp.C) @ scale)
    g, equal = unit * qp.g, row * qp.e_0
    far = np.clip(qp.bounds, -UNBOUNDED, UNBOUNDED)
    finite = np.isfinite(qp.bounds).astype(float)
    lower, upper = (
        ca.vertcat(equal, ca.DM(far[:, i]) - ca.DM(finite[:, i]) * qp.c) for i in (0, 1)
    )
    ends = [ca.vertcat(equal, ca.DM(qp.bounds[:, i]) - qp.c) for i in (0, 1)]
    pattern = {"h": H.sparsity(), "a": A.sparsity()}
    conic = ca.conic("horizon", solver, pattern, SPARSE_SOLVERS[solver] | {"error_on_fail": False})
    solution = conic(h=H, g=g, a=A, lba=ends[0], uba=ends[1])
    w, lam = solution["x"], solution["lam_a"]
    # Multipliers of infinite bounds are rounding errors.
    down, up = (ca.DM(np.append(np.ones(p), finite[:, i])) for i in (0, 1))
    lam = up * ca.fmax(lam, 0) + down * ca.fmin(lam, 0)
    above, below, size = A @ w - upper, lower - A @ w, 1 + ca.norm_2(w)
    residual = ca.vertcat(
        ca.norm_2(ca.fmax(above, 0) + ca.fmax(below, 0)) / size,
        ca.norm_2(H @ w + g + A.T @ lam) / (size + ca.norm_2(g)),
        ca.sum1(ca.fabs(lam * ca.if_else(lam > 0, above, below))) / size**2,
    )
    return unit * w, residual


def balanced_units(qp: SparseQP, fixed: Sequence[int]) -> tuple[Array, Array]:
    """Return units of unknowns and factors of the rows E, in which entries are near one.

    Each round divides by the root of the largest entry of a row or column [D. Ruiz,
    RAL-TR-2001-034, 2001]. Accelerations of a joint with a stiff servo are 1e6 times its angle:
    without units they hide the errors of the controls.

    Args:
        qp: the problem.
        fixed: unknowns whose unit stays one.
    """
    H, E = qp.H.full(), qp.E.full()
    unit, row, free = np.ones(len(H)), np.ones(len(E)), np.ones(len(H), dtype=bool)
    free[list(fixed)] = False
    for _ in range(ROUNDS):
        coupled = row[:, None] * E * unit
        row /= np.sqrt(np.abs(coupled).max(axis=1))
        both = np.vstack([unit[:, None] * H * unit, coupled])
        unit[free] /= np.sqrt(np.abs(both).max(axis=0))[free]
    return unit, row


def _hessian(interval: Interval[Sym], has_state: bool) -> ca.DM:
    Q, S, R = (number(part) for part in (interval.Q, interval.S, interval.R))
    return ca.vertcat(ca.horzcat(Q, S), ca.horzcat(S.T, R)) if has_state else R


def _slope(interval: Interval[ca.MX], x_0: ca.MX | None) -> ca.MX:
    q, r = ca.MX(interval.q), ca.MX(interval.r)
    return ca.vertcat(q, r) if x_0 is None else r + number(interval.S).T @ x_0


def number(block: Any) -> ca.DM:
    """Return a block of an interval that is a number."""
    return ca.DM(block)


def _of_stage(of_x: ca.DM, of_u: ca.DM, k: int) -> ca.DM:
    """Return the block over (x_k, u_k); the first state is no unknown."""
    return ca.horzcat(of_x, of_u) if k else ca.DM(of_u)


def _padded(block: ca.DM, before: int, after: int) -> ca.DM:
    rows = block.shape[0]
    return ca.horzcat(ca.DM(rows, before), block, ca.DM(rows, after))


def _stacked(rows: Sequence[dict[int, ca.DM]], widths: Sequence[int]) -> ca.DM:
    """Return the matrix of these block rows, each with its blocks by column."""
    lines = []
    for blocks in rows:
        height = next(iter(blocks.values())).shape[0]
        parts = [blocks.get(k, ca.DM(height, width)) for k, width in enumerate(widths)]
        lines.append(ca.horzcat(*parts))
    return ca.sparsify(ca.vertcat(*lines))
