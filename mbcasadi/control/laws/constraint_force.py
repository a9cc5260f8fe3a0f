"""Control of the constraint force, beside a motion: commanded from outside, or by its own feedback.

The part of a force in range(Aᵀ) does not change the motion. It only changes the constraint
force, so it can be chosen to give the desired one. Forces that move the mechanism and forces that
press on the constraint lie in orthogonal spaces, so the two errors are decoupled  [A05, section
7.3].
"""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.law import Command, Law, LawInputs, LawInterface
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.mechanism_at_state import Mechanism
from mbcasadi.control.law_interface.options import LAW_OPTIONS, LawOptions
from mbcasadi.control.laws.actuated_force import Allocation
from mbcasadi.control.laws.coordinate_check import motion_towards
from mbcasadi.control.laws.force_loop import ForceGains, force_loop
from mbcasadi.control.laws.poses import joint_rates, motions_at, rows_at
from mbcasadi.control.laws.task_coordinates import Coordinates
from mbcasadi.control.tasks.task import Gain, Slot
from mbcasadi.system import System
from mbcasadi.system.coordinates import rates
from mbcasadi.system.parametric import carries_parameters


@checked
@carries_parameters
def constraint_force_control(
    system: System,
    gains: ForceGains | None = None,
    *,
    metric: ArrayLike | None = None,
    options: LawOptions = LAW_OPTIONS,
) -> Law:
    """Return `f = f∥ + f⊥`, `f⊥ = h⊥ + μ (f∥ - h∥ + C_c v) - u_F`  [A05, eq. 51 corrected].

    `C_c v = -M A⁺ c`, the paper's `M C q̇`, replaces the printed `C q̇`; the sign of u_F is that of
    `f_c = Aᵀ lam`. `μ (f∥ - h∥ + C_c v)` is `(I - P) M a` of the motion that f∥ causes, so the
    constraint force is u_F, whatever the motion is. `u_F = F_d + G_F e + G_I ∫ e dt` [A05, eq. 52],
    `F_d = Aᵀ lam_d`, `e = F_d - F`, with the measured force F as input `f_c`. See `force_loop` for
    the gains for which the sampled loop is stable. Multipliers follow where A has full row rank;
    see `multiplier_tracking`.

    References: `force.lam` (nc,), and `motion.f` (nv,), the force that moves the mechanism. Only
    `P motion.f` has an effect; with zero no force drives the motion.

    The motion is that of `M̄ a = P (f - h + M A⁺ c) - μ A⁺ c`  [A16, eq. 27 corrected], so M need
    only be positive definite on null(A); where it is not, the status is 4.

    It needs actuators for all of range(Aᵀ) and for f∥. Status 2 means that they give less; then
    the motion has priority, and the force is the nearest possible one. At saturation u is clipped
    entry by entry, and the integrator takes no step that increases the clipped part.

    Args:
        system: the mechanism.
        gains: of the feedback, and the rows that are controlled; None is feedforward of the whole
            force, without an input `f_c`.
        metric: as in `computed_torque`.
        options: see `LawOptions`.

    Raises:
        ProblemError: the options do not fit, or the sampled force loop diverges.
    """
    rank_tol = options.tolerance
    loop = force_loop(system, gains, options)

    def equations(at: LawInputs) -> Command:
        m = Mechanism.measured(system, at, rank_tol, metric=metric)
        moving = m.P @ m.weighted_force(at.ref["motion.f"])
        a = m.acceleration(moving)
        outcome = loop.tick(Allocation(m, m.M @ a + m.h))
        return Command(
            u=outcome.force.u,
            a=m.joint_rate(a),
            f_c=m.joint_force(outcome.force.f_c),
            z_next={"integral": outcome.integral},
            residual={"motion": m.joint_force(outcome.force.motion), "force": outcome.force.force},
            attainable=outcome.force.attainable,
            solvable=m.has_unique_motion,
            error=outcome.error if loop.gains.feedback else None,
            target=outcome.target,
        )

    speeds = rates(system).components
    slot = Slot("motion.f", speeds, ("N or N m",) * len(speeds))
    force = loop.beside(LawInterface(notes={"law": "constraint force with PI [A05, eq. 51-52]"}))
    interface = replace(force, slots=(*force.slots, slot))
    return make_law(system, "constraint_force_control", equations, interface, options)


@dataclass(frozen=True)
class MultiplierTracking:
    """How far an error of the constraint force is one of the multipliers  [A05, eq. 53].

    Attributes:
        rank, rows: of A at the pose.
        least: `σ_min = √λ_min(A Aᵀ)`, zero where rows depend on each other.
        largest: largest singular value of A. Both have the units of A; of `A W^{-1/2}` with a
            metric.
    """

    rank: int
    rows: int
    least: float
    largest: float

    @property
    def controllable(self) -> bool:
        """Whether the multipliers follow when the force does."""
        return self.rank == self.rows

    @property
    def in_words(self) -> str:
        """The finding in one or two sentences."""
        if self.controllable:
            return (
                f"The {self.rows} rows are independent: the multipliers follow the force, "
                f"‖e_lam‖ <= ‖e_F‖ / {self.least:.3g}."
            )
        return (
            f"{self.rows - self.rank} of {self.rows} rows depend on the others: the constraint "
            "force can be controlled, the multipliers cannot. Those of least norm follow it."
        )


@checked
@carries_parameters
def multiplier_tracking(
    system: System, q: ArrayLike, *, metric: ArrayLike | None = None
) -> MultiplierTracking:
    """Return whether `σ_min ‖e_lam‖ <= ‖e_F‖` bounds e_lam at q  [A05, eq. 53, Remark 5].

    σ_min is the least singular value of Aᵀ, `√λ_min(A Aᵀ)` (corrected: the paper prints `Aᵀ A`,
    whose least eigenvalue is zero for every A with fewer rows than columns).

    Args:
        system: the mechanism.
        q: (nq,) closed pose.
        metric: (nv, nv) W of `‖e_F‖² = e_Fᵀ W⁻¹ e_F`; the identity by default. σ_min depends on
            the units of q without one, and always on those of the rows; the verdict on neither.
    """
    A = rows_at(system, q)
    rank = system.nv - motions_at(system, q).shape[1]
    size = np.zeros(system.nc)
    weighted = A if metric is None else A @ joint_rates(system, metric)
    singular_values = np.linalg.svd(weighted, compute_uv=False)
    size[: len(singular_values)] = singular_values
    largest = float(size.max(initial=0.0))
    least = float(size.min(initial=np.inf)) if rank == system.nc else 0.0
    return MultiplierTracking(rank, system.nc, least, largest)


@checked
@carries_parameters
def hybrid_motion_force_control(
    system: System,
    coordinates: Coordinates | None = None,
    gains: ForceGains | None = None,
    *,
    kp: Gain = 100.0,
    kd: Gain | None = None,
    damping: float = 0.0,
    metric: ArrayLike | None = None,
    options: LawOptions = LAW_OPTIONS,
) -> Law:
    """Return `f = h + μ C_c v + (I + μ) P M u_p - u_F`  [A05, after eq. 53, corrected].

    The sum of `projected_inverse_dynamics` and `constraint_force_control`. Their motion is known
    here, so it is computed as `f = M a + h - u_F`, with a the desired acceleration: `C_c v` (the
    paper prints `C q̇`) and μ drop out. θ obeys `ë + G_D ė + G_P e = 0` and the constraint force is
    u_F, independently of each other.

    It needs actuators for both. Where joints are passive, the motion has priority and the force
    is the nearest one that the remaining freedom permits: with as many motors as motions there is
    none, with more there are internal forces to choose. Status 2 means that motion or force is not
    attained; the residual holds both parts. At saturation u is clipped entry by entry and both
    have errors; the integrator takes no step that increases the clipped part.

    Args:
        system: the mechanism.
        coordinates: θ; `chosen_coordinates(system)` by default.
        gains: as in `constraint_force_control`.
        kp, kd, damping, metric: as in `projected_inverse_dynamics`.
        options: see `LawOptions`.

    Raises:
        ProblemError: the options do not fit, or the sampled force loop diverges.
    """
    motion = (kp, kd), damping, metric, options.tolerance
    theta, motion_at = motion_towards(system, coordinates, *motion)
    loop = force_loop(system, gains, options)

    def equations(at: LawInputs) -> Command:
        m, desired = motion_at(at)
        outcome = loop.tick(Allocation(m, m.M @ desired.a + m.h))
        return Command(
            u=outcome.force.u,
            a=m.joint_rate(desired.a),
            f_c=m.joint_force(outcome.force.f_c),
            z_next={"integral": outcome.integral},
            residual={
                "motion": m.joint_force(outcome.force.motion),
                "force": outcome.force.force,
                "theta": desired.missing,
            },
            attainable=ca.logic_and(outcome.force.attainable, desired.attainable),
            error=ca.vertcat(desired.error, outcome.error),
            target=ca.vertcat(desired.target, outcome.target),
        )

    interface = loop.beside(theta.interface("hybrid motion and force [A05, after eq. 53]"))
    return make_law(system, "hybrid_motion_force_control", equations, interface, options)
