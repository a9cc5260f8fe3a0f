"""Inverse dynamics of a `System`: of the tree, and of the mechanism with its actuators."""

import casadi as ca
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.dynamics.terms import (
    Treatment,
    choose_kind,
    row_scale_of,
    state_symbols,
    terms,
    terms_at,
)
from mbcasadi.formulation.metric import metric_root
from mbcasadi.linalg import MatrixRoot, complement, complete_factor
from mbcasadi.shapes import weight
from mbcasadi.system import System, evaluate
from mbcasadi.system.parametric import takes_parameters
from mbcasadi.system.sizes import control_sizes


@checked
@takes_parameters
def inverse_dynamics(system: System) -> ca.Function:
    """Return (q, v, a, [t]) → (f): `f = M a + h - f_passive`, the force that the motion needs.

    Constraint forces are part of this f; `constrained_inverse_dynamics` separates them.
    """
    state = state_symbols(system, ca.SX)
    a = ca.SX.sym("a", system.nv)
    M, h, _, _ = terms(system, state)
    inputs = {"q": state.q, "v": state.v, "a": a} | state.last
    return ca.Function(
        "inverse_dynamics",
        list(inputs.values()),
        [M @ a + h],
        list(inputs),
        ["f"],
        {"cse": True},
    )


@checked
@takes_parameters
def constrained_inverse_dynamics(
    system: System, *, control_metric: ArrayLike | None = None, pivot: bool = True
) -> ca.Function:
    """Return (q, v, a, [t]) → (u, f_c, lam, residual): the least controls for a motion.

    `u = (P B)⁺ P (M a + h - f_passive - f_0)`  [A16, eq. 19 corrected: redundant actuation
    needs the pseudo-inverse]; then `f_c = M a + h - f_passive - f_0 - B u` within range(Aᵀ).
    `residual` (nv, 1) is what neither actuators nor constraints can give: zero where the
    motion is possible. `a` must obey `A a + c = 0`; ranges of u are not considered. P and u are
    those in the sizes of the mechanism, which no unit changes; lam is the multiplier of least
    Euclidean norm, which depends on the units of rows that repeat.

    Args:
        system: the mechanism.
        control_metric: (nu, nu), or (nu,) for a diagonal one, in which u is least; by default each
            control counts by the largest torque that it gives. `np.ones(nu)` for the Euclidean one.
        pivot: as in `forward_dynamics`.

    Raises:
        ShapeError, ProblemError: a metric of another shape, not symmetric or not definite.
    """
    size, per_control = ca.DM(system.scales.coordinates), _per_control(system, control_metric)
    D = ca.diag(size)
    kind = choose_kind(system, pivot)
    state = state_symbols(system, kind)
    a = kind.sym("a", system.nv)
    M, h, A, _ = terms_at(system, state)
    f_0 = system.actuator_bias(q=state.q, v=state.v)["f_0"]
    B = evaluate(system.actuation, {"q": state.q, "v": state.v})
    required_force = M @ a + h - f_0
    treatment = Treatment(pivot=pivot)
    row_scale = row_scale_of(system, state.inputs, treatment, MatrixRoot(ca.diag(1 / size), D))
    factor = complete_factor(A @ D, **treatment.rule(row_scale))
    V = factor.basis.V
    P, DB = complement(V), D @ B @ per_control
    actuators = complete_factor(P @ DB, row_scale=ca.norm_fro(DB), pivot=pivot)
    unit = actuators.pinv_times(P @ (D @ required_force))
    remainder = D @ required_force - DB @ unit
    sized_f_c = V @ (V.T @ remainder)
    inputs = {"q": state.q, "v": state.v, "a": a} | state.last
    outputs = {
        "u": per_control @ unit,
        "f_c": sized_f_c / size,
        "lam": factor.pinv_transposed_times(sized_f_c),
        "residual": (remainder - sized_f_c) / size,
    }
    return ca.Function(
        "constrained_inverse_dynamics",
        list(inputs.values()),
        list(outputs.values()),
        list(inputs),
        list(outputs),
        {"cse": True},
    )


def _per_control(system: System, control_metric: ArrayLike | None) -> ca.DM:
    """Return (nu, nu) `W^{-1/2}` of the metric of controls."""
    if control_metric is None:
        return ca.DM(ca.diag(ca.DM(1 / control_sizes(system))))
    metric = weight("control_metric", control_metric, system.nu, definite=True)
    return ca.DM(metric_root(metric).inverse)
