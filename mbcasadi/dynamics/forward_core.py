"""Forward dynamics of a `System` as one Function with its own Jacobian."""

import casadi as ca

from mbcasadi.dynamics.derivatives import OUTPUTS, jacobian_fun
from mbcasadi.dynamics.formulations import operations_of_root
from mbcasadi.dynamics.reduced_rows import reduced_pattern, reduced_rows
from mbcasadi.dynamics.terms import (
    State,
    Terms,
    Treatment,
    choose_kind,
    row_scale_of,
    state_symbols,
    terms_at,
)
from mbcasadi.formulation import ConstrainedMotion, Equations
from mbcasadi.formulation.limbwise import limbwise_operations
from mbcasadi.linalg import DropRule, MatrixRoot, Sym, kind_for, tree_cholesky, tree_solve
from mbcasadi.linalg.loops import MOST_ROWS
from mbcasadi.linalg.response_loops import constrained_motion
from mbcasadi.system import System


def dynamics_inputs(system: System, state: State[Sym]) -> dict[str, Sym]:
    """Return q, v, a symbol of f, and the optional inputs."""
    return {"q": state.q, "v": state.v, "f": type(state.q).sym("f", system.nv)} | state.last


def kind_of_core(
    system: System, formulation: str, equations: Equations, pivot: bool, *, weighted: bool
) -> type[ca.MX]:
    """Return `ca.SX` where the solve is small enough to unroll, on the patterns as they are.

    Args:
        system: the mechanism.
        formulation: its name.
        equations: the formulation with its options.
        pivot: whether all rows are factored with pivoting.
        weighted: the equations are in a metric, which fills M and A.
    """
    sparse = formulation == "limbwise" and not (weighted or system.semidefinite)
    if system.nc and not sparse:
        return choose_kind(system, pivot, operations_of_root(equations, system.nv))
    M = system.mass_matrix.sparsity_out("M")
    A = system.loop_jacobian.sparsity_out("A") if system.nc else ca.Sparsity(0, system.nv)
    return kind_for(limbwise_operations(M, reduced_pattern(system, A)))


def forward_core(
    system: System,
    equations: Equations,
    treatment: Treatment,
    root: MatrixRoot[ca.DM] | None,
    kind: type[ca.MX],
    *,
    derivatives: bool = True,
    compact: bool = False,
) -> ca.Function:
    """Return the forward dynamics as one Function with its own Jacobian.

    Args:
        system: the mechanism.
        equations: of its motion.
        treatment: how rows are treated.
        root: of the metric of the equations, or None.
        kind: of its expressions.
        derivatives: whether it has the Jacobian.
        compact: whether the motion is a loop in exported C, as `is_compact` allows.
    """
    name = "forward_dynamics_core"
    state = state_symbols(system, kind)
    inputs = dynamics_inputs(system, state)
    terms = terms_at(system, state, treatment.baumgarte)
    row_scale = row_scale_of(system, state.inputs, treatment, root)
    rows = reduced_rows(system, state, terms, row_scale)
    terms = terms._replace(A=rows.A, c=rows.c)
    rule = treatment.rule(rows.row_scale)
    if compact:
        motion = _in_a_loop(terms, inputs["f"], equations, rule)
    else:
        motion = _solve_motion(terms, inputs["f"], equations, rule)
    motion = motion._replace(lam=rows.all_multipliers(motion.lam))
    options: dict[str, bool | int | ca.Function] = {"cse": True}
    if derivatives:
        options |= {
            # the same for every formulation
            "custom_jacobian": system.cached_function(
                f"jac_{name} {treatment.key}", lambda: jacobian_fun(system, name, treatment)
            ),
            "jac_penalty": 0,  # directional derivatives by way of this Jacobian
            "enable_forward": False,
            "enable_reverse": False,
        }
    return ca.Function(
        name, list(inputs.values()), list(motion), list(inputs), list(OUTPUTS), options
    )


def is_compact(system: System, formulation: str, treatment: Treatment, *, weighted: bool) -> bool:
    """Return whether the motion is a loop in exported C.

    Args:
        system: the mechanism.
        formulation: its name.
        treatment: asks for it.
        weighted: the equations are in a metric.
    """
    plain = formulation == "limbwise" and not (weighted or system.semidefinite)
    return plain and treatment.compact and 0 < system.nc <= MOST_ROWS


def _in_a_loop(
    terms: Terms[ca.MX], f: ca.MX, equations: Equations, rule: DropRule
) -> ConstrainedMotion[ca.MX]:
    """Return the motion that is a loop in exported C; scalars make it in Python."""
    columns = {"r": f - terms.h, "c": terms.c}
    columns["row_scale"] = ca.MX.ones(terms.c.shape) * rule["row_scale"]
    r, c, row_scale = (ca.densify(x) for x in columns.values())
    given = {"M": terms.M, "r": r, "A": terms.A, "c": c, "row_scale": row_scale}
    s = {key: ca.SX.sym(key, x.sparsity()) for key, x in given.items()}
    scalars = rule | {"row_scale": s["row_scale"]}
    made = equations(s["M"], ca.SX(*s["r"].shape), s["r"], s["A"], s["c"], **scalars)
    motion = ca.Function("solve", [*s.values()], [ca.densify(x) for x in made], {"cse": True})
    return ConstrainedMotion(*constrained_motion(motion, [*given.values()], rule["rank_tol"]))


def _solve_motion(
    terms: Terms[Sym], f: Sym, equations: Equations, rule: DropRule
) -> ConstrainedMotion[Sym]:
    """Return the motion; without constraints every formulation is `a = M⁻¹ (f - h)`."""
    if terms.A.shape[0] == 0:
        a = tree_solve(tree_cholesky(terms.M), f - terms.h)
        return ConstrainedMotion(a, 0 * f, type(f)(0, 1))
    return equations(terms.M, terms.h, f, terms.A, terms.c, **rule)
