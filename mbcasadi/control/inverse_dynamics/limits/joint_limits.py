"""Limits of joints that hold up to the stop, not for one tick only.

A joint at the position q with the velocity v accelerates by a during a tick of length h. Afterwards
it must still be able to stop before its stop, with a deceleration d that is relied on:

    q + h v + c h² a + (v + h a)² / (2 d) <= q_max   where v + h a > 0,

with c = ½, or more where steps of MuJoCo advance the position by the velocity at their end. This is
quadratic in a, and its larger root is the bound (A. Del Prete, "Joint position and velocity
bounds in discrete-time acceleration/torque control of robot arms", RA-L 2018). Where the joint
moves away from the stop, the position at the end of the tick counts alone. No bound demands more
than the deceleration that is relied on: where it is too late to stop, the joint brakes with that.
With a `reserve` d is a share of it, and the rest makes up for what model and load get wrong. Over
a delay q and v are predicted, see `predicted_joints.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.inverse_dynamics.limits.usual_braking import JointIndices, usual_braking
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import real_array
from mbcasadi.system import System
from mbcasadi.system.names_by_kind import require_name_of
from mbcasadi.system.ranges import Ranges

Array = NDArray[np.float64]
PerJoint = float | Sequence[float]


@dataclass(frozen=True)
class JointLimits:
    """Limits of slide and hinge joints, in m or rad; a number, or one for each of `joints`.

    Attributes:
        joints: names; None for all that have a range in the model.
        velocity: largest speed; None for no limit.
        acceleration: largest acceleration; None for no limit.
        braking: deceleration that is relied on before a stop, at most `acceleration`. None for half
            of what the joint's actuators give at their limits, gravity and the other joints' poses
            at their worst, and at most `acceleration`.
        margin: distance that is kept from the model's stops.
        reserve: share of `braking`, below 1, that is not planned with. A load of 10 % that the
            model lacks needs a reserve of 0.1.
    """

    joints: tuple[str, ...] | None = None
    velocity: PerJoint | None = None
    acceleration: PerJoint | None = None
    braking: PerJoint | None = None
    margin: PerJoint = 0.0
    reserve: float = 0.0

    def __post_init__(self) -> None:
        require_fields(self)
        if not 0 <= self.reserve < 1:
            raise ProblemError(
                f"reserve = {self.reserve}; expected a share of `braking` from 0 to below 1"
            )


@dataclass(frozen=True)
class LimitedJoints:
    """The limits of joints as numbers, one for each; infinite where there are none.

    Attributes:
        names: of the joints.
        dofs, places: indices in v and in q.
        lower, upper: (k,) positions, also as expressions.
        velocity, acceleration, braking: (k,).
        reserve: share of the braking that is not planned with.
    """

    names: tuple[str, ...]
    dofs: tuple[int, ...]
    places: tuple[int, ...]
    lower: Array | ca.SX
    upper: Array | ca.SX
    velocity: Array | ca.SX
    acceleration: Array
    braking: Array
    reserve: float


def limited_joints(system: System, limits: JointLimits, ranges: Ranges) -> LimitedJoints:
    """Return the limits of a system's joints.

    Args:
        system: read from a model.
        limits: what is limited.
        ranges: of controls and actuator forces.

    Raises:
        UnknownNameError: no slide or hinge joint of that name.
        ProblemError: a system that is given by equations; no joint has a range; numbers that are
            negative or too many; a joint that nothing brakes, or that brakes by more than its
            limit of acceleration.
    """
    if system.tree is None:
        raise ProblemError(
            f"'{system.name}' is given by equations and has no joints; limit its coordinates with "
            "a task, or with rows of your own"
        )
    stops = dict(zip(system.limits.joint_names, system.limits.joint, strict=True))
    names = limits.joints
    if names is None:
        names = tuple(name for name, ends in stops.items() if np.any(np.isfinite(ends)))
    if not names:
        raise ProblemError(f"no joint of '{system.name}' has a range; expected joints=(…) by name")
    for name in names:
        require_name_of(system, "slide or hinge joint", name, list(stops))
    joints = [next(j for j in system.tree.joints if j.name == name) for name in names]
    dofs = tuple(joint.dof for joint in joints)
    margin = _each("margin", limits.margin, names, 0.0)
    ends = np.array([stops[name] for name in names])
    lower, upper = ends[:, 0] + margin, ends[:, 1] - margin
    if np.any(lower >= upper):
        name = names[int(np.argmax(lower >= upper))]
        raise ProblemError(f"joint '{name}': its range less the margins is empty")
    braking = _each("braking", limits.braking, names, np.nan)
    acceleration = _each("acceleration", limits.acceleration, names, np.inf)
    if limits.braking is None:
        places = JointIndices(dofs, tuple(joint.qpos for joint in joints))
        usual = usual_braking(system, places, (ends[:, 0], ends[:, 1]), ranges)
        braking = np.minimum(usual, acceleration)
    if np.any(braking > acceleration):
        k = int(np.argmax(braking > acceleration))
        raise ProblemError(
            f"joint '{names[k]}': braking = {braking[k]:g} and acceleration = {acceleration[k]:g}; "
            "expected braking of at most the acceleration, which limits both ways"
        )
    for name, value, *between in zip(names, braking, lower, upper, strict=True):
        if np.any(np.isfinite(between)) and not 0 < value < np.inf:
            raise ProblemError(
                f"joint '{name}': it has no actuator with finite limits that brakes it against "
                "gravity; expected braking=, the deceleration that is relied on, or joints= "
                "without it"
            )
    return LimitedJoints(
        names=tuple(names),
        dofs=dofs,
        places=tuple(joint.qpos for joint in joints),
        lower=lower,
        upper=upper,
        velocity=_each("velocity", limits.velocity, names, np.inf),
        acceleration=acceleration,
        braking=braking,
        reserve=limits.reserve,
    )


def acceleration_bounds(
    joints: LimitedJoints, q: ca.SX, v: ca.SX, period: float, share: float = 0.5
) -> tuple[ca.SX, ca.SX]:
    """Return lower and upper bounds (k,) of the joints' accelerations during a tick.

    Args:
        joints: the limits.
        q, v: (nq,), (nv,) state at the start of the tick.
        period: length of the tick, s.
        share: c in `q + h v + c h² a`, of the position at the end of the tick.
    """
    planned = 1.0 - joints.reserve
    lower, upper = [ca.SX(0, 1)], [ca.SX(0, 1)]
    for k, (dof, place) in enumerate(zip(joints.dofs, joints.places, strict=True)):
        d, limit, most = joints.braking[k], joints.velocity[k], joints.acceleration[k]
        stop = d, planned * d, period, share
        above = _stop_bound(joints.upper[k] - q[place], v[dof], *stop)
        below = _stop_bound(q[place] - joints.lower[k], -v[dof], *stop)
        faster, slower = (_speed_bound(sign * v[dof], d, limit, most, period) for sign in (1, -1))
        upper.append(ca.fmin(_at_least(above, -slower), faster))
        lower.append(-ca.fmin(_at_least(below, -faster), slower))
    return ca.vertcat(*lower), ca.vertcat(*upper)


def _stop_bound(
    left: ca.SX, v: ca.SX, braking: float, planned: float, h: float, share: float
) -> ca.SX:
    """Return the largest acceleration towards a stop; infinite where there is none.

    Args:
        left: distance to the stop; constant and infinite where there is none.
        v: speed towards it.
        braking: deceleration that is relied on.
        planned: that which is planned with.
        h: length of the tick, s.
        share: c in `q + h v + c h² a`, of the position at the end of the tick.
    """
    if left.is_constant() and np.isinf(float(left)):
        return ca.SX(np.inf)
    return braking_bound(left, v, planned, h, share, braking)


def _speed_bound(
    v: ca.SX, braking: float, velocity: float | ca.SX, acceleration: float, h: float
) -> ca.SX:
    """Return the largest acceleration that speed and acceleration allow; infinite for none.

    Args:
        v: speed.
        braking: deceleration that is relied on; NaN for none.
        velocity, acceleration: limits; infinite for none.
        h: length of the tick, s.
    """
    if not isinstance(velocity, ca.SX) and not np.isfinite(velocity):
        return ca.SX(acceleration)
    least = -acceleration if np.isnan(braking) else -braking
    slowing = (velocity - v) / h
    bound = ca.fmax(slowing, least) if np.isfinite(least) else slowing
    return ca.fmin(bound, acceleration)


def _at_least(bound: ca.SX, other: ca.SX) -> ca.SX:
    """Return a bound that a stop sets, no lower than the speed's on the other side.

    A joint beyond its stop that returns too fast slows down.
    """
    if bound.is_constant() or (other.is_constant() and np.isinf(float(other))):
        return bound
    return ca.fmax(bound, other)


def braking_bound(
    left: ca.SX, v: ca.SX, d: float, h: float, share: float = 0.5, most: float | None = None
) -> ca.SX:
    """Return the largest acceleration from which the joint can still stop before its stop.

    Args:
        left: distance to the stop.
        v: speed towards it.
        d: deceleration that is planned with.
        h: length of the tick, s.
        share: c of the position at the end of the tick.
        most: largest deceleration that is demanded; d where None.
    """
    most = d if most is None else most
    b, c = 2 * h * (v + share * d * h), v**2 - 2 * d * (left - h * v)
    square = b**2 - 4 * h**2 * c
    root = (-b + ca.sqrt(ca.fmax(square, 0))) / (2 * h**2)
    stopping = ca.if_else(square >= 0, root, -most)
    halting, touching = -v / h, (left - h * v) / (share * h**2)
    leaving = ca.fmax(stopping, ca.fmin(halting, touching))
    return ca.fmax(ca.if_else(stopping >= halting, stopping, leaving), -most)


def _each(label: str, value: PerJoint | None, names: Sequence[str], none: float) -> Array:
    """Return one number for each joint."""
    if value is None:
        return np.full(len(names), none)
    array = real_array(label, value)
    if array.shape not in {(), (len(names),)} or np.any(np.isnan(array)) or np.any(array < 0):
        raise ProblemError(
            f"{label} = {value}; expected a number that is not negative, or one for each of "
            f"{', '.join(names)}"
        )
    return np.broadcast_to(array, (len(names),)).astype(float)
