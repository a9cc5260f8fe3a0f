"""The forces in the cost, `½ Σ r_i (f_i - f_ref,i)²`: of contacts, then of equality constraints."""

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi import linalg
from mbcasadi.control.inverse_dynamics.condensed_dynamics import Condensed
from mbcasadi.control.inverse_dynamics.problem import Problem
from mbcasadi.control.inverse_dynamics.shared_loads import SharedLoads
from mbcasadi.control.tick.design import WeighedForce

Array = NDArray[np.float64]


class WeighedForces(NamedTuple):
    """Forces `of_lam lam + of_w w` with a reference; lam are the last multipliers.

    Attributes:
        of_lam: (k, j) over the last j multipliers.
        of_w: (k, nw) over the unknowns beside p.
        ref: (k,) reference, less what is constant in the force.
        weights: (k,) r.
    """

    of_lam: ca.SX
    of_w: ca.SX
    ref: ca.SX
    weights: Array

    def map(self, condensed: Condensed) -> tuple[ca.SX, ca.SX]:
        """Return `F`, `f` of the forces `F y + f`, y = (p, w)."""
        first = condensed.e.shape[0] - self.of_lam.shape[1]
        of_p = -linalg.product(self.of_lam, condensed.E[first:, :])
        return ca.horzcat(of_p, self.of_w), -linalg.product(self.of_lam, condensed.e[first:, 0])

    def gap(self, lam: ca.SX, w: ca.SX) -> ca.SX:
        """Return the forces less their reference (k,), at all multipliers (m,)."""
        own = lam[lam.numel() - self.of_lam.shape[1] :, 0]
        return linalg.product(self.of_lam, own) + linalg.product(self.of_w, w) - self.ref


def weighed_forces(
    forces: Sequence[WeighedForce], problem: Problem, shared: SharedLoads | None
) -> WeighedForces:
    """Return the forces in the cost.

    Args:
        forces: those of the controller.
        problem: whose loads are shared.
        shared: how; loop forces in the cost have one.
    """
    contacts, weights = problem.contacts, np.array([each.weight for each in forces])
    places = [each.place for each in forces if each.owner[0] == "loop"]
    if not places or shared is None:
        return WeighedForces(contacts.of_lam, contacts.of_w, problem.f_ref, weights)
    m, (k, _) = problem.on.numel(), shared.part.spread.shape
    kind, own = type(contacts.of_lam), contacts.of_lam.shape
    of_contacts = ca.horzcat(kind(own[0], m - own[1]), contacts.of_lam)
    kept = kind(ca.DM.eye(k)) - shared.part.spread
    of_loops = ca.horzcat(kept[places, :], kind(len(places), m - k))
    first = kind(len(places), contacts.of_w.shape[1] - shared.free.shape[1])
    constant = ca.vertcat(kind(own[0], 1), shared.preload[places, 0])
    return WeighedForces(
        ca.vertcat(of_contacts, of_loops),
        ca.vertcat(contacts.of_w, ca.horzcat(first, shared.free[places, :])),
        problem.f_ref - constant,
        weights,
    )
