"""Task of a frame in the world: a hand, a foot in the air, the trunk."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.control.tasks.task import Array, Gain, Residual, Slot, Task, require_state
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column
from mbcasadi.spatial import Quat, conjugate, logarithm, multiply, stack
from mbcasadi.system import System

AXES = "xyz"


@dataclass(frozen=True)
class FrameTask(Task):
    """A site or body tracks a position and an orientation, world axes.

    `error = p_ref - p` and `log(quat_ref ∘ quat⁻¹)`, the rotation vector in world axes that
    leads from the present orientation to the desired one. Quaternions are w x y z.

    Attributes:
        frame: name of the site or body, or of a frame of `System.with_frame`.
        kind: "site" or "body".
        position: world axes along which the position is controlled, "" for none.
        orientation: world axes about which the orientation is controlled, "" for none.
        kp, kd: gains, 1/s² and 1/s, a number or one for each row; kd is critical unless given.
        weight: of the squared acceleration error, a number or one for each row.
        name: prefix of the reference's slices; the frame's name unless given.
    """

    frame: str
    kind: str = "site"
    position: str = AXES
    orientation: str = AXES
    kp: Gain = 100.0
    kd: Gain | None = None
    weight: Gain = 1.0
    name: str = ""

    def __post_init__(self) -> None:
        require_fields(self)
        object.__setattr__(self, "name", self.name or self.frame)
        for label, axes in (("position", self.position), ("orientation", self.orientation)):
            if len(set(axes)) != len(axes) or not set(axes) <= set(AXES):
                raise ProblemError(
                    f"{self.name}: {label}={axes!r}; expected letters of 'xyz', each once"
                )
        if not self.position + self.orientation:
            raise ProblemError(f"{self.name}: no axis of position or orientation is controlled")

    @checked
    def components(self, system: System) -> tuple[str, ...]:
        """Return x, y, z of the position, then rx, ry, rz of the rotation."""
        frame = system.frame(self.frame, self.kind)
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
        frame = system.frame(self.frame, self.kind)
        chosen = [AXES.index(a) for a in self.position]
        chosen += [3 + AXES.index(a) for a in self.orientation]
        J, c = frame.jacobian(q)[chosen, :], frame.bias(q, v)[chosen]
        errors, targets = self._errors(system, q, ref)
        v_ref, a_ref = self._rates(ref, "velocity"), self._rates(ref, "acceleration")
        return Residual(J, c, errors, targets, v_ref, a_ref)

    @checked
    def hold_reference(self, system: System, q: Array) -> dict[str, Array]:
        """Return the frame's present pose, at rest."""
        frame = system.frame(self.frame, self.kind)
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

    def _errors(self, system: System, q: ca.SX, ref: Mapping[str, ca.SX]) -> tuple[ca.SX, ca.SX]:
        """Return the error and the target of each row."""
        frame = system.frame(self.frame, self.kind)
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
