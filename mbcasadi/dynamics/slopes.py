"""Acceleration and its derivatives in one Function that factors once.

`M a = r + Aᵀ lam`, `A a + c = 0` with all terms functions of symbols z. By the implicit rule of
`dynamics.derivatives`, with a, lam and `e = (I - A A⁺) c` held fixed on the right,

    ∂a = a_c (∂(A a + c) - a_cᵀ ∂(Aᵀ e)) - a_f ∂(M a - r - Aᵀ lam).

Velocities after an impact are such motions too: `M v⁺ = M v + Aᵀ Λ`, `A v⁺ + a0 = 0`.
"""

from collections.abc import Callable, Mapping

import casadi as ca

from mbcasadi.dynamics.response import response_fun
from mbcasadi.dynamics.terms import Treatment
from mbcasadi.linalg import UNROLL_LIMIT

Equations = Mapping[str, ca.SX]
"""M, r, A, c and row_scale as expressions of the symbols."""

UNROLLED_PRODUCT = 12_000
"""Operations of a product up to which it is scalar code; beyond, a loop is as fast and short."""

Residual = Callable[..., dict[str, ca.SX]]
"""(a, lam, e) → Jacobians balance_x, row_x, gap_x of the residuals by each input x."""

RESIDUALS = ("balance", "row", "gap")
"""Residuals that the implicit rule differentiates: `M a - r - Aᵀ lam`, `A a + c`, `Aᵀ e`."""


def slopes_fun(
    name: str,
    inputs: Mapping[str, ca.SX],
    along: tuple[str, ...],
    equations: Equations,
    treatment: Treatment,
    *,
    semidefinite: bool = False,
    residual: Residual | None = None,
) -> ca.Function:
    """Return (inputs) → (a, slopes), slopes (nv, ·) along some of the inputs side by side.

    Args:
        name: of the Function.
        inputs: symbols by name.
        along: names of the inputs that a is differentiated by.
        equations: expressions of the inputs.
        treatment: the drop rule.
        semidefinite: M is positive semidefinite, and definite on null(A).
        residual: gives the Jacobians of the residuals; None to differentiate the equations.
    """
    symbols = {key: ca.MX.sym(key, symbol.shape) for key, symbol in inputs.items()}
    terms = _terms_fun(inputs, equations)(**symbols)
    unit = _motion_response(terms, treatment, semidefinite)
    motion = {key: unit[key] for key in ("a", "lam", "e")}
    if residual is None:
        residual = _differentiated(inputs, along, equations)
    jacobians = _residual_jacobian_fun(inputs, equations["A"].shape, residual)(**symbols, **motion)
    slopes = ca.horzcat(
        *(_input_slopes(unit, {key: jacobians[f"{key}_{x}"] for key in RESIDUALS}) for x in along)
    )
    outputs = [unit["a"], slopes]
    return scalar_if_small(
        ca.Function(name, [*symbols.values()], outputs, [*symbols], ["a", "slopes"])
    )


def product(left: ca.MX, right: ca.MX) -> ca.MX:
    """Return `left @ right`, unrolled with the zeros of both where that is short."""
    a, b = ca.MX.sym("a", left.sparsity()), ca.MX.sym("b", right.sparsity())
    function = ca.Function("product", [a, b], [a @ b])
    return scalar_if_small(function, UNROLLED_PRODUCT)(left, right)


def scalar_if_small(function: ca.Function, limit: int = UNROLL_LIMIT) -> ca.Function:
    """Return the Function as scalar code with shared terms, where that is less than `limit`."""
    inner = ca.Function.find_functions(function)
    if not all(f.is_a("SXFunction") or f.is_a("MXFunction") for f in inner):
        return function
    flat = function.expand()
    if flat.n_instructions() > limit:
        return function
    symbols: list[ca.SX] = flat.sx_in()
    names = (function.name_in(), function.name_out())
    return ca.Function(function.name(), symbols, flat.call(symbols), *names, {"cse": True})


def _terms_fun(inputs: Mapping[str, ca.SX], equations: Equations) -> ca.Function:
    names = (list(inputs), list(equations))
    return ca.Function("terms", [*inputs.values()], [*equations.values()], *names, {"cse": True})


def _motion_response(
    terms: Mapping[str, ca.MX], treatment: Treatment, semidefinite: bool
) -> dict[str, ca.MX]:
    """Return a, lam, e, a_f, a_c of the terms M, r, A, c, row_scale."""
    patterns = terms["M"].sparsity(), terms["A"].sparsity()
    function = response_fun(*patterns, treatment, semidefinite, scalars=True)
    made = function(M=terms["M"], A=terms["A"], row_scale=terms["row_scale"])
    nv, nc = terms["M"].shape[0], terms["A"].shape[0]
    lam_c = made["K"][nv : nv + nc, nv:]
    unit = {"a_f": made["a_f"], "a_c": made["lam_f"].T}
    r, c = terms["r"], terms["c"]
    return {
        "a": unit["a_f"] @ r + unit["a_c"] @ c,
        "lam": unit["a_c"].T @ r + lam_c @ c,
        "e": made["N_left"] @ c,
        "a_f": unit["a_f"],
        "a_c": unit["a_c"],
    }


def _residual_jacobian_fun(
    inputs: Mapping[str, ca.SX], shape: tuple[int, int], residual: Residual
) -> ca.Function:
    """Return (inputs, a, lam, e) → (balance_x, row_x, gap_x, ...), the residuals' Jacobians."""
    nc, nv = shape
    motion = {key: ca.SX.sym(key, n) for key, n in (("a", nv), ("lam", nc), ("e", nc))}
    outputs = residual(**motion)
    symbols = dict(inputs) | motion
    names = ([*symbols], [*outputs])
    return ca.Function(
        "residual_slopes", [*symbols.values()], [*outputs.values()], *names, {"cse": True}
    )


def _differentiated(
    inputs: Mapping[str, ca.SX], along: tuple[str, ...], equations: Equations
) -> Residual:
    """Return the residuals' Jacobians by differentiation of the equations."""

    def jacobians(a: ca.SX, lam: ca.SX, e: ca.SX) -> dict[str, ca.SX]:
        M, r, A, c = (equations[key] for key in ("M", "r", "A", "c"))
        parts = ca.cse([M @ a - r - A.T @ lam, A @ a + c, A.T @ e])
        values = dict(zip(RESIDUALS, parts, strict=True))
        return {
            f"{key}_{x}": ca.jacobian(value, inputs[x])
            for x in along
            for key, value in values.items()
        }

    return jacobians


def _input_slopes(unit: Mapping[str, ca.MX], jacobians: Mapping[str, ca.MX]) -> ca.MX:
    """Return `a_c (row - a_cᵀ gap) - a_f balance`, in scalars that use the Jacobians' zeros."""
    values = {key: unit[key] for key in ("a_f", "a_c")} | dict(jacobians)
    s = {key: ca.MX.sym(key, value.sparsity()) for key, value in values.items()}
    across = s["row"] - s["a_c"].T @ s["gap"]
    slopes = ca.densify(s["a_c"] @ across - s["a_f"] @ s["balance"])
    function = ca.Function("input_slopes", [*s.values()], [slopes], [*s], ["slopes"])
    return scalar_if_small(function, UNROLLED_PRODUCT)(**values)["slopes"]
