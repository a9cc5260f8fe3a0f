"""Tasks of one axis of a frame: along a direction, or at a point; the turn about it is free.

With the axis b of the frame, the desired direction d (unit vectors) and two axes `e_1`, `e_2` of
the frame across b, the rates and errors of the two rows are

    eᵀ (ω - d × ḋ),   eᵀ θ n,   n = b × d / |b × d|,   θ the angle from b to d.

A direction that leads from the frame's origin to a point depends on the frame's position, too.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.control.tasks.axes import AXES
from mbcasadi.control.tasks.task import Array, Gain, Residual, Slot, Task, require_state
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column, real_array
from mbcasadi.system import FrameFunctions, System

Vector = tuple[float, float, float]
Quantity = tuple[str, str]
"""Name of a slice and unit of its entries."""


@dataclass(frozen=True)
class AxisTask(Task):
    """One axis of a frame turns towards a direction. A concrete task says which one it is.

    Attributes:
        frame: name of the site, body or geom, or of a frame of `System.with_frame`.
        axis: in the frame's axes, of any length; it leaves the frame's origin.
        kind: "site", "body" or "geom".
        kp, kd: gains, 1/s² and 1/s, a number or one for each of two rows; kd is critical unless
            given.
        weight: of the squared acceleration error, a number or one for each row.
        name: prefix of the reference's slices; "<frame>_axis" or "<frame>_view" unless given.
    """

    frame: str
    axis: Vector = (0.0, 0.0, 1.0)
    kind: str = "site"
    kp: Gain = 100.0
    kd: Gain | None = None
    weight: Gain = 1.0
    name: str = ""

    @final
    def __post_init__(self) -> None:
        require_fields(self)
        object.__setattr__(self, "name", self.name or f"{self.frame}_{self._suffix()}")
        _require_axis(self)

    @abstractmethod
    def _suffix(self) -> str:
        """Return the end of the default name."""

    @abstractmethod
    def _quantities(self) -> tuple[Quantity, Quantity, Quantity]:
        """Return what the direction follows: a vector, its rate and its second one."""

    @abstractmethod
    def _direction(self, target: ca.SX, origin: ca.SX) -> ca.SX:
        """Return the desired direction (3,), of any length.

        Args:
            target: (3,) the first of the quantities.
            origin: (3,) of the frame, m.
        """

    @abstractmethod
    def _present(self, origin: Array, axis: Array) -> Array:
        """Return the target (3,) at which the error is zero.

        Args:
            origin, axis: (3,), (3,) those of the frame, world axes.
        """

    @checked
    @final
    def components(self, system: System) -> tuple[str, ...]:
        """Return the two rows across the axis."""
        self._frame(system)
        return ("across0", "across1")

    @checked
    @final
    def units(self, system: System) -> tuple[str, ...]:  # noqa: ARG002  # the interface's
        """Return rad."""
        return ("rad", "rad")

    @checked
    @final
    def slots(self, system: System) -> tuple[Slot, ...]:  # noqa: ARG002  # the interface's
        """Return the slices of the direction."""
        return tuple(
            Slot(f"{self.name}.{quantity}", tuple(AXES), (unit,) * 3)
            for quantity, unit in self._quantities()
        )

    @checked
    @final
    def residual(self, system: System, q: ca.SX, v: ca.SX, ref: Mapping[str, ca.SX]) -> Residual:
        """Return the error across the axis, its Jacobian and bias.

        Args:
            system, q, v, ref: as in `Task.residual`.
        """
        require_state(self, system, q, v, ref)
        key = f"{type(self).__name__}.{self.kind}.{self.frame}.{self.axis}"
        rows = system.cached_function(key, lambda: self._rows_fun(system))
        J, bias, error, v_ref, a_ref = rows(q, v, *(ref[name] for name, _ in self._quantities()))
        return Residual(J, bias, error, ca.SX(2, 1), v_ref, a_ref)

    @checked
    @final
    def hold_reference(self, system: System, q: Array) -> dict[str, Array]:
        """Return the present direction, at rest."""
        p, R = (np.array(x) for x in self._frame(system).pose(column("q", q, system.nq)))
        target = self._present(p.ravel(), R @ _unit_axis(self.axis))
        names = [name for name, _ in self._quantities()]
        return dict(zip(names, (target, np.zeros(3), np.zeros(3)), strict=True))

    def _frame(self, system: System) -> FrameFunctions:
        frame = system.frame(self.frame, self.kind)
        frame.quaternion  # noqa: B018  # refuses a point without a rotation
        return frame

    def _rows_fun(self, system: System) -> ca.Function:
        """Return (q, v, target, rate, second) → (J, bias, error, v_ref, a_ref)."""
        q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
        target, rate, second = (ca.SX.sym(name, 3) for name, _ in self._quantities())
        frame, N = self._frame(system), system.velocity_map(q)
        p, R = frame.pose(q)
        b = ca.DM(_unit_axis(self.axis))
        E = ca.DM(_across(self.axis)) @ R.T
        d = _unit(self._direction(target, p))

        def change(y: ca.SX) -> ca.SX:
            """Return the rate of y at constant v and `rate`."""
            return ca.jtimes(y, q, N @ v) + ca.jtimes(y, target, rate)

        def turn(of: ca.SX) -> ca.SX:
            """Return how the direction turns, along E, by a rate of the target."""
            return E @ ca.cross(d, ca.jtimes(d, target, of))

        J = E @ (frame.jacobian(q)[3:, :] - ca.skew(d) @ ca.jacobian(d, q) @ N)
        error = ca.DM(_across(self.axis)) @ _turn_to(b, R.T @ d, ca.DM(_across(self.axis)).T)
        v_ref = turn(rate)
        outputs = [J, change(J @ v), error, v_ref, change(v_ref) + turn(second)]
        return ca.Function("axis", [q, v, target, rate, second], [ca.densify(x) for x in outputs])


@final
@dataclass(frozen=True)
class DirectionTask(AxisTask):
    """An axis of a frame follows a direction in the world: a cup stays upright.

    Its reference has the slices `direction`, `velocity` and `acceleration`; attributes are those
    of `AxisTask`.
    """

    def _suffix(self) -> str:
        return "axis"

    def _quantities(self) -> tuple[Quantity, Quantity, Quantity]:
        """Return direction, velocity and acceleration of a vector along it."""
        return ("direction", ""), ("velocity", "1/s"), ("acceleration", "1/s²")

    def _direction(self, target: ca.SX, origin: ca.SX) -> ca.SX:  # noqa: ARG002
        """Return the target."""
        return target

    def _present(self, origin: Array, axis: Array) -> Array:  # noqa: ARG002  # the interface's
        """Return the axis."""
        return axis


@final
@dataclass(frozen=True)
class LookAtTask(AxisTask):
    """An axis of a frame leads to a point in the world: a camera looks at an object.

    Its reference has the slices `point`, `velocity` and `acceleration`; attributes are those of
    `AxisTask`.
    """

    def _suffix(self) -> str:
        return "view"

    def _quantities(self) -> tuple[Quantity, Quantity, Quantity]:
        """Return position, velocity and acceleration of the point."""
        return ("point", "m"), ("velocity", "m/s"), ("acceleration", "m/s²")

    def _direction(self, target: ca.SX, origin: ca.SX) -> ca.SX:
        """Return the way from the origin to the point."""
        return target - origin

    def _present(self, origin: Array, axis: Array) -> Array:
        """Return a point at a distance of 1 m."""
        return origin + axis


def _require_axis(task: AxisTask) -> None:
    axis = real_array(f"{task.name}: axis", task.axis)
    if axis.shape != (3,) or not np.all(np.isfinite(axis)) or not np.any(axis):
        raise ProblemError(f"{task.name}: axis={task.axis}; expected three numbers, not all zero")


def _unit_axis(axis: Vector) -> Array:
    vector = np.asarray(axis, dtype=float)
    result: Array = vector / np.linalg.norm(vector)
    return result


def _across(axis: Vector) -> Array:
    """Return two unit vectors across an axis and each other, as rows (2, 3)."""
    b = _unit_axis(axis)
    first = np.cross(b, np.eye(3)[np.argmin(np.abs(b))])
    first /= np.linalg.norm(first)
    return np.array([first, np.cross(b, first)])


def _unit(x: ca.SX) -> ca.SX:
    """Return the vector divided by its length; zero for zero."""
    square = ca.sumsqr(x)
    return x / ca.sqrt(ca.if_else(square > 0, square, 1))


def _turn_to(b: ca.DM, d: ca.SX, across: ca.DM) -> ca.SX:
    """Return the rotation vector (3,) from b to d; where they are opposite, along `across`."""
    n, c = ca.cross(b, d), ca.dot(b, d)
    square = ca.sumsqr(n)
    apart = square > 0
    s = ca.sqrt(ca.if_else(apart, square, 1))
    opposite = ca.if_else(c < 0, np.pi, 0) * across[:, 0]
    return ca.if_else(apart, n * (ca.atan2(s, c) / s), opposite)
