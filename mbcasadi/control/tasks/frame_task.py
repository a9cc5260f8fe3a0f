"""Task of a frame in the world or seen from another one: a hand, a foot in the air, the trunk."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.control.tasks.axes import AXES, require_axes
from mbcasadi.control.tasks.task import Array, Gain, Residual, Slot, Task, require_state
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column
from mbcasadi.spatial import Quat, conjugate, logarithm, multiply, stack
from mbcasadi.system import FrameFunctions, System
from mbcasadi.system.frames import require_fixed
from mbcasadi.system.shifted_frames import shifted_frame


@dataclass(frozen=True)
class FrameTask(Task):
    """A site, body or geom tracks a position and an orientation.

    `error = p_ref - p` and `log(quat_ref ∘ quat⁻¹)`, the rotation vector that leads from the
    present orientation to the desired one. Quaternions are w x y z. All is in world axes, or, with
    a `base`, relative to that frame in its axes: a hand beside a moving trunk, one hand from the
    other one.

    Attributes:
        frame: name of the site or body, or of a frame of `System.with_frame`.
        kind: "site", "body" or "geom".
        position: axes along which the position is controlled, "" for none.
        orientation: axes about which the orientation is controlled, "" for none.
        kp, kd: gains, 1/s² and 1/s, a number or one for each row; kd is critical unless given.
        weight: of the squared acceleration error, a number or one for each row.
        name: prefix of the reference's slices; the frame's name unless given.
        base: name of the frame that it is seen from; "" for the world.
        base_kind: "site", "body" or "geom".
        offset: (3,) point of the frame that is controlled, in its axes, m: ahead of the axle of
            wheels, for example.
    """

    frame: str
    kind: str = "site"
    position: str = AXES
    orientation: str = AXES
    kp: Gain = 100.0
    kd: Gain | None = None
    weight: Gain = 1.0
    name: str = ""
    base: str = ""
    base_kind: str = "body"
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        require_fields(self)
        object.__setattr__(self, "name", self.name or self.frame)
        require_axes(f"{self.name}: position", self.position, least=0)
        require_axes(f"{self.name}: orientation", self.orientation, least=0)
        if not self.position + self.orientation:
            raise ProblemError(f"{self.name}: no axis of position or orientation is controlled")
        if any(self.offset) and self.base:
            raise ProblemError(
                f"{self.name}: offset {self.offset} seen from '{self.base}'; expected a site there"
            )

    @checked
    def components(self, system: System) -> tuple[str, ...]:
        """Return x, y, z of the position, then rx, ry, rz of the rotation."""
        frame = self._seen(system)
        if self.orientation:
            frame.quaternion  # noqa: B018  # refuses a point without a rotation
        return tuple(self.position) + tuple(f"r{axis}" for axis in self.orientation)

    @checked
    def units(self, system: System) -> tuple[str, ...]:  # noqa: ARG002  # the interface's
        """Return m for positions, rad for rotations."""
        return ("m",) * len(self.position) + ("rad",) * len(self.orientation)

    @checked
    def slots(self, system: System) -> tuple[Slot, ...]:  # noqa: ARG002  # the interface's
        """Return the slices of the pose, of its rate and of its acceleration."""
        linear, angular = tuple(self.position), tuple(f"r{axis}" for axis in self.orientation)
        slots = []
        for quantity, unit in (("position", "m"), ("velocity", "m/s"), ("acceleration", "m/s²")):
            slots.append(Slot(f"{self.name}.{quantity}", linear, (unit,) * len(linear)))
        slots.append(Slot(f"{self.name}.quaternion", ("w", "x", "y", "z"), ("",) * 4))
        for quantity, unit in (("velocity", "rad/s"), ("acceleration", "rad/s²")):
            name = f"{self.name}.angular_{quantity}"
            slots.append(Slot(name, angular, (unit,) * len(angular)))
        return tuple(slots[:3] * bool(linear) + slots[3:] * bool(angular))

    @checked
    def residual(self, system: System, q: ca.SX, v: ca.SX, ref: Mapping[str, ca.SX]) -> Residual:
        """Return the chosen rows of the frame's error, Jacobian and bias.

        Args:
            system, q, v, ref: as in `Task.residual`.
        """
        require_state(self, system, q, v, ref)
        frame = self._seen(system)
        chosen = [AXES.index(a) for a in self.position]
        chosen += [3 + AXES.index(a) for a in self.orientation]
        J, c = frame.jacobian(q)[chosen, :], frame.bias(q, v)[chosen]
        errors, targets = self._errors(system, q, ref)
        v_ref, a_ref = self._rates(ref, "velocity"), self._rates(ref, "acceleration")
        return Residual(J, c, errors, targets, v_ref, a_ref)

    @checked
    def hold_reference(self, system: System, q: Array) -> dict[str, Array]:
        """Return the frame's present pose, at rest."""
        frame = self._seen(system)
        q = column("q", q, system.nq)
        values: dict[str, Array] = {}
        if self.position:
            p = np.array(frame.pose(q)[0]).ravel()
            values["position"] = p[[AXES.index(a) for a in self.position]]
            values["velocity"] = values["acceleration"] = np.zeros(len(self.position))
        if self.orientation:
            values["quaternion"] = np.array(frame.quaternion(q)).ravel()
            rest = np.zeros(len(self.orientation))
            values["angular_velocity"] = values["angular_acceleration"] = rest
        return values

    def _seen(self, system: System) -> FrameFunctions:
        """Return the frame's Functions, in the world or seen from the base."""
        if not self.base:
            frame = system.frame(self.frame, self.kind)
            require_fixed(frame)
            if any(self.offset):
                frame.quaternion  # noqa: B018  # refuses a point without a rotation
                return shifted_frame(frame, self.offset, (system.nq, system.nv))
            return frame
        return system.relative_frame(
            self.frame, self.base, kind=self.kind, base_kind=self.base_kind
        )

    def _errors(self, system: System, q: ca.SX, ref: Mapping[str, ca.SX]) -> tuple[ca.SX, ca.SX]:
        """Return the error and the target of each row."""
        frame = self._seen(system)
        errors, targets = [ca.SX(0, 1)], [ca.SX(0, 1)]
        if self.position:
            p = frame.pose(q)[0][[AXES.index(a) for a in self.position]]
            errors.append(ref["position"] - p)
            targets.append(ref["position"])
        if self.orientation:
            rows = [AXES.index(a) for a in self.orientation]
            target = _unit(ref["quaternion"])
            w, x, y, z = ca.vertsplit(ca.densify(frame.quaternion(q)))
            apart = multiply(target, conjugate((w, x, y, z)))
            errors.append(stack(logarithm(apart))[rows])
            targets.append(stack(logarithm(target))[rows])
        return ca.vertcat(*errors), ca.vertcat(*targets)

    def _rates(self, ref: Mapping[str, ca.SX], quantity: str) -> ca.SX:
        """Return the linear part of a rate above its angular part."""
        parts = [ca.SX(0, 1)]
        parts += [ref[quantity]] if self.position else []
        parts += [ref[f"angular_{quantity}"]] if self.orientation else []
        return ca.vertcat(*parts)


def _unit(quat: ca.SX) -> Quat:
    """Return the quaternion divided by its length; the identity where it is zero."""
    size2 = ca.sumsqr(quat)
    usable = size2 > 0
    inverse = usable / ca.sqrt(ca.if_else(usable, size2, 1))
    w = ca.if_else(usable, quat[0] * inverse, 1)
    return (w, quat[1] * inverse, quat[2] * inverse, quat[3] * inverse)
