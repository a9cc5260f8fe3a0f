"""Regulation of all coordinates of a constrained mechanism, the dependent ones included  [A16].

The law pulls every coordinate towards `q*`, and the constraints determine the motion. It uses no
independent coordinates, so its size and its C stay the same when loops open and close.
"""

import warnings
from collections.abc import Mapping, Sequence

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.law import Command, Law, LawInputs, LawInterface
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.mechanism_at_state import (
    LAW_RANK_TOL,
    Mechanism,
    require_law_arguments,
)
from mbcasadi.control.law_interface.signals import deviations
from mbcasadi.control.tasks.task import Slot
from mbcasadi.errors import ProblemError
from mbcasadi.formulation import virtual_mass as virtual_mass_motion
from mbcasadi.shapes import real_array, require_numbers, require_positive
from mbcasadi.system import System
from mbcasadi.system.coordinates import coordinates, moving_size, per, rates
from mbcasadi.system.parameter_inputs import with_constants_of
from mbcasadi.system.parametric import carries_parameters

Gain = float | Sequence[float]
STICKS = 1.0  # sigma from which Theorem 2 was claimed, and the mechanism sticks


@checked
@carries_parameters
def dependent_regulation(
    system: System,
    *,
    kp: Gain,
    kd: Gain,
    sigma: float = 0.5,
    rest_speed: float = 1e-2,
    virtual_mass: float | None = None,
    metric: ArrayLike | None = None,
    control_metric: ArrayLike | None = None,
    rank_tol: float = LAW_RANK_TOL,
    ctrl_limits: ArrayLike | None = None,
    period: float = 1e-3,
    name: str = "dependent_regulation",
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
        sigma: share of the dry friction.
        rest_speed: speed ‖v‖ below which friction turns into damping, 1/s in the default metric. A
            sampled law needs `period σ ‖K_p e‖ / rest_speed` below twice the inertia to avoid
            chattering.
        virtual_mass: μ of the desired acceleration, `M̄ = P M P + μ Q`; inside the interval
            [A16, eq. 12] by default. No control and no motion depends on it.
        metric, control_metric: of ‖e‖, ‖v‖ and P, and of u, as in `computed_torque`.
        rank_tol: relative length below which rows of A and P B are dropped.
        ctrl_limits, period, name: as in `make_law`.

    Raises:
        ProblemError: gains that are not positive, a negative σ, or what `make_law` refuses.

    Warns:
        UserWarning: σ >= 1.
    """
    require_law_arguments(rank_tol)
    gains = {"kp": _per_coordinate("kp", kp, system), "kd": _per_coordinate("kd", kd, system)}
    require_numbers(sigma=sigma)
    require_positive(rest_speed=rest_speed)
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
    return make_law(
        system,
        name,
        equations,
        motion_interface(system, notes, moving=False),
        ctrl_limits=ctrl_limits,
        period=period,
    )


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
