"""A force beside those of the model, as data of each sample."""

from dataclasses import dataclass
from typing import final

from mbcasadi.control.tasks.task import Slot
from mbcasadi.mpc.ocp.stage import Stage
from mbcasadi.mpc.ocp.stage_part import StagePart, StageTerms
from mbcasadi.system import System
from mbcasadi.system.coordinates import generalised_forces

DISTURBANCE = "disturbance"


@final
@dataclass(frozen=True)
class Disturbance(StagePart):
    """A generalised force d at each sample, beside those of the model: `M a + h = f + d`.

    It is the slice `disturbance` of p, (nv,) N or N m, zero by default: what an observer has
    learned, a known load, wind. It needs `SemiImplicitStep`.
    """

    def slots(self, system: System) -> tuple[Slot, ...]:
        """Return the slice of the force."""
        signal = generalised_forces(system)
        return (Slot(DISTURBANCE, signal.components, signal.units),)

    def terms(self, stage: Stage) -> StageTerms:  # noqa: ARG002  # the part's
        """Return nothing: the force acts in the motion."""
        return StageTerms()
