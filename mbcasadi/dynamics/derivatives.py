"""Derivatives of constrained motion by implicit rules, never through a linear solve.

Differentiate what the motion satisfies, not how it was computed. With `x` any of q, v, t and
`lam` the multipliers of minimum norm,

    P (M ∂a + ρ₁) = 0,   (I - P) ∂a = -A⁺ ρ₂,
    ρ₁ = ∂(M a + h - Aᵀ lam)/∂x - ∂f/∂x,   ρ₂ = ∂(A a + c)/∂x - a_cᵀ ∂(Aᵀ e)/∂x,

where `-a_c`, of the response of a to c (`dynamics.response`), is a pseudo-inverse of A in the
metric M, and a, lam and the contradiction `e = (I - A A⁺) c` (zero on the manifold) are held fixed:
the motion's own equations with `ρ₁`, `ρ₂` in the place of `h`, `c`. This follows from Golub and
Pereyra's differentials of the projector and holds wherever the rank is constant, redundant rows
included. So the cost is the Jacobian of inverse dynamics and products. Directions that leave the
manifold may change the rank of a loop; along them lam has no derivative, and the part of `∂lam` in
null(Aᵀ) has no meaning.
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi.description import Baumgarte
from mbcasadi.dynamics.inverse_derivatives import (
    coordinate_chart,
    force_derivatives,
    tangent_chart,
)
from mbcasadi.dynamics.reduced_rows import ReducedRows, reduced_rows
from mbcasadi.dynamics.response import response_fun
from mbcasadi.dynamics.row_derivatives import Fixed, row_derivatives
from mbcasadi.dynamics.slopes import product
from mbcasadi.dynamics.terms import (
    State,
    Terms,
    Treatment,
    row_scale_of,
    state_symbols,
    terms_fun,
)
from mbcasadi.system import System

OUTPUTS = ("a", "f_c", "lam")
"""Outputs of a forward dynamics Function."""


def residual_jacobian_fun(
    system: System, baumgarte: Baumgarte | None = None, *, tangent: bool = False
) -> ca.Function:
    """Return the Jacobians that implicit rules need, as one Function that shares its terms.

    (q, v, a, lam, e, w, [t], [mask]) → (for x in q, v, [t]: id_x, force_x, row_x, gap_x, share_x),
    the derivatives of `M a + h` (inverse dynamics), `Aᵀ lam`, `A a + c`, `Aᵀ e` and `A w`.

    Args:
        system: the mechanism.
        baumgarte: stabilisation of drift.
        tangent: those by q are along `q ⊕ dq`, else by the coordinates of q.
    """
    state = state_symbols(system, ca.SX)
    sizes = {"a": system.nv, "lam": system.nc, "e": system.nc, "w": system.nv}
    fixed = Fixed(**{key: ca.SX.sym(key, size) for key, size in sizes.items()})
    chart = (tangent_chart if tangent else coordinate_chart)(system, state.q)
    id_q, id_v = force_derivatives(system, state, fixed.a, chart)
    of_force = {"id_q": id_q, "id_v": id_v} | (
        {} if state.t is None else {"id_t": ca.SX(system.nv, 1)}
    )
    of_rows = row_derivatives(system, state, fixed, chart, baumgarte)
    outputs = {
        f"{name}_{x}": (of_force if name == "id" else of_rows)[f"{name}_{x}"]
        for x in state.of_qv
        for name in ("id", "force", "row", "gap", "share")
    }
    inputs = {"q": state.q, "v": state.v} | fixed._asdict() | state.last
    return ca.Function(
        "residual_jacobian",
        list(inputs.values()),
        list(outputs.values()),
        list(inputs),
        list(outputs),
        {"cse": True},
    )


def jacobian_fun(system: System, name: str, treatment: Treatment) -> ca.Function:
    """Return the Jacobian of the Function `name` (q, v, f, [t], [mask]) → (a, f_c, lam).

    Along the mask it is zero: rows are on or off.

    Its signature is CasADi's for a `custom_jacobian`: the outputs of the Function are inputs
    here (`out_a`, ...), so nothing is solved twice.
    """
    state = state_symbols(system, ca.MX)
    inputs = {"q": state.q, "v": state.v, "f": ca.MX.sym("f", system.nv)} | state.last
    sizes = {"a": system.nv, "f_c": system.nv, "lam": system.nc}
    motion = {key: ca.MX.sym(key, sizes[key]) for key in OUTPUTS}
    blocks = implicit_jacobian(system, state, motion["a"], motion["lam"], treatment)
    if state.mask is not None:
        blocks |= {(key, "mask"): ca.MX(size, system.nc) for key, size in sizes.items()}
    outputs = {f"jac_{key}_{x}": blocks[key, x] for key in OUTPUTS for x in inputs}
    arguments = inputs | {f"out_{key}": symbol for key, symbol in motion.items()}
    return ca.Function(
        f"jac_{name}",
        list(arguments.values()),
        list(outputs.values()),
        list(arguments),
        list(outputs),
    )


def motion_and_jacobian(
    system: System, state: State[ca.MX], f: ca.MX, treatment: Treatment, *, tangent: bool = False
) -> tuple[ca.MX, ca.MX, dict[tuple[str, str], ca.MX]]:
    """Return a, lam and their Jacobians by one factorisation of A.

    Args:
        system: the mechanism.
        state: symbols of q, v and the optional inputs.
        f: (nv, 1) applied force.
        treatment: how rows are treated.
        tangent: derivatives by q are along `q ⊕ dq`, else by the coordinates of q.
    """
    response = _response(system, state, treatment)
    unit, r, c = response.unit, f - response.terms.h, response.rows.c
    a = unit["a_f"] @ r + unit["a_c"] @ c
    lam = response.rows.all_multipliers(unit["a_c"].T @ r + unit["lam_c"] @ c)
    residual = residual_jacobian_fun(system, treatment.baumgarte, tangent=tangent)
    return a, lam, _blocks(state, (a, lam), response, residual)


def implicit_jacobian(
    system: System,
    state: State[ca.MX],
    a: ca.MX,
    lam: ca.MX,
    treatment: Treatment,
    *,
    tangent: bool = False,
) -> dict[tuple[str, str], ca.MX]:
    """Return the block of each output (a, f_c, lam) and input (q, v, f, [t]) at a motion.

    Args:
        system: the mechanism.
        state: symbols of q, v and the optional inputs.
        a, lam: (nv, 1), (nc, 1) the motion.
        treatment: how rows are treated.
        tangent: derivatives by q are along `q ⊕ dq`, else by the coordinates of q.
    """
    response = _response(system, state, treatment)
    residual = residual_jacobian_fun(system, treatment.baumgarte, tangent=tangent)
    return _blocks(state, (a, lam), response, residual)


Matrices = dict[str, ca.MX]


class _Response(NamedTuple):
    """Terms of the motion, its rows without known redundancy, and its response with these rows."""

    terms: Terms[ca.MX]
    rows: ReducedRows[ca.MX]
    unit: Matrices


def _response(system: System, state: State[ca.MX], treatment: Treatment) -> _Response:
    terms_now = Terms(**terms_fun(system, treatment.baumgarte)(**state.inputs))
    row_scale = row_scale_of(system, state.inputs, treatment)
    rows = reduced_rows(system, state, terms_now, row_scale)
    patterns = terms_now.M.sparsity(), rows.A.sparsity()
    function = response_fun(*patterns, treatment, system.semidefinite)
    unit = function(M=terms_now.M, A=rows.A, row_scale=rows.row_scale)
    return _Response(terms_now, rows, unit)


def _blocks(
    state: State[ca.MX],
    motion: tuple[ca.MX, ca.MX],
    response: _Response,
    residual: ca.Function,
) -> dict[tuple[str, str], ca.MX]:
    (a, lam), (terms_now, rows, unit) = motion, response
    M, c = terms_now.M, rows.c
    e = terms_now.c - rows.all_multipliers(c - unit["N_left"] @ c)
    w = -unit["a_c"] @ rows.of_all(lam)  # A w = lam, as lam is of least norm
    J = residual(**state.inputs, a=a, lam=lam, e=e, w=w)
    blocks: dict[tuple[str, str], ca.MX] = {}
    for x in state.of_qv:
        partial = {key: J[f"{key}_{x}"] for key in ("id", "force", "row", "gap", "share")}
        blocks |= {(key, x): block for key, block in _input_jacobians(response, partial).items()}
    blocks["a", "f"] = unit["a_f"]
    blocks["f_c", "f"] = M @ unit["a_f"] - ca.MX.eye(a.shape[0])
    blocks["lam", "f"] = rows.all_multipliers(unit["a_c"].T)
    if lam.shape[0] == 0:
        zeros = {key: ca.MX(*block.shape) for key, block in blocks.items() if key[0] == "f_c"}
        return blocks | zeros
    return blocks


def _input_jacobians(response: _Response, partial: Matrices) -> Matrices:
    """Return the Jacobians of a, f_c and lam by one input."""
    terms_now, rows, unit = response
    rho_1 = partial["id"] - partial["force"]
    rho_2 = rows.of_all(partial["row"]) - product(unit["a_c"].T, partial["gap"])
    da = product(unit["a_c"], rho_2) - product(unit["a_f"], rho_1)
    if rho_2.shape[0] == 0:
        return {"a": da, "f_c": 0 * da, "lam": rho_2}
    dlam = product(unit["lam_c"], rho_2) - product(unit["a_c"].T, rho_1)
    # Among rows that depend on each other: `(I - A A⁺) share`.
    share, reduced = partial["share"], rows.of_all(partial["share"])
    dlam = dlam + product(unit["N_left"], reduced)
    dlam = dlam if rows.Q is None else share + product(rows.Q, dlam - reduced)
    return {"a": da, "f_c": partial["id"] + product(terms_now.M, da), "lam": dlam}
