"""Active constraint rows in the sizes of coordinates and residuals, and their drop rule."""

from collections.abc import Mapping
from typing import cast

import casadi as ca

from mbcasadi.linalg import UNROLL_LIMIT, Sym, operations
from mbcasadi.simulation.options import EquationOptions
from mbcasadi.system import System, evaluate
from mbcasadi.system.closing import row_scale_at, worst_gap
from mbcasadi.system.sizes import residual_sizes

TRUSTED_STEP = 0.1
"""Rad, or share of a length. A direction in which Newton would go further than this is not one of
the constraint's: it comes from the gap itself (the loop of Bricard has rank 5 when closed and 6
when slightly open), so it is dropped until the gap is closed."""

ROWS_TO_FACTOR = 3
"""A Function holds about this many times the operations of one factorisation."""


def holonomic_rows(system: System) -> ca.DM:
    """Return (nc, 1) one where phi depends on anything, zero for rows of velocities only."""
    constraint = system.constraint
    dependent = ca.DM.zeros(system.nc)
    for i in range(constraint.n_in()):
        for row in set(constraint.jac_sparsity(0, i).row()):
            dependent[row] = 1
    return dependent


def active_rows(system: System, s: Mapping[str, Sym], on: Sym) -> Sym:
    """Return (nc, nv) the rows of A in the sizes of coordinates and residuals.

    Args:
        system: the mechanism.
        s: q, t and v by name; without v, the rows are those at rest.
        on: (nc,) one for each row that is active, else zero.
    """
    known = {"v": type(on).zeros(system.nv), **s}
    size, row_size = ca.DM(system.scales.coordinates), ca.DM(residual_sizes(system))
    return ca.diag(on / row_size) @ evaluate(system.loop_jacobian, known) @ ca.diag(size)


def trusted_scale(
    system: System, equations: EquationOptions, phi: Sym, strong: float | None = None
) -> Sym:
    """Return (nc,) the scales of sized rows with which a Newton step stays within `TRUSTED_STEP`.

    Args:
        system: the mechanism.
        equations: drop rule.
        phi: (nc,) the residual that the step closes.
        strong: relative length from which a direction is corrected anyway.
    """
    rows = ca.DM(system.scales.rows)
    step = ca.norm_inf(ca.densify(phi / rows))  # that the usual row needs
    weakest = step / TRUSTED_STEP if strong is None else ca.fmin(step / TRUSTED_STEP, strong)
    least = rows / ca.DM(residual_sizes(system)) * weakest / equations.rank_tol
    return ca.fmax(sized_scale(system, equations), least)


def usual_scale(system: System, equations: EquationOptions) -> ca.DM:
    """Return (nc,) the scales of the constraint rows at a state on the manifold."""
    if equations.row_scale is None:
        return ca.DM(system.scales.row_norms)
    return equations.row_scale * ca.DM.ones(system.nc)


def sized_scale(system: System, equations: EquationOptions) -> ca.DM:
    """Return `usual_scale` of the rows in the sizes of coordinates and residuals."""
    scales = system.scales
    of_size = scales.rows / (scales.row_norms * residual_sizes(system))
    return ca.DM(of_size) * usual_scale(system, equations)


def scale_at(system: System, equations: EquationOptions, phi: Sym) -> Sym | ca.DM:
    """Return (nc,) the scales of the sized rows at a state with the residual phi."""
    usual = sized_scale(system, equations)
    if equations.row_scale is not None or not system.nc:
        return usual
    gap = worst_gap(phi, ca.DM(system.scales.rows))
    return row_scale_at(usual, equations.rank_tol, gap)


def has_nonlinear_rates(system: System) -> bool:
    """Return whether rows are nonlinear in v, so that one projection does not reach them."""
    return system.nc > 0 and "v" in system.loop_jacobian.name_in()


def constraints_unroll(system: System) -> bool:
    """Return whether the constraints are few enough for Functions of scalars."""
    count = operations(ca.Sparsity.dense(system.nc, system.nv), True)
    return ROWS_TO_FACTOR * count <= UNROLL_LIMIT


def constraint_kind(system: System) -> type[ca.MX]:
    """Return `ca.SX` where the constraints are few, else `ca.MX`; typed as the latter."""
    return cast(type[ca.MX], ca.SX) if constraints_unroll(system) else ca.MX
