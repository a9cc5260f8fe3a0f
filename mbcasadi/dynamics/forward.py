"""Forward dynamics of a `System` in a chosen formulation, with derivatives by implicit rules."""

from collections.abc import Callable
from typing import Any

import casadi as ca
from numpy.typing import ArrayLike

from mbcasadi.description import Baumgarte
from mbcasadi.dynamics.choice import equations_of, operations_of_root
from mbcasadi.dynamics.derivatives import (
    OUTPUTS,
    implicit_jacobian,
    jacobian_fun,
    motion_and_jacobian,
)
from mbcasadi.dynamics.terms import State, Terms, Treatment, choose_kind, state_symbols, terms_at
from mbcasadi.formulation import ConstrainedMotion
from mbcasadi.linalg import RANK_TOL, Sym, tree_cholesky, tree_solve
from mbcasadi.system import System

DEFAULT = "projection"
"""The formulation where none is named."""


def forward_dynamics(
    system: System,
    formulation: str = DEFAULT,
    *,
    row_scale: float = 1.0,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
    metric: ArrayLike | None = None,
    baumgarte: Baumgarte | None = None,
    nonideal: bool = False,
    **options: Any,
) -> ca.Function:
    """Return (q, v, f, [f_nonideal], [t], [mask]) → (a, f_c, lam), the motion under the force f.

    `M a + h = f + f_passive + Aᵀ lam (+ f_n)`, `A a + c = 0`: valid with redundant rows, at
    singular poses and, in the least-squares sense `A⁺ A a = -A⁺ c`, on drifted states. `lam`
    are the multipliers of minimum norm; `f_c = Aᵀ lam (+ f_n)` is unique.

    Its derivatives (Jacobian, forward, reverse, `map`) follow implicit rules: see
    `dynamics.derivatives`. They hold wherever the rank is locally constant. `.expand()` gives
    plain scalars instead, whose derivatives go through the factorisation.

    Args:
        system: the mechanism.
        formulation: one of `FORMULATIONS`.
        row_scale, rank_tol: drop rule of `linalg.row_basis`.
        pivot: safest where constraints are redundant; without it, independent constraints on
            different branches take a half to a fifth of the time.
        metric: (nv, nv) symmetric positive definite weight of velocities  [A05, section 7.2];
            see `formulation.in_metric`. It changes rounding and the drop rule, not the motion.
        baumgarte: stabilisation of drift, `c + 2 α psi + β² phi`.
        nonideal: take the prescribed non-ideal force `f_nonideal` (nv, 1) of the constraints
            [L15, eq. 12-15]; `f_c` then holds what of it acts, and `lam` is that of the ideal
            constraint under f alone.
        options: of the formulation, as its docstring has them (`inertia`, `root`, ...).

    Raises:
        UnknownNameError: no such formulation or option; the message lists the names.
        UnsupportedFeatureError: the formulation needs a positive definite M.
        ShapeError: a metric or stabilisation rates of a wrong shape.
    """
    equations = equations_of(system, formulation, options, metric)
    treatment = Treatment(row_scale, rank_tol, pivot, baumgarte)
    core = _core(system, equations, treatment)
    # A Function of matrices around the core: CasADi then asks the core for its own Jacobian,
    # where a Function of scalars would be differentiated through its operations.
    state = state_symbols(system, ca.MX)
    inputs = _inputs(system, state)
    out = core(**inputs)
    if nonideal:
        f_nonideal = ca.MX.sym("f_nonideal", system.nv)
        out |= _with_nonideal(core, inputs, f_nonideal)
        first = {name: inputs[name] for name in ("q", "v", "f")}
        inputs = first | {"f_nonideal": f_nonideal} | state.last
    return ca.Function(
        "forward_dynamics",
        list(inputs.values()),
        [out[key] for key in OUTPUTS],
        list(inputs),
        list(OUTPUTS),
    )


def forward_dynamics_derivatives(
    system: System,
    formulation: str = DEFAULT,
    *,
    row_scale: float = 1.0,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
    baumgarte: Baumgarte | None = None,
    **options: Any,
) -> ca.Function:
    """Return (q, v, f, [t], [mask]) → (a, dadq, dadv, dadf, lam, dlamdq, dlamdv, dlamdf).

    Derivatives with respect to q are tangent ones, (nv, nv): along `q ⊕ dq`, so that
    quaternions stay unit. They hold wherever the rank is locally constant. Arguments as in
    `forward_dynamics`.
    """
    treatment = Treatment(row_scale, rank_tol, pivot, baumgarte)
    fd = forward_dynamics(system, formulation, **treatment.rule, baumgarte=baumgarte, **options)
    state = state_symbols(system, ca.MX)
    inputs = _inputs(system, state)
    motion: dict[str, Any] = {}
    if formulation == DEFAULT and not options:
        # All formulations give the same motion: this one by what its slopes need anyway.
        motion["a"], motion["lam"], J = motion_and_jacobian(system, state, inputs["f"], treatment)
    else:
        motion = dict(fd(**inputs))
        J = implicit_jacobian(system, state, motion["a"], motion["lam"], treatment)
    N = system.velocity_map(state.q)
    outputs = {}
    for key in ("a", "lam"):
        outputs[key] = motion[key]
        outputs[f"d{key}dq"] = J[key, "q"] @ N
        outputs[f"d{key}dv"] = J[key, "v"]
        outputs[f"d{key}df"] = J[key, "f"]
    return ca.Function(
        "forward_dynamics_derivatives",
        list(inputs.values()),
        list(outputs.values()),
        list(inputs),
        list(outputs),
    )


def constraint_force(system: System, formulation: str = DEFAULT, **options: Any) -> ca.Function:
    """Return (q, v, f, ...) → (f_c, lam), the constraint force under the applied force f.

    Arguments and inputs as in `forward_dynamics`.
    """
    fd = forward_dynamics(system, formulation, **options)
    inputs = fd.mx_in()
    outputs = fd.call(inputs)
    names = [fd.name_in(i) for i in range(fd.n_in())]
    return ca.Function("constraint_force", inputs, outputs[1:], names, list(OUTPUTS[1:]))


def solve_motion(
    now: Terms[Sym],
    f: Sym,
    equations: Callable[..., ConstrainedMotion[Any]],
    treatment: Treatment,
) -> ConstrainedMotion[Sym]:
    """Return the motion; without constraints every formulation is `a = M⁻¹ (f - h)`."""
    if now.A.shape[0] == 0:
        a = tree_solve(tree_cholesky(now.M), f - now.h)
        return ConstrainedMotion(a, 0 * f, type(f)(0, 1))
    return equations(now.M, now.h, f, now.A, now.c, **treatment.rule)


def _inputs(system: System, state: State[Any]) -> dict[str, Any]:
    """Return q, v, a symbol of f, and the optional inputs."""
    return {"q": state.q, "v": state.v, "f": type(state.q).sym("f", system.nv)} | state.last


def _with_nonideal(
    core: ca.Function, inputs: dict[str, ca.MX], f_nonideal: ca.MX
) -> dict[str, ca.MX]:
    """Return a and f_c with a prescribed non-ideal force  [L15, eq. 12-15].

    The force moves the mechanism as an applied force would: `a` is that under `f + f_nonideal`.
    What acts on top of the ideal constraint force, `f_n = f_c - Aᵀ lam`, is the part of it
    that an ideal constraint does not take up.
    """
    moved = core(**(inputs | {"f": inputs["f"] + f_nonideal}))
    return {"a": moved["a"], "f_c": moved["f_c"] + f_nonideal}


def _core(
    system: System, equations: Callable[..., ConstrainedMotion[Any]], treatment: Treatment
) -> ca.Function:
    """Return the forward dynamics as one Function that knows its own Jacobian."""
    name = "forward_dynamics_core"
    more = operations_of_root(equations, system.nv)
    state = state_symbols(system, choose_kind(system, treatment.pivot, more))
    inputs = _inputs(system, state)
    now = terms_at(system, state, treatment.baumgarte)
    motion = solve_motion(now, inputs["f"], equations, treatment)
    options: dict[str, Any] = {
        "cse": True,
        # the same for every formulation
        "custom_jacobian": system.kept(
            f"jac_{name} {treatment.key}", lambda: jacobian_fun(system, name, treatment)
        ),
        "jac_penalty": 0,  # directional derivatives by way of this Jacobian
        "enable_forward": False,
        "enable_reverse": False,
    }
    return ca.Function(
        name, list(inputs.values()), list(motion), list(inputs), list(OUTPUTS), options
    )
