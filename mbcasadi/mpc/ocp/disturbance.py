"""A force that the model lacks, in the motion of all samples: a load, wind, a weak actuator.

    M a + h = f + d + Aᵀ lam

It is the slice `disturbance` of p, (nv,), in N and N m, of each sample.
"""

from dataclasses import dataclass
from typing import final

from mbcasadi.control.tasks.task import Slot
from mbcasadi.mpc.ocp.stage import DISTURBANCE, Stage
from mbcasadi.mpc.ocp.stage_part import StagePart, StageTerms
from mbcasadi.system import System
from mbcasadi.system.coordinates import generalised_forces


@final
@dataclass(frozen=True)
class Disturbance(StagePart):
    """A generalised force d on top of the actuators' in the planned motion, zero by default.

    `real_time_iteration(ocp, observer=)` learns it from the motion; otherwise it is given with p.
    """

    @property
    def disturbs(self) -> bool:
        """It adds a force."""
        return True

    def slots(self, system: System) -> tuple[Slot, ...]:
        """Return the slice of the force."""
        signal = generalised_forces(system)
        return (Slot(DISTURBANCE, signal.components, signal.units),)

    def terms(self, stage: Stage) -> StageTerms:  # noqa: ARG002  # the motion has it
        """Return nothing: the force is part of the motion."""
        return StageTerms()
