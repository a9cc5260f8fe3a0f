"""Acceleration and its slopes in one Function that factors once.

`M a = r + Aᵀ lam`, `A a + c = 0` with all terms functions of symbols z. By the implicit rule of
`dynamics.derivatives`, with a, lam and `e = (I - A A⁺) c` held fixed on the right,

    ∂a = a_c (∂(A a + c) + A⁺ᵀ ∂(Aᵀ e)) - a_f ∂(M a - r - Aᵀ lam).

Velocities after an impact are such motions too: `M v⁺ = M v + Aᵀ Λ`, `A v⁺ + a0 = 0`.
"""

from collections.abc import Mapping
from typing import Any

import casadi as ca

from mbcasadi.dynamics.response import response
from mbcasadi.dynamics.terms import Treatment
from mbcasadi.linalg import UNROLL_LIMIT, operations

Equations = Mapping[str, ca.SX]
"""M, r, A, c as expressions of the symbols."""

WRITTEN_OUT = 4_000
"""Operations of a product up to which it is scalar code; beyond, a loop is as fast and short."""

PARTS = ("balance", "row", "gap")
"""Residuals that the implicit rule differentiates: `M a - r - Aᵀ lam`, `A a + c`, `Aᵀ e`."""


def slopes_fun(
    name: str,
    inputs: Mapping[str, ca.SX],
    along: tuple[str, ...],
    equations: Equations,
    treatment: Treatment,
    *,
    semidefinite: bool = False,
) -> ca.Function:
    """Return (inputs) → (a, slopes), slopes (nv, ·) along these inputs side by side."""
    here = {key: ca.MX.sym(key, symbol.shape) for key, symbol in inputs.items()}
    now = _terms(inputs, equations)(**here)
    pattern = {key: equations[key].sparsity() for key in ("M", "A")}
    unit = _motion(pattern, treatment, semidefinite)(**now)
    held = {key: unit[key] for key in ("a", "lam", "e")}
    parts = _residual(inputs, along, equations)(**here, **held)
    slopes = ca.horzcat(
        *(_answer(unit, {key: parts[f"{key}_{x}"] for key in PARTS}) for x in along)
    )
    return scalar_if_small(
        ca.Function(name, [*here.values()], [unit["a"], slopes], [*here], ["a", "slopes"])
    )


def product(left: ca.MX, right: ca.MX) -> ca.MX:
    """Return `left @ right`, in scalars that use the zeros of both where it is little."""
    a, b = ca.MX.sym("a", left.sparsity()), ca.MX.sym("b", right.sparsity())
    made = ca.Function("product", [a, b], [a @ b])
    return scalar_if_small(made, WRITTEN_OUT)(left, right)


def scalar_if_small(function: ca.Function, limit: int = UNROLL_LIMIT) -> ca.Function:
    """Return the Function as scalar code with shared terms, where that is less than `limit`."""
    inner = ca.Function.find_functions(function)
    if not all(one.is_a("SXFunction") or one.is_a("MXFunction") for one in inner):
        return function
    flat = function.expand()
    if flat.n_instructions() > limit:
        return function
    given: Any = flat.sx_in()
    names = (function.name_in(), function.name_out())
    return ca.Function(function.name(), given, flat.call(given), *names, {"cse": True})


def _terms(inputs: Mapping[str, ca.SX], equations: Equations) -> ca.Function:
    named = (list(inputs), list(equations))
    return ca.Function("terms", [*inputs.values()], [*equations.values()], *named, {"cse": True})


def _motion(
    pattern: Mapping[str, ca.Sparsity], treatment: Treatment, semidefinite: bool
) -> ca.Function:
    """Return (M, r, A, c) → (a, lam, e, a_f, a_c, A_pinv)."""
    nc, nv = pattern["A"].shape
    # factorisations, then products of three (nv, nv + nc) matrices
    count = 2 * operations(pattern["A"], treatment.pivot) if nc else 0
    count += 3 * nv * nv * (nv + nc)
    kind: Any = ca.SX if count <= UNROLL_LIMIT else ca.MX
    M, A = kind.sym("M", pattern["M"]), kind.sym("A", pattern["A"])
    r, c = kind.sym("r", nv), kind.sym("c", nc)
    unit = response(M, A, treatment, semidefinite)
    A_pinv = unit.factor.pinv_times(kind.eye(nc))
    outputs = {
        "a": unit.a_f @ r + unit.a_c @ c,
        "lam": unit.a_c.T @ r + unit.lam_c @ c,
        "e": c - unit.factor.U @ (unit.factor.U.T @ c),
        "a_f": unit.a_f,
        "a_c": unit.a_c,
        "A_pinv": A_pinv,
    }
    given = {"M": M, "r": r, "A": A, "c": c}
    dense = [ca.densify(part) for part in outputs.values()]
    return ca.Function(
        "motion_response", [*given.values()], dense, [*given], [*outputs], {"cse": True}
    )


def _residual(
    inputs: Mapping[str, ca.SX], along: tuple[str, ...], equations: Equations
) -> ca.Function:
    """Return (inputs, a, lam, e) → (balance_x, row_x, gap_x, ...), the residuals' Jacobians."""
    M, r, A, c = (equations[key] for key in ("M", "r", "A", "c"))
    nc, nv = A.shape
    held = {key: ca.SX.sym(key, n) for key, n in (("a", nv), ("lam", nc), ("e", nc))}
    a, lam, e = held.values()
    values = dict(zip(PARTS, ca.cse([M @ a - r - A.T @ lam, A @ a + c, A.T @ e]), strict=True))
    outputs = {
        f"{key}_{x}": ca.jacobian(value, inputs[x]) for x in along for key, value in values.items()
    }
    shared = ca.cse([*outputs.values()])
    given = dict(inputs) | held
    return ca.Function("residual_slopes", [*given.values()], shared, [*given], [*outputs])


def _answer(unit: Mapping[str, ca.MX], parts: Mapping[str, ca.MX]) -> ca.MX:
    """Return `a_c (row + A⁺ᵀ gap) - a_f balance`, in scalars that use the zeros of the parts."""
    given = {key: unit[key] for key in ("a_f", "a_c", "A_pinv")} | dict(parts)
    s = {key: ca.MX.sym(key, value.sparsity()) for key, value in given.items()}
    across = s["row"] + s["A_pinv"].T @ s["gap"]
    slopes = ca.densify(s["a_c"] @ across - s["a_f"] @ s["balance"])
    made = ca.Function("answer", [*s.values()], [slopes], [*s], ["slopes"])
    answer = scalar_if_small(made, WRITTEN_OUT)
    return answer(**given)["slopes"]
