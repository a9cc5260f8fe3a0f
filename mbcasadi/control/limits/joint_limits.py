"""Limits of joints that hold up to the stop, not for one tick only.

Before its stop a joint obeys `braking_rule.py`; it also has limits of speed and acceleration. A
`reserve` is a share of the braking that is not planned with, and makes up for what model and load
get wrong. Over a delay q and v are predicted, see `predicted_motion.py`. What actuators cannot give
is not demanded, see `viability.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.limits.braking_rule import braking_bound
from mbcasadi.control.limits.predicted_motion import predicted
from mbcasadi.control.limits.usual_braking import (
    LEAST_TICKS,
    Inertia,
    JointIndices,
    usual_braking,
)
from mbcasadi.control.tick.design import Design, Tick
from mbcasadi.control.tick.instant import Instant
from mbcasadi.control.tick.part import Bound, FollowedCoordinate, Part
from mbcasadi.description import TuningParameter
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.errors import ProblemError
from mbcasadi.qp.rows import Bounded, Row, Rows, Sizes, moved_ends
from mbcasadi.shapes import real_array
from mbcasadi.system import System
from mbcasadi.system.names_by_kind import require_name_of
from mbcasadi.system.ranges import Ranges

Array = NDArray[np.float64]
PerJoint = float | Sequence[float]

RESERVE = 0.3
"""Default share of the braking that is not planned with: it covers a mass error of 10 %, a delay of
a tick and what disturbances take."""


ANY_BRAKING = 1.0
"""Of limits that are not lowered: nothing reads it, so joints that nothing brakes have limits."""


@final
@dataclass(frozen=True)
class JointLimits(Part):
    """Limits of slide and hinge joints, in m or rad; a number, or one for each of `joints`.

    In optimal control positions and speeds are bounded as they are, of passive joints too.

    Attributes:
        joints: names; None for all that have a range in the model, but without `braking` those that
            no actuator drives, itself or through constraints (`System.joint_roles`).
        velocity: largest speed; None for no limit.
        acceleration: largest acceleration; None for no limit.
        braking: deceleration that is relied on before a stop, at most `acceleration`. None for half
            of what the actuators give all joints together at their limits, gravity, poses and
            signs at their worst, see `usual_braking.py`, and at most `acceleration`.
        margin: distance that is kept from the model's stops.
        reserve: share of `braking`, below 1, that is not planned with. Where it does not suffice,
            what is needed is demanded, up to what the actuators can give.
    """

    joints: tuple[str, ...] | None = None
    velocity: PerJoint | None = None
    acceleration: PerJoint | None = None
    braking: PerJoint | None = None
    margin: PerJoint = 0.0
    reserve: float = RESERVE

    def __post_init__(self) -> None:
        require_fields(self)
        require_reserve(self.reserve)

    def bind(self, design: Design) -> Bound:
        """Return the limits as bounds of accelerations, with their entries of `tuning`.

        Raises:
            ProblemError, UnknownNameError: as in `limited_joints`; a joint that others hold.
        """
        joints, h = limited_joints_of(design, self), design.tick.length
        places, dofs = list(joints.places), list(joints.dofs)

        def state(now: Instant) -> tuple[ca.SX, ca.SX]:
            """Return positions and speeds (k,) of the joints when the control acts."""
            plans = [a[dofs, 0] for a in now.plans]
            return predicted(now.q[places, 0], now.v[dofs, 0], plans, design.tick)

        def rows(now: Instant, sizes: Sizes) -> list[Rows]:
            lower, upper = acceleration_bounds(_tuned(joints, now.tuning), *state(now), design.tick)
            eye = ca.SX.eye(sizes.nv)
            low, high = ca.fmax(lower, -UNBOUNDED), ca.fmin(upper, UNBOUNDED)
            return [sizes.rows(joints.about, low, high, C_a=eye[dofs, :])]

        def path(now: Instant) -> list[Bounded]:
            """Return the ranges, margins off, and the speeds of the joints."""
            tuned, rows = _tuned(joints, now.tuning), list[Bounded]()
            ends = zip(joints.lower, joints.upper, joints.velocity, strict=True)
            for k, (low, high, fastest) in enumerate(ends):
                name, speed = joints.names[k], tuned.velocity[k]
                place = Bounded(now.q[places[k]], low, high, name=f"range of {name}")
                rate = Bounded(now.v[dofs[k]], -fastest, fastest, name=f"speed of {name}")
                rows += (
                    moved_ends(place, tuned.lower[k], tuned.upper[k]),
                    moved_ends(rate, -speed, speed),
                )
            return rows

        def lost(now: Instant) -> ca.SX:
            """Whether a joint is faster than its limit by more than a tick of its braking takes."""
            speeds, limits = state(now)[1], _tuned(joints, now.tuning).velocity
            fast = [ca.SX(0)]
            for k, braking in enumerate(joints.braking):
                taken = h * (joints.acceleration[k] if np.isnan(braking) else braking)
                if np.isfinite(taken) and np.isfinite(joints.velocity[k]):
                    fast.append(ca.fabs(speeds[k]) - limits[k] > taken)
            return ca.mmax(ca.vertcat(*fast))

        tuning = _entries(joints) if "limits" in design.tunable else ()
        names = {entry.name for entry in tuning}
        pairs = [(f"{name}.range.lower", f"{name}.range.upper") for name in joints.names]
        left_out = ", ".join(joints.left_out)
        return Bound(
            "joints",
            tuning=tuning,
            ordered=tuple(pair for pair in pairs if names.issuperset(pair)),
            positions=joints.about,
            planned=joints.dofs,
            followed=tuple(
                FollowedCoordinate(dof, float(a), float(high - low))
                for dof, a, low, high in zip(
                    joints.dofs, joints.followed, joints.lower, joints.upper, strict=True
                )
            ),
            notes={"passive joints without limits": left_out} if left_out else {},
            rows=rows,
            path=path,
            lost=lost,
        )


def limited_joints_of(design: Design, limits: JointLimits) -> "LimitedJoints":
    """Return the limits of joints that no other part holds.

    Raises:
        ProblemError, UnknownNameError: as in `limited_joints`; a joint that is held is named; a
            limit of accelerations over a horizon.
    """
    system, held = design.system, design.held_joints
    if not design.lowers:
        if limits.acceleration is not None:
            raise ProblemError(
                f"acceleration = {limits.acceleration}: over a horizon JointLimits bound positions "
                "and speeds; expected None, and a Bounded row of your own"
            )
        limits = replace(limits, braking=ANY_BRAKING)
    if limits.joints is not None:
        named = [name for name in limits.joints if name in held]
        if named:
            raise ProblemError(
                f"joint '{named[0]}' has limits and is a rigid spring, which no actuator moves; "
                "expected limits of other joints"
            )
    elif held:
        stops = zip(system.limits.joint_names, system.limits.joint, strict=True)
        ranged = [name for name, ends in stops if np.any(np.isfinite(ends))]
        limits = replace(limits, joints=tuple(name for name in ranged if name not in held))
    return limited_joints(system, limits, design.ranges, design.period, design.added_inertia)


def _entries(joints: "LimitedJoints") -> tuple[TuningParameter, ...]:
    """Return `<joint>.range.lower`, `.upper` and `<joint>.speed`, where there are such limits.

    Ranges may be narrowed, margins included, and speeds lowered.
    """
    entries = []
    for k, name in enumerate(joints.names):
        low, high, speed = (float(x[k]) for x in (joints.lower, joints.upper, joints.velocity))
        for end, value in (("lower", low), ("upper", high)):
            if np.isfinite(value):
                entries.append(TuningParameter(f"{name}.range.{end}", value, low, high))
        if np.isfinite(speed):
            entries.append(TuningParameter(f"{name}.speed", speed, 0.0, speed))
    return tuple(entries)


def _tuned(joints: "LimitedJoints", entries: Mapping[str, ca.SX]) -> "LimitedJoints":
    """Return the limits with their entries of `tuning`."""
    labels = {"lower": "range.lower", "upper": "range.upper", "velocity": "speed"}
    names = [(f"{name}.{label}") for name in joints.names for label in labels.values()]
    if not any(name in entries for name in names):
        return joints
    columns: dict[str, Any] = {
        key: ca.vertcat(
            *(
                entries.get(f"{name}.{label}", ca.SX(float(value)))
                for name, value in zip(joints.names, getattr(joints, key), strict=True)
            )
        )
        for key, label in labels.items()
    }
    return replace(joints, **columns)


def require_reserve(reserve: float) -> None:
    """Raise `ProblemError` unless a reserve is a share below 1."""
    if not 0 <= reserve < 1:
        raise ProblemError(f"reserve = {reserve}; expected a share of `braking` from 0 to below 1")


@dataclass(frozen=True)
class LimitedJoints:
    """The limits of joints as numbers, one for each; infinite where there are none.

    Attributes:
        names: of the joints.
        dofs, places: indices in v and in q.
        lower, upper: (k,) positions, also as expressions.
        velocity, acceleration, braking: (k,).
        reserve: share of the braking that is not planned with.
        followed: (k,) acceleration that tasks are bounded by: the braking, by default without what
            servos add to the inertia, of which light joints would hold back whole arms.
        units: of the accelerations.
        left_out: passive joints with a range, which nothing brakes.
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
    followed: Array
    units: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    @property
    def about(self) -> tuple[Row, ...]:
        """What the rows of the joints are."""
        rows = zip(self.names, self.units, self.planned.tolist(), strict=True)
        return tuple(
            Row(f"joint '{name}': range", f"range of {name}", "joints", ("joint", name), unit, d)
            for name, unit, d in rows
        )

    @property
    def planned(self) -> Array:
        """(k,) deceleration that is planned with; NaN for none."""
        return (1.0 - self.reserve) * self.braking


def limited_joints(
    system: System,
    limits: JointLimits,
    ranges: Ranges,
    period: float,
    inertia: Inertia | None = None,
) -> LimitedJoints:
    """Return the limits of a system's joints.

    Args:
        system: read from a model.
        limits: what is limited.
        ranges: of controls and actuator forces.
        period: length of a tick, s.
        inertia: that of the usual braking; see there.

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
    left_out: tuple[str, ...] = ()
    if names is None:
        names = tuple(name for name, ends in stops.items() if np.any(np.isfinite(ends)))
        if limits.braking is None:
            left_out = tuple(name for name in names if name in system.joint_roles.passive)
            names = tuple(name for name in names if name not in left_out)
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
    followed = braking
    acceleration = _each("acceleration", limits.acceleration, names, np.inf)
    if limits.braking is None:
        places = JointIndices(dofs, tuple(joint.qpos for joint in joints))
        most = np.minimum(4 * (ends[:, 1] - ends[:, 0]) / (LEAST_TICKS * period) ** 2, acceleration)
        stops_of = ends[:, 0], ends[:, 1]
        followed = np.minimum(usual_braking(system, places, stops_of, ranges), most)
        braking = followed
        if inertia is not None:
            usual = usual_braking(system, places, stops_of, ranges, inertia)
            braking = np.minimum(usual, most)
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
        followed=followed,
        units=tuple("rad/s²" if joint.kind == "hinge" else "m/s²" for joint in joints),
        left_out=left_out,
    )


def acceleration_bounds(
    joints: LimitedJoints, q: ca.SX, v: ca.SX, tick: Tick
) -> tuple[ca.SX, ca.SX]:
    """Return lower and upper bounds (k,) of the joints' accelerations during a tick.

    Args:
        joints: the limits.
        q, v: (k,) positions and speeds of the joints at the start of the tick.
        tick: how it advances them.
    """
    lower, upper = [ca.SX(0, 1)], [ca.SX(0, 1)]
    for k in range(len(joints.names)):
        d, limit, most = joints.braking[k], joints.velocity[k], joints.acceleration[k]
        above = _stop_bound(joints.upper[k] - q[k], v[k], joints.planned[k], tick)
        below = _stop_bound(q[k] - joints.lower[k], -v[k], joints.planned[k], tick)
        faster, slower = (
            _speed_bound(sign * v[k], d, limit, most, tick.length) for sign in (1, -1)
        )
        upper.append(ca.fmin(_at_least(above, -slower), faster))
        lower.append(-ca.fmin(_at_least(below, -faster), slower))
    return ca.vertcat(*lower), ca.vertcat(*upper)


def _stop_bound(left: ca.SX, v: ca.SX, planned: float, tick: Tick) -> ca.SX:
    """Return the largest acceleration towards a stop; infinite where there is none."""
    if left.is_constant() and np.isinf(float(left)):
        return ca.SX(np.inf)
    return braking_bound(left, v, planned, tick)


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
