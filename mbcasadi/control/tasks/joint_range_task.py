"""Task that keeps joints away from the ends of their ranges: smooth, without a barrier."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.control.tasks.output_task import output_fun
from mbcasadi.control.tasks.task import Array, Gain, Residual, Slot, Task, require_state
from mbcasadi.errors import ProblemError
from mbcasadi.system import System
from mbcasadi.system.names_by_kind import require_name_of


@final
@dataclass(frozen=True)
class JointRangeTask(Task):
    """Joints keep a distance from the ends of their ranges, as far as heavier tasks let them.

    With the border b, a share of the range next to each end, the output of a joint is

        y = s(q - (upper - b)) - s((lower + b) - q),   s(x) = ½ (x + (x² + (b/2)²)^½),

    which is to be zero: it hardly changes in the middle of the range, becomes the depth in a
    border, and has all derivatives at the ends and beyond. It has no reference.

    Attributes:
        joints: names of slides and hinges with two stops; None for all of them.
        border: b, share of the range, up to ½.
        kp, kd: gains, 1/s² and 1/s; kd is critical unless given.
        weight: of the squared acceleration error, a number or one for each joint.
        name: of the task.
    """

    joints: tuple[str, ...] | None = None
    border: float = 0.2
    kp: Gain = 100.0
    kd: Gain | None = None
    weight: Gain = 1.0
    name: str = "ranges"

    def __post_init__(self) -> None:
        require_fields(self)
        if not 0 < self.border <= 0.5:
            raise ProblemError(f"border = {self.border}; expected a share above 0, at most 0.5")

    @checked
    def components(self, system: System) -> tuple[str, ...]:
        """Return the joints' names.

        Raises:
            UnknownNameError: no slide or hinge of that name.
            ProblemError: a joint without two stops; no joint with them.
        """
        stops = dict(zip(system.limits.joint_names, system.limits.joint, strict=True))
        ranged = [name for name, ends in stops.items() if np.all(np.isfinite(ends))]
        for name in self.joints or ():
            require_name_of(system, "slide or hinge joint", name, list(stops))
        chosen = tuple(ranged) if self.joints is None else tuple(self.joints)
        free = [name for name in chosen if name not in ranged]
        if free or not chosen:
            raise ProblemError(
                f"{self.name}: {free[0] if free else 'every joint'} of '{system.name}' lacks a "
                "stop; expected joints with a finite range"
            )
        return chosen

    @checked
    def units(self, system: System) -> tuple[str, ...]:
        """Return m or rad for each joint."""
        assert system.tree is not None
        kinds = {joint.name: joint.kind for joint in system.tree.joints}
        return tuple("rad" if kinds[x] == "hinge" else "m" for x in self.components(system))

    @checked
    def slots(self, system: System) -> tuple[Slot, ...]:
        """Return no slices."""
        self.components(system)
        return ()

    @checked
    def residual(self, system: System, q: ca.SX, v: ca.SX, ref: Mapping[str, ca.SX]) -> Residual:
        """Return -y, its Jacobian and bias.

        Args:
            system, q, v, ref: as in `Task.residual`.
        """
        require_state(self, system, q, v, ref)
        key = f"ranges.{self.border}.{self.joints}"
        output = system.cached_function(key, lambda: output_fun(system, self._output(system)))
        y, J, bias = output(q, v)
        rest = ca.SX.zeros(y.numel())
        return Residual(J=J, c=bias, error=-y, target=rest, v_ref=rest, a_ref=rest)

    @checked
    def hold_reference(self, system: System, q: Array) -> dict[str, Array]:  # noqa: ARG002
        """Return no slices."""
        self.components(system)
        return {}

    def _output(self, system: System) -> ca.Function:
        """Return (q) → (y)."""
        assert system.tree is not None
        places = {joint.name: joint.qpos for joint in system.tree.joints}
        stops = dict(zip(system.limits.joint_names, system.limits.joint, strict=True))
        q, outputs = ca.SX.sym("q", system.nq), []
        for name in self.components(system):
            (low, high), x = stops[name], q[places[name]]
            border = self.border * (high - low)
            outputs.append(
                _depth(x - (high - border), border / 2) - _depth(low + border - x, border / 2)
            )
        return ca.Function("ranges", [q], [ca.vertcat(*outputs)], ["q"], ["y"])


def _depth(x: ca.SX, width: float) -> ca.SX:
    """Return `½ (x + (x² + width²)^½)`, about x where that is positive, else about zero."""
    return (x + ca.sqrt(x**2 + width**2)) / 2
