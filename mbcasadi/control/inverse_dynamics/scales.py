"""The units of a controller's problem, measured on the mechanism when the controller is built.

A weight, a tolerance or a drop rule compares numbers of one unit with each other only if it
knows what is large. The measure here is the mechanism's own: accelerations have the size
`(aᵀ M a)^½`, an actuator force p the size `(bᵀ M⁻¹ b)^½ |p|`, a multiplier `(g M⁻¹ gᵀ)^½ |lam|`:
p²/I with the inertia I that the actuator sees. Nothing changes when the units of a model do.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class ForceWeights(NamedTuple):
    """The weights r_p (nu,) of the actuator forces and r_w of the internal forces."""

    actuators: Array
    internal: float


class Followed(NamedTuple):
    """What joints follow of each of `vectors`; infinite for any.

    Attributes:
        accelerations: a.
        near: length from which an error is far.
    """

    accelerations: Array
    near: Array


@dataclass(frozen=True)
class ProblemScales:
    """Medians over closed poses, all contacts and loops on.

    Attributes:
        rows: (m,) length of each row of G in the inertia's metric.
        coordinates: (nv,) square root of the inertia of each coordinate.
        actuators: (nu,) `(bᵀ M⁻¹ b)^½` of each actuator.
        inequalities: (k,) value of each inequality by forces of unit size.
        required: (k,) largest acceleration of each task row required: `FAR` times what all
            actuators at their limits and gravity give it; infinite where one has no limit.
            `|J a| ≤ ‖J L⁻ᵀ‖ ‖Lᵀ a‖`, and constraints only shorten `‖Lᵀ a‖` (Gauss).
        strength: largest size of an acceleration that actuators and gravity can give; infinite
            where an actuator has no limit.
        pull: `FAR` times the sum of the tasks' weighted squared lengths: times `strength` the
            largest slope of the tasks' cost along a motion of unit size.
        reach: (k,) usual length of each task row in the inertia's metric.
        task: size of a task's weighted error by an acceleration of unit size, the median of the
            rows of all tasks: light links weigh no more than others.
        contact: size of a contact force of 1 N: that of a force on the whole mass, or of the rows
            of the contacts where equations do not contain the mass.
        followed: what joints can follow, see `followed_errors.py`; None where nothing is bounded.
        floors: (k,) of the task rows, see `missed_tasks.py`.
        force_weights: of the regularisation: shares of the tasks' cost.
    """

    rows: Array
    coordinates: Array
    actuators: Array
    inequalities: Array
    required: Array
    strength: float
    pull: float
    reach: Array
    task: float
    contact: float
    followed: Followed | None
    floors: Array
    force_weights: ForceWeights
