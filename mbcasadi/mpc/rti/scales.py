"""Units of a problem over a horizon, measured on its cost at a guess.

The curvature of the cost along a row is `1 / (G H⁻¹ Gᵀ)`, with the Hessian H of the cost from an
interval on, which a recursion gives; the unit of a coordinate is `1 / √H_ii`. Both are medians over
the intervals. The cost of the end may not know a row of the end: its curvature is `1 / (G Y Gᵀ)`,
with the Hessian Y⁻¹ of the least cost of reaching a state at the end, which a run forward gives.
"""

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.description.stagewise_qp import StagewiseQP
from mbcasadi.mpc.ocp.problem import Array
from mbcasadi.qp.stagewise import columns_of, end_blocks, interval_blocks

FLAT = 1e-9
"""Curvature that every coordinate has at least, in units in which the largest is one."""


class Scales(NamedTuple):
    """Stiffness of the rows inside and at the end, and units of z."""

    inside: Array
    at_end: Array
    units: Array


def measured_scales(problem: StagewiseQP, data: ca.DM) -> Scales | None:
    """Return the scales at these data; None where the cost does not determine every control."""
    if not np.all(np.isfinite(data.full())):
        return None
    symbol = ca.MX.sym("data", problem.size)
    last = end_blocks(problem, symbol)
    columns = ca.horzsplit(columns_of(problem, symbol))
    blocks = [interval_blocks(problem, column) for column in columns]
    outputs = [
        ca.densify(each) for block in (*blocks, last) for each in (block.A, block.H, block.G)
    ]
    numbers = ca.Function("blocks", [symbol], outputs)(data)
    triples = [[part.full() for part in numbers[3 * k : 3 * k + 3]] for k in range(len(blocks) + 1)]
    *inside, (_, H_end, G_end) = triples
    P, nu, along, diagonals = H_end, problem.nu, [], []
    steps = list[tuple[Array, Array]]()
    for A, H, G in reversed(inside):
        whole = H + A.T @ P @ A
        if not _is_definite(whole[:nu, :nu]):
            return None
        along.append(_curvature_along(G, whole))
        diagonals.append(np.diag(whole))
        steps.insert(0, (A, whole[:nu]))
        P = whole[nu:, nu:] - whole[nu:, :nu] @ np.linalg.solve(whole[:nu, :nu], whole[:nu, nu:])
    typical = np.median(diagonals, axis=0)
    units = 1 / np.sqrt(np.where(typical > 0, typical, 1.0))
    at_end = _curvature_at_end(G_end, H_end, _reach(steps, problem.nx))
    return Scales(np.median(along, axis=0), at_end, units)


def _is_definite(H: Array) -> bool:
    """Return whether H is positive definite, whatever the units of its coordinates."""
    unit = np.sqrt(np.diag(H))
    return bool(np.all(unit > 0) and np.linalg.eigvalsh(H / np.outer(unit, unit))[0] > FLAT**2)


def _reach(steps: Sequence[tuple[Array, Array]], nx: int) -> Array:
    """Return the inverse Hessian (nx, nx) of the least cost of reaching a state at the end.

    Args:
        steps: A, and the rows of u in the Hessian of the cost from an interval on, of each.
        nx: number of coordinates of a state.
    """
    Y = np.zeros((nx, nx))
    for A, of_u in steps:
        nu = len(of_u)
        B, R = A[:, :nu], of_u[:, :nu]
        closed = A[:, nu:] - B @ np.linalg.solve(R, of_u[:, nu:])
        Y = closed @ Y @ closed.T + B @ np.linalg.solve(R, B.T)
    return Y


def _curvature_at_end(G: Array, H: Array, Y: Array) -> Array:
    """Return `1 / (G Y Gᵀ)`, or the curvature of H along a row that no control reaches."""
    given = np.einsum("ij,jk,ik->i", G, Y, G)
    is_reached = given > FLAT * G**2 @ np.diag(Y)
    curvature: Array = np.where(
        is_reached, 1 / np.where(is_reached, given, 1.0), _curvature_along(G, H)
    )
    return curvature


def _curvature_along(G: Array, H: Array) -> Array:
    unit = np.sqrt(np.where(np.diag(H) > 0, np.diag(H), 1.0))
    scaled, rows = H / np.outer(unit, unit) + FLAT * np.eye(len(H)), G / unit
    given: Array = np.einsum("ij,ji->i", rows, np.linalg.solve(scaled, rows.T))
    known: Array = np.where(given > 0, given, 1.0)
    return 1 / known
