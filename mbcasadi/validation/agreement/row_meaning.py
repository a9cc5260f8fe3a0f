"""What rows of constraints mean together, however they are written."""

import numpy as np

from mbcasadi.validation.agreement.manifold import Array
from mbcasadi.validation.agreement.sides import Draw, Side

MEANING = ("constraint_gap", "constraint_projector", "constraint_acceleration")

CLOSED = 1e-12
"""Distance from the manifold, in rad or m, of a pose that counts as closed."""

STEPS, LONGEST = 60, 0.5
"""Of Newton's iteration to the manifold: their number, and the largest, rad or m."""

RANK_TOL = 1e-7
"""Singular values below this share of the largest one are those of dependent rows."""


def close_pose(side: Side, at: Draw) -> Draw | None:
    """Return the draw at a closed pose near it, with v along the manifold; None without one."""
    for _ in range(STEPS):
        rows = side.evaluate(("constraint", "constraint_jacobian"), at)
        inverse = pseudo_inverse(rows["constraint_jacobian"].value)
        step: Array = -inverse @ np.nan_to_num(rows["constraint"].value.ravel())
        size = float(np.max(np.abs(step), initial=0.0))
        if size < CLOSED:
            v = at.v - inverse @ (rows["constraint_jacobian"].value @ at.v)
            return at._replace(v=v)
        shortened: Array = step * min(1.0, LONGEST / size)
        moved = at._replace(dv=shortened)
        at = at._replace(q=side.evaluate(("integrate",), moved)["integrate"].value.ravel())
    return None


def pseudo_inverse(A: Array) -> Array:
    """Return `A⁺`, whose rank leaves out what is below `RANK_TOL`."""
    return np.asarray(np.linalg.pinv(A, rcond=RANK_TOL), dtype=np.float64)


def meaning_of_rows(side: Side, at: Draw) -> dict[str, Array]:
    """Return `A⁺ phi`, `I - A⁺ A` and `A⁺ c` by the names in `MEANING`."""
    names = ("constraint", "constraint_jacobian", "constraint_bias")
    phi, A, c = (evaluation.value for evaluation in side.evaluate(names, at).values())
    inverse = pseudo_inverse(A)
    values: tuple[Array, ...] = (
        inverse @ np.nan_to_num(phi.ravel()),
        np.eye(A.shape[1]) - inverse @ A,
        inverse @ c.ravel(),
    )
    return dict(zip(MEANING, values, strict=True))
