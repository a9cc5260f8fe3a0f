"""Forward dynamics of a `System` in a chosen formulation, with derivatives by implicit rules."""

from typing import Unpack

import casadi as ca
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.dynamics.derivatives import OUTPUTS, implicit_jacobian, motion_and_jacobian
from mbcasadi.dynamics.formulations import DEFAULT, FormulationOptions, equations_of
from mbcasadi.dynamics.forward_core import dynamics_inputs, forward_core, is_compact, kind_of_core
from mbcasadi.dynamics.terms import TREATMENT, Treatment, state_symbols
from mbcasadi.formulation.metric import metric_root
from mbcasadi.system import System
from mbcasadi.system.parametric import takes_parameters


@checked
@takes_parameters
def forward_dynamics(
    system: System,
    formulation: str = DEFAULT,
    *,
    treatment: Treatment = TREATMENT,
    metric: ArrayLike | None = None,
    nonideal: bool = False,
    derivatives: bool = True,
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
    `dynamics.derivatives`. They hold along directions that keep the rank: where rows repeat others
    on the manifold only, along the manifold. `.expand()` gives plain scalars instead, whose
    derivatives go through the factorisation.

    Args:
        system: the mechanism.
        formulation: one of `FORMULATIONS`.
        treatment: drop rule of constraint rows, and their stabilisation; see `Treatment`.
        metric: (nv, nv) symmetric positive definite weight of velocities  [A05, section 7.2];
            see `formulation.in_metric`. It changes rounding and the drop rule, not the motion.
        nonideal: take the prescribed non-ideal force `f_nonideal` (nv, 1) of the constraints
            [L15, eq. 12-15]; `f_c` then holds what of it acts, and `lam` is that of the ideal
            constraint under f alone.
        derivatives: build the implicit derivatives, which takes longer than the motion. Without
            them CasADi differentiates the operations, through the factorisation.
        options: those of `FormulationOptions` that the formulation takes.

    Raises:
        UnknownNameError: no such formulation or option; the message lists the names.
        UnsupportedFeatureError: the formulation needs a positive definite M.
        ShapeError: a metric or stabilisation rates of a wrong shape.
    """
    equations = equations_of(system, formulation, options, metric)
    kind = kind_of_core(
        system, formulation, equations, treatment.pivot, weighted=metric is not None
    )
    compact = is_compact(system, formulation, treatment, weighted=metric is not None)
    kind = ca.MX if compact else kind
    root = None if metric is None else metric_root(metric)

    def make() -> ca.Function:
        return forward_core(
            system, equations, treatment, root, kind, derivatives=derivatives, compact=compact
        )

    key = f"forward_dynamics {formulation} {options!r} {treatment.key} {derivatives}"
    core = system.cached_function(key, make) if metric is None else make()
    # A Function of matrices around the core: CasADi then uses the core's own Jacobian,
    # where a Function of scalars would be differentiated through its operations.
    state = state_symbols(system, ca.MX)
    inputs = dynamics_inputs(system, state)
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
@takes_parameters
def forward_dynamics_derivatives(
    system: System,
    formulation: str = DEFAULT,
    *,
    treatment: Treatment = TREATMENT,
    **options: Unpack[FormulationOptions],
) -> ca.Function:
    """Return (q, v, f, [t], [mask]) → (a, dadq, dadv, dadf, lam, dlamdq, dlamdv, dlamdf).

    Derivatives with respect to q are tangent ones, (nv, nv): along `q ⊕ dq`, so that
    quaternions stay unit. They hold along directions that keep the rank, as in `forward_dynamics`.

    Args:
        system: the mechanism.
        formulation: one of `FORMULATIONS`.
        treatment: as in `forward_dynamics`.
        options: those of `FormulationOptions` that the formulation takes.

    Raises:
        UnknownNameError, UnsupportedFeatureError, ShapeError: as in `forward_dynamics`.
    """
    state = state_symbols(system, ca.MX)
    inputs = dynamics_inputs(system, state)
    if formulation == DEFAULT and not options:
        # All formulations give the same motion: this one by what its derivatives need anyway.
        a, lam, J = motion_and_jacobian(system, state, inputs["f"], treatment, tangent=True)
    else:
        fd = forward_dynamics(
            system, formulation, treatment=treatment, derivatives=False, **options
        )
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
@takes_parameters
def constraint_force(
    system: System,
    formulation: str = DEFAULT,
    *,
    treatment: Treatment = TREATMENT,
    metric: ArrayLike | None = None,
    nonideal: bool = False,
    **options: Unpack[FormulationOptions],
) -> ca.Function:
    """Return (q, v, f, ...) → (f_c, lam), the constraint force under the applied force f.

    Args:
        system: the mechanism.
        formulation: one of `FORMULATIONS`.
        treatment, metric, nonideal: as in `forward_dynamics`, whose inputs these are too.
        options: those of `FormulationOptions` that the formulation takes.

    Raises:
        UnknownNameError, UnsupportedFeatureError, ShapeError: as in `forward_dynamics`.
    """
    fd = forward_dynamics(
        system,
        formulation,
        treatment=treatment,
        metric=metric,
        nonideal=nonideal,
        **options,
    )
    inputs = fd.mx_in()
    outputs = fd.call(inputs)
    names = [fd.name_in(i) for i in range(fd.n_in())]
    return ca.Function("constraint_force", inputs, outputs[1:], names, list(OUTPUTS[1:]))


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
