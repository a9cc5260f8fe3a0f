"""Bounds on constraint forces in linear MPC: joints, pins, and feet inside friction cones.

    lam = lam_0 + ∂lam/∂q δq + ∂lam/∂v δv + ∂lam/∂u δu

lam are the multipliers of `M a + h = B u + f_0 + f_passive + Aᵀ lam`, `A a + c = 0`; where rows of
A repeat, those of least norm. They depend directly on the control, so these rows have `D ≠ 0` and
hold at the samples 0 … N-1, at the beginning of each hold.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.contacts.friction_cone import contact_axes, force_rows, require_contacts
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.operating_point import motion_fun, numbers, require_no_activations
from mbcasadi.control.regulators.tangent import TANGENT_RANK_TOL
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.mpc.linear.model import Array, Output, end_of
from mbcasadi.shapes import column, real_array
from mbcasadi.system.names_by_kind import require_name_of

UNLOADED = 1e-9
"""Change of a force, relative to the largest one, that counts as zero."""

POINT = 3


@dataclass(frozen=True)
class ForceSlopes:
    """The multipliers near a state, with their derivatives.

    Attributes:
        lam: (nc,) there.
        of_state: (nc, 2 nv) change with (δq, δv).
        of_u: (nc, nu) change with δu.
    """

    lam: Array
    of_state: Array
    of_u: Array


def force_slopes(linear: Linearization) -> ForceSlopes:
    """Return the multipliers of a linear system and their derivatives, by implicit rules."""
    require_no_activations(linear.system, "an output of forces")
    at = {name: getattr(linear, name) for name in ("q", "v", "u", "act", "t", "mask")}
    motion = numbers(motion_fun(linear.system, TANGENT_RANK_TOL), at)
    of_state = np.hstack([motion["lam_q"], motion["lam_v"]])
    return ForceSlopes(motion["lam"].ravel(), of_state, motion["lam_u"])


@checked
def force_output(
    linear: Linearization,
    name: str,
    rows: ArrayLike,
    lower: ArrayLike = -np.inf,
    upper: ArrayLike = np.inf,
    *,
    linear_penalty: float = 0.0,
    quadratic_penalty: float = 0.0,
) -> Output:
    """Return `lower <= rows lam <= upper`, bounds of whole forces, not of deviations.

    Args:
        linear: from `linearize`.
        name: of the rows.
        rows: (k, nc) or (nc,) combinations of the multipliers; a multiplier's sign is that of the
            force `Aᵀ lam` on the mechanism.
        lower, upper: (k,) or numbers, N or N m.
        linear_penalty, quadratic_penalty: ρ₁, ρ₂ of a violation; none for a hard row.

    Raises:
        ShapeError: a wrong shape, or NaN.
        ProblemError: a force that neither motion nor control changes.
    """
    slopes, nc = force_slopes(linear), linear.system.nc
    pick = np.atleast_2d(real_array("rows", rows))
    if pick.ndim != 2 or pick.shape[1] != nc or not np.all(np.isfinite(pick)):
        raise ShapeError(f"rows has shape {pick.shape}, expected (k, {nc}), finite numbers")
    C, D = pick @ slopes.of_state, pick @ slopes.of_u
    idle = np.flatnonzero(
        ~np.any(np.abs(D) > UNLOADED * np.abs(slopes.of_u).max(initial=0), axis=1)
    )
    if idle.size:
        raise ProblemError(
            f"output '{name}', row {idle[0]}: no control changes this force; expected rows of lam "
            "that a control loads"
        )
    still = pick @ slopes.lam
    low, high = (
        end_of(label, end, len(pick)) - still for label, end in (("lower", lower), ("upper", upper))
    )
    return Output(name, C, D, low, high, linear_penalty, quadratic_penalty)


@checked
def friction_output(
    linear: Linearization,
    name: str,
    constraint: str,
    friction: float,
    *,
    normal: ArrayLike = (0.0, 0.0, 1.0),
    sides: int = 8,
    min_force: float = 0.0,
) -> Output:
    """Return `|f_t| <= friction f_n` and `f_n >= min_force` of a pinned point, hard rows.

    `replace(output, linear_penalty=…)` of `dataclasses` makes them soft.

    An inner pyramid stands for the cone (`contacts/friction_cone.py`); where the mechanism loads
    one tangent only, as in a plane, the wedge `±f_t <= friction f_n`, which is exact.

    Args:
        linear: from `linearize`.
        name: of the rows.
        constraint: a constraint of three rows in world axes (`<connect>` of a point to the world).
            The force acts on the constraint's first body.
        friction: Coulomb coefficient.
        normal: of the ground, towards that body.
        sides: of the pyramid.
        min_force: N.

    Raises:
        UnknownNameError: no such constraint.
        ProblemError: not three rows; an invalid friction, number of sides or least force, or a
            normal of length zero.
        ShapeError: a normal that is not three finite numbers.
    """
    places, n = _places(linear, constraint), column("normal", normal, POINT)
    point = Contact(constraint, tuple(n.tolist()), friction, sides, min_force=min_force)
    require_contacts([point])
    slopes, axes = force_slopes(linear), contact_axes(n)
    pick = np.zeros((POINT, linear.system.nc))
    pick[:, places] = axes
    loads = np.abs(np.column_stack([slopes.lam, slopes.of_state, slopes.of_u]))
    free = np.abs(pick @ np.column_stack([slopes.of_state, slopes.of_u])).max(axis=1, initial=0)
    flat = free <= UNLOADED * loads.max(initial=0)
    wedge = bool(flat[1] or flat[2])
    if wedge:  # two faces across the tangent that is loaded
        point, pick = replace(point, sides=2), pick[[0, 2, 1] if flat[1] else [0, 1, 2]]
    D, ends = force_rows(point, outer=wedge)
    return force_output(linear, name, D @ pick, ends[:, 0], ends[:, 1])


def _places(linear: Linearization, constraint: str) -> list[int]:
    names = linear.system.constraint_names
    require_name_of(linear.system, "constraint", constraint, list(dict.fromkeys(names)))
    places = [i for i, name in enumerate(names) if name == constraint]
    if len(places) != POINT:
        raise ProblemError(
            f"constraint '{constraint}' has {len(places)} rows; expected the three of a point's "
            "force; see force_output for other rows"
        )
    return places
