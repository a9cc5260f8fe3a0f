"""Forward dynamics of a `System` in a chosen formulation, with derivatives by implicit rules."""

from typing import Unpack

import casadi as ca
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.description import Baumgarte
from mbcasadi.dynamics.derivatives import (
    OUTPUTS,
    implicit_jacobian,
    jacobian_fun,
    motion_and_jacobian,
)
from mbcasadi.dynamics.formulations import FormulationOptions, equations_of, operations_of_root
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
from mbcasadi.formulation.metric import metric_root
from mbcasadi.linalg import (
    RANK_TOL,
    DropRule,
    MatrixRoot,
    Sym,
    kind_for,
    tree_cholesky,
    tree_solve,
)
from mbcasadi.system import System

DEFAULT = "limbwise"
"""The formulation where none is named."""


@checked
def forward_dynamics(
    system: System,
    formulation: str = DEFAULT,
    *,
    row_scale: float | None = None,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
    metric: ArrayLike | None = None,
    baumgarte: Baumgarte | None = None,
    nonideal: bool = False,
    **options: Unpack[FormulationOptions],
) -> ca.Function:
    """Return (q, v, f, [f_nonideal], [t], [mask]) → (a, f_c, lam), the motion under the force f.

    `M a + h = f + f_passive + Aᵀ lam (+ f_n)`, `A a + c = 0`: valid with redundant rows and, in
    the least-squares sense `A⁺ A a = -A⁺ c`, on drifted states. `lam` are the multipliers of
    minimum Euclidean norm, which depend on the units of rows that repeat: divide a row by its size
    (`system.sizes`) for another norm. `f_c = Aᵀ lam (+ f_n)` is unique, in all units.

    At a singular pose, where rows vanish, it is the one motion of these equations with the rows
    that are left: finite, and free across the branch. A motion that passes the pose keeps to its
    branch, and has another acceleration there, the limit from both sides: `branch_motion`.

    Its derivatives (Jacobian, forward, reverse, `map`) follow implicit rules: see
    `dynamics.derivatives`. They hold wherever the rank is locally constant. `.expand()` gives
    plain scalars instead, whose derivatives go through the factorisation.

    Args:
        system: the mechanism.
        formulation: one of `FORMULATIONS`.
        row_scale, rank_tol: drop rule; see `Treatment`.
        pivot: safest where constraints are redundant; without it, independent constraints on
            different branches take a half to a fifth of the time.
        metric: (nv, nv) symmetric positive definite weight of velocities  [A05, section 7.2];
            see `formulation.in_metric`. It changes rounding and the drop rule, not the motion.
        baumgarte: stabilisation of drift, `c + 2 α psi + β² phi`.
        nonideal: take the prescribed non-ideal force `f_nonideal` (nv, 1) of the constraints
            [L15, eq. 12-15]; `f_c` then holds what of it acts, and `lam` is that of the ideal
            constraint under f alone.
        options: those of `FormulationOptions` that the formulation takes.

    Raises:
        UnknownNameError: no such formulation or option; the message lists the names.
        UnsupportedFeatureError: the formulation needs a positive definite M.
        ShapeError: a metric or stabilisation rates of a wrong shape.
    """
    equations = equations_of(system, formulation, options, metric)
    treatment = Treatment(row_scale, rank_tol, pivot, baumgarte)
    kind = _kind(system, formulation, equations, pivot, weighted=metric is not None)
    core = _core(
        system, equations, treatment, None if metric is None else metric_root(metric), kind
    )
    # A Function of matrices around the core: CasADi then uses the core's own Jacobian,
    # where a Function of scalars would be differentiated through its operations.
    state = state_symbols(system, ca.MX)
    inputs = _inputs(system, state)
    motion = core(**inputs)
    if nonideal:
        f_nonideal = ca.MX.sym("f_nonideal", system.nv)
        motion |= _motion_with_nonideal_force(core, inputs, f_nonideal)
        first = {name: inputs[name] for name in ("q", "v", "f")}
        inputs = first | {"f_nonideal": f_nonideal} | state.last
    return ca.Function(
        "forward_dynamics",
        list(inputs.values()),
        [motion[key] for key in OUTPUTS],
        list(inputs),
        list(OUTPUTS),
    )


@checked
def forward_dynamics_derivatives(
    system: System,
    formulation: str = DEFAULT,
    *,
    row_scale: float | None = None,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
    baumgarte: Baumgarte | None = None,
    **options: Unpack[FormulationOptions],
) -> ca.Function:
    """Return (q, v, f, [t], [mask]) → (a, dadq, dadv, dadf, lam, dlamdq, dlamdv, dlamdf).

    Derivatives with respect to q are tangent ones, (nv, nv): along `q ⊕ dq`, so that
    quaternions stay unit. They hold wherever the rank is locally constant.

    Args:
        system: the mechanism.
        formulation: one of `FORMULATIONS`.
        row_scale, rank_tol, pivot: drop rule; see `Treatment`.
        baumgarte: stabilisation of drift.
        options: those of `FormulationOptions` that the formulation takes.

    Raises:
        UnknownNameError, UnsupportedFeatureError, ShapeError: as in `forward_dynamics`.
    """
    treatment = Treatment(row_scale, rank_tol, pivot, baumgarte)
    fd = forward_dynamics(
        system,
        formulation,
        row_scale=row_scale,
        rank_tol=rank_tol,
        pivot=pivot,
        baumgarte=baumgarte,
        **options,
    )
    state = state_symbols(system, ca.MX)
    inputs = _inputs(system, state)
    if formulation == DEFAULT and not options:
        # All formulations give the same motion: this one by what its derivatives need anyway.
        a, lam, J = motion_and_jacobian(system, state, inputs["f"], treatment, tangent=True)
    else:
        motion = fd(**inputs)
        a, lam = motion["a"], motion["lam"]
        J = implicit_jacobian(system, state, a, lam, treatment, tangent=True)
    outputs = {}
    for key, value in (("a", a), ("lam", lam)):
        outputs[key] = value
        outputs[f"d{key}dq"] = J[key, "q"]
        outputs[f"d{key}dv"] = J[key, "v"]
        outputs[f"d{key}df"] = J[key, "f"]
    return ca.Function(
        "forward_dynamics_derivatives",
        list(inputs.values()),
        list(outputs.values()),
        list(inputs),
        list(outputs),
    )


@checked
def constraint_force(
    system: System,
    formulation: str = DEFAULT,
    *,
    row_scale: float | None = None,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
    metric: ArrayLike | None = None,
    baumgarte: Baumgarte | None = None,
    nonideal: bool = False,
    **options: Unpack[FormulationOptions],
) -> ca.Function:
    """Return (q, v, f, ...) → (f_c, lam), the constraint force under the applied force f.

    Args:
        system: the mechanism.
        formulation: one of `FORMULATIONS`.
        row_scale, rank_tol, pivot: drop rule; see `Treatment`.
        metric, baumgarte, nonideal: as in `forward_dynamics`, whose inputs these are too.
        options: those of `FormulationOptions` that the formulation takes.

    Raises:
        UnknownNameError, UnsupportedFeatureError, ShapeError: as in `forward_dynamics`.
    """
    fd = forward_dynamics(
        system,
        formulation,
        row_scale=row_scale,
        rank_tol=rank_tol,
        pivot=pivot,
        metric=metric,
        baumgarte=baumgarte,
        nonideal=nonideal,
        **options,
    )
    inputs = fd.mx_in()
    outputs = fd.call(inputs)
    names = [fd.name_in(i) for i in range(fd.n_in())]
    return ca.Function("constraint_force", inputs, outputs[1:], names, list(OUTPUTS[1:]))


def _solve_motion(
    terms: Terms[Sym], f: Sym, equations: Equations, rule: DropRule
) -> ConstrainedMotion[Sym]:
    """Return the motion; without constraints every formulation is `a = M⁻¹ (f - h)`."""
    if terms.A.shape[0] == 0:
        a = tree_solve(tree_cholesky(terms.M), f - terms.h)
        return ConstrainedMotion(a, 0 * f, type(f)(0, 1))
    return equations(terms.M, terms.h, f, terms.A, terms.c, **rule)


def _inputs(system: System, state: State[Sym]) -> dict[str, Sym]:
    """Return q, v, a symbol of f, and the optional inputs."""
    return {"q": state.q, "v": state.v, "f": type(state.q).sym("f", system.nv)} | state.last


def _motion_with_nonideal_force(
    core: ca.Function, inputs: dict[str, ca.MX], f_nonideal: ca.MX
) -> dict[str, ca.MX]:
    """Return a and f_c with a prescribed non-ideal force  [L15, eq. 12-15].

    The force moves the mechanism as an applied force would: `a` is that under `f + f_nonideal`.
    What acts on top of the ideal constraint force, `f_n = f_c - Aᵀ lam`, is the part of it
    that an ideal constraint does not take up.
    """
    motion = core(**(inputs | {"f": inputs["f"] + f_nonideal}))
    return {"a": motion["a"], "f_c": motion["f_c"] + f_nonideal}


def _kind(
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


def _core(
    system: System,
    equations: Equations,
    treatment: Treatment,
    root: MatrixRoot[ca.DM] | None,
    kind: type[ca.MX],
) -> ca.Function:
    """Return the forward dynamics as one Function with its own Jacobian.

    Args:
        system: the mechanism.
        equations: of its motion.
        treatment: how rows are treated.
        root: of the metric of the equations, or None.
        kind: of its expressions.
    """
    name = "forward_dynamics_core"
    state = state_symbols(system, kind)
    inputs = _inputs(system, state)
    terms = terms_at(system, state, treatment.baumgarte)
    row_scale = row_scale_of(system, state.inputs, treatment, root)
    rows = reduced_rows(system, state, terms, row_scale)
    terms = terms._replace(A=rows.A, c=rows.c)
    motion = _solve_motion(terms, inputs["f"], equations, treatment.rule(rows.row_scale))
    motion = motion._replace(lam=rows.all_multipliers(motion.lam))
    options: dict[str, bool | int | ca.Function] = {
        "cse": True,
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
