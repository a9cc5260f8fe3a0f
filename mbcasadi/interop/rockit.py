"""A mechanism inside a rockit Ocp."""

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.interop.continuous_dynamics import continuous_dynamics, neighbour, require_methods
from mbcasadi.mpc.integrators.step import require_horizon
from mbcasadi.mpc.integrators.step_options import DEFAULT_DYNAMICS, DynamicsOptions
from mbcasadi.system import System
from mbcasadi.system.parametric import at_model_values


class RockitProblem(NamedTuple):
    """A rockit Ocp with the motion in it, and its symbols.

    Attributes:
        ocp: the `rockit.Ocp`.
        q, v: (nq, 1), (nv, 1) states.
        u: (nu, 1) control, constant over an interval.
        mask: (nc, 1) parameter of each interval; None without a mask.
    """

    ocp: Any
    q: ca.MX
    v: ca.MX
    u: ca.MX
    mask: ca.MX | None


@checked
@at_model_values
def to_rockit(
    system: System,
    horizon: int,
    period: float,
    *,
    ocp: Any = None,
    dynamics: DynamicsOptions = DEFAULT_DYNAMICS,
) -> RockitProblem:
    """Return a rockit Ocp over `horizon` intervals with states q, v and their derivatives.

    The transcription is that of rockit: `ocp.method(...)` comes from the user.

    Args:
        system: the mechanism.
        horizon: number of intervals.
        period: length of one, s.
        ocp: an Ocp or stage to fill, with its own times; a new one by default.
        dynamics: how the acceleration is computed.

    Raises:
        MissingExtraError: rockit is not installed, and no Ocp was given.
        ProblemError: an invalid horizon or period, or activation states.
    """
    N = require_horizon(horizon)
    if not 0 < period < float("inf"):
        raise ProblemError(f"period = {period}; expected a positive number of seconds")
    motion = continuous_dynamics(system, dynamics)
    if ocp is None:
        ocp = neighbour("rockit", "pip install rockit-meco").Ocp(T=N * period)
    require_methods("ocp", ocp, ("state", "control", "set_der"), "a rockit Ocp or stage")
    q, v = ocp.state(system.nq), ocp.state(system.nv)
    u = ocp.control(system.nu) if system.nu else ca.MX(0, 1)
    mask = None if system.mask is None else ocp.parameter(system.nc, grid="control")
    p = ca.vertcat(
        ca.MX(0, 1), *([ocp.t] if system.timed else []), *([] if mask is None else [mask])
    )
    xdot = motion(ca.vertcat(q, v), u, p)
    ocp.set_der(q, xdot[: system.nq])
    ocp.set_der(v, xdot[system.nq :])
    if mask is not None:
        ocp.set_value(mask, np.tile(np.asarray(system.mask)[:, None], N))
    return RockitProblem(ocp, q, v, u, mask)
