"""Where swinging feet land: below their hips."""

from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import require_fields
from mbcasadi.mpc.legged.gait import Gait
from mbcasadi.mpc.legged.ground_axes import rotate_about_vertical
from mbcasadi.mpc.legged.nominal_stance import NominalStance
from mbcasadi.mpc.legged.touch_down import TouchDown
from mbcasadi.shapes import require_numbers

TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class SwingParameters:
    """Parameters of the swing.

    Attributes:
        height: of a swing, m.
        feedback: displacement of the foothold for each m/s of excess speed of the body, s.
        reach: largest distance of a foothold from the point below the hip, m.
        max_drift: largest distance of the desired pose from the measured one, m and rad.
        ground_penetration: depth below the ground at which a swing ends, m.
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
    touch_down: TouchDown | None = None

    def __post_init__(self) -> None:
        require_fields(self)
        numbers = ("height", "feedback", "reach", "max_drift", "ground_penetration")
        require_numbers(**{name: getattr(self, name) for name in numbers})


@dataclass(frozen=True)
class Footholds:
    """Where feet land: below their hips.

    Attributes:
        gait, stepping, stance: as in the planner.
    """

    gait: Gait
    stepping: SwingParameters
    stance: NominalStance

    def targets(self, now: "Motion", heights: list[ca.SX]) -> list[ca.SX]:
        """Return the foothold (3,) of each contact.

        Args:
            now: the robot's motion.
            heights: of the footholds, m.
        """
        depth = self.stepping.ground_penetration
        return [ca.vertcat(self._below_hip(i, now), h - depth) for i, h in enumerate(heights)]

    def _below_hip(self, i: int, now: "Motion") -> ca.SX:
        """Return the foothold (2,) of contact i; see `WalkingPlanner`."""
        x, half_stance = now.x, self.gait.stance / 2
        landing = (1 - now.shares[i]) * self.gait.flight
        hip = ca.SX(ca.DM(self.stance.hips[i]))
        below = rotate_about_vertical(x[2] + (landing + half_stance) * now.spin, hip)
        step = half_stance * now.velocity + self.stepping.feedback * (x[9:11] - now.velocity)
        return x[3:5] + landing * x[9:11] + below + _shortened(step, self.stepping.reach)


class Motion(NamedTuple):
    """The robot's motion at one tick, in axes of the ground.

    Attributes:
        t: s.
        x: (12,) state of the rigid body.
        velocity: (2,) desired, m/s.
        spin: desired, rad/s.
        shares: of each contact's swing that is over.
    """

    t: ca.SX
    x: ca.SX
    velocity: ca.SX
    spin: ca.SX
    shares: ca.SX


def _shortened(step: ca.SX, reach: float) -> ca.SX:
    return step * ca.fmin(1, reach / (ca.norm_2(step) + TINY))
