"""Derivatives of constrained motion by implicit rules, never through a linear solve.

Differentiate what the motion satisfies, not how it was computed. With `x` any of q, v, t and
`lam` the multipliers of minimum norm,

    P (M ∂a + ρ₁) = 0,   (I - P) ∂a = -A⁺ ρ₂,
    ρ₁ = ∂(M a + h - Aᵀ lam)/∂x - ∂f/∂x,   ρ₂ = ∂(A a + c)/∂x - a_cᵀ ∂(Aᵀ e)/∂x,

where `-a_c`, of the response of a to c (`dynamics.response`), is a pseudo-inverse of A in the
metric M, and a, lam and the contradiction `e = (I - A A⁺) c` (zero on the manifold) are held fixed:
the motion's own equations with `ρ₁`, `ρ₂` in the place of `h`, `c`. This follows from Golub and
Pereyra's differentials of the projector and holds wherever the rank is constant, redundant rows
included. So the cost is the Jacobian of inverse dynamics and one product,

    [∂a; ∂lam] = K [-ρ₁; ρ₂],   K = [a_f, a_c; a_cᵀ, lam_c].

Where rows are independent (`row_independence`) `e` is zero and `∂lam` has no other part.

Directions that leave the manifold may change the rank of a loop; along them lam has no derivative,
and the part of `∂lam` in null(Aᵀ) has no meaning. `∂a` is then that of the projector of all rows,
whose multipliers share a force by least norm. A solve that keeps some of the rows, and drops the
rest while their length is rounding, turns with the kept ones: its own derivative, `.expand()`,
differs along these directions, and in each formulation. Along the manifold all are equal.
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi.description import Baumgarte
from mbcasadi.dynamics.reduced_rows import ReducedRows, reduced_rows
from mbcasadi.dynamics.residual_jacobians import reduced_residual_fun, residual_jacobian_fun
from mbcasadi.dynamics.response import response_fun
from mbcasadi.dynamics.row_independence import rows_are_independent
from mbcasadi.dynamics.terms import (
    State,
    Terms,
    Treatment,
    row_scale_of,
    state_symbols,
    terms,
    terms_fun,
)
from mbcasadi.linalg import loops
from mbcasadi.linalg.response_loops import slopes
from mbcasadi.system import System

OUTPUTS = ("a", "f_c", "lam")
"""Outputs of a forward dynamics Function."""


def jacobian_fun(system: System, name: str, treatment: Treatment) -> ca.Function:
    """Return the Jacobian of the Function `name` (q, v, f, [t], [mask], [step]) → (a, f_c, lam).

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
    """Return a, lam and their Jacobians, without those of f_c, by one factorisation of A.

    Args:
        system: the mechanism.
        state: symbols of q, v and the optional inputs.
        f: (nv, 1) applied force.
        treatment: how rows are treated.
        tangent: derivatives by q are along `q ⊕ dq`, else by the coordinates of q.
    """
    response = _response(system, state, treatment)
    right = ca.densify(ca.vertcat(f - response.terms.h, response.rows.c))
    a, lam = slopes(response.K, right, system.nv)
    choice = _Choice(treatment.baumgarte, tangent, forces=False)
    blocks = _blocks(system, state, (a, lam), response, choice)
    return a, response.rows.all_multipliers(lam), blocks


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
    motion = a, response.rows.of_all(lam)
    choice = _Choice(treatment.baumgarte, tangent, forces=True)
    return _blocks(system, state, motion, response, choice)


Matrices = dict[str, ca.MX]


class _Choice(NamedTuple):
    """Which derivatives: along `q ⊕ dq` if `tangent`, with those of f_c if `forces`."""

    baumgarte: Baumgarte | None
    tangent: bool
    forces: bool


class _Response(NamedTuple):
    """Terms of the motion, its rows without known redundancy, and its response with these rows.

    Fields: `K`, `a_f`, `lam_f`, `N_left` of `dynamics.response`; `independent` where the rows
    depend on each other at isolated poses at most.
    """

    terms: Terms[ca.MX]
    rows: ReducedRows[ca.MX]
    K: ca.MX
    a_f: ca.MX
    lam_f: ca.MX
    N_left: ca.MX
    independent: bool


def _response(system: System, state: State[ca.MX], treatment: Treatment) -> _Response:
    terms_now = Terms(**terms_fun(system, treatment.baumgarte)(**state.inputs))
    row_scale = row_scale_of(system, state.inputs, treatment)
    rows = reduced_rows(system, state, terms_now, row_scale)
    patterns = terms_now.M.sparsity(), rows.A.sparsity()
    independent = rows_are_independent(system) and (rows.Q is None or treatment.baumgarte is None)
    function = response_fun(
        *patterns, treatment, system.semidefinite, contradictions=not independent
    )
    unit = function(M=terms_now.M, A=rows.A, row_scale=rows.row_scale)
    return _Response(terms_now, rows, **unit, independent=independent)


def _blocks(
    system: System,
    state: State[ca.MX],
    motion: tuple[ca.MX, ca.MX],
    response: _Response,
    choice: _Choice,
) -> dict[tuple[str, str], ca.MX]:
    """Return the blocks at a motion a and multipliers of the reduced rows."""
    (a, lam), M = motion, response.terms.M
    if response.independent:
        residual = reduced_residual_fun(system, *choice)
        J = residual(**state.inputs, a=a, lam=lam)
    else:
        J = _redundant_residual(system, state, motion, response, choice)
    blocks: dict[tuple[str, str], ca.MX] = {}
    if state.step is not None and choice.forces:
        by_step = _by_step(system, state, a, (response, choice.baumgarte))
        blocks |= {(key, "step"): block for key, block in by_step.items()}
    for x in state.of_qv:
        partial = {key[: -len(x) - 1]: J[key] for key in J if key.endswith(f"_{x}")}
        blocks |= {(key, x): block for key, block in _input_jacobians(response, partial).items()}
    blocks["a", "f"] = response.a_f
    blocks["lam", "f"] = _all_multipliers(response, response.lam_f)
    if choice.forces:
        blocks["f_c", "f"] = loops.product(M, response.a_f) - ca.MX.eye(system.nv)
    if system.nc == 0:
        zeros = {key: ca.MX(*block.shape) for key, block in blocks.items() if key[0] == "f_c"}
        return blocks | zeros
    return blocks


def _by_step(
    system: System,
    state: State[ca.MX],
    a: ca.MX,
    given: tuple[_Response, Baumgarte | None],
) -> Matrices:
    """Return the derivatives of a, f_c and lam by the length of the step.

    Args:
        system: the mechanism.
        state: symbols of its inputs.
        a: (nv, 1) acceleration.
        given: the response, and the stabilisation.
    """
    response, baumgarte = given
    s = state_symbols(system, ca.SX)
    assert s.step is not None
    now, rate = terms(system, s, baumgarte), ca.SX.sym("a", system.nv)
    outputs = [ca.jacobian(ca.densify(x), s.step) for x in (now.M @ rate, now.c)]
    along = ca.Function(
        "by_step", [*s.inputs.values(), rate], outputs, [*s.inputs, "a"], ["f", "c"]
    )
    found = along(**state.inputs, a=a)
    force, row = ca.densify(found["f"]), ca.densify(found["c"])
    none = ca.MX.zeros(system.nv, 1)
    partial = {
        "rho": ca.vertcat(-force, response.rows.of_all(row)),
        "id": force,
        "force": none,
        "row": row,
        "gap": none,
        "share": ca.MX.zeros(system.nc, 1),
    }
    return _input_jacobians(response, partial)


def _redundant_residual(
    system: System,
    state: State[ca.MX],
    motion: tuple[ca.MX, ca.MX],
    response: _Response,
    choice: _Choice,
) -> Matrices:
    """Return the Jacobians of the residuals of rows that may depend on each other."""
    (a, lam), rows = motion, response.rows
    c = rows.c
    e = response.terms.c - rows.all_multipliers(c - response.N_left @ c)
    w = -response.lam_f.T @ lam  # A w = lam, as lam is of least norm
    residual = residual_jacobian_fun(system, choice.baumgarte, tangent=choice.tangent)
    return residual(**state.inputs, a=a, lam=rows.all_multipliers(lam), e=e, w=w)


def _input_jacobians(response: _Response, partial: Matrices) -> Matrices:
    """Return the Jacobians of a, f_c and lam by one input: `K [-ρ₁; ρ₂]`."""
    rows, nv = response.rows, response.terms.M.shape[0]
    if response.independent:
        rho = partial["rho"]
    else:
        rho_2 = rows.of_all(partial["row"]) - loops.product(response.lam_f, partial["gap"])
        rho = ca.vertcat(partial["force"] - partial["id"], rho_2)
    da, dlam = slopes(response.K, rho, nv)
    if dlam.shape[0] == 0:
        return {"a": da, "f_c": 0 * da, "lam": dlam}
    if not response.independent:
        # Among rows that depend on each other: `(I - A A⁺) share`.
        dlam = dlam + loops.product(response.N_left, rows.of_all(partial["share"]))
        turn = partial["share"] - rows.all_multipliers(rows.of_all(partial["share"]))
        partial = partial if rows.Q is None else partial | {"turn": turn}
    dlam = _all_multipliers(response, dlam)
    dlam = dlam + partial["turn"] if "turn" in partial else dlam
    jacobians = {"a": da, "lam": dlam}
    if "id" in partial:
        jacobians["f_c"] = partial["id"] + loops.product(response.terms.M, da)
    return jacobians


def _all_multipliers(response: _Response, lam: ca.MX) -> ca.MX:
    """Return `Q lam` of (m, ·) multipliers of the reduced rows."""
    Q = response.rows.Q
    return lam if Q is None else loops.product(ca.densify(Q), ca.densify(lam))
