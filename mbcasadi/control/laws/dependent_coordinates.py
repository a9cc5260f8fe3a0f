"""Regulation and tracking of all coordinates of a constrained mechanism, dependent ones too  [A16].

The laws pull every coordinate towards its goal, and the constraints determine the motion. They use
no independent coordinates, so their size and their C stay the same when loops open and close.

The model in the mechanism's own coordinates, `M̄ a + C̄ v = P (f + f_passive - g)`, has
`d/dt M̄ - 2 C̄` skew [A16, Theorem 1], as that of a robot without constraints. So the passivity-based
law of J.-J. Slotine and W. Li (Int. J. Robotics Research 6, 1987) holds for it.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.control.law_interface.law import Command, Law, LawInputs, LawInterface
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.mechanism_at_state import Mechanism
from mbcasadi.control.law_interface.options import LAW_OPTIONS, LawOptions
from mbcasadi.control.law_interface.signals import deviations
from mbcasadi.control.laws.quasi_velocity_motion import gain_matrix, require_still_rows, turning_fun
from mbcasadi.control.tasks.task import Gain, Slot
from mbcasadi.errors import ProblemError
from mbcasadi.formulation import virtual_mass as virtual_mass_motion
from mbcasadi.shapes import real_array, require_numbers, require_positive
from mbcasadi.system import System
from mbcasadi.system.coordinates import coordinates, moving_size, per, rates
from mbcasadi.system.parameter_inputs import with_constants_of
from mbcasadi.system.parametric import carries_parameters

STICKS = 1.0  # sigma from which Theorem 2 was claimed, and the mechanism sticks


@dataclass(frozen=True)
class DryFriction:
    """The σ-term of `dependent_regulation`.

    Attributes:
        sigma: σ, share of the dry friction.
        rest_speed: speed ‖v‖ below which friction turns into damping, 1/s in the default metric. A
            sampled law needs `period σ ‖K_p e‖ / rest_speed` below twice the inertia to avoid
            chattering.

    Raises:
        ProblemError: a negative σ, or a speed that is not positive.
    """

    sigma: float = 0.5
    rest_speed: float = 1e-2

    def __post_init__(self) -> None:
        require_fields(self)
        require_numbers(sigma=self.sigma)
        require_positive(rest_speed=self.rest_speed)


DRY_FRICTION = DryFriction()


@checked
@carries_parameters
def dependent_regulation(
    system: System,
    *,
    kp: Gain,
    kd: Gain,
    friction: DryFriction = DRY_FRICTION,
    virtual_mass: float | None = None,
    metric: ArrayLike | None = None,
    control_metric: ArrayLike | None = None,
    options: LawOptions = LAW_OPTIONS,
) -> Law:
    """Return `u = Γ (g - f_s - f_0 - K_p (e + σ ‖e‖ η) - K_d v)`  [A16, eq. 21].

    `e = q ⊖ q*`, `η = v / max(‖v‖, rest_speed)` [A16, eq. 22, continuous at rest], `g` gravity,
    `f_s` springs, `f_0` the actuator force at u = 0, and `Γ = (P B)⁺` [A16, eq. 19, corrected
    for redundant actuation]. The force that acts is `R f`, `R = B Γ`; `P R = P` where actuators
    reach every motion.

    `V = ½ vᵀ M v + ½ eᵀ K_p e` falls: `V̇ = -vᵀ K_d v - σ ‖e‖ vᵀ K_p η`, passive dampers not
    counted. The σ-term is dry friction. Norms are those of the metric (the paper adds squares of
    metres and radians): the default one counts a length of the model as 1 rad. With gains
    `K_p = k W`, W the metric, the mechanism rests where `‖P e‖ <= σ ‖e‖`. So Theorem 2 (`σ > 1`
    converges) is false: from σ = 1 on friction exceeds the spring at every pose, and the mechanism
    stays where it is. Below, it stays only where e makes an angle of more than `arccos σ` with the
    constraint; with σ = 0 where `P e = 0`. With other gains the bound is `P K_p e` against
    `σ ‖e‖ P K_p η`, η along the spring's pull.
    The law has no integral: errors that it does not compensate (such as that of a mass) leave an
    offset.

    The reference is `q` (nq,), slice `q` of `ref`. Rows are switched by the mask; the C is the
    same. Status 2: actuators cannot give the desired force along the constraint (`residual`, with
    u the nearest). At its limits u is clipped entry by entry, and V need not decay there.

    Args:
        system: the mechanism.
        kp: stiffness of each coordinate, N/m or N m/rad; a number or (nv,).
        kd: damping of each coordinate, N s/m or N m s/rad.
        friction: σ, and the speed below which η turns into damping.
        virtual_mass: μ of the desired acceleration, `M̄ = P M P + μ Q`; inside the interval
            [A16, eq. 12] by default. No control and no motion depends on it.
        metric, control_metric: of ‖e‖, ‖v‖ and P, and of u, as in `computed_torque`.
        options: see `LawOptions`.

    Raises:
        ProblemError: gains that are not positive, or what `make_law` refuses.

    Warns:
        UserWarning: σ >= 1.
    """
    rank_tol = options.tolerance
    gains = {"kp": _per_coordinate("kp", kp, system), "kd": _per_coordinate("kd", kd, system)}
    sigma, rest_speed = friction.sigma, friction.rest_speed
    if virtual_mass is not None:
        require_positive(virtual_mass=virtual_mass)
    _warn_of_sticking(sigma)

    def equations(at: LawInputs) -> Command:
        m = Mechanism.measured(system, at, rank_tol, metric=metric, control_metric=control_metric)
        error = system.difference(with_constants_of(at.ref["q"], at.q), at.q)
        distance, speed = (ca.norm_2(m.weighted_rate(x)) for x in (error, at.v))
        direction = at.v / ca.fmax(speed, rest_speed)  # η, zero at rest [A16, eq. 22]
        spring = gains["kp"] * (error + sigma * distance * direction)
        desired_force = m.weighted_force(_static_force(system, at) - spring - gains["kd"] * at.v)
        motion = virtual_mass_motion(
            m.M, m.h, desired_force, m.A, m.c, virtual_mass=virtual_mass, **m.rule
        )
        return m.command(desired_force, motion.a, -error, target_of(m))

    notes = {"law": "regulation of dependent coordinates", "sigma": _sigma_text(sigma)}
    interface = motion_interface(system, notes, moving=False)
    return make_law(system, "dependent_regulation", equations, interface, options)


def motion_interface(
    system: System, notes: Mapping[str, str], *, moving: bool = True
) -> LawInterface:
    """Return the interface of a law that tracks all coordinates: q and, of a motion, v and a."""
    places, speeds = coordinates(system), rates(system)
    slots = [
        Slot("q", places.components, places.units),
        Slot("v", speeds.components, speeds.units),
        Slot("a", speeds.components, tuple(per(unit, "s") for unit in speeds.units)),
    ]
    return LawInterface(
        slots if moving else slots[:1],
        lambda q: {"q": q[: moving_size(system)]},
        tracked=deviations(system),
        notes=notes,
    )


def target_of(m: Mechanism) -> ca.SX | None:
    """Return the desired coordinates, where there is one for each rate."""
    return m.at.ref["q"] if moving_size(m.system) == m.system.nv else None


def _static_force(system: System, at: LawInputs) -> ca.SX:
    """Return `g - f_s`, the force that holds the mechanism still."""
    still = ca.SX.zeros(system.nv)
    return system.bias_force(at.q, still) - system.passive_force(at.q, still)


def _per_coordinate(name: str, gain: Gain, system: System) -> NDArray[np.float64]:
    """Return one positive gain for each coordinate."""
    gains = real_array(name, gain)
    if gains.shape not in {(), (system.nv,)} or not np.all(np.isfinite(gains) & (gains > 0)):
        raise ProblemError(
            f"{name} = {gain}; expected a positive number, or {system.nv}, one for each coordinate"
        )
    return np.broadcast_to(gains, (system.nv,)).copy()


def _warn_of_sticking(sigma: float) -> None:
    if sigma >= STICKS:
        warnings.warn(
            f"sigma = {sigma:g}: from 1 on the friction of the law exceeds its spring, and the "
            "mechanism sticks where it is (Theorem 2 of A16 does not hold); use sigma < 1",
            stacklevel=3,
        )


def _sigma_text(sigma: float) -> str:
    return f"{sigma:g}" + ("; sticks: friction exceeds the spring" if sigma >= STICKS else "")


@checked
@carries_parameters
def dependent_tracking(
    system: System,
    *,
    kp: ArrayLike = 10.0,
    kd: ArrayLike,
    metric: ArrayLike | None = None,
    control_metric: ArrayLike | None = None,
    options: LawOptions = LAW_OPTIONS,
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
        options: see `LawOptions`.

    Raises:
        ProblemError: gains that are not positive, or what `make_law` refuses.
        UnsupportedFeatureError: rows that are not `A(q) v = 0`.
    """
    rank_tol = options.tolerance
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
    interface = motion_interface(system, {"law": note})
    return make_law(system, "dependent_tracking", equations, interface, options)


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
