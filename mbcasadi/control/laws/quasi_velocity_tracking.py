"""Tracking in quasi-velocities: the error decays at the rate of its gain  [A10, section 4.2].

Alone, or beside a constraint force: the quasi-force along the constraint changes the motion, the
one across it changes the constraint force; they are decoupled. In joint space
`f = M a + h - Aᵀ lam_d`, with `a` the acceleration of the motion law.
"""

from collections.abc import Callable

import casadi as ca
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.law import Command, Law, LawInputs
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.mechanism_at_state import Mechanism
from mbcasadi.control.law_interface.options import (
    LAW_OPTIONS,
    LAW_RANK_TOL,
    LawOptions,
    require_rank_tol,
)
from mbcasadi.control.law_interface.weights import control_weights_of
from mbcasadi.control.laws.coordinate_check import coordinates_of, require_coordinates
from mbcasadi.control.laws.force_loop import ForceGains, force_loop
from mbcasadi.control.laws.quasi_velocity_motion import (
    LEAST,
    QuasiMotion,
    gain_matrix,
    require_plain,
    turning_fun,
)
from mbcasadi.control.laws.task_coordinates import Coordinates
from mbcasadi.shapes import require_choice
from mbcasadi.system import System
from mbcasadi.system.coordinates import rates
from mbcasadi.system.parametric import carries_parameters
from mbcasadi.system.ranges import require_ranges


@checked
@carries_parameters
def quasi_velocity_tracking(
    system: System,
    coordinates: Coordinates | None = None,
    *,
    kp: ArrayLike = 10.0,
    kd: ArrayLike = 20.0,
    least: str = LEAST[0],
    allow_free: bool = False,
    options: LawOptions = LAW_OPTIONS,
) -> Law:
    """Return `u_r = ds_r/dt + Γ_r s_r - K_d ε`, `ε = v_r - s_r`  [A10, eq. 38-39 corrected].

    `s_r = B_θ⁺ (dθ_d/dt - K_p θ̃)` (the paper prints K_v for K_p). It guarantees

        ‖ε(t)‖ <= exp(-λ_min(K_d) t) ‖ε(0)‖      [A10, eq. 41 corrected; equality for a number]
        dθ̃/dt = -K_p θ̃ + B_θ ε                  [A10, eq. 42]

    for any motion, because Γ_r is skew here (`quasi_velocity_motion`). `‖ε‖² / 2` is the kinetic
    energy of the velocity error `v - s`. The result depends neither on the gauge V2 nor on the
    units of q. The desired rate is mapped at the present pose, so (42) has no Lipschitz term and
    any K_p > 0 converges; `gain_condition` compares with the paper's condition (46).

    Motions that θ does not determine, as at a singular pose, are damped at the rate K_d. It needs
    actuators for all of null(A). Of the controls with the desired motion and within limits, u is
    the one of least quasi-force `fᵀ M⁻¹ f`, f all forces but Coriolis ones, gravity included
    [A10, section 4.2]: with an actuator at every joint and no limit that is `u_o = 0`, no force
    control. With `least="force"` it is the one of least force of the actuators, in the sizes of
    the coordinates. Actuators that repeat each other share their force by the least u, in
    the sizes of the controls: neither depends on the units of the model.

    Status 2 means that the actuators do not reach the motion; u is then the nearest in the same
    norm, and `residual` the missing force. Where no control within limits has the motion, u is
    clipped entry by entry, with status 1, and the decay is not guaranteed: use `within_limits`
    where that matters.

    Args:
        system: the mechanism; M positive definite, rows `A(q) v = 0`.
        coordinates: θ; `chosen_coordinates(system)` by default.
        kp: K_p, 1/s, a positive number, one for each entry of θ, or (k, k) symmetric positive
            definite.
        kd: K_d, 1/s, a positive number, one for each quasi-velocity of the Cholesky root
            (`M = Lᵀ L`, `v̄ = L v`), or (nv, nv) symmetric positive definite in these; the number
            is independent of all choices.
        least: "quasi_force" or "force", the norm in which u is least.
        allow_free: take θ that leaves motions open; these are damped at the rate K_d.
        options: see `LawOptions`.

    Raises:
        ProblemError: the options do not fit.
        UnsupportedFeatureError: M is only semidefinite, or rows are not `A(q) v = 0`.
    """
    rank_tol = options.tolerance
    require_choice("least", least, LEAST)
    require_plain(system)
    theta = coordinates_of(system, coordinates, allow_free=allow_free)
    motion_at = motion_of(system, theta, kp, kd, rank_tol)
    limits = require_ranges(system, options.ctrl_limits, None).ctrl

    def equations(at: LawInputs) -> Command:
        motion = motion_at(at)
        allocation = motion.allocation(motion.force, least)
        force = allocation.least(limits)
        return Command(
            u=force.u,
            a=motion.a,
            residual={"force": allocation.mechanism.joint_force(force.motion)},
            attainable=force.attainable,
            solvable=motion.has_definite_inertia,
            error=motion.error,
            target=motion.target,
        )

    interface = theta.interface("tracking in quasi-velocities [A10, eq. 38-39]")
    return make_law(system, "quasi_velocity_tracking", equations, interface, options)


@checked
@carries_parameters
def composite_error(
    system: System,
    coordinates: Coordinates,
    *,
    kp: ArrayLike = 10.0,
    rank_tol: float = LAW_RANK_TOL,
) -> ca.Function:
    """Return (q, v, ref) → (epsilon), `V2 ε` in quasi-velocities, (nv,)  [A10, eq. 38].

    Its length is ‖ε‖, √(kg) m/s in any units of q. All rows are on.

    Args:
        system: the mechanism; M positive definite, rows `A(q) v = 0`.
        coordinates: θ.
        kp: K_p, as in `quasi_velocity_tracking`.
        rank_tol: relative length below which rows of A and B_θ are dropped.
    """
    require_rank_tol(rank_tol)
    require_coordinates(system, coordinates)
    motion_at = motion_of(system, coordinates, kp, 1.0, rank_tol)
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    k = len(coordinates.names)
    ref = ca.SX.sym("ref", 3 * k)
    slices = {slot.name: ref[i * k : (i + 1) * k] for i, slot in enumerate(coordinates.slots)}
    at = LawInputs(q, v, slices, {}, ca.SX.ones(system.nc), ca.SX.zeros(system.nv))
    epsilon = motion_at(at).epsilon
    return ca.Function("composite_error", [q, v, ref], [epsilon], ["q", "v", "ref"], ["epsilon"])


def motion_of(
    system: System, coordinates: Coordinates, kp: ArrayLike, kd: ArrayLike, rank_tol: float
) -> Callable[[LawInputs], QuasiMotion]:
    """Return the desired motion as a function of the state, after the options are checked.

    Args:
        system, coordinates, rank_tol: as in `quasi_velocity_tracking`.
        kp, kd: as in `quasi_velocity_tracking`.
    """
    require_plain(system)
    gains = (
        gain_matrix("theta", "kp", kp, coordinates.names),
        gain_matrix("quasi-velocities", "kd", kd, rates(system).components),
    )
    turning = turning_fun(system, coordinates)
    weights = control_weights_of(system, None)

    def motion_at(at: LawInputs) -> QuasiMotion:
        mechanism = Mechanism(system, at, rank_tol, control_weights=weights)
        return QuasiMotion(mechanism, coordinates, *gains, turning)

    return motion_at


@checked
@carries_parameters
def quasi_velocity_force(
    system: System,
    coordinates: Coordinates | None = None,
    *,
    kp: ArrayLike = 10.0,
    kd: ArrayLike = 20.0,
    least: str = LEAST[0],
    allow_free: bool = False,
    gains: ForceGains | None = None,
    options: LawOptions = LAW_OPTIONS,
) -> Law:
    """Return tracking in quasi-velocities and `u_o = A_Wᵀ lam_d + Γ_o v_r`  [A10, eq. 39, 47].

    The motion is that of `quasi_velocity_tracking`, with its decay of ε. Of the forces with this
    motion, this law takes one that gives the desired multipliers `lam_d` (A10 writes `f - Aᵀ lam`:
    its lam is minus ours). With `gains`, `lam_d` becomes `lam_d + G_F e + G_I ∫ e dt` on the
    measured force [A05, eq. 52], with gains for which the sampled loop is stable (`ForceGains`).
    The split into motion and force is one of spaces: no choice of V1, V2 or of units enters it.

    With `gains.rows`, the force that lam_d leaves open is the least one in the norm `least`.

    Where rows depend on each other, lam is the least one, in the sizes of `residual_sizes`. The
    motion has priority; the force gets the remaining freedom of the actuators. Status 2 means that
    one of them is unattainable.
    At saturation u is clipped entry by entry, motion and force both have errors, and the
    integrator takes no step that increases the clipped part.

    Args:
        system: the mechanism; M positive definite, rows `A(q) v = 0`.
        coordinates: θ; `chosen_coordinates(system)` by default.
        kp, kd, least, allow_free: as in `quasi_velocity_tracking`.
        gains: of the force loop, and the rows whose multipliers are controlled: name only rows that
            the actuators can press on. None is feed-forward of all, without an input `f_c`.
        options: see `LawOptions`.

    Raises:
        ProblemError: the options do not fit, or the sampled force loop diverges.
        UnknownNameError: no such row; the message lists them.
        UnsupportedFeatureError: M is only semidefinite, or rows are not `A(q) v = 0`.
    """
    rank_tol = options.tolerance
    require_choice("least", least, LEAST)
    require_plain(system)
    theta = coordinates_of(system, coordinates, allow_free=allow_free)
    loop = force_loop(system, gains, options)
    motion_at = motion_of(system, theta, kp, kd, rank_tol)

    def equations(at: LawInputs) -> Command:
        motion = motion_at(at)
        allocation = motion.allocation(motion.mechanism.M @ motion.a + motion.mechanism.h, least)
        m, outcome = allocation.mechanism, loop.tick(allocation)
        return Command(
            u=outcome.force.u,
            a=motion.a,
            f_c=m.joint_force(outcome.force.f_c),
            z_next={"integral": outcome.integral},
            residual={"motion": m.joint_force(outcome.force.motion), "force": outcome.force.force},
            attainable=outcome.force.attainable,
            solvable=motion.has_definite_inertia,
            error=ca.vertcat(motion.error, outcome.error),
            target=ca.vertcat(motion.target, outcome.target),
        )

    interface = loop.beside(
        theta.interface("motion and force in quasi-velocities [A10, eq. 39, 47; A05, eq. 52]")
    )
    return make_law(system, "quasi_velocity_force", equations, interface, options)
