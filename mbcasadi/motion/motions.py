"""Motions of a pose and of a vector over time, with rates that are their exact derivatives.

A motion is one Function of time. Rates follow from the value by differentiation of its expression,

    v = dp/dt,    ω = 2 vec(dquat/dt ∘ quat*),    dv/dt,    dω/dt,

in world axes, as the slices of a `FrameTask` have them. Before its start and after its end a
motion rests where it is then.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.motion.pose import Pose
from mbcasadi.motion.time_function import TimeFunction
from mbcasadi.shapes import number
from mbcasadi.short_text import summarised
from mbcasadi.spatial import conjugate, multiply, normalise
from mbcasadi.spatial.quaternion_columns import quat_of

Array = NDArray[np.float64]

POSE_PARTS = {"position": 3, "quaternion": 4, "velocity": 6, "acceleration": 6}
"""Outputs of a motion of a pose, and their sizes."""

VECTOR_PARTS = ("q", "v", "a")
"""Outputs of a motion of a vector."""


@summarised
@dataclass(frozen=True, eq=False)
class PoseSample:
    """A pose that moves.

    Attributes:
        pose: of the frame in the world.
        velocity: (6,) of its origin, m/s, above the angular velocity, rad/s; in world axes.
        acceleration: (6,) rate of `velocity`, m/s² and rad/s².
    """

    pose: Pose
    velocity: Array
    acceleration: Array


@summarised
@dataclass(frozen=True, eq=False)
class VectorSample:
    """A vector that moves: coordinates of joints that have one each, or a point.

    Attributes:
        q, v, a: (n,) value, rate and rate of the rate.
    """

    q: Array
    v: Array
    a: Array


@dataclass(frozen=True, eq=False, repr=False)
class OverTime:
    """A Function of time, and between which times it moves."""

    function: ca.Function
    start: float = 0.0
    end: float = math.inf

    @checked
    def values(self, t: float) -> Array:
        """Return the outputs of `function` in one vector, (19,) or (3 n,), at a time, s."""
        return self._evaluate(_finite(t))

    @cached_property
    def _evaluate(self) -> TimeFunction:
        return TimeFunction(self.function)


@summarised
@dataclass(frozen=True, eq=False)
class PoseMotion(OverTime):
    """`motion(t)`, t in s, is the pose at that time, with its velocity and acceleration.

    Attributes:
        function: (t) → (position, quaternion, velocity, acceleration), of (3,), (4,), (6,), (6,).
        start, end: s; infinite where the motion goes on.
    """

    @checked
    def __call__(self, t: float) -> PoseSample:
        """Return pose, velocity and acceleration at a time, s."""
        p, q, v, a = np.split(self.values(t), np.cumsum([*POSE_PARTS.values()])[:-1])
        return PoseSample(Pose(p, q), v, a)

    def _summary(self) -> dict[str, object]:
        return {"start": self.start, "end": self.end}


@summarised
@dataclass(frozen=True, eq=False)
class VectorMotion(OverTime):
    """`motion(t)`, t in s, is the vector at that time, with its rates.

    Attributes:
        function: (t) → (q, v, a), each (n,).
        start, end: s; infinite where the motion goes on.
    """

    @property
    def size(self) -> int:
        """Number n of entries."""
        return int(self.function.numel_out(0))

    @checked
    def __call__(self, t: float) -> VectorSample:
        """Return the vector and its rates at a time, s."""
        return VectorSample(*np.split(self.values(t), 3))

    def _summary(self) -> dict[str, object]:
        return {"size": self.size, "start": self.start, "end": self.end}


@checked
def pose_motion(
    t: ca.SX,
    position: ca.SX,
    quaternion: ca.SX | None = None,
    *,
    start: float = 0.0,
    end: float = math.inf,
) -> PoseMotion:
    """Return the motion of a pose that is given as an expression of time.

    Args:
        t: symbol of time, s.
        position: (3, 1) m.
        quaternion: (4, 1) w x y z, of any length but zero; that of no turn by default.
        start, end: s, between which it moves.

    Raises:
        ShapeError: a wrong shape.
        ProblemError: expressions of other symbols, or an end before the start.
    """
    still = ca.SX(ca.DM([1.0, 0.0, 0.0, 0.0]))
    unit = still if quaternion is None else _normalised(_sized("quaternion", quaternion, 4))
    p = _sized("position", position, 3)
    v, a = pose_rates(t, p, unit)
    return PoseMotion(_timed(t, [p, unit], [v, a], [*POSE_PARTS], (start, end)), start, end)


@checked
def vector_motion(
    t: ca.SX, value: ca.SX, *, start: float = 0.0, end: float = math.inf
) -> VectorMotion:
    """Return the motion of a vector that is given as an expression of time.

    Args:
        t: symbol of time, s.
        value: (n, 1) in any units.
        start, end: s, between which it moves.

    Raises:
        ShapeError: no column.
        ProblemError: an expression of other symbols, or an end before the start.
    """
    x = _sized("value", value, value.shape[0])
    _require_time(t)
    v = ca.jacobian(x, t)
    rates = [v, ca.jacobian(v, t)]
    return VectorMotion(_timed(t, [x], rates, VECTOR_PARTS, (start, end)), start, end)


@checked
def pose_rates(t: ca.SX, position: ca.SX, quaternion: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return velocity and acceleration (6,) of a pose that is an expression of time.

    Args:
        t: symbol of time, s.
        position: (3, 1) m.
        quaternion: (4, 1) unit at all times.

    Raises:
        ShapeError: a wrong shape.
        ProblemError: t is no symbol.
    """
    _require_time(t)
    q = _sized("quaternion", quaternion, 4)
    turning = multiply(quat_of(ca.jacobian(q, t)), conjugate(quat_of(q)))
    linear = ca.jacobian(_sized("position", position, 3), t)
    velocity = ca.vertcat(linear, 2 * ca.vertcat(*turning[1:]))
    return velocity, ca.jacobian(velocity, t)


def hold_outside(function: ca.Function, values: int, ends: tuple[float, float]) -> ca.Function:
    """Return a Function of time that holds its first outputs outside the ends, others being zero.

    Args:
        function: (t) → outputs.
        values: number of outputs that are held; those behind them are rates.
        ends: start and end, s.
    """
    t = ca.MX.sym("t")
    inside = ca.logic_and(t >= ends[0], t <= ends[1])
    outputs = function.call([ca.fmin(ca.fmax(t, ends[0]), ends[1])])
    rates = [ca.if_else(inside, each, 0) for each in outputs[values:]]
    names = function.name_out()
    return ca.Function("motion", [t], [*outputs[:values], *rates], ["t"], names)


def require_ends(start: float, end: float) -> None:
    """Raise `ProblemError` unless a motion starts at a finite time, before its end."""
    if not math.isfinite(start) or not start < end:
        raise ProblemError(
            f"the motion goes from {start} s to {end} s; expected a finite start, and a later end"
        )


def _timed(
    t: ca.SX,
    values: Sequence[ca.SX],
    rates: Sequence[ca.SX],
    names: Sequence[str],
    ends: tuple[float, float],
) -> ca.Function:
    """Return (t) → (values, rates), at rest outside the ends."""
    require_ends(*ends)
    outputs = [ca.densify(each) for each in (*values, *rates)]
    others = [each.name() for each in ca.symvar(ca.vertcat(*outputs)) if not _is_same(each, t)]
    if others:
        raise ProblemError(f"the motion depends on {', '.join(others)}; expected time alone")
    function = ca.Function("motion", [t], outputs, ["t"], list(names))
    return hold_outside(function, len(values), ends)


def _is_same(a: ca.SX, b: ca.SX) -> bool:
    return bool(ca.is_equal(a, b))


def _require_time(t: ca.SX) -> None:
    if not (t.is_scalar() and t.is_symbolic()):
        raise ProblemError(f"t is an expression of shape {t.shape}; expected a symbol, s")


def _sized(name: str, value: ca.SX, size: int) -> ca.SX:
    if value.shape != (size, 1):
        raise ShapeError(f"{name} has shape {value.shape}, expected ({size}, 1)")
    return value


def _normalised(quaternion: ca.SX) -> ca.SX:
    return ca.vertcat(*normalise(quat_of(quaternion)))


def _finite(t: float) -> float:
    if not math.isfinite(now := number("t", t)):
        raise ProblemError(f"t = {t}; expected a finite time, s")
    return now
