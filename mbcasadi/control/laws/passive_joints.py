"""Motion of mechanisms with passive joints, by the least force of the joints that have motors.

The motors' force moves the mechanism as projected inverse dynamics would, with the least
necessary force on the constraint  [A05, section 7.4].
"""

import casadi as ca
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.arguments import require_law_arguments
from mbcasadi.control.law_interface.law import Command, Law, LawInputs
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.mechanism_at_state import LAW_RANK_TOL, Mechanism
from mbcasadi.control.laws.actuated_force import Allocation
from mbcasadi.control.laws.coordinate_check import coordinates_of
from mbcasadi.control.laws.task_coordinates import Coordinates, desired_motion, motion_gains
from mbcasadi.control.tasks.task import Gain
from mbcasadi.system import System
from mbcasadi.system.parametric import carries_parameters


@checked
@carries_parameters
def passive_joint_control(
    system: System,
    coordinates: Coordinates | None = None,
    *,
    kp: Gain = 100.0,
    kd: Gain | None = None,
    damping: float = 0.0,
    metric: ArrayLike | None = None,
    rank_tol: float = LAW_RANK_TOL,
    ctrl_limits: ArrayLike | None = None,
    period: float = 1e-3,
    name: str = "passive_joint_control",
) -> Law:
    """Return `f = (I + H) f∥`, `f∥ = P (M u_p + h)`, `H = -(I - P) Q⁺ (I - B)`  [A05, eq. 55-62].

    Computed as `f = X (P X)⁺ f∥` with an orthonormal basis X of the actuators' range: the same
    force, the least in range(B) with the desired motion, from a smaller matrix. u_p is that of
    `projected_inverse_dynamics`. Where every joint has an actuator, the two laws are the same.

    It needs condition (64), `null(A) ∩ range(B)⊥ = {0}`: see `input_reach`. Where it fails, as
    it may at a singular pose, the status is 2, the residual holds the moving force that no
    actuator gives, and u is the nearest. The same holds where the constraints do not let θ move as
    desired. The constraint force is not controlled. At saturation u is clipped entry by entry, and
    the motion differs from the desired one.

    Args:
        system: the mechanism; its actuation need not be a selection of joints.
        coordinates: θ; `chosen_coordinates(system)` by default. Joints that have motors need not
            be among them.
        kp, kd: G_P, 1/s², and G_D, 1/s, numbers or one for each entry; G_D is critical by default.
        damping: 1/s, of motions that θ does not determine.
        metric: (nv, nv) W, symmetric positive definite: the norm is `fᵀ W⁻¹ f`; by default that
            of `law_interface/weights.py`, `np.eye(nv)` for the Euclidean one.
        rank_tol: relative length below which rows of A, J P and P X are dropped.
        ctrl_limits, period, name: as in `make_law`.

    Raises:
        ProblemError: the options do not fit the system.
    """
    require_law_arguments(rank_tol, damping=damping)
    theta = coordinates_of(system, coordinates, allow_free=damping > 0, metric=metric)
    gains = motion_gains(theta, kp, kd)

    def equations(at: LawInputs) -> Command:
        m = Mechanism.measured(system, at, rank_tol, metric=metric)
        desired = desired_motion(m, theta, at.ref, gains, damping)
        force = Allocation(m, m.M @ desired.a + m.h).least()
        return Command(
            u=force.u,
            a=m.joint_rate(desired.a),
            residual={"force": m.joint_force(force.motion), "theta": desired.missing},
            attainable=ca.logic_and(force.attainable, desired.attainable),
            error=desired.error,
            target=desired.target,
        )

    return make_law(
        system,
        name,
        equations,
        theta.interface("projected inverse dynamics with passive joints [A05, eq. 62]"),
        ctrl_limits=ctrl_limits,
        period=period,
    )
