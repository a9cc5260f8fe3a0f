"""The desired acceleration of a law, as a task of inverse dynamics."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from mbcasadi.control.describe import rates
from mbcasadi.control.tasks import Array, Gains, Slot, Task, TaskRows, gains_of, own_slices
from mbcasadi.linalg import tree_cholesky
from mbcasadi.system import System

WISH = "wish"


@dataclass(frozen=True)
class WishTask(Task):
    """`a = a_law`, measured by J and by L, `M = Lᵀ L`.

    Attributes:
        measure: gives J; None for L alone.
        weight: of the rows of J, then of L.
    """

    measure: Task | None
    weight: tuple[float, ...]
    name: str = WISH
    kp: float = 0.0
    kd: float = 0.0

    def components(self, system: System) -> tuple[str, ...]:
        """Return the rows of the measure, then the joints' rates."""
        first = () if self.measure is None else self.measure.components(system)
        return (*first, *rates(system).components)

    def units(self, system: System) -> tuple[str, ...]:
        """Return no units: rows are accelerations of several kinds."""
        return ("",) * len(self.components(system))

    def slots(self, system: System) -> tuple[Slot, ...]:
        """Return the law's acceleration."""
        names = rates(system).components
        return (Slot(f"{WISH}.a", names, ("",) * len(names)),)

    def rows(
        self,
        system: System,
        q: ca.SX,
        v: ca.SX,
        ref: Mapping[str, ca.SX],
        gains: Gains,  # noqa: ARG002  # the interface's
    ) -> TaskRows:
        """Return `J a = J a_law` above `L a = L a_law`.

        Args:
            system, q, v, ref, gains: as in `Task.rows`.
        """
        J = ca.SX(tree_cholesky(system.mass_matrix(q)))
        if self.measure is not None:
            none = own_slices(self.measure, system, {})
            plain = self.measure.rows(system, q, v, none, gains_of(self.measure, system))
            J = ca.vertcat(plain.J, J)
        wanted = J @ ref["a"]
        zero = ca.SX.zeros(J.shape[0])
        return TaskRows(J, zero, wanted, zero, wanted)

    def present(self, system: System, q: Array) -> dict[str, Array]:  # noqa: ARG002
        """Return no acceleration."""
        return {"a": np.zeros(system.nv)}


def wish_task(system: System, measure: Task | None, share: float) -> WishTask:
    """Return the task: rows of the measure with its weights, then L with this share."""
    first = [] if measure is None else gains_of(measure, system).weight.tolist()
    return WishTask(measure, (*first, *[share] * system.nv))
