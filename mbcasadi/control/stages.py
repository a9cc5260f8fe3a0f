"""The stages of a tick around the QP solver: build, solve, finish.

`build` assembles the problem, condenses and whitens it; `finish` recovers the actuator forces,
clips them, checks the solution and chooses the output. Both are scalar expressions (SX): a
fixed sequence of operations, without branches or loops that depend on data.
"""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from mbcasadi.control import guard
from mbcasadi.control.carry import Layout, pack, unpack
from mbcasadi.control.check import RESIDUALS, Answer, Cost, examine
from mbcasadi.control.condense import Condensed, Dynamics, condense, multipliers, solve_upper
from mbcasadi.control.least_distance import (
    UNBOUNDED,
    LeastDistance,
    Whitened,
    shift_bounds,
    whiten,
)
from mbcasadi.control.problem import Problem, objective, pose
from mbcasadi.control.rows import Rows
from mbcasadi.control.setup import Setup
from mbcasadi.description import LeastDistanceStages

CLAIMED = 0.5
"""The solver's flag is above this where it claims an optimum."""

SOLVED, SUBOPTIMAL, INFEASIBLE, BAD_INPUT, FAILED = range(5)

WORDS = {
    SOLVED: "solved",
    SUBOPTIMAL: "feasible, not optimal",
    INFEASIBLE: "infeasible",
    BAD_INPUT: "bad input",
    FAILED: "failed",
}


@dataclass(frozen=True)
class Stages:
    """The stages, and the sizes that follow from them.

    Attributes:
        parts: `build` and `finish`.
        row_names: name of each inequality.
        u_min, u_max: (nu,) limits that the control never leaves.
        nw: number of internal forces.
    """

    parts: LeastDistanceStages
    row_names: tuple[str, ...]
    u_min: np.ndarray
    u_max: np.ndarray
    nw: int


def input_symbols(setup: Setup, m: int) -> dict[str, ca.SX]:
    """Return the controller's inputs as symbols, in order; `m` is the number of inequalities."""
    system = setup.system
    sizes = {"q": system.nq, "v": system.nv, "act": system.na, "ref": setup.nref}
    sizes |= {"mask": len(setup.mask_names), "z": state_size(setup, m)}
    if not system.na:
        del sizes["act"]
    return {name: ca.SX.sym(name, size) for name, size in sizes.items()}


def state_size(setup: Setup, m: int) -> int:
    """Return the size of z: the active set, then the last control where it is held."""
    return m + (setup.system.nu if setup.fallback == "hold" else 0)


def make_stages(setup: Setup) -> Stages:
    """Return the build and finish Functions of a controller."""
    raw = input_symbols(setup, 0)
    inputs, valid = guard.guarded(setup, raw)
    problem = pose(setup, inputs)
    m = len(problem.rows.names)
    z = ca.SX.sym("z", state_size(setup, m))
    raw["z"] = z
    condensed = condense(problem.dynamics, setup.rank_tol)
    H, g = objective(setup, problem, condensed)
    whitened = whiten(H, g)
    posed = least_distance(setup, problem, condensed, whitened)
    carried = _carried(problem, condensed, whitened)
    column, layout = pack(carried | {"valid": valid})
    build = ca.Function(
        "build",
        list(raw.values()),
        [*posed, guard.sanitised_active(z[:m, 0]), column],
        list(raw),
        ["A_qp", "lba", "uba", "active0", "carry"],
        {"cse": True},
    )
    u_min, u_max = control_limits(setup, problem)
    finish = _finish(setup, problem, layout, raw, (u_min, u_max))
    return Stages(
        LeastDistanceStages(build, finish),
        problem.rows.names,
        u_min,
        u_max,
        problem.grips.of_w.shape[1],
    )


def least_distance(
    setup: Setup, problem: Problem, condensed: Condensed, whitened: Whitened
) -> LeastDistance:
    """Return the inequalities over the whitened unknown, as a least-distance problem.

    Args:
        setup: the checked options.
        problem: the parts of the QP.
        condensed: `a = T p + t` and the multipliers that follow from p.
        whitened: `y = y_0 + L_inv x`.
    """
    nu, rows = setup.system.nu, problem.rows
    in_p, in_w = whitened.L_inv[:nu, :], whitened.L_inv[nu:, :]
    of_lam = -solve_upper(condensed.R, condensed.R_inv_diag, condensed.Y_B @ in_p)
    A = rows.C_p @ in_p + rows.C_lam @ of_lam + rows.C_w @ in_w
    p_0, w_0 = whitened.y_0[:nu, 0], whitened.y_0[nu:, 0]
    at_0 = rows.value(p_0, multipliers(condensed, p_0), w_0)
    lba, uba = shift_bounds(rows.lower, at_0), shift_bounds(rows.upper, at_0)
    return LeastDistance(ca.densify(A), lba, uba)


def control_limits(setup: Setup, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return constant limits (nu,) of the control: its own, and its force's by a constant gain."""
    lower, upper = (setup.ranges.ctrl[:, side].copy() for side in (0, 1))
    driven = problem.drive
    for i in range(setup.system.nu):
        constant = driven.gain[i].is_constant() and driven.bias[i].is_zero()
        stateful = bool(setup.system.actuators) and setup.system.actuators[i].act is not None
        if stateful or not constant or float(driven.gain[i]) == 0.0:
            continue
        low, high = driven.lower[i], driven.upper[i]
        if low.is_constant() and high.is_constant():
            ends = sorted(float(end) / float(driven.gain[i]) for end in (low, high))
            lower[i] = max(lower[i], ends[0]) if abs(float(low)) < UNBOUNDED else lower[i]
            upper[i] = min(upper[i], ends[1]) if abs(float(high)) < UNBOUNDED else upper[i]
    return lower, upper


def _carried(problem: Problem, condensed: Condensed, whitened: Whitened) -> dict[str, ca.SX]:
    """Return every matrix that `finish` needs, by name."""
    driven, rows, tasks = problem.drive, problem.rows, problem.tasks
    return {
        **{f"dynamics.{key}": value for key, value in problem.dynamics._asdict().items()},
        **{f"condensed.{key}": value for key, value in condensed._asdict().items()},
        **{f"whitened.{key}": value for key, value in whitened._asdict().items()},
        **{key: getattr(rows, key) for key in ("C_p", "C_lam", "C_w", "lower", "upper")},
        **{key: getattr(driven, key) for key in ("gain", "bias", "act")},
        "p_min": driven.lower,
        "p_max": driven.upper,
        "J": tasks.J,
        "offset": tasks.offset,
        "p_ref": problem.p_ref,
        "f_ref": problem.f_ref,
        "of_lam": problem.grips.of_lam,
        "of_w": problem.grips.of_w,
    }


def _finish(
    setup: Setup,
    problem: Problem,
    layout: Layout,
    raw: dict[str, ca.SX],
    limits: tuple[np.ndarray, np.ndarray],
) -> ca.Function:
    nu, m, nw = setup.system.nu, len(problem.rows.names), problem.grips.of_w.shape[1]
    solver = {
        "x": ca.SX.sym("x", nu + nw),
        "lam_a": ca.SX.sym("lam_a", m),
        "active": ca.SX.sym("active", m),
        "flag": ca.SX.sym("flag"),
    }
    column = ca.SX.sym("carry", layout.size)
    got = unpack(layout, column)
    whitened = Whitened(*(got[f"whitened.{key}"] for key in Whitened._fields))
    y = whitened.y_0 + whitened.L_inv @ solver["x"]
    p = ca.fmin(ca.fmax(y[:nu, 0], got["p_min"]), got["p_max"])
    answer = Answer(p, y[nu:, 0], solver["lam_a"], solver["x"])
    residuals = examine(
        answer,
        Dynamics(*(got[f"dynamics.{key}"] for key in Dynamics._fields)),
        Condensed(*(got[f"condensed.{key}"] for key in Condensed._fields)),
        whitened,
        Rows(got["C_p"], got["C_lam"], got["C_w"], got["lower"], got["upper"], problem.rows.names),
        _cost(setup, problem, got),
    )
    claimed = solver["flag"] > CLAIMED
    status = judge(residuals, claimed, got["valid"], setup.tolerance)
    u_qp = controls(problem, got, p)
    u_safe = _fallback(setup, problem, got, raw)
    u = guard.clamped(ca.if_else(status <= SUBOPTIMAL, u_qp, u_safe), *limits)
    active = (status <= SUBOPTIMAL) * guard.sanitised_active(solver["active"])
    z_next = ca.vertcat(active, u) if setup.fallback == "hold" else active
    residual = ca.if_else(got["valid"], residuals, np.inf)
    return ca.Function(
        "finish",
        [*raw.values(), column, *solver.values()],
        [u, z_next, status, residual],
        [*raw, "carry", *solver],
        ["u", "z_next", "status", "residual"],
        {"cse": True},
    )


def judge(residual: ca.SX, claimed: ca.SX, valid: ca.SX, tolerance: float) -> ca.SX:
    """Return the status code of a candidate with these residuals (see `check.py`).

    A violated row means infeasibility where the solver claims no optimum, and a failed solver
    where it claims one.

    Args:
        residual: (5,) of `examine`.
        claimed: whether the solver claims an optimum.
        valid: whether the inputs were valid.
        tolerance: bound of each residual.
    """
    small = {name: residual[i] <= tolerance for i, name in enumerate(RESIDUALS)}
    consistent = ca.logic_and(small["dynamics"], small["constraint"])
    optimal = ca.logic_and(small["stationarity"], small["complementarity"])
    feasible_status = ca.if_else(optimal, SOLVED, SUBOPTIMAL)
    violated = ca.logic_and(residual[2] > tolerance, ca.logic_not(claimed))  # false for NaN
    violated_status = ca.if_else(violated, INFEASIBLE, FAILED)
    checked = ca.if_else(small["primal"], feasible_status, violated_status)
    return ca.if_else(valid, ca.if_else(consistent, checked, FAILED), BAD_INPUT)


def controls(problem: Problem, got: dict[str, ca.SX], p: ca.SX) -> ca.SX:
    """Return the controls of the actuator forces p, from carried numbers."""
    driven = replace(problem.drive, gain=got["gain"], bias=got["bias"], act=got["act"])
    return driven.controls(p)


def _fallback(
    setup: Setup, problem: Problem, got: dict[str, ca.SX], raw: dict[str, ca.SX]
) -> ca.SX:
    """Return the safe control that the options select for when the QP gives none."""
    nu = setup.system.nu
    if setup.fallback == "hold":
        return raw["z"][-nu:, 0]
    if setup.law is not None:
        inputs, _ = guard.guarded(setup, raw)
        return ca.densify(setup.law(inputs.q, inputs.v, inputs.ref, inputs.on))
    no_force = ca.fmin(ca.fmax(0, got["p_min"]), got["p_max"])
    return ca.if_else(got["valid"], controls(problem, got, no_force), 0)


def _cost(setup: Setup, problem: Problem, got: dict[str, ca.SX]) -> Cost:
    return Cost(
        J=got["J"],
        offset=got["offset"],
        weight=problem.tasks.weight,
        p_ref=got["p_ref"],
        of_lam=got["of_lam"],
        of_w=got["of_w"],
        f_ref=got["f_ref"],
        torque_weight=setup.torque_weight,
        internal_force_weight=setup.internal_force_weight,
        force_weight=setup.force_weight,
    )
