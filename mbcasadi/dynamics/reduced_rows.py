"""Constraint rows without the redundancy that is known when a Function is built.

`A = Q A_r` with orthonormal columns of Q (`constraints.points_of_bodies`): `A_r a + Qᵀ c = 0` has
the same motion, and `lam = Q lam_r`. Rows that a mask switches are left as they are.
"""

from typing import Generic, NamedTuple, cast

import casadi as ca

from mbcasadi.constraints import (
    PointsOfBody,
    independent_rows,
    independent_scales,
    points_of_bodies,
)
from mbcasadi.dynamics.terms import State, Terms
from mbcasadi.linalg import Sym
from mbcasadi.system import System


class ReducedRows(NamedTuple, Generic[Sym]):
    """Rows `A a + c = 0` in place of those of the system.

    Fields: `A` (m, nv); `c` (m, 1); `row_scale` of these rows; `Q` (nc, m), `lam = Q lam_r`, or
    None where they are the rows of the system.
    """

    A: Sym
    c: Sym
    row_scale: Sym | float
    Q: Sym | None

    def all_multipliers(self, lam: Sym) -> Sym:
        """Return the (nc, 1) multipliers of least norm of all rows of the system."""
        return lam if self.Q is None else self.Q @ lam


def reduced_rows(
    system: System, state: State[Sym], terms: Terms[Sym], row_scale: Sym | float
) -> ReducedRows[Sym]:
    """Return the rows of a system at a state without those that are redundant at all poses.

    Args:
        system: the mechanism.
        state: symbols of its inputs.
        terms: at this state.
        row_scale: of all rows, as `row_scale_of` gives it.
    """
    groups = _groups(system)
    if not groups:
        return ReducedRows(terms.A, terms.c, row_scale, None)
    if isinstance(state.q, ca.SX):
        A, Q = _rows(system, groups, cast(ca.SX, terms.A), cast(ca.SX, state.q))
    else:
        A, Q = _rows_fun(system, groups)(terms.A, state.q)
    if not isinstance(row_scale, float):
        row_scale = ca.sqrt(independent_scales(groups, system.nc) @ row_scale**2)
    return ReducedRows(cast(Sym, A), Q.T @ terms.c, row_scale, cast(Sym, Q))


def reduced_pattern(system: System, A: ca.Sparsity) -> ca.Sparsity:
    """Return the sparsity of the reduced rows.

    Args:
        system: the mechanism.
        A: (nc, nv) sparsity of all rows.
    """
    groups = _groups(system)
    rows = _rows(system, groups, ca.SX.sym("A", A), ca.SX.sym("q", system.nq))[0]
    return rows.sparsity()


def _groups(system: System) -> tuple[PointsOfBody, ...]:
    if system.tree is None or system.mask is not None:
        return ()
    return points_of_bodies(system.tree, system.equalities)


def _rows(
    system: System, groups: tuple[PointsOfBody, ...], A: ca.SX, q: ca.SX
) -> tuple[ca.SX, ca.SX]:
    if not groups or system.tree is None:
        return A, ca.SX.eye(system.nc)
    return independent_rows(system.tree, groups, A, q)


def _rows_fun(system: System, groups: tuple[PointsOfBody, ...]) -> ca.Function:
    """Return (A, q) → (A_r, Q)."""
    A = ca.SX.sym("A", system.loop_jacobian.sparsity_out("A"))
    q = ca.SX.sym("q", system.nq)
    outputs = _rows(system, groups, A, q)
    return ca.Function("independent_rows", [A, q], outputs, ["A", "q"], ["A_r", "Q"], {"cse": True})
