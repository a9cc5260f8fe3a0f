"""Where swinging feet land: below their hips, or by the capture point."""

from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import require_fields
from mbcasadi.mpc.legged.capture_foothold import (
    CaptureFoothold,
    PlanarMotion,
    Support,
    kept_width,
    nominal_offset,
    rotate_about_vertical,
    supports,
)
from mbcasadi.mpc.legged.gait import Gait
from mbcasadi.mpc.legged.nominal_stance import NominalStance
from mbcasadi.mpc.legged.rigid_body import Array
from mbcasadi.mpc.legged.touch_down import TouchDown
from mbcasadi.qp.input_guard import is_bounded
from mbcasadi.shapes import require_numbers

TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class SwingParameters:
    """Parameters of the swing.

    Attributes:
        height: of a swing, m.
        feedback: displacement of the foothold for each m/s of excess speed of the body, s.
        reach: largest distance of a foothold from the point below the hip, m; with `capture`, from
            the nominal foothold.
        max_drift: largest distance of the desired pose from the measured one, m and rad.
        ground_penetration: depth below the ground at which a swing ends, m.
        capture: `CaptureFoothold`, footholds by the capture point in place of `feedback`.
        touch_down: `TouchDown`, by which feet stand when measured forces say so; by the schedule
            where None.

    Raises:
        ProblemError: a number that is negative or not finite.
    """

    height: float = 0.06
    feedback: float = 0.1
    reach: float = 0.15
    max_drift: float = 0.1
    ground_penetration: float = 0.0
    capture: CaptureFoothold | None = None
    touch_down: TouchDown | None = None

    def __post_init__(self) -> None:
        require_fields(self)
        numbers = ("height", "feedback", "reach", "max_drift", "ground_penetration")
        require_numbers(**{name: getattr(self, name) for name in numbers})


@dataclass(frozen=True)
class Footholds:
    """Where feet land: below their hips, or by the capture point.

    Attributes:
        gait, stepping, stance: as in the planner.
        gravity: (3,) in axes of the ground, m/s².
        feet: the contacts of each foot.
    """

    gait: Gait
    stepping: SwingParameters
    stance: NominalStance
    gravity: Array
    feet: tuple[tuple[int, ...], ...]

    def targets(
        self,
        now: "Motion",
        places: list[ca.SX],
        heights: list[ca.SX],
        remembered: list[ca.SX],
    ) -> list[ca.SX]:
        """Return the foothold (3,) of each contact.

        Args:
            now: the robot's motion.
            places: (3,) of the contacts, m.
            heights: of the footholds, m.
            remembered: (2,) footholds of the last tick, m; none where they are not kept.
        """
        rule = self.stepping.capture
        if rule is None:
            level = [self._below_hip(i, now) for i in range(len(places))]
        else:
            level = self._captured(rule, now, places)
            for i, foothold in enumerate(remembered):
                kept = ca.logic_and(now.shares[i] > rule.commit, is_bounded(foothold))
                level[i] = ca.if_else(kept, foothold, level[i])
        depth = self.stepping.ground_penetration
        return [ca.vertcat(p, h - depth) for p, h in zip(level, heights, strict=True)]

    def _below_hip(self, i: int, now: "Motion") -> ca.SX:
        """Return the foothold (2,) of contact i; see `WalkingPlanner`."""
        x, half_stance = now.x, self.gait.stance / 2
        landing = (1 - now.shares[i]) * self.gait.flight
        hip = ca.SX(ca.DM(self.stance.hips[i]))
        below = rotate_about_vertical(x[2] + (landing + half_stance) * now.spin, hip)
        step = half_stance * now.velocity + self.stepping.feedback * (x[9:11] - now.velocity)
        return x[3:5] + landing * x[9:11] + below + _shortened(step, self.stepping.reach)

    def _captured(self, rule: CaptureFoothold, now: "Motion", places: list[ca.SX]) -> list[ca.SX]:
        """Return the foothold (2,) of each contact; see `CaptureFoothold`."""
        omega = float(np.sqrt(-self.gravity[2] / self.stance.height))
        parts = supports(self.gait, self.stance.hips, omega)
        scheduled, ages = self.gait.on_ground(now.t), self.gait.ages(now.t)
        count = ca.fmax(ca.sum1(scheduled), 1)
        hips, middle = self.stance.hips, self.gait.stance / 2
        motion = PlanarMotion(now.yaw, now.velocity, now.spin)
        stood = [
            motion.hip(middle - ages[i], hip) + motion.displacement(middle - ages[i])
            for i, hip in enumerate(hips)
        ]
        measured, nominal = (
            _sum([scheduled[i] * p[:2] for i, p in enumerate(each)]) / count
            for each in (places, stood)
        )
        error = self._error(parts, omega, now, measured)
        level = []
        for i, hip in enumerate(hips):
            landing = (1 - now.shares[i]) * self.gait.flight
            ahead = motion.hip(landing + middle, hip) + motion.displacement(landing + middle)
            step = rule.gain * ca.exp(omega * landing) * error
            level.append(measured - nominal + ahead + _shortened(step, self.stepping.reach))
        return self._apart(rule, now, places, level, scheduled)

    def _error(self, parts: list[Support], omega: float, now: "Motion", support: ca.SX) -> ca.SX:
        """Return (2,) by how much the capture point is off its nominal motion, m."""
        lean = ca.DM(np.asarray(self.gravity[:2]) / omega**2)
        point = now.x[3:5] + now.x[9:11] / omega + lean
        motion = PlanarMotion(now.yaw, now.velocity, now.spin)
        nominal = nominal_offset(parts, self.gait, omega, self.gait.phase(now.t), motion)
        return point - support - nominal

    def _apart(
        self,
        rule: CaptureFoothold,
        now: "Motion",
        places: list[ca.SX],
        level: list[ca.SX],
        scheduled: ca.SX,
    ) -> list[ca.SX]:
        """Return the footholds, those of each foot moved together to its side of the others."""
        nominal = [float(self.stance.hips[list(foot), 1].mean()) for foot in self.feet]
        back = [rotate_about_vertical(-now.yaw, p) for p in level]
        stand = [
            _sum([rotate_about_vertical(-now.yaw, places[i][:2])[1] for i in foot]) / len(foot)
            for foot in self.feet
        ]
        moved = list(level)
        for k, foot in enumerate(self.feet):
            lateral = _sum([back[i][1] for i in foot]) / len(foot)
            others = [j for j in range(len(self.feet)) if j != k]
            # a foot that swings as well sets no bound: it is taken to be where this one goes
            where = [
                ca.if_else(scheduled[self.feet[j][0]], stand[j], lateral - nominal[k] + nominal[j])
                for j in others
            ]
            kept = kept_width(rule, (nominal[k], [nominal[j] for j in others]), lateral, where)
            aside = rotate_about_vertical(now.yaw, ca.vertcat(0, kept - lateral))
            for i in foot:
                moved[i] = level[i] + aside
        return moved


class Motion(NamedTuple):
    """The robot's motion at one tick, in axes of the ground.

    Attributes:
        t: s.
        x: (12,) state of the rigid body.
        yaw: rad, desired.
        velocity: (2,) desired, m/s.
        spin: desired, rad/s.
        shares: of each contact's swing that is over.
    """

    t: ca.SX
    x: ca.SX
    yaw: ca.SX
    velocity: ca.SX
    spin: ca.SX
    shares: ca.SX


def _shortened(step: ca.SX, reach: float) -> ca.SX:
    return step * ca.fmin(1, reach / (ca.norm_2(step) + TINY))


def _sum(parts: list[ca.SX]) -> ca.SX:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
