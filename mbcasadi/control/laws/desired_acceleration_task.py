"""The acceleration that a law requires, as a task of inverse dynamics."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from mbcasadi.control.inverse_dynamics.options import CONTACT_RANK_TOL
from mbcasadi.control.inverse_dynamics.singular_inertia import completed_inertia
from mbcasadi.control.tasks.task import Array, Residual, Slot, Task, gains_of, own_slices
from mbcasadi.linalg import tree_cholesky
from mbcasadi.system import System, evaluate
from mbcasadi.system.coordinates import rates

DESIRED_ACCELERATION = "desired"


@dataclass(frozen=True)
class DesiredAccelerationTask(Task):
    """`a = a_law`, measured by J and by L, `M = Lᵀ L`, M completed where it is singular.

    Attributes:
        measure: gives J; None for L alone.
        weight: of the rows of J, then of L.
    """

    measure: Task | None
    weight: tuple[float, ...]
    name: str = DESIRED_ACCELERATION
    kp: float = 0.0
    kd: float = 0.0

    def components(self, system: System) -> tuple[str, ...]:
        """Return the rows of the measure, then the joints' rates."""
        measured_rows = () if self.measure is None else self.measure.components(system)
        return (*measured_rows, *rates(system).components)

    def units(self, system: System) -> tuple[str, ...]:
        """Return no units: rows are accelerations of several kinds."""
        return ("",) * len(self.components(system))

    def slots(self, system: System) -> tuple[Slot, ...]:
        """Return the law's acceleration."""
        names = rates(system).components
        return (Slot(f"{DESIRED_ACCELERATION}.a", names, ("",) * len(names)),)

    def residual(self, system: System, q: ca.SX, v: ca.SX, ref: Mapping[str, ca.SX]) -> Residual:
        """Return `J a = J a_law` above `L a = L a_law`: no error, the acceleration alone.

        Args:
            system, q, v, ref: as in `Task.residual`.
        """
        J = ca.SX(tree_cholesky(_definite_inertia(system, q, v)))
        if self.measure is not None:
            none = own_slices(self.measure, system, {})
            J = ca.vertcat(ca.sparsify(self.measure.residual(system, q, v, none).J), J)
        a_ref = J @ ref["a"]
        zero = ca.SX.zeros(J.shape[0])
        return Residual(J, zero, zero, a_ref, zero, a_ref)

    def hold_reference(self, system: System, q: Array) -> dict[str, Array]:  # noqa: ARG002
        """Return no acceleration."""
        return {"a": np.zeros(system.nv)}


def _definite_inertia(system: System, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return M; where it is singular, completed along all rows: the same on the free motion."""
    M = ca.SX(system.mass_matrix(q))
    if not system.semidefinite:
        return M
    A = evaluate(system.loop_jacobian, {"q": q, "v": v})
    completed, _ = completed_inertia(
        system,
        M,
        (A, ca.SX.zeros(system.nc)),
        row_scale=ca.DM(system.scales.rows),
        rank_tol=CONTACT_RANK_TOL,
    )
    return completed


def desired_acceleration_task(
    system: System, measure: Task | None, share: float
) -> DesiredAccelerationTask:
    """Return the task: rows of the measure with its weights, then L with this share."""
    measure_weights = [] if measure is None else gains_of(measure, system).weight.tolist()
    return DesiredAccelerationTask(measure, (*measure_weights, *[share] * system.nv))
