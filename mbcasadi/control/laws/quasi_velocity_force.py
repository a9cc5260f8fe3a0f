"""Motion and constraint force under separate quasi-forces  [A10, section 4.2].

The quasi-force along the constraint changes the motion, the one across it changes the constraint
force; they are decoupled. In joint space `f = M a + h - Aᵀ lam_d`, with `a` the acceleration of
the motion law.
"""

from collections.abc import Sequence

import casadi as ca
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.arguments import require_law_arguments
from mbcasadi.control.law_interface.law import Command, Law, LawInputs
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.mechanism_at_state import LAW_RANK_TOL
from mbcasadi.control.laws.coordinate_check import coordinates_of
from mbcasadi.control.laws.force_loop import ForceGains, force_loop
from mbcasadi.control.laws.quasi_velocity_motion import LEAST, require_plain
from mbcasadi.control.laws.quasi_velocity_tracking import motion_of
from mbcasadi.control.laws.task_coordinates import Coordinates, hold_by_coordinates
from mbcasadi.shapes import require_choice
from mbcasadi.system import System
from mbcasadi.system.parametric import carries_parameters


@checked
@carries_parameters
def quasi_velocity_force(
    system: System,
    coordinates: Coordinates | None = None,
    rows: Sequence[str] | None = None,
    *,
    kp: ArrayLike = 10.0,
    kd: ArrayLike = 20.0,
    least: str = LEAST[0],
    allow_free: bool = False,
    gains: ForceGains | None = None,
    rank_tol: float = LAW_RANK_TOL,
    ctrl_limits: ArrayLike | None = None,
    period: float = 1e-3,
    name: str = "quasi_velocity_force",
) -> Law:
    """Return tracking in quasi-velocities and `u_o = A_Wᵀ lam_d + Γ_o v_r`  [A10, eq. 39, 47].

    The motion is that of `quasi_velocity_tracking`, with its decay of ε. Of the forces with this
    motion, this law takes one that gives the desired multipliers `lam_d` (A10 writes `f - Aᵀ lam`:
    its lam is minus ours). With `gains`, `lam_d` becomes `lam_d + G_F e + G_I ∫ e dt` on the
    measured force [A05, eq. 52], with gains for which the sampled loop is stable (`ForceGains`).
    The split into motion and force is one of spaces: no choice of V1, V2 or of units enters it.

    With `rows`, the force that lam_d leaves open is the least one in the norm `least`.

    Where rows depend on each other, lam is the least one, in the sizes of `residual_sizes`. The
    motion has priority; the force gets the remaining freedom of the actuators. Status 2 means that
    one of them is unattainable.
    At saturation u is clipped entry by entry, motion and force both have errors, and the
    integrator takes no step that increases the clipped part.

    Args:
        system: the mechanism; M positive definite, rows `A(q) v = 0`.
        coordinates: θ; `chosen_coordinates(system)` by default.
        rows: the constraint rows whose multipliers are controlled, such as "surface.2"; all by
            default. Name only rows that the actuators can press on.
        kp, kd, least, allow_free: as in `quasi_velocity_tracking`.
        gains: of the force loop; None is feed-forward alone, without an input `f_c`.
        rank_tol: relative length below which rows are dropped.
        ctrl_limits, period, name: as in `make_law`.

    Raises:
        ProblemError: the options do not fit, or the sampled force loop diverges.
        UnknownNameError: no such row; the message lists them.
        UnsupportedFeatureError: M is only semidefinite, or rows are not `A(q) v = 0`.
    """
    require_law_arguments(rank_tol)
    require_choice("least", least, LEAST)
    require_plain(system)
    theta = coordinates_of(system, coordinates, allow_free=allow_free)
    loop = force_loop(system, gains, rows, period, ctrl_limits)
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

    return make_law(
        system,
        name,
        equations,
        slots=(*theta.slots, *loop.slots),
        hold=hold_by_coordinates(theta),
        states=loop.states,
        measures_force=loop.gains.feedback,
        tracked=(*theta.tracked, *loop.tracked),
        ctrl_limits=ctrl_limits,
        period=period,
        notes={"law": "motion and force in quasi-velocities [A10, eq. 39, 47; A05, eq. 52]"},
    )
