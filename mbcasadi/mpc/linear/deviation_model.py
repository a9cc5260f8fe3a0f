"""The linear model of a mechanism near an equilibrium, in deviations along its free directions.

    x = from_dq δq + from_dv δv,   x_next = A x + B δu          of one period

Constraints restrict x to the free directions of the manifold: there are no rows left for them.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control.regulators.controllability import require_stabilisable
from mbcasadi.control.regulators.discrete import discretize
from mbcasadi.control.regulators.feedback import require_continuous
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.lqr import manifold_weights, require_equilibrium
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.linear.checks import check_outputs
from mbcasadi.mpc.linear.prediction_model import Array, LinearModel, Output
from mbcasadi.shapes import bounds


class DeviationModel(NamedTuple):
    """A mechanism near its equilibrium, in deviations x of its free directions.

    Attributes:
        model: of x and δu.
        Q, R: weights of x and δu.
        u_bounds: (nu, 2) of δu.
        outputs: rows of x and δu.
        u_limits: (nu, 2) of u.
    """

    model: LinearModel
    Q: Array
    R: Array
    u_bounds: Array
    outputs: tuple[Output, ...]
    u_limits: Array


def deviation_model(
    linear: Linearization,
    weights: tuple[ArrayLike, ArrayLike],
    *,
    period: float,
    outputs: Sequence[Output],
    ctrl_limits: ArrayLike | None,
    terminal_weight: ArrayLike | None,
) -> DeviationModel:
    """Return the linear model of a mechanism on its constraint manifold.

    Args:
        linear: from `linearize` at an equilibrium.
        weights: Q (2 nv, 2 nv) or (2 nv,) of the deviations (δq, δv), and R of δu; with
            activation states (2 nv + na), of (δq, δv, δact).
        period: sample time, s.
        outputs: rows of (δq, δv) and δu.
        ctrl_limits: (nu, 2) limits of u; the model's by default.
        terminal_weight: P; without one every growing mode must be controllable.

    Raises:
        ProblemError: no equilibrium; a mask or constraints that move; limits that do
            not hold the equilibrium; an uncontrollable growing mode.
        ShapeError: a wrong shape, or NaN.
    """
    require_continuous(linear)
    require_equilibrium(linear)
    system = linear.system
    if system.mask is not None or system.timed:
        raise ProblemError(
            f"'{system.name}' has a mask or constraints that move; a linear MPC has "
            "one fixed model: linearise a system without them"
        )
    chosen = system.limits.ctrl if ctrl_limits is None else ctrl_limits
    u_limits = bounds("ctrl_limits", chosen, system.nu)
    _require_holding_control(linear, u_limits)
    if terminal_weight is None:
        require_stabilisable(linear)
    sampled = discretize(linear, period)
    on_manifold = manifold_weights(linear, *weights)
    T = np.vstack([linear.to_dq, linear.to_dv])
    rows = check_outputs(outputs, 2 * system.nv, system.nu)
    return DeviationModel(
        model=LinearModel.of(sampled.dfdx, sampled.dfdu, period),
        Q=on_manifold.Q,
        R=on_manifold.R,
        u_bounds=u_limits - linear.u[:, None],
        outputs=tuple(replace(output, C=output.C @ T) for output in rows),
        u_limits=u_limits,
    )


def _require_holding_control(linear: Linearization, u_limits: Array) -> None:
    low, high = u_limits.T
    beyond = np.flatnonzero((linear.u < low) | (linear.u > high))
    if beyond.size:
        i = beyond[0]
        raise ProblemError(
            f"'{linear.system.name}' is held by {linear.system.actuator_names[i]} = "
            f"{linear.u[i]:.4g}, outside ctrl_limits {low[i]:g} to {high[i]:g}; expected limits "
            "that hold the equilibrium: see equilibrium() for another one"
        )
