"""A lifted foot is put down when the capture point leaves the support: a reaction before the law.

The schedule says which feet stand. Of a foot that it lifts, at each tick,

    lifted → lowered   where the capture point ξ is less than `least` inside the hull of the feet
                       that are scheduled to stand: the foot goes to the ground within `lowering`,
                       beside its scheduled place by `c_dot / ω`, towards ξ, at most `reach`;
    lowered            its contact is on while it is measured to touch;
    lowered → raised   once ξ has been `calm` inside that hull for `pause`: it goes back to where it
                       is scheduled within `raising`, or is lowered again.

As one Function for `validation.reaction` and `export_c`,

    (q, v, f_measured, scheduled_ref, scheduled_mask, z) → (ref, mask, z_next).

A foot whose part of z is no number starts again as scheduled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.contacts.friction_cone import require_ground
from mbcasadi.contacts.touch_down import touch_down
from mbcasadi.control.inverse_dynamics.controller import InverseDynamicsQP
from mbcasadi.control.tasks.axes import AXES
from mbcasadi.control.tasks.frame_task import FrameTask
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.legged.capture_point import capture_point, support_margin
from mbcasadi.mpc.legged.gait import Path, swing_path
from mbcasadi.qp.input_guard import MASK_ON, is_bounded
from mbcasadi.shapes import require_identifier, require_name, require_numbers, require_positive
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]
LIFTED, LOWERED, RAISED = 0.0, 1.0, 2.0
MEMORY = 8  # of a foot: phase, its time, place at its start (3), touches, has left, calm time
AT_REST = (LIFTED, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0)
UPRIGHT = 1e-9  # of a contact's normal beside the vertical


@dataclass(frozen=True)
class StepParameters:
    """When and how a lifted foot is put down.

    It is lowered where the capture point leaves the support, and raised again once it is calm.

    Attributes:
        least: of the capture point inside the support, below which the foot is lowered, m.
        calm: from which on it may be lifted again, m.
        lowering, raising: duration of the foot's way, s.
        pause: for which the foot stands at least, calm, s.
        reach: largest displacement of the foothold, m.
        depth: below the other feet at which its way down would end, m.
        on_force, off_force: N, of a foot that touches; see `touch_down`.

    Raises:
        ProblemError: a number that is not positive, or calm below least.
    """

    least: float = 0.015
    calm: float = 0.03
    lowering: float = 0.12
    raising: float = 0.4
    pause: float = 0.3
    reach: float = 0.1
    depth: float = 0.02
    on_force: float = 5.0
    off_force: float = 2.0

    def __post_init__(self) -> None:
        require_fields(self)
        require_numbers(least=self.least, calm=self.calm, reach=self.reach, depth=self.depth)
        require_positive(lowering=self.lowering, raising=self.raising, pause=self.pause)
        if self.calm < self.least:
            raise ProblemError(f"calm = {self.calm} m below least = {self.least} m")


@summarised
class CaptureStep(NamedTuple):
    """The reaction and the state to start from."""

    function: ca.Function
    z0: Array


class Robot(NamedTuple):
    """One tick: what all feet share."""

    ground: ca.SX
    shift: ca.SX
    falls: ca.SX
    is_calm: ca.SX
    valid: ca.SX


class Foot(NamedTuple):
    """One tick of a foot: its schedule, its place (3,), its normal force, and what z remembers."""

    scheduled: ca.SX
    place: ca.SX
    force: ca.SX
    z: ca.SX


@checked
def capture_step(
    law: InverseDynamicsQP,
    feet: Sequence[str],
    parameters: StepParameters | None = None,
    *,
    name: str = "capture_step",
) -> CaptureStep:
    """Return the reaction that puts a lifted foot down where the robot would fall.

    Args:
        law: on a level floor.
        feet: name of the `FrameTask` of the position of each contact, in their order.
        parameters: when and how.
        name: a C identifier.

    Raises:
        ProblemError: another number of feet than contacts, contacts that are not those of feet
            with a level floor, or a task that does not control x, y and z of a foot.
        UnknownNameError: no such task.
    """
    require_identifier("name", name)
    tasks = {task.name: task for task in law.tasks if isinstance(task, FrameTask)}
    for foot in feet:
        require_name("FrameTask", foot, list(tasks))
        if tasks[foot].position != AXES or tasks[foot].base:
            raise ProblemError(
                f"the task '{foot}' controls the position '{tasks[foot].position}'; expected xyz "
                "of a foot in the world"
            )
    _require_floor(law, len(feet))
    frames = tuple(tasks[foot] for foot in feet)
    equations = _Equations(law, frames, parameters or StepParameters())
    return CaptureStep(equations.function(name), np.tile(AT_REST, len(feet)))


def _require_floor(law: InverseDynamicsQP, feet: int) -> None:
    """Raise unless there is a contact with a level floor for each foot."""
    require_ground(law.contacts)
    normals = np.array([contact.normal for contact in law.contacts], dtype=float).reshape(-1, 3)
    if feet != len(law.contacts) or not feet:
        raise ProblemError(f"{feet} feet, {len(law.contacts)} contacts; expected one for each")
    if np.any(np.abs(normals[:, :2]).max(axis=1) > UPRIGHT * normals[:, 2]):
        raise ProblemError(f"normals {normals.tolist()}; expected all along z, of a level floor")


@dataclass(frozen=True)
class _Equations:
    """The equations of the reaction; see `capture_step` for the arguments."""

    law: InverseDynamicsQP
    feet: tuple[FrameTask, ...]
    step: StepParameters

    def function(self, name: str) -> ca.Function:
        """Return the reaction as a Function."""
        law, n = self.law, len(self.feet)
        sizes = {"q": law.system.nq, "v": law.system.nv, "f_measured": 3 * n}
        sizes |= {"scheduled_ref": law.nref, "scheduled_mask": len(law.mask_names), "z": MEMORY * n}
        given = {key: ca.SX.sym(key, size) for key, size in sizes.items()}
        ref, mask = ca.SX(given["scheduled_ref"]), ca.SX(given["scheduled_mask"])
        places = [self._place(foot, given["q"]) for foot in self.feet]
        robot = self._robot(given, places)
        memories = []
        for i, memory in enumerate(ca.vertsplit(given["z"], MEMORY)):
            kept = ca.if_else(is_bounded(memory), memory, ca.DM(AT_REST))
            foot = Foot(mask[i], places[i], given["f_measured"][3 * i], kept)
            path, on, z_next = self._foot(robot, foot, self._scheduled(ref, self.feet[i].name))
            for quantity, value in path._asdict().items():
                ref[law.reference_slices[f"{self.feet[i].name}.{quantity}"]] = value
            mask[i] = on
            memories.append(z_next)
        outputs = [ref, mask, ca.vertcat(*memories)]
        return ca.Function(
            name, list(given.values()), [ca.densify(x) for x in outputs], list(given),
            ["ref", "mask", "z_next"], {"cse": True},
        )  # fmt: skip

    def _place(self, foot: FrameTask, q: ca.SX) -> ca.SX:
        place: ca.SX = self.law.system.frame(foot.frame, foot.kind).pose(q)[0]
        return place

    def _scheduled(self, ref: ca.SX, foot: str) -> Path[ca.SX]:
        return Path(
            *(ca.SX(ref[self.law.reference_slices[f"{foot}.{key}"]]) for key in Path._fields)
        )

    def _robot(self, given: dict[str, ca.SX], places: list[ca.SX]) -> Robot:
        n, step = len(self.feet), self.step
        stands = given["scheduled_mask"][:n] > MASK_ON
        heights = ca.vertcat(*(place[2] for place in places))
        ground = ca.sum1(stands * heights) / ca.fmax(ca.sum1(stands), 1)
        q, v = given["q"], given["v"]
        at = capture_point(self.law.system)
        xi, rest = at(q, v, ground)[0], at(q, 0 * v, ground)[0]
        flat = ca.horzcat(*(place[:2] for place in places))
        margin = support_margin(n)(flat, stands, xi)
        shift = xi - rest
        shift = shift * ca.fmin(1, step.reach / (ca.norm_2(shift) + np.finfo(float).tiny))
        measured = ca.vertcat(q, v, given["f_measured"])
        return Robot(ground, shift, margin < step.least, margin > step.calm, is_bounded(measured))

    def _foot(
        self, robot: Robot, foot: Foot, wanted: Path[ca.SX]
    ) -> tuple[Path[ca.SX], ca.SX, ca.SX]:
        """Return the path of a foot, whether its contact is on, and what z remembers."""
        step = self.step
        stands, touching = foot.scheduled > MASK_ON, foot.z[5:7]
        touch = touch_down(["foot"], step.on_force, step.off_force)
        touches, touching_next = touch(1, foot.force, touching)
        calm = ca.fmin(ca.fmax(foot.z[7], 0), step.pause) + self.law.period
        calm = ca.if_else(ca.logic_and(robot.is_calm, touches), calm, 0)
        phase = self._phase(robot, foot, stands, touches, calm)
        changed = phase != foot.z[0]
        since = ca.if_else(changed, 0, foot.z[1])
        start = ca.if_else(changed, foot.place, foot.z[2:5])
        target = ca.vertcat(wanted.position[:2] + robot.shift, robot.ground - step.depth)
        lowered = swing_path(ca.fmin(since / step.lowering, 1), start, target, 0.0, step.lowering)
        still = Path(foot.place, ca.SX(3, 1), ca.SX(3, 1))
        down = [ca.if_else(touches, *pair) for pair in zip(still, lowered, strict=True)]
        up = _return(since / step.raising, start, wanted, step.raising)
        choose = zip(down, up, wanted, strict=True)
        path = Path(*(_by_phase(phase, d, r, w) for d, r, w in choose))
        on = _by_phase(phase, touches, foot.scheduled, foot.scheduled)
        longest = max(step.lowering, step.raising)
        since_next = ca.fmin(ca.fmax(since, 0), longest) + self.law.period
        memory = ca.vertcat(phase, since_next, start, touching_next, calm)
        return path, on, ca.if_else(robot.valid, memory, foot.z)

    def _phase(self, robot: Robot, foot: Foot, stands: ca.SX, touches: ca.SX, calm: ca.SX) -> ca.SX:
        """Return the phase of a foot at this tick."""
        before, lifted = foot.z[0], ca.logic_not(stands)
        falls = ca.logic_and(lifted, robot.falls)
        settled = ca.if_else(lifted, calm >= self.step.pause, touches)
        arrived = foot.z[1] >= self.step.raising
        from_lowered = ca.if_else(settled, ca.if_else(lifted, RAISED, LIFTED), LOWERED)
        from_raised = ca.if_else(falls, LOWERED, ca.if_else(arrived, LIFTED, RAISED))
        from_lifted = ca.if_else(falls, LOWERED, LIFTED)
        return _by_phase(before, from_lowered, from_raised, from_lifted)


def _by_phase(phase: ca.SX, lowered: ca.SX, raised: ca.SX, lifted: ca.SX) -> ca.SX:
    """Return one of three by the phase."""
    return ca.if_else(phase == LOWERED, lowered, ca.if_else(phase == RAISED, raised, lifted))


def _return(share: ca.SX, start: ca.SX, wanted: Path[ca.SX], duration: float) -> Path[ca.SX]:
    """Return the way back `p + s (p_wanted - p)` to a path that moves itself, with its rates."""
    zero, one = ca.SX(3, 1), ca.SX.ones(3)
    s = swing_path(ca.fmin(share, 1), zero, one, 0.0, duration)
    way = wanted.position - start
    return Path(
        start + s.position * way,
        s.position * wanted.velocity + s.velocity * way,
        s.position * wanted.acceleration + 2 * s.velocity * wanted.velocity + s.acceleration * way,
    )
