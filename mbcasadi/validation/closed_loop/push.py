"""Pushes: forces from outside on bodies of the plant, for a while."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant
from mbcasadi.plant.body_forces import movable_body
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import column

Array = NDArray[np.float64]

SHARE_ROUNDING = 1e-9
"""Share of a control period below which a push counts as absent: rounding of the ticks' times."""


@readable_fields
@dataclass(frozen=True)
class Push:
    """A force on a body of the plant, at its centre of mass, from `start` to `stop`.

    MuJoCo applies it as `Jᵀ F` at the state of each of its time steps. In a control period of which
    the push lasts a part it acts with its mean over the period: its impulse is
    `force * (stop - start)` whatever the period is.

    Attributes:
        body: name of the body in the plant.
        force: (3,) N, world axes.
        start, stop: s.

    Raises:
        ShapeError: a force that is not three finite numbers.
        ProblemError: a start before 0, or a stop that is not after the start.
    """

    body: str
    force: ArrayLike
    start: float
    stop: float

    def __post_init__(self) -> None:
        require_fields(self)
        force = column(f"the force of the push on {self.body!r}", self.force, 3)
        object.__setattr__(self, "force", tuple(map(float, force)))
        if not 0 <= self.start < self.stop < np.inf:
            raise ProblemError(
                f"the push on {self.body!r} is from {self.start:g} s to {self.stop:g} s; expected "
                "0 <= start < stop"
            )

    def __str__(self) -> str:
        force = ", ".join(f"{value:g}" for value in np.array(self.force))
        return f"({force}) N on {self.body!r} from {self.start:g} s to {self.stop:g} s"


def mean_force(push: Push, t: float, period: float) -> Array:
    """Return the (3,) mean force of a push from time t on, during a period, s."""
    share = (min(push.stop, t + period) - max(push.start, t)) / period
    if share < SHARE_ROUNDING:
        return np.zeros(3)
    return np.array(push.force) * (1.0 if share > 1.0 - SHARE_ROUNDING else share)


def scaled_push(push: Push, factor: float) -> Push:
    """Return a push with a force that is `factor` times as large."""
    return replace(push, force=factor * np.array(push.force))


def body_forces(pushes: Iterable[Push], t: float, period: float) -> dict[str, Array]:
    """Return body → (3,) force, N, the sum of its pushes from time t on, during a period, s."""
    forces: dict[str, Array] = {}
    for push in pushes:
        forces[push.body] = forces.get(push.body, np.zeros(3)) + mean_force(push, t, period)
    return forces


def require_pushes(pushes: Sequence[Push], plant: Plant, duration: float) -> None:
    """Raise unless pushes can act in a run.

    Raises:
        UnknownNameError: the plant has no such body; the message lists the valid names.
        ProblemError: a body that is fixed to the world, or a push that starts after the run.
    """
    for push in pushes:
        movable_body(plant.model, push.body)
        if push.start >= duration:
            raise ProblemError(
                f"the push {push} would start after the run, which lasts {duration:g} s; expected "
                "start < duration"
            )
