"""Hybrid control: a motion and a constraint force, each by its own feedback.

Forces that move the mechanism and forces that press on the constraint lie in orthogonal spaces,
so the two errors are decoupled  [A05, section 7.3].
"""

from collections.abc import Sequence

import casadi as ca
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.law import Command, Law, LawInputs
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.mechanism_at_state import LAW_RANK_TOL
from mbcasadi.control.laws.actuated_force import Allocation
from mbcasadi.control.laws.coordinate_check import motion_towards
from mbcasadi.control.laws.force_loop import ForceGains, force_loop
from mbcasadi.control.laws.task_coordinates import Coordinates
from mbcasadi.control.tasks.task import Gain
from mbcasadi.system import System
from mbcasadi.system.parametric import carries_parameters


@checked
@carries_parameters
def hybrid_motion_force_control(
    system: System,
    coordinates: Coordinates | None = None,
    gains: ForceGains | None = None,
    *,
    rows: Sequence[str] | None = None,
    kp: Gain = 100.0,
    kd: Gain | None = None,
    damping: float = 0.0,
    metric: ArrayLike | None = None,
    rank_tol: float = LAW_RANK_TOL,
    ctrl_limits: ArrayLike | None = None,
    period: float = 1e-3,
    name: str = "hybrid_motion_force_control",
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
        gains: of the force's feedback; None is feedforward alone, without an input `f_c`.
        rows: names of the multipliers to control, as "pin.2"; None for the whole force.
        kp, kd: G_P, 1/s², and G_D, 1/s, numbers or one for each entry; G_D is critical by default.
        damping: 1/s, of motions that θ does not determine.
        metric: (nv, nv) W, symmetric positive definite; by default that of
            `law_interface/weights.py`, `np.eye(nv)` for the Euclidean one.
        rank_tol: relative length below which rows of A, J P and P X are dropped.
        ctrl_limits, period, name: as in `make_law`.

    Raises:
        ProblemError: the options do not fit, or the sampled force loop diverges.
    """
    theta, motion_at = motion_towards(system, coordinates, (kp, kd), damping, metric, rank_tol)
    loop = force_loop(system, gains, rows, period, ctrl_limits)

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

    return make_law(
        system,
        name,
        equations,
        loop.beside(theta.interface("hybrid motion and force [A05, after eq. 53]")),
        ctrl_limits=ctrl_limits,
        period=period,
    )
