"""The law of a linear MPC whose states are unknowns too: one QP with equality rows, in Python.

The same problem as the condensed form, for solvers of large sparse QPs, and for the inspection of
a mechanism's multipliers. For C use the condensed form, which is smaller and faster.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from mbcasadi.control.guard import clamped
from mbcasadi.control.mpc.linear.condensed import unknowns_of
from mbcasadi.control.mpc.linear.model import Array
from mbcasadi.control.mpc.linear.predicted import parameters_of
from mbcasadi.control.mpc.linear.problem import LinearProblem
from mbcasadi.control.mpc.linear.sparse_form import SparseProblem
from mbcasadi.control.mpc.linear.stages import judge, known, regulated, remembered, shifted
from mbcasadi.control.stages import CLAIMED, SUBOPTIMAL
from mbcasadi.errors import SolverError

ACCURACY = 1e-12
"""Residual at which a solver stops."""

ROUNDS = 20
"""Rounds of scaling; each halves the orders of magnitude between entries."""

OPTIONS: dict[str, dict[str, Any]] = {
    "proxqp": {"proxqp": {"eps_abs": ACCURACY, "eps_rel": 0.0}},
    "piqp": {"piqp": {"eps_abs": ACCURACY, "eps_rel": ACCURACY}},
    "qrqp": {
        "print_iter": False,
        "print_header": False,
        "print_info": False,
        "print_time": False,
    },
}

Poser = Callable[[LinearProblem], SparseProblem]


@dataclass(frozen=True)
class SparseFunctions:
    """The Functions of a sparse problem.

    Attributes:
        law: (x0, ref, z) → (u, z_next, status, residual).
        prediction: (x0, ref, z) → (x, u), NaN where the solution is rejected.
        unknowns: (x0, ref, z) → (w), the solver's solution.
    """

    law: ca.Function
    prediction: ca.Function
    unknowns: ca.Function


def require_sparse_solver(solver: str) -> None:
    """Raise `SolverError` unless the solver supports the sparse form and CasADi has its plugin."""
    if solver not in OPTIONS:
        names = ", ".join(map(repr, OPTIONS))
        raise SolverError(f"solver {solver!r}; expected one of {names} for the sparse form")
    if not ca.has_conic(solver):
        raise SolverError(f"this CasADi has no plugin {solver!r}; install the official wheel")


def sparse_functions(
    name: str, problem: LinearProblem, sparse: SparseProblem, solver: str, tolerance: float
) -> SparseFunctions:
    """Return the law of a sparse problem, its plan, and its unknowns.

    Args:
        name: of the law.
        problem: with the states of θ.
        sparse: the QP made from it.
        solver: one of `OPTIONS`.
        tolerance: bound of each residual for a solution to be accepted.
    """
    model, size = problem.model, parameters_of(problem).s.stop
    sizes = {"x0": model.nx, "ref": size - model.nx, "z": problem.kept * model.nu}
    given = {key: ca.MX.sym(key, count) for key, count in sizes.items()}
    theta, valid = known(problem, *given.values())
    found, residual = _solved(sparse, theta, solver, unknowns_of(problem))
    w: Any = found
    status = judge(residual, ca.MX(0), valid > CLAIMED, tolerance)
    counts = status <= SUBOPTIMAL
    safe = ca.if_else(valid, regulated(problem, theta), 0)
    u = clamped(ca.if_else(counts, w[: model.nu, 0], safe), *problem.u_bounds.T)
    x_plan, u_plan = (_columns(maps, w) for maps in (sparse.prediction.x, sparse.prediction.u))
    plan = [ca.DM(np.linalg.pinv(sparse.prediction.lift)) @ x_plan, u_plan]
    outputs = [
        u,
        remembered(problem, given["z"], u),
        status,
        ca.if_else(valid, residual, np.inf),
    ]

    def function(label: str, parts: list[Any], names: list[str]) -> ca.Function:
        dense = [ca.densify(part) for part in parts]
        return ca.Function(label, list(given.values()), dense, list(given), names)

    return SparseFunctions(
        function(name, outputs, ["u", "z_next", "status", "residual"]),
        function("prediction", [ca.if_else(counts, part, np.nan) for part in plan], ["x", "u"]),
        function("unknowns", [w], ["w"]),
    )


def _solved(sparse: SparseProblem, theta: ca.MX, solver: str, moves: int) -> tuple[ca.MX, ca.MX]:
    """Return (w, residual) with three residuals of the scaled QP; the first `moves` of w are kept.

    Accelerations of a joint with a stiff servo are 1e6 times its angle: unscaled, they hide the
    errors of the controls.
    """
    qp = sparse.qp
    plain = np.ones(len(qp.H)), np.ones(len(sparse.E))
    unit, row = _units(qp.H, sparse.E, moves) if sparse.forces else plain
    turn = ca.DM(unit)
    g = turn * (ca.DM(qp.G) @ theta + ca.DM(qp.g_0))
    equal = -ca.DM(row) * (ca.DM(sparse.E_theta) @ theta + ca.DM(sparse.e_0))
    moved = ca.DM(qp.D) @ theta + ca.DM(qp.c_0)
    scaled = unit[:, None] * qp.H * unit, np.vstack([row[:, None] * sparse.E, qp.C]) * unit
    H, A = (ca.sparsify(ca.DM(part)) for part in scaled)
    lower, upper = (ca.vertcat(equal, shifted(bound, moved)) for bound in (qp.lower, qp.upper))
    ends = [ca.vertcat(equal, ca.DM(bound) - moved) for bound in (qp.lower, qp.upper)]
    pattern = {"h": H.sparsity(), "a": A.sparsity()}
    conic = ca.conic("horizon", solver, pattern, OPTIONS[solver] | {"error_on_fail": False})
    found = conic(h=H, g=g, a=A, lba=ends[0], uba=ends[1])
    w, lam = found["x"], _at_bounds(sparse, found["lam_a"])
    above, below, size = A @ w - upper, lower - A @ w, 1 + ca.norm_2(w)
    return turn * w, ca.vertcat(
        ca.norm_2(ca.fmax(above, 0) + ca.fmax(below, 0)) / size,
        ca.norm_2(H @ w + g + A.T @ lam) / (size + ca.norm_2(g)),
        ca.sum1(ca.fabs(lam * ca.if_else(lam > 0, above, below))) / size**2,
    )


def _units(H: Array, E: Array, moves: int) -> tuple[Array, Array]:
    """Return units of unknowns and factors of the rows E, in which entries are near one.

    Each round divides by the root of the largest entry of a row or column [D. Ruiz,
    RAL-TR-2001-034, 2001]. The first `moves` unknowns keep their unit.
    """
    unit, row = np.ones(len(H)), np.ones(len(E))
    for _ in range(ROUNDS):
        coupled = row[:, None] * E * unit
        row /= np.sqrt(np.abs(coupled).max(axis=1))
        both = np.vstack([unit[:, None] * H * unit, coupled])
        unit[moves:] /= np.sqrt(np.abs(both).max(axis=0))[moves:]
    return unit, row


def _at_bounds(sparse: SparseProblem, lam: ca.MX) -> ca.MX:
    """Return the multipliers with those of infinite bounds, rounding errors, set to zero."""
    equal, ends = np.ones(len(sparse.E)), (sparse.qp.upper, sparse.qp.lower)
    up, down = (ca.DM(np.concatenate([equal, np.isfinite(end)])) for end in ends)
    return up * ca.fmax(lam, 0) + down * ca.fmin(lam, 0)


def _columns(maps: list[tuple[Array, Array, Array]], w: ca.MX) -> ca.MX:
    stacked = ca.sparsify(ca.DM(np.concatenate([part[0] for part in maps]))) @ w
    return ca.reshape(stacked, len(maps[0][2]), len(maps))
