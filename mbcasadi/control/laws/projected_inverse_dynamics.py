"""Projected inverse dynamics: the motion of independent coordinates, by the least force.

Only the part of a force in null(A) moves the mechanism. The law commands that part alone, so
it never presses on the constraint  [A05, section 7.1]. Where joints are passive, the motors' force
moves the mechanism in the same way, with the least necessary force on the constraint  [A05,
section 7.4].
"""

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.law import Command, Law, LawInputs
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.options import LAW_OPTIONS, LAW_RANK_TOL, LawOptions
from mbcasadi.control.law_interface.verdicts import ATTAIN_TOL
from mbcasadi.control.laws.actuated_force import Allocation, actuators
from mbcasadi.control.laws.coordinate_check import motion_towards
from mbcasadi.control.laws.poses import joint_rates, motions_at
from mbcasadi.control.laws.task_coordinates import Coordinates
from mbcasadi.control.tasks.task import Gain
from mbcasadi.errors import ProblemError
from mbcasadi.system import System
from mbcasadi.system.coordinates import authored_pose
from mbcasadi.system.parametric import carries_parameters
from mbcasadi.system.sizes import control_sizes, resting_actuation


@checked
@carries_parameters
def projected_inverse_dynamics(
    system: System,
    coordinates: Coordinates | None = None,
    *,
    kp: Gain = 100.0,
    kd: Gain | None = None,
    damping: float = 0.0,
    metric: ArrayLike | None = None,
    options: LawOptions = LAW_OPTIONS,
) -> Law:
    """Return `f = P (M u_p + h)`, `u_p = Λ̇ θ̇ + Λ (θ̈_d + G_D ė + G_P e)`  [A05, eq. 45-46].

    The error obeys `ë + G_D ė + G_P e = 0` where θ has as many entries as the mechanism has
    motions. f has the least norm of all forces with that motion (Theorem 4): any other differs by
    a force in range(Aᵀ), which is orthogonal to it. P and the norm
    `‖f‖² = fᵀ W⁻¹ f` are those of `v_W = W^{1/2} v` with a metric W [A05, eq. 49-50]. The default
    one comes from the model, so the control does not depend on its units.

    It needs actuators for all of null(A). Where joints are passive, `passive_joint_control` adds
    the missing part. Status 2 means that f is outside the actuators' range, or that the
    constraints do not let θ move as desired; u is then the nearest. At saturation u is clipped
    entry by entry: the motion differs from the desired one, and the error of the force also
    presses on the constraint.

    Args:
        system: the mechanism.
        coordinates: θ; `chosen_coordinates(system)` by default.
        kp, kd: G_P, 1/s², and G_D, 1/s, numbers or one for each entry; G_D is critical by default.
        damping: 1/s, of motions that θ does not determine.
        metric: W, as in `computed_torque`.
        options: see `LawOptions`.

    Raises:
        ProblemError: the options do not fit, or the actuators miss a motion at the initial pose.
    """
    motion = (kp, kd), damping, metric, options.tolerance
    theta, motion_at = motion_towards(system, coordinates, *motion)
    _require_reach(system, metric)

    def equations(at: LawInputs) -> Command:
        m, desired = motion_at(at)
        f = m.P @ (m.M @ desired.a + m.h)
        reach = actuators(m)
        missing = f - reach.X @ (reach.X.T @ f)
        force_attainable = m.is_attained(missing, f)
        return Command(
            u=reach.control(f),
            a=m.joint_rate(desired.a),
            residual={"force": m.joint_force(missing), "theta": desired.missing},
            attainable=ca.logic_and(force_attainable, desired.attainable),
            error=desired.error,
            target=desired.target,
        )

    interface = theta.interface("projected inverse dynamics [A05, eq. 45-46]")
    return make_law(system, "projected_inverse_dynamics", equations, interface, options)


def _require_reach(system: System, metric: ArrayLike | None) -> None:
    """Refuse a model whose actuators do not reach all of null(A) at its initial pose."""
    if system.tree is None or not system.nu:
        return
    q0 = authored_pose(system)
    B = joint_rates(system, metric) @ resting_actuation(system, q0) / control_sizes(system)
    U, size, _ = np.linalg.svd(B, full_matrices=False)
    X = U[:, size > LAW_RANK_TOL * size.max(initial=0.0)]
    Z = motions_at(system, q0, metric=metric)
    if np.abs(Z - X @ (X.T @ Z)).max(initial=0.0) > ATTAIN_TOL:
        raise ProblemError(
            f"'{system.name}' has motions that no actuator drives, and the force of projected "
            "inverse dynamics needs them all; use passive_joint_control"
        )


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
    options: LawOptions = LAW_OPTIONS,
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
        kp, kd, damping, metric: as in `projected_inverse_dynamics`.
        options: see `LawOptions`.

    Raises:
        ProblemError: the options do not fit the system.
    """
    motion = (kp, kd), damping, metric, options.tolerance
    theta, motion_at = motion_towards(system, coordinates, *motion)

    def equations(at: LawInputs) -> Command:
        m, desired = motion_at(at)
        force = Allocation(m, m.M @ desired.a + m.h).least()
        return Command(
            u=force.u,
            a=m.joint_rate(desired.a),
            residual={"force": m.joint_force(force.motion), "theta": desired.missing},
            attainable=ca.logic_and(force.attainable, desired.attainable),
            error=desired.error,
            target=desired.target,
        )

    interface = theta.interface("projected inverse dynamics with passive joints [A05, eq. 62]")
    return make_law(system, "passive_joint_control", equations, interface, options)
