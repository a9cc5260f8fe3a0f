"""A mechanism as a do-mpc model, for its controllers, estimators and simulators."""

from typing import Any

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.interop.continuous_dynamics import continuous_dynamics, neighbour, require_methods
from mbcasadi.mpc.integrators.step import discrete_dynamics
from mbcasadi.mpc.integrators.step_options import (
    DEFAULT_DYNAMICS,
    DEFAULT_STEP,
    DynamicsOptions,
    StepOptions,
)
from mbcasadi.system import System
from mbcasadi.system.parametric import at_model_values


@checked
@at_model_values
def to_do_mpc_model(
    system: System,
    *,
    period: float | None = None,
    model: Any = None,
    setup: bool = True,
    dynamics: DynamicsOptions | None = None,
    step: StepOptions | None = None,
) -> Any:
    """Return a do-mpc Model with states `q`, `v`, input `u` and, in time, `t` and `mask`.

    Args:
        system: the mechanism.
        period: None for a continuous model; a step of this length, s, for a discrete one.
        model: `do_mpc.model.Model(kind, "MX")` of that kind to fill; a new one by default.
        setup: call `model.setup()`; without it more variables and expressions can be added.
        dynamics: how the acceleration of a continuous model is computed.
        step: options of the step of a discrete one.

    Raises:
        MissingExtraError: do-mpc is not installed, and no model was given.
        ProblemError: activation states; options of the other kind of model; constraints that move
            in a continuous model, whose parameters do-mpc holds over an interval.
    """
    if system.timed and period is None:
        raise ProblemError(
            f"'{system.name}' has constraints that move, and do-mpc holds the time over an "
            "interval; give a period for a discrete model"
        )
    if (dynamics if period is not None else step) is not None:
        raise ProblemError(
            "dynamics= belongs to a continuous model, step= to a discrete one, with a period; "
            "give the one that fits"
        )
    if period is None:
        kind, motion = "continuous", continuous_dynamics(system, dynamics or DEFAULT_DYNAMICS)
    else:
        kind, motion = "discrete", discrete_dynamics(system, period, step or DEFAULT_STEP)
    if model is None:
        model = neighbour("do_mpc", "pip install do-mpc").model.Model(kind, "MX")
    require_methods("model", model, ("set_variable", "set_rhs", "setup"), "a do_mpc.model.Model")
    q = model.set_variable("_x", "q", (system.nq, 1))
    v = model.set_variable("_x", "v", (system.nv, 1))
    u = model.set_variable("_u", "u", (system.nu, 1)) if system.nu else ca.MX(0, 1)
    p = [model.set_variable("_tvp", "t", (1, 1))] if system.timed else []
    if system.mask is not None:
        p.append(model.set_variable("_tvp", "mask", (system.nc, 1)))
    right = motion(ca.vertcat(q, v), u, ca.vertcat(ca.MX(0, 1), *p))
    model.set_rhs("q", right[: system.nq])
    model.set_rhs("v", right[system.nq :])
    if setup:
        model.setup()
    return model
