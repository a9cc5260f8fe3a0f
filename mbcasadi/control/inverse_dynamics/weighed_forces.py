"""The forces in the cost, `½ Σ r_i (f_i - f_ref,i)²`: of contacts, then of equality constraints."""

from typing import TYPE_CHECKING, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi import linalg
from mbcasadi.control.tasks.task import Slot
from mbcasadi.errors import ProblemError
from mbcasadi.qp.friction_cone import FORCE_AXES

if TYPE_CHECKING:
    from mbcasadi.control.inverse_dynamics.condensed_dynamics import Condensed
    from mbcasadi.control.inverse_dynamics.inputs import Inputs
    from mbcasadi.control.inverse_dynamics.load_sharing import SharedLoads
    from mbcasadi.control.inverse_dynamics.options import Setup
    from mbcasadi.control.inverse_dynamics.problem import Problem

Array = NDArray[np.float64]

CONTACT_SLOT, LOOP_SLOT = "force", "loop_force"
"""Slices of the reference."""


class WeighedForces(NamedTuple):
    """Forces `of_lam lam + of_w w` with a reference; lam are the last multipliers.

    Attributes:
        of_lam: (k, j) over the last j multipliers.
        of_w: (k, nw) over the unknowns beside p.
        ref: (k,) reference, less what is constant in the force.
    """

    of_lam: ca.SX
    of_w: ca.SX
    ref: ca.SX

    def map(self, condensed: "Condensed") -> tuple[ca.SX, ca.SX]:
        """Return `F`, `f` of the forces `F y + f`, y = (p, w)."""
        first = condensed.e.shape[0] - self.of_lam.shape[1]
        of_p = -linalg.product(self.of_lam, condensed.E[first:, :])
        return ca.horzcat(of_p, self.of_w), -linalg.product(self.of_lam, condensed.e[first:, 0])

    def gap(self, lam: ca.SX, w: ca.SX) -> ca.SX:
        """Return the forces less their reference (k,), at all multipliers (m,)."""
        own = lam[lam.numel() - self.of_lam.shape[1] :, 0]
        return linalg.product(self.of_lam, own) + linalg.product(self.of_w, w) - self.ref


def weighed_forces(
    setup: "Setup", problem: "Problem", shared: "SharedLoads | None"
) -> WeighedForces:
    """Return the forces in the cost.

    Args:
        setup: the options.
        problem: whose loads are shared.
        shared: how; loop forces in the cost have one.
    """
    contacts, loops = problem.contacts, setup.weighed_loops
    if not loops or shared is None:
        return WeighedForces(contacts.of_lam, contacts.of_w, problem.f_ref)
    m, (k, _) = problem.on.numel(), shared.part.spread.shape
    kind, places = type(contacts.of_lam), [row.place for row in loops]
    own = contacts.of_lam.shape
    of_contacts = ca.horzcat(kind(own[0], m - own[1]), contacts.of_lam)
    kept = kind(ca.DM.eye(k)) - shared.part.spread
    of_loops = ca.horzcat(kept[places, :], kind(len(places), m - k))
    first = kind(len(places), contacts.of_w.shape[1] - shared.free.shape[1])
    constant = ca.vertcat(kind(own[0], 1), shared.preload[places, 0])
    return WeighedForces(
        ca.vertcat(of_contacts, of_loops),
        ca.vertcat(contacts.of_w, ca.horzcat(first, shared.free[places, :])),
        problem.f_ref - constant,
    )


def force_costs(setup: "Setup") -> Array:
    """Return the weights r_i (k,)."""
    return np.concatenate([setup.contact_weights, [row.weight for row in setup.weighed_loops]])


def force_names(setup: "Setup") -> tuple[str, ...]:
    """Return the name of each force: `FL.n`, `FL.t1`, `FL.t2`, then `pin.x`."""
    of_contacts = [f"{name}.{axis}" for name in setup.contact_names for axis in FORCE_AXES]
    return (*of_contacts, *(row.name for row in setup.weighed_loops))


def limits_of_forces(setup: "Setup") -> tuple[str, ...]:
    """Return with what the names of the limits of each force begin."""
    of_contacts = [f"contact '{name}': " for name in setup.contact_names for _ in FORCE_AXES]
    return (*of_contacts, *(f"loop '{row.constraint}': " for row in setup.weighed_loops))


def forces_on(setup: "Setup", at: "Inputs") -> ca.SX:
    """Return (k,) one for each force whose contact or equality constraint is on."""
    of_contacts = ca.kron(at.on[: len(setup.contacts), 0], ca.SX.ones(len(FORCE_AXES)))
    places = [row.place for row in setup.weighed_loops]
    return ca.vertcat(of_contacts, at.on_rows(setup)[places, 0]) if places else of_contacts


def desired_forces(setup: "Setup", at: "Inputs") -> ca.SX:
    """Return the reference (k,) of the forces; zero for those that are off or have none."""
    sizes = {CONTACT_SLOT: 3 * len(setup.contacts), LOOP_SLOT: len(setup.weighed_loops)}
    parts = [
        at.ref[setup.reference_slices[name], 0]
        if name in setup.reference_slices
        else ca.SX(size, 1)
        for name, size in sizes.items()
    ]
    return forces_on(setup, at) * ca.vertcat(*parts)


def force_slots(setup: "Setup") -> list[Slot]:
    """Return the slices of the reference that hold forces.

    Raises:
        ProblemError: no force has a weight.
    """
    names, first = force_names(setup), 3 * len(setup.contacts)
    slots = []
    if np.any(setup.contact_weights):
        slots.append(Slot(CONTACT_SLOT, names[:first], ("N",) * first))
    if setup.weighed_loops:
        loops = names[first:]
        slots.append(Slot(LOOP_SLOT, loops, ("N or N m",) * len(loops)))
    if not slots:
        raise ProblemError(
            f"a reference of {len(setup.contacts)} contact forces with force_weight = "
            f"{setup.force_weight or 0}; expected contacts and a positive weight, or "
            "loop_force_weights"
        )
    return slots
