"""Constraint rows without the redundancy that is known when a Function is built.

`A = Q A_r` with orthonormal columns of Q (`constraints.points_of_bodies`): `A_r a + Qᵀ c = 0` has
the same motion, and `lam = Q lam_r`.
"""

from dataclasses import dataclass
from typing import Generic

import casadi as ca

from mbcasadi.constraints import PointsOfBody, independent_rows, points_of_bodies
from mbcasadi.description.mocap import mocap_equalities
from mbcasadi.dynamics.terms import State, Terms, state_symbols
from mbcasadi.linalg import Sym
from mbcasadi.system import System


@dataclass(frozen=True)
class ReducedRows(Generic[Sym]):
    """Rows `A a + c = 0` in place of those of the system.

    Attributes:
        A, c: (m, nv), (m, 1).
        row_scale: of these rows.
        Q: (nc, m), `lam = Q lam_r`; None where they are the rows of the system.
    """

    A: Sym
    c: Sym
    row_scale: Sym | float
    Q: Sym | None

    def all_multipliers(self, lam: Sym) -> Sym:
        """Return the (nc, 1) multipliers of least norm of all rows of the system."""
        return lam if self.Q is None else self.Q @ lam

    def of_all(self, rows: Sym) -> Sym:
        """Return (m, ·) `Qᵀ rows` of (nc, ·) values of all rows of the system."""
        return rows if self.Q is None else self.Q.T @ rows


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
    groups = bodies_held_at_points(system)
    if not groups:
        return ReducedRows(terms.A, terms.c, row_scale, None)
    if isinstance(state.q, ca.SX):
        A, Q = _rows(system, groups, state, terms.A)
    else:
        inputs = {key: x for key, x in state.inputs.items() if key in ("q", "mask")}
        reduced = _rows_fun(system, groups)(A=terms.A, **inputs)
        A, Q = reduced["A_r"], reduced["Q"]
    if not isinstance(row_scale, float):  # a row of A_r is a combination of length one
        row_scale = ca.sqrt((Q**2).T @ row_scale**2)
    return ReducedRows(A, Q.T @ terms.c, row_scale, Q)


def reduced_pattern(system: System, A: ca.Sparsity) -> ca.Sparsity:
    """Return the sparsity of the reduced rows.

    Args:
        system: the mechanism.
        A: (nc, nv) sparsity of all rows.
    """
    state = state_symbols(system, ca.SX)
    return _rows(system, bodies_held_at_points(system), state, ca.SX.sym("A", A))[0].sparsity()


def reduced_size(system: System) -> int:
    """Return the number of reduced rows."""
    if system.nc == 0:
        return 0
    return reduced_pattern(system, system.loop_jacobian.sparsity_out("A")).size1()


def reduced_matrix_fun(system: System) -> ca.Function:
    """Return (q) → (A_r) of a system whose rows depend on q alone and are all switched on."""
    state = state_symbols(system, ca.SX)
    A = system.loop_jacobian(state.q)
    rows = _rows(system, bodies_held_at_points(system), state._replace(mask=None), A)[0]
    return ca.Function("reduced_matrix", [state.q], [rows], ["q"], ["A_r"])


LEAST_SWITCHED = 3
"""Points of a body that a mask switches: two have six rows as they are."""


def varied_equalities(system: System) -> set[int]:
    """Return the indices of the equality constraints whose anchors or ends are parameters."""
    items = system.parameters.items
    own = {item.index for item in items if item.kind == "equality"}
    moved = {item.index for item in items if item.kind == "mocap"}
    if not moved or system.tree is None:
        return own
    names = {system.tree.bodies[i].name for i in moved}
    depending = mocap_equalities(system.tree, system.equalities)
    return own | {
        i
        for i, equality in enumerate(system.equalities)
        if names & set(depending.get(equality.name, ()))
    }


def bodies_held_at_points(system: System) -> tuple[PointsOfBody, ...]:
    """Return the bodies whose rows are reduced."""
    if system.tree is None or varied_equalities(system):
        return ()
    least = 2 if system.mask is None else LEAST_SWITCHED
    return points_of_bodies(system.tree, system.equalities, least)


def _rows(
    system: System, groups: tuple[PointsOfBody, ...], state: State[ca.SX], A: ca.SX
) -> tuple[ca.SX, ca.SX]:
    if not groups or system.tree is None:
        return A, ca.SX.eye(system.nc)
    return independent_rows(system.tree, groups, A, state.q, state.mask)


def _rows_fun(system: System, groups: tuple[PointsOfBody, ...]) -> ca.Function:
    """Return (A, q, [mask]) → (A_r, Q)."""
    state = state_symbols(system, ca.SX)
    inputs = {"A": ca.SX.sym("A", system.loop_jacobian.sparsity_out("A")), "q": state.q}
    inputs |= {} if state.mask is None else {"mask": state.mask}
    outputs = _rows(system, groups, state, inputs["A"])
    return ca.Function(
        "independent_rows",
        list(inputs.values()),
        outputs,
        list(inputs),
        ["A_r", "Q"],
        {"cse": True},
    )
