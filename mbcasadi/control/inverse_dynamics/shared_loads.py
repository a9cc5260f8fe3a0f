"""Loads that constraints share: the part of their forces that the motion does not determine.

Where rows of G depend on others, `lam + N w` moves the mechanism as lam does: N spans null(Gᵀ). The
drop rule keeps the first of these rows and gives the others nothing. Here the undetermined part is
shared by least squares in a metric W, `(I - Π) lam` with the W-orthogonal projector Π onto N, and
deviates from it by an unknown w of the QP or not at all; with a preload it is `Π lam_0`.

With the triangular factor R of `condensed_dynamics.py`, a dropped row d is `G_d = α_dᵀ G` of the
kept rows, `α = R⁻¹ R`: the columns of N are `e_d - α_d`. A remainder below the drop rule counts as
zero, for the forces as for the motion.
"""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi import linalg
from mbcasadi.control.inverse_dynamics.parts.load_sharing import LoadSharing
from mbcasadi.control.inverse_dynamics.problem import Problem
from mbcasadi.control.inverse_dynamics.scales import ProblemScales
from mbcasadi.control.tick.design import Design
from mbcasadi.errors import ProblemError
from mbcasadi.qp.whitening import shift_bounds
from mbcasadi.shapes import real_array
from mbcasadi.system.names_by_kind import require_name_of

Array = NDArray[np.float64]

INDEPENDENT = 1e-6
"""Relative remainder of a column of N; each has an entry 1 that no other has."""

PARTS = {6: (3, 3)}
"""Rows of a `<weld>`: a force and a moment."""

IMMOVABLE = 1e-6
"""Rows that move less than this share of the others have no size of their own."""

DETERMINED = 1e-9
"""A multiplier is determined where its row of an orthonormal N is shorter than this, squared."""


class Undetermined(NamedTuple):
    """The undetermined part of the first k multipliers.

    Attributes:
        basis: (k, k) columns N, W-orthonormal; those of kept rows are zero.
        spread: (k, k) the projector Π onto them.
        freedom: (k,) squared length of each row of N in the metric: zero for determined ones.
    """

    basis: ca.SX
    spread: ca.SX
    freedom: ca.SX


def undetermined(basis: Any, on: ca.SX, size: Array) -> Undetermined:
    """Return the undetermined part of multipliers.

    Args:
        basis: `linalg.RowBasis` of all rows, in their order.
        on: (k,) one for rows that are on, else zero; the first k rows.
        size: (k,) roots of the metric W.
    """
    k = size.size
    R, inverse = basis.R[:k, :k], linalg.inverse_diagonal(basis)[:k, 0]
    one = ca.DM.eye(k)
    dropped = on * (1 - basis.kept[:k, 0])
    columns = (one - linalg.solve_upper(R, inverse, R)) * ca.repmat(dropped.T, k, 1)
    scaled = columns * ca.DM(size[:, None] / size[None, :])
    Q = linalg.row_basis(ca.densify(scaled).T, rank_tol=INDEPENDENT, pivot=False).V
    first = Q * ca.DM(np.outer(1 / size, np.ones(k)))
    last = (Q * ca.DM(np.outer(size, np.ones(k)))).T
    return Undetermined(first, linalg.product(first, last), ca.sum2(Q**2))


def share_loads(
    design: Design,
    sharing: LoadSharing | None,
    problem: Problem,
    basis: Any,
    scales: ProblemScales,
) -> tuple[Problem, "SharedLoads | None"]:
    """Return the problem with its loads shared; their deviations are the last unknowns w.

    Args:
        design: of the controller.
        sharing: None for the order of the rows.
        problem: its parts.
        basis: of its rows.
        scales: the units of the problem.
    """
    if sharing is None:
        return problem, None
    size = _metric(design, sharing, scales)
    k, m = size.size, problem.on.numel()
    undetermined_part = undetermined(basis, problem.on[:k, 0], size)
    left = _left(undetermined_part.spread)
    free = (
        undetermined_part.basis * scales.contact
        if sharing.kind == "free"
        else undetermined_part.basis[:, :0]
    )
    preload = linalg.product(
        undetermined_part.spread, type(left)(ca.DM(_preload(design, sharing, k)))
    )
    rows, contacts = problem.rows, problem.contacts
    of_shared = rows.C_lam[:, :k]
    C_lam = ca.horzcat(linalg.product(of_shared, left), rows.C_lam[:, k:])
    moved = linalg.product(of_shared, preload)
    rows = replace(
        rows,
        C_lam=C_lam,
        C_w=ca.horzcat(rows.C_w, linalg.product(of_shared, free)),
        lower=shift_bounds(rows.lower, moved) if sharing.preload else rows.lower,
        upper=shift_bounds(rows.upper, moved) if sharing.preload else rows.upper,
    )
    nc3, of_contacts = contacts.of_lam.shape
    kind = type(contacts.of_lam)
    of_lam = ca.horzcat(kind(nc3, m - of_contacts), contacts.of_lam)
    if k > m - of_contacts:
        more = linalg.product(of_lam[:, :k], free)
        of_lam = ca.horzcat(linalg.product(of_lam[:, :k], left), of_lam[:, k:])
    else:
        more, of_lam = kind(nc3, free.shape[1]), contacts.of_lam
    contacts = replace(contacts, of_lam=of_lam, of_w=ca.horzcat(contacts.of_w, more))
    shared = SharedLoads(undetermined_part, free, preload)
    return replace(problem, rows=rows, contacts=contacts), shared


def _left(spread: ca.SX) -> ca.SX:
    """Return `I - Π`."""
    one: ca.SX = type(spread)(ca.DM.eye(spread.shape[0]))
    return one - spread


class SharedLoads(NamedTuple):
    """How the first k multipliers are shared: `lam - Π lam + Π lam_0 + free w`.

    Attributes:
        part: the undetermined part.
        free: (k, nw) of the last unknowns w; no columns where nothing is free.
        preload: (k,) `Π lam_0`.
    """

    part: Undetermined
    free: ca.SX
    preload: ca.SX

    def multipliers(self, lam: ca.SX, w: ca.SX) -> ca.SX:
        """Return the first k multipliers, shared.

        Args:
            lam: (m,) of the drop rule.
            w: all unknowns beside p.
        """
        k, count = self.free.shape
        determined = lam[:k, 0] - linalg.product(self.part.spread, lam[:k, 0]) + self.preload
        return determined + linalg.product(self.free, w[w.numel() - count :, 0])


def _metric(design: Design, sharing: LoadSharing, scales: ProblemScales) -> Array:
    """Return roots (k,) of the metric W, of the size of the rows' scales."""
    nc, m = design.system.nc, scales.rows.size
    ends = np.cumsum(
        [0, *(part for size in design.equality_sizes for part in PARTS.get(size, (size,)))]
    )
    parts = [slice(*pair) for pair in itertools.pairwise(ends)]
    contacts = slice(nc + len(design.held_rows), m)
    sizes = np.array(scales.rows)
    for part in [*parts, contacts]:  # components of one force count alike
        sizes[part] = np.sqrt(np.mean(sizes[part] ** 2)) if sizes[part].size else 1.0
    usual = np.sqrt(np.mean(sizes**2)) if m else 1.0
    sizes = np.where(sizes < IMMOVABLE * usual, usual, sizes)[: m if sharing.rows == "all" else nc]
    if sharing.stiffness is None:
        return sizes
    named = _by_rows(design, "stiffness", sharing.stiffness, np.nan)
    if np.any(~(named > 0)):
        raise ProblemError(
            f"stiffness = {dict(sharing.stiffness)}; expected positive numbers for each of "
            f"{', '.join(design.equality_names)}"
        )
    roots = named**-0.5
    return np.asarray(roots * np.sqrt(np.mean(sizes**2) / np.mean(roots**2)))


def _preload(design: Design, sharing: LoadSharing, k: int) -> Array:
    if sharing.preload is None:
        return np.zeros(k)
    return _by_rows(design, "preload", sharing.preload, 0.0)


def _by_rows(design: Design, label: str, values: Mapping[str, ArrayLike], missing: float) -> Array:
    """Return one number for each row of the equality constraints."""
    names = design.equality_names
    for name in values:
        require_name_of(design.system, "equality constraint", name, list(names))
    parts = []
    for name, size in zip(names, design.equality_sizes, strict=True):
        numbers = real_array(label, values.get(name, missing))
        if numbers.shape not in {(), (size,)}:
            raise ProblemError(
                f"{label} of '{name}': {numbers.size} numbers; expected one, or {size}"
            )
        parts.append(np.broadcast_to(numbers, (size,)))
    return np.concatenate([np.zeros(0), *parts]).astype(float)
