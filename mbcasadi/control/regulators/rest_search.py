"""The search for the pose nearest to a given one that can be held at rest."""

from typing import Any

import casadi as ca
import numpy as np

from mbcasadi.control.regulators.loads import Loads
from mbcasadi.control.regulators.operating_point import Array
from mbcasadi.control.regulators.static_equilibrium import StaticEquilibrium

NLP_TOL = 1e-10
"""Residual of a pose at rest, in the sizes of `RestSizes`."""

NLP_STEPS = 500
POLISHING = 10

LEAST_FORCES = 1e-9
"""Weight of |y|² beside the square of the distance, in the sizes: reactions of repeated rows, which
nothing else determines, stay small; the pose moves by less than this."""

COUNTING = 1e-7
"""Singular value of the rows, relative to the largest or to 1, that counts as zero."""

AT_LIMIT = 1e-6
"""Distance from a limit, in loads and relative to it, within which forces are at it."""

POLISHING_RANK_TOL = 1e-9
"""Relative singular value that counts as zero in Newton's steps: rows may be redundant."""

RESTART_DISTANCES = (0.0, 0.05, 0.3)
"""Rad, or shares of a length. A search that fails starts again at this distance."""


def nearest_pose(at_rest: StaticEquilibrium, q0: Array, start: Array) -> tuple[Array, Loads] | None:
    """Return the pose nearest to q0 that can be held, with its forces, or None.

    Nearest in the sizes of the coordinates. An interior-point method finds it, Newton's steps of
    least norm close it to rounding errors.
    """
    rng = np.random.default_rng(0)
    size = at_rest.sizes.coordinates
    solver, compress = _search(at_rest, q0, start)
    start_step = np.array(at_rest.rested.difference(q0, start)).ravel() / size
    y = at_rest.loads_at(start).y
    for distance in RESTART_DISTANCES:
        guess = start_step + distance * rng.standard_normal(start_step.size)
        out = solver(x0=np.concatenate([guess, y]), lbg=compress, ubg=np.zeros(compress.size))
        x = np.array(out["x"]).ravel()
        q = np.array(at_rest.rested.integrate(q0, size * x[: start_step.size])).ravel()
        q = _newton_refinement(at_rest, q, x[start_step.size :])
        solution = at_rest.loads_at(q)
        gap = np.abs(at_rest.sized_at(q)["gap"]).max(initial=0.0)
        if solution.balanced and solution.feasible and gap < NLP_TOL:
            return q, solution
    return None


def _search(at_rest: StaticEquilibrium, q0: Array, start: Array) -> tuple[ca.Function, Array]:
    """Return the program `min |x|² + ε |y|²`, `q = q0 ⊕ size x`, and the lower bounds of its rows.

    Redundant rows are compressed to those that are independent at `start`, `Uᵀ phi = 0`.
    """
    size, limits = at_rest.sizes, at_rest.sized_limits
    x, y = ca.SX.sym("x", at_rest.rested.nv), ca.SX.sym("y", limits.G.shape[1])
    q = at_rest.rested.integrate(q0, ca.DM(size.coordinates) * x)
    values = at_rest.equations(q=q, y=y * ca.DM(size.load / size.forces))
    U, s, _ = np.linalg.svd(at_rest.sized_at(start)["gap_q"], full_matrices=False)
    counting = U[:, s > COUNTING * max(1.0, s.max(initial=0.0))]
    equal = ca.vertcat(
        ca.DM(counting.T / size.rows) @ values["gap"],
        ca.DM(size.coordinates / size.load) * values["unbalanced"],
    )
    over = ca.DM(limits.G) @ y - ca.DM(limits.d)
    low = np.concatenate([np.zeros(equal.numel()), np.full(over.numel(), -np.inf)])
    cost = ca.sumsqr(x) + LEAST_FORCES * ca.sumsqr(y)
    problem = {"x": ca.vertcat(x, y), "f": cost, "g": ca.vertcat(equal, over)}
    quiet = {"print_level": 0, "sb": "yes", "tol": NLP_TOL, "max_iter": NLP_STEPS}
    options: dict[str, Any] = {"ipopt": quiet, "print_time": False, "error_on_fail": False}
    return ca.nlpsol("rest", "ipopt", problem, options), low


def _newton_refinement(at_rest: StaticEquilibrium, q: Array, y: Array) -> Array:
    """Return the pose with its equations closed, controls at their limits held there.

    Args:
        at_rest: the mechanism.
        q: (nq,) near the pose.
        y: (ny,) forces in the sizes.
    """
    limits, size, nv = at_rest.sized_limits, at_rest.sizes.coordinates, at_rest.rested.nv
    at_limit = limits.G @ y - limits.d > -AT_LIMIT * (1 + np.abs(limits.d))
    G = limits.G[at_limit]
    for _ in range(POLISHING):
        value = at_rest.sized_at(q, at_rest.forces_of(y))
        J = np.block(
            [
                [value["gap_q"], np.zeros((value["gap"].size, y.size))],
                [value["unbalanced_q"], -value["E"]],
                [np.zeros((len(G), nv)), G],
            ]
        )
        error = [value["gap"], value["unbalanced"], G @ y - limits.d[at_limit]]
        step = -np.linalg.lstsq(J, np.concatenate(error), rcond=POLISHING_RANK_TOL)[0]
        q = np.array(at_rest.rested.integrate(q, size * step[:nv])).ravel()
        y = y + step[nv:]
    return q
