"""Tracking of all coordinates of a constrained mechanism, the dependent ones included  [A16].

The model in the mechanism's own coordinates, `M̄ a + C̄ v = P (f + f_passive - g)`, has
`d/dt M̄ - 2 C̄` skew [A16, Theorem 1], as that of a robot without constraints. So the passivity-based
law of J.-J. Slotine and W. Li (Int. J. Robotics Research 6, 1987) holds for it: no independent
coordinates are chosen, and its size and its C stay the same when loops open and close.
"""

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
from mbcasadi.control.laws.quasi_velocity_motion import gain_matrix, require_still_rows, turning_fun
from mbcasadi.system import System
from mbcasadi.system.coordinates import rates
from mbcasadi.system.parameter_inputs import with_constants_of
from mbcasadi.system.parametric import carries_parameters


@checked
@carries_parameters
def dependent_tracking(
    system: System,
    *,
    kp: ArrayLike = 10.0,
    kd: ArrayLike,
    metric: ArrayLike | None = None,
    control_metric: ArrayLike | None = None,
    rank_tol: float = LAW_RANK_TOL,
    ctrl_limits: ArrayLike | None = None,
    period: float = 1e-3,
    name: str = "dependent_tracking",
) -> Law:
    """Return `u = Γ (M̄ ds/dt + C̄ s + P (g - f_passive - f_0) - P K_d (v - s))`  [A16, eq. 8, 19].

    `s = P (v_d + K_p e)`, `e = q_d ⊖ q`, is the admissible velocity that leads to the reference,
    and `Γ = (P B)⁺`. For admissible s, `M̄ ds/dt + C̄ s = P (M ds/dt + C s)`: the virtual mass has no
    part in it, and neither has a choice of coordinates. With `Ṗ = Λ P + P Λᵀ`, `Λ = -A⁺ Ȧ`,

        ds/dt = Ṗ (v_d + K_p e) + P (a_d + K_p de/dt).

    The kinetic energy of `ε = v - s` falls for any motion, `d/dt (½ εᵀ M ε) = -εᵀ K_d ε`, because
    `d/dt M̄ - 2 C̄` is skew: ε decays, and then `v = P (v_d + K_p e)`. Where the reference obeys the
    constraints, e decays for gains K_p that exceed the rate at which the constraint bends along
    the reference, about its speed over the radius; at rest for any K_p > 0. A wrong mass leaves an
    offset that falls with K_d and K_p.

    Rows are switched by the mask. M need only be positive definite on null(A). Status 2: actuators
    cannot give the desired force along the constraint (`residual`, with u the nearest). At its
    limits u is clipped entry by entry, and the energy need not fall.

    References: `q` (nq,), `v` (nv,), `a` (nv,), on the constraints that are on.

    Args:
        system: the mechanism; its rows `A(q) v = 0`.
        kp: K_p, 1/s, a positive number, one for each rate, or (nv, nv) symmetric positive
            definite.
        kd: K_d, N s/m or N m s/rad, as K_p.
        metric, control_metric: of P and of u, as in `computed_torque`.
        rank_tol: relative length below which rows of A and P B are dropped.
        ctrl_limits, period, name: as in `make_law`.

    Raises:
        ProblemError: gains that are not positive, or what `make_law` refuses.
        UnsupportedFeatureError: rows that are not `A(q) v = 0`.
    """
    require_law_arguments(rank_tol)
    require_still_rows(system)
    speeds = rates(system)
    K_p, K_d = (
        gain_matrix("dependent_tracking", label, gain, speeds.components)
        for label, gain in (("kp", kp), ("kd", kd))
    )
    turning = turning_fun(system)

    def equations(at: LawInputs) -> Command:
        m = Mechanism.measured(system, at, rank_tol, metric=metric, control_metric=control_metric)
        s, s_dot, error = desired_velocity(m, K_p, turning)
        C = system.coriolis_matrix(at.q, at.v)
        admissible = m.joint_rate(m.P @ m.weighted_rate(at.v - s))
        pull = C @ (s - at.v) - K_d @ admissible
        force = m.M @ m.weighted_rate(s_dot) + m.h + m.weighted_force(pull)
        return m.command(force, m.acceleration(force), error, target_of(m))

    note = "tracking of dependent coordinates by passivity [A16, eq. 8, Theorem 1]"
    return make_law(
        system,
        name,
        equations,
        motion_interface(system, {"law": note}),
        ctrl_limits=ctrl_limits,
        period=period,
    )


def desired_velocity(m: Mechanism, K_p: ca.DM, turning: ca.Function) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return s, its rate along the motion, and the error e, in the model's coordinates."""
    system, at = m.system, m.at
    e, e_rate = _error(system, at)
    w = at.ref["v"] + K_p @ e
    w_rate = at.ref["a"] + K_p @ e_rate
    s = m.joint_rate(m.P @ m.weighted_rate(w))
    y = m.rows.pinv_transposed_times(m.weighted_rate(w))
    A_s, A_y = turning(at.q, at.v, at.rows, s, y)
    bend = -m.rows.pinv_times(A_s) - m.P @ m.weighted_force(A_y)  # Λ P w + P Λᵀ w
    return s, m.joint_rate(bend + m.P @ m.weighted_rate(w_rate)), e


def _error(system: System, at: LawInputs) -> tuple[ca.SX, ca.SX]:
    """Return `e = q_d ⊖ q` and its rate along both motions."""
    q, q_d = ca.SX.sym("q", system.nq), ca.SX.sym("q_d", system.nq)
    v, v_d = ca.SX.sym("v", system.nv), ca.SX.sym("v_d", system.nv)
    e = system.difference(q, q_d)
    rate = ca.jtimes(e, q, system.velocity_map(q) @ v)
    rate += ca.jtimes(e, q_d, system.velocity_map(q_d) @ v_d)
    error = ca.Function("error", [q, v, q_d, v_d], [e, rate])
    desired = with_constants_of(at.ref["q"], at.q)
    value, slope = error(at.q, at.v, desired, at.ref["v"])
    return value, slope
