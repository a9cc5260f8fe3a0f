"""A mechanism as an acados model."""

import re
from typing import Any

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.interop.continuous_dynamics import continuous_dynamics, neighbour
from mbcasadi.mpc.integrators.step import discrete_dynamics
from mbcasadi.mpc.integrators.step_options import (
    DEFAULT_DYNAMICS,
    DEFAULT_STEP,
    DynamicsOptions,
    StepOptions,
)
from mbcasadi.shapes import described
from mbcasadi.system import System
from mbcasadi.system.parametric import at_model_values


@checked
@at_model_values
def to_acados_model(
    system: System,
    *,
    period: float | None = None,
    model: Any = None,
    dynamics: DynamicsOptions = DEFAULT_DYNAMICS,
    step: StepOptions | None = None,
) -> Any:
    """Return an AcadosModel: name, x, u, p, t, xdot, `f_expl_expr`, `f_impl_expr = xdot - f`.

    p is the mask, where there is one.

    Args:
        system: the mechanism.
        period: fill `disc_dyn_expr` too, with one of our steps of this length, s; acados takes
            it as `integrator_type = "DISCRETE"`.
        model: an AcadosModel to fill; a new one by default.
        dynamics: how the acceleration of the continuous model is computed.
        step: options of the step, with a period.

    Raises:
        MissingExtraError: acados_template is not installed, and no model was given.
        ProblemError: activation states; a step without a period; constraints that depend on time,
            with a period: acados has no time in discrete dynamics.
    """
    if system.timed and period is not None:
        raise ProblemError(
            f"'{system.name}' has constraints that move, and acados gives no time to discrete "
            "dynamics; leave period out"
        )
    if period is None and step is not None:
        raise ProblemError("step without a period; give the period, or dynamics= in place of step=")
    motion = continuous_dynamics(system, dynamics)
    if model is None:
        hint = "it comes with acados: https://docs.acados.org/installation"
        model = neighbour("acados_template", hint).AcadosModel()
    frozen = getattr(getattr(model, "__dataclass_params__", None), "frozen", False)
    if not hasattr(model, "__dict__") or isinstance(model, type) or frozen:
        raise ProblemError(f"model is {described(model)}; expected an AcadosModel to fill")
    x, u = ca.MX.sym("x", system.nq + system.nv), ca.MX.sym("u", system.nu)
    xdot, t = ca.MX.sym("xdot", system.nq + system.nv), ca.MX.sym("t")
    mask = ca.MX.sym("p", 0 if system.mask is None else system.nc)
    f = motion(x, u, ca.vertcat(t, mask) if system.timed else mask)
    model.name = re.sub(r"\W|^(?=\d)", "_", system.name, flags=re.ASCII)
    model.x, model.u, model.xdot = x, u, xdot
    model.p = mask if mask.numel() else []
    if system.timed:
        model.t = t
    model.f_expl_expr, model.f_impl_expr = f, xdot - f
    if period is not None:
        model.disc_dyn_expr = discrete_dynamics(system, period, step or DEFAULT_STEP)(x, u, mask)
    return model
