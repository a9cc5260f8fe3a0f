"""The motion of a mechanism inside CasADi's Opti."""

from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.mpc.integrators.step import discrete_dynamics, require_horizon
from mbcasadi.mpc.integrators.step_options import DEFAULT_STEP, StepOptions
from mbcasadi.shapes import column
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.system.parametric import at_model_values


@summarised
class OptiProblem(NamedTuple):
    """An Opti with the motion in it, and its symbols; the user adds the cost.

    Attributes:
        opti: the `ca.Opti`.
        x: (nx, N + 1) states (q, v).
        u: (nu, N) controls.
        x0: (nx, 1) parameter, initial state.
        p: (np, N) parameter, ([t], [mask]) of each interval.
    """

    opti: ca.Opti
    x: ca.MX
    u: ca.MX
    x0: ca.MX
    p: ca.MX


@checked
@at_model_values
def to_opti(
    system: System,
    horizon: int,
    period: float,
    q0: ArrayLike,
    v0: ArrayLike | None = None,
    *,
    step: StepOptions = DEFAULT_STEP,
) -> OptiProblem:
    """Return an Opti with `x_{k+1} = F(x_k, u_k)`, `x_0` and the ranges of controls as its rows.

    Loops are not rows: F ends on the manifold, so such rows would be redundant.

    Args:
        system: the mechanism.
        horizon: number of intervals N.
        period: length of one, s.
        q0, v0: (nq,), (nv,) value of `x0` and first guess of all states; at rest by default.
        step: options of the integrator (`order`, `substeps`, `newton`, ...).

    Raises:
        ProblemError: an invalid horizon or period, or activation states.
        ShapeError: q0 or v0 of a wrong shape, or NaN.
    """
    N = require_horizon(horizon)
    single = discrete_dynamics(system, period, step)
    q = column("q0", q0, system.nq)
    v = np.zeros(system.nv) if v0 is None else column("v0", v0, system.nv)
    opti = ca.Opti()
    x, u = opti.variable(system.nq + system.nv, N + 1), opti.variable(system.nu, N)
    x0 = opti.parameter(system.nq + system.nv)
    p = opti.parameter(single.size1_in("p"), N)
    opti.subject_to(x[:, 0] == x0)
    for k in range(N):
        opti.subject_to(x[:, k + 1] == single(x[:, k], u[:, k], p[:, k]))
    for i, (low, high) in enumerate(system.limits.ctrl):
        if np.isfinite([low, high]).any():
            opti.subject_to(opti.bounded(low, u[i, :], high))
    opti.set_value(x0, np.concatenate([q, v]))
    opti.set_initial(x, np.tile(np.concatenate([q, v])[:, None], N + 1))
    if p.numel():
        times = [period * np.arange(N)[None]] if system.timed else []
        masks = [] if system.mask is None else [np.tile(system.mask[:, None], N)]
        opti.set_value(p, np.vstack([*times, *masks]))
    return OptiProblem(opti, x, u, x0, p)
