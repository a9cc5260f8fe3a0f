"""The plant of a run, and the configuration that it starts from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from numpy.typing import ArrayLike

from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant, Source


@dataclass(frozen=True)
class PlantFactory:
    """The plant of a run: its model, options and parameter errors.

    Attributes:
        model, rigid, timestep, perturb, seed: arguments of `Plant`.
    """

    model: Source
    rigid: bool = False
    timestep: float | None = None
    perturb: Mapping[str, float] = field(default_factory=dict)
    seed: int | None = None

    def make(self, with_errors: bool = True) -> Plant:
        """Return a new plant, with its parameter errors or without."""
        return Plant(
            self.model,
            rigid=self.rigid,
            timestep=self.timestep,
            perturb=self.perturb if with_errors else None,
            seed=self.seed if with_errors else None,
        )


def initial_configuration(
    plant: Plant, q0: ArrayLike | None, keyframe: str | None
) -> ArrayLike | None:
    """Return q0, or the configuration of the plant's key frame.

    Raises:
        ProblemError: both are given.
        UnknownNameError: no such key frame.
    """
    if keyframe is None:
        return q0
    if q0 is not None:
        raise ProblemError("give q0 or keyframe, not both")
    return plant.keyframe(keyframe)
