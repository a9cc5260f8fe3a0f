"""Other solvers from Python on the usual full form of the QP of inverse dynamics.

The unknowns are accelerations, actuator forces and multipliers, with the dynamics as equality rows.
`wrong` counts states where a peer's actuator forces miss ours (verified by `residuals.py`) by more
than `WRONG`.
"""

import importlib
import time
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control import InverseDynamicsQP
from mbcasadi.control.inverse_dynamics.inputs import guard_inputs, input_symbols
from mbcasadi.control.inverse_dynamics.problem import assemble_problem
from mbcasadi.control.inverse_dynamics.scales import ForceWeights
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.qp.plugins import DENSE_SOLVERS

Array = NDArray[np.float64]
Solver = Callable[["FullForm"], Array]

WRONG = 1e-2  # relative to the largest actuator force
LEAST_HESSIAN = 1e-8  # peers need a positive definite Hessian on acceleration and multipliers too
PEERS = ("daqp", "quadprog", "proxsuite", "osqp")


class FullForm:
    """`min ½ zᵀ H z + gᵀ z`, `E z = e`, `lower <= C z <= upper`, `z = (a, p, lam, w)`."""

    def __init__(self, matrices: dict[str, Array], weights: ForceWeights) -> None:
        M, B, G, J, weight = (matrices[k] for k in ("M", "B", "G", "J", "weight"))
        (nv, nu), m, nw = B.shape, len(G), matrices["C_w"].shape[1]
        WJ = weight * J
        diagonal = np.concatenate([weights.actuators, np.full(m, LEAST_HESSIAN)])
        self.H = np.zeros((nv + nu + m + nw,) * 2)
        self.H[:nv, :nv] = J.T @ WJ + LEAST_HESSIAN * np.eye(nv)
        self.H[nv:, nv:] = np.diag(np.concatenate([diagonal, np.full(nw, weights.internal)]))
        self.g = np.concatenate([WJ.T @ matrices["offset"].ravel(), np.zeros(nu + m + nw)])
        self.E = np.vstack(
            [
                np.hstack([M, -B, -G.T, np.zeros((nv, nw))]),
                np.hstack([G, np.zeros((m, nu + m + nw))]),
            ]
        )
        self.e = np.concatenate([matrices["f"].ravel(), -matrices["c"].ravel()])
        rows = np.zeros((len(matrices["C_p"]), nv))
        self.C = np.hstack([rows, matrices["C_p"], matrices["C_lam"], matrices["C_w"]])
        self.lower, self.upper = matrices["lower"].ravel(), matrices["upper"].ravel()
        self.forces = slice(nv, nv + nu)


def full_forms(controller: InverseDynamicsQP, states: list[dict[str, Array]]) -> list[FullForm]:
    """Return the problem at each state."""
    parts_fun = _matrices_fun(controller)
    return [
        FullForm(
            {key: np.array(value) for key, value in parts_fun(**state).items()},
            controller.force_weights,
        )
        for state in states
    ]


def _matrices_fun(controller: InverseDynamicsQP) -> ca.Function:
    """Return (q, v, ref, mask) → the matrices before anything is eliminated."""
    raw = input_symbols(controller, None)
    problem = assemble_problem(controller, guard_inputs(controller, raw)[0])
    rows = problem.rows
    matrices = problem.dynamics._asdict() | {
        "J": problem.tasks.J,
        "offset": problem.tasks.offset,
        "weight": ca.SX(problem.tasks.weight),
        **{key: getattr(rows, key) for key in ("C_p", "C_lam", "C_w", "lower", "upper")},
    }
    dense = [ca.densify(value) for value in matrices.values()]
    return ca.Function("parts", list(raw.values()), dense, list(raw), list(matrices), {"cse": True})


def time_solver(solver: Solver, forms: list[FullForm], forces: list[Array]) -> tuple[float, int]:
    """Return the median time and the number of states with another solution than ours."""
    times, mismatches = [], 0
    for form, expected in zip(forms, forces, strict=True):
        start = time.perf_counter()
        z = solver(form)
        times.append(time.perf_counter() - start)
        miss = np.abs(z[form.forces] - expected).max()
        mismatches += not miss <= WRONG * np.abs(expected).max()
    return float(np.median(times)), mismatches


def python_peer(name: str) -> Solver | None:
    """Return a solver of the full form, or None where its package is not installed."""
    if name == "daqp":
        return _daqp_full
    try:
        package = importlib.import_module(name)
    except ImportError:
        return None
    return {"quadprog": _quadprog, "proxsuite": _proxsuite, "osqp": _osqp}[name](package)


def _daqp_full(form: FullForm) -> Array:
    A = np.vstack([form.E, form.C])
    key = A.shape
    if key not in _daqp_cache:
        pattern = {"h": ca.Sparsity.dense(*form.H.shape), "a": ca.Sparsity.dense(*A.shape)}
        _daqp_cache[key] = ca.conic("full", "daqp", pattern, DENSE_SOLVERS["daqp"])
    lba, uba = np.concatenate([form.e, form.lower]), np.concatenate([form.e, form.upper])
    solution = _daqp_cache[key](h=form.H, g=form.g, a=A, lba=lba, uba=uba)
    return np.array(solution["x"]).ravel()


_daqp_cache: dict[tuple[int, ...], ca.Function] = {}


def _quadprog(package: Any) -> Solver:
    def solve(form: FullForm) -> Array:
        low, high = form.lower > -UNBOUNDED / 2, form.upper < UNBOUNDED / 2
        rows = np.vstack([form.E, form.C[low], -form.C[high]])
        bounds = np.concatenate([form.e, form.lower[low], -form.upper[high]])
        try:
            solution = package.solve_qp(form.H, -form.g, rows.T.copy(), bounds, len(form.E))
        except ValueError:  # it calls dependent equality rows inconsistent
            return np.full(len(form.g), np.nan)
        return np.asarray(solution[0])

    return solve


def _proxsuite(package: Any) -> Solver:
    def solve(form: FullForm) -> Array:
        qp = package.proxqp.dense.QP(len(form.g), len(form.E), len(form.C))
        qp.settings.eps_abs = 1e-9
        qp.init(form.H, form.g, form.E, form.e, form.C, form.lower, form.upper)
        qp.solve()
        return np.asarray(qp.results.x)

    return solve


def _osqp(package: Any) -> Solver:
    sparse = importlib.import_module("scipy.sparse")

    def solve(form: FullForm) -> Array:
        qp = package.OSQP()
        rows = sparse.csc_matrix(np.vstack([form.E, form.C]))
        lower, upper = (np.concatenate([form.e, side]) for side in (form.lower, form.upper))
        hessian = sparse.csc_matrix(np.triu(form.H))
        qp.setup(hessian, form.g, rows, lower, upper, verbose=False, eps_abs=1e-6, eps_rel=1e-6)
        return np.asarray(qp.solve().x, dtype=float)

    return solve
