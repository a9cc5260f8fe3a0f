"""The motion along a branch: forward dynamics that has the limit's value at a singular pose."""

from typing import NamedTuple, Unpack

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.description.status import BranchStatus
from mbcasadi.dynamics.formulations import FormulationOptions, equations_of
from mbcasadi.dynamics.terms import State, choose_kind, rates, state_symbols, terms
from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.formulation import Equations
from mbcasadi.formulation.branch import (
    CURVATURE_TOL,
    branch_rows,
    loses_rank_along,
    rank_is_open,
)
from mbcasadi.formulation.motion import ConstrainedMotion
from mbcasadi.linalg import RANK_TOL, DropRule, complement, complete_factor, operations
from mbcasadi.shapes import require_positive
from mbcasadi.system import System, evaluate
from mbcasadi.system.parametric import takes_parameters
from mbcasadi.system.scales import Array
from mbcasadi.system.sizes import residual_sizes

REST_SPEED = 1e-8
"""Speed, relative to the rate of the mechanism's own motion (`System.scales`), at or below which v
has no direction: what solvers leave of zero."""

OUTPUTS = ("a", "f_c", "lam", "status")


@checked
@takes_parameters
def branch_motion(
    system: System,
    formulation: str = "projection",
    *,
    rest_speed: float | None = None,
    row_scale: float | None = None,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
    **options: Unpack[FormulationOptions],
) -> ca.Function:
    """Return (q, v, f, [t], [mask]) → (a, f_c, lam, status), the motion along the branch of v.

    Where the constraint rows keep their rank, this is `forward_dynamics`. At a singular pose, where
    branches of the motion meet, `forward_dynamics` returns the motion of the rows that do not
    vanish: the acceleration across the branch is then that of a free mechanism, and a jumps at the
    pose. Here `yᵀ (3 D²φ[v, a] + D³φ[v, v, v] + terms of time) = 0` for each combination y of rows
    that vanishes, `yᵀ A = 0`, replaces it: a and f_c are the limits from both sides of the pose, as
    `simulate` uses them (`formulation.branch`). `f_c` includes what the vanished rows carry. Their
    multipliers grow without bound next to the pose; lam is the multiplier of least norm of the
    rows that do not vanish. All is computed in the sizes of coordinates and residuals, so that
    neither status nor motion depends on the units of the model. lam has the least Euclidean norm,
    which depends on the units of rows that repeat.

    Status, one of `BranchStatus`:

    - 0 regular: no rows are added;
    - 1 the branch of v is taken;
    - 2 v is on no branch, `yᵀ D²φ[v, v] ≠ 0`: no motion has this velocity, a as in
      `forward_dynamics`;
    - 3 at rest at a singular pose, or slower than `rest_speed`: v selects no branch, a as in
      `forward_dynamics`;
    - 4 v is a tangent of several branches, or of a cusp: second derivatives do not determine a.

    The operations are the same at all states, without branches, also in the generated C. It has no
    implicit derivatives: at the pose the motion has none across the branch.

    Args:
        system: the mechanism; its rows are holonomic, with time and mask as they are.
        formulation: one of `FORMULATIONS`. The rows of a branch touch all joints, so that
            "limbwise" finds no limbs and takes 1.3 to 2.4 times the operations of "projection".
        rest_speed: norm of v over the sizes of the coordinates, 1/s, at or below which the
            mechanism is at rest; `REST_SPEED` by default.
        row_scale, rank_tol, pivot: drop rule, see `Treatment`; it decides which poses are singular.
        options: those of `FormulationOptions` that the formulation takes.

    Raises:
        UnknownNameError: no such formulation or option; the message lists the names.
        UnsupportedFeatureError: rows that hold for velocities only, or a formulation that needs a
            positive definite M.
        ProblemError: `rest_speed` or `rank_tol` is not positive.
    """
    if rest_speed is None:
        rest_speed = REST_SPEED * system.scales.rate
    require_positive(rest_speed=rest_speed, rank_tol=rank_tol)
    _require_holonomic(system)
    equations = equations_of(system, formulation, options)
    scale = ca.DM(_sized_row_scale(system, row_scale))
    rule: DropRule = {"row_scale": scale, "rank_tol": rank_tol, "pivot": pivot}
    count = 4 * operations(ca.Sparsity.dense(system.nc, system.nv), pivot) if system.nc else 0
    state = state_symbols(system, choose_kind(system, pivot, count))
    f = type(state.q).sym("f", system.nv)
    inputs = {"q": state.q, "v": state.v, "f": f} | state.last
    outputs = _motion(system, state, f, equations, rule, rest_speed)
    return ca.Function(
        "branch_motion",
        list(inputs.values()),
        [ca.densify(x) for x in outputs],
        list(inputs),
        list(OUTPUTS),
        {"cse": True},
    )


class _Outputs(NamedTuple):
    a: ca.MX
    f_c: ca.MX
    lam: ca.MX
    status: ca.MX


def _motion(
    system: System,
    state: State[ca.MX],
    f: ca.MX,
    equations: Equations,
    rule: DropRule,
    rest_speed: float,
) -> _Outputs:
    kind, nc = type(state.q), system.nc
    size, per_row = ca.DM(system.scales.coordinates), ca.DM(1 / residual_sizes(system))
    D, R = ca.diag(size), ca.diag(per_row)
    at = _rates_fun(system)(**state.inputs)
    A, Adot = (R @ at[name] @ D for name in ("A", "Adot"))
    c, cdot = (per_row * at[name] for name in ("c", "cdot"))
    sized_rule: DropRule = {**rule, "row_scale": per_row * rule["row_scale"]}
    factor = complete_factor(A, **sized_rule)
    speed = ca.norm_2(state.v / size)
    rows = branch_rows(factor, c, Adot, cdot, speed)
    moves = speed > rest_speed
    on = ca.logic_and(moves, ca.logic_and(rows.present, 1 - rows.off_branch))
    scales = ca.vertcat(
        rule["row_scale"] * kind.ones(nc),
        CURVATURE_TOL / rule["rank_tol"] * rows.scale * kind.ones(nc),
    )
    motion: ConstrainedMotion[ca.MX] = equations(
        D @ at["M"] @ D,
        size * at["h"],
        size * f,
        ca.vertcat(at["A"] @ D, on * rows.W),
        ca.vertcat(at["c"], on * rows.w),
        row_scale=scales,
        rank_tol=rule["rank_tol"],
        pivot=rule["pivot"],
    )
    a = size * motion.a
    Addot = R @ _second_rate_fun(system)(**state.inputs, a=a)["Addot"] @ D
    is_open = rank_is_open(factor, rows, Adot, Addot)
    trial = size * (complement(factor.basis.V) @ ca.DM(_generic_velocity(system.nv)))
    A_along = R @ _rates_fun(system)(**(state.inputs | {"v": trial}))["Adot"] @ D
    moving = ca.if_else(rows.present, BranchStatus.TAKEN, BranchStatus.REGULAR)
    moving = ca.if_else(is_open, BranchStatus.DEGENERATE, moving)
    off_branch = ca.logic_and(rows.present, rows.off_branch)
    moving = ca.if_else(off_branch, BranchStatus.OFF_BRANCH, moving)
    singular = loses_rank_along(factor, A_along)
    still = ca.if_else(singular, BranchStatus.AT_REST, BranchStatus.REGULAR)
    status = ca.if_else(moves, moving, still)
    return _Outputs(a, motion.f_c / size, motion.lam[:nc], status)


def _sized_row_scale(system: System, row_scale: float | None) -> Array:
    """Return (nc,) the scales of the rows in the sizes of coordinates."""
    scales = system.scales
    given = 1.0 if row_scale is None else row_scale / scales.row_norms
    return np.asarray(given * scales.rows)


def _generic_velocity(nv: int) -> Array:
    """Return (nv,) numbers between one half and one and a half, in no simple ratio."""
    return np.asarray(0.5 + np.mod(np.arange(1, nv + 1) * (np.sqrt(5) - 1) / 2, 1.0))


def _rates_fun(system: System) -> ca.Function:
    """Return (q, v, [t], [mask]) → (M, h, A, c, Adot, cdot); cdot at constant v."""
    return system.cached_function("branch_rates", lambda: _make_rates(system))


def _make_rates(system: System) -> ca.Function:
    state = state_symbols(system, ca.SX)
    now = terms(system, state)
    outputs = now._asdict() | {"Adot": rates(system, state)[1], "cdot": _rate(system, state, now.c)}
    return _function("branch_rates", state.inputs, outputs)


def _second_rate_fun(system: System) -> ca.Function:
    """Return (q, v, [t], [mask], a) → (Addot)."""
    return system.cached_function("branch_second_rate", lambda: _make_second_rate(system))


def _make_second_rate(system: System) -> ca.Function:
    state, a = state_symbols(system, ca.SX), ca.SX.sym("a", system.nv)
    Adot = ca.SX(rates(system, state)[1])
    Addot = _rate(system, state, Adot) + ca.jtimes(Adot, state.v, a)
    return _function("branch_second_rate", state.inputs | {"a": a}, {"Addot": Addot})


def _rate(system: System, state: State[ca.SX], value: ca.SX) -> ca.SX:
    """Return the rate of a matrix along v, at constant v, time included."""
    rate = ca.SX(ca.jtimes(value, state.q, system.velocity_map(state.q) @ state.v))
    return rate if state.t is None else rate + ca.jtimes(value, state.t, ca.SX(1))


def _function(name: str, inputs: dict[str, ca.SX], outputs: dict[str, ca.SX]) -> ca.Function:
    dense = [ca.densify(x) for x in outputs.values()]
    return ca.Function(
        name, list(inputs.values()), dense, list(inputs), list(outputs), {"cse": True}
    )


def _require_holonomic(system: System) -> None:
    """Refuse rows that hold for velocities only.

    Raises:
        UnsupportedFeatureError: the message names them.
    """
    if not system.nc:
        return
    state = state_symbols(system, ca.SX)
    phi, psi = (evaluate(rows, state.of_qv) for rows in (system.constraint, system.constraint_rate))
    names = enumerate(system.constraint_names)
    wrong = [name for i, name in names if phi[i].is_zero() and not psi[i].is_zero()]
    if wrong:
        raise UnsupportedFeatureError(
            f"rows {', '.join(wrong)} of '{system.name}' hold for velocities only; expected rows "
            "phi(q, t) = 0, whose branches second derivatives of phi determine. Use "
            "forward_dynamics"
        )
