"""Tracking with unknown masses: the law of `dependent_tracking`, its parameters estimated.

The model in dependent coordinates is passive, `d/dt M̄ - 2 C̄` skew [A16, Theorem 1], and along
null(A) it is linear in θ: `P (M ds/dt + C s + g - f_passive) = P (Y θ + y_0)` for admissible s. So
the adaptive law of J.-J. Slotine and W. Li (Int. J. Robotics Research 6, 1987) holds for mechanisms
with loops and passive joints, as it does for arms: the constraint force does no work on `v - s`.
"""

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.law import Command, Law, LawInputs
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.mechanism_at_state import (
    LAW_RANK_TOL,
    Mechanism,
    require_law_arguments,
)
from mbcasadi.control.laws.dependent_regulation import motion_interface, target_of
from mbcasadi.control.laws.dependent_tracking import desired_velocity
from mbcasadi.control.laws.estimates import Adaptation, Estimates, require_apart
from mbcasadi.control.laws.quasi_velocity_motion import gain_matrix, require_still_rows, turning_fun
from mbcasadi.dynamics.regressor import linear_parameters, reference_regressor
from mbcasadi.qp.input_guard import clamp, is_saturated
from mbcasadi.system import System
from mbcasadi.system.coordinates import rates
from mbcasadi.system.parametric import carries_parameters
from mbcasadi.system.ranges import require_ranges

STATE = "theta"
"""Of the estimates in z."""


@checked
@carries_parameters
def adaptive_tracking(
    system: System,
    parameters: Sequence[str],
    *,
    kp: ArrayLike = 10.0,
    kd: ArrayLike,
    adaptation: Adaptation | None = None,
    metric: ArrayLike | None = None,
    control_metric: ArrayLike | None = None,
    rank_tol: float = LAW_RANK_TOL,
    ctrl_limits: ArrayLike | None = None,
    period: float = 1e-3,
    name: str = "adaptive_tracking",
) -> Law:
    """Return `u = Γ P (Y θ̂ + y_0 - f_0 - K_d ε)`, `dθ̂/dt = -γ D² Yᵀ ε`, `ε = v - s`.

    s is the admissible velocity of `dependent_tracking`,
    `Y θ + y_0 = M ds/dt + C s + g - f_passive` (`reference_regressor`), `Γ = (P B)⁺` [A16, eq. 19
    corrected] and D the sizes of the parameters.
    Where the actuators reach all of null(A),

        V = ½ εᵀ M ε + ½ |D⁻¹ (θ̂ - θ)|² / γ,   dV/dt = -εᵀ K_d ε

    for any true θ: `d/dt M̄ - 2 C̄` is skew [A16, Theorem 1]. So ε decays to zero and then the error
    does, as with `dependent_tracking`, whatever θ̂ tends to; estimates tend to θ in directions that
    the motion excites. Each is kept inside its bounds, and no V of a true θ inside them increases
    by that. Estimates rest while u is beyond its limits: the law does not act as it assumes there.
    They are the state `theta` of z.

    The law is sampled: V falls by steps where `period γ |D Yᵀ|²` is below the inertia; reduce the
    gain where u chatters. Status and residual as in `dependent_tracking`. With measured velocities
    of noise σ² the estimates drift without excitation, up to their bounds: give a `dead_zone` or a
    `leakage`; the error then stays bounded and does not vanish.

    References: `q` (nq,), `v` (nv,), `a` (nv,), on the constraints that are on.

    Args:
        system: read from a model; its rows `A(q) v = 0`.
        parameters: patterns of those to estimate, as in `linear_parameters`: "body:tool:*". The
            others have the model's values, or those of the input p.
        kp: K_p, 1/s, as in `dependent_tracking`.
        kd: K_d, N s/m or N m s/rad, as in `dependent_tracking`.
        adaptation: gain, bounds, leakage and dead zone.
        metric, control_metric: of P and of u, as in `computed_torque`.
        rank_tol: relative length below which rows of A and P B are dropped.
        ctrl_limits, period, name: as in `make_law`.

    Raises:
        UnknownNameError: no such parameter; the message lists those there are.
        ProblemError: gains that are not positive, bounds without the model's value, parameters that
            are inputs p as well, or what `make_law` refuses.
        UnsupportedFeatureError: rows that are not `A(q) v = 0`.
    """
    require_law_arguments(rank_tol)
    require_still_rows(system)
    options = Adaptation() if adaptation is None else adaptation
    theta = linear_parameters(system, parameters)
    require_apart(system, theta)
    estimates = Estimates(system, theta, options, period)
    limits = require_ranges(system, ctrl_limits, None).ctrl
    speeds = rates(system)
    K_p, K_d = (
        gain_matrix("adaptive_tracking", label, gain, speeds.components)
        for label, gain in (("kp", kp), ("kd", kd))
    )
    turning, Y_of = turning_fun(system), reference_regressor(system, parameters)

    def equations(at: LawInputs) -> Command:
        m = Mechanism.measured(system, at, rank_tol, metric=metric, control_metric=control_metric)
        s, s_dot, error = desired_velocity(m, K_p, turning)
        epsilon = m.joint_rate(m.P @ m.weighted_rate(at.v - s))
        Y, rest = Y_of(at.q, at.v, s, s_dot)
        estimate = estimates.bounded(at.z[STATE])
        force = m.weighted_force(Y @ estimate + rest - K_d @ epsilon)
        command = m.command(force, m.acceleration(force), error, target_of(m))
        u = command.u
        free = ca.logic_not(is_saturated(u, clamp(u, limits[:, 0], limits[:, 1])))
        energy = ca.bilin(system.mass_matrix(at.q), epsilon, epsilon) / 2
        following = estimates.next(estimate, Y.T @ epsilon, free, energy)
        return replace(command, z_next={STATE: following})

    notes = {
        "law": "adaptive tracking of dependent coordinates by passivity [A16, Theorem 1]",
        "estimates": ", ".join(theta.names),
    }
    motion = motion_interface(system, notes)
    return make_law(
        system,
        name,
        equations,
        replace(motion, states={STATE: theta.values}),
        ctrl_limits=ctrl_limits,
        period=period,
    )
