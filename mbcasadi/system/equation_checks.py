"""What can be proved of given equations at a few configurations: symmetry, sign, numbers.

A property that fails at one configuration fails. That it holds at some proves nothing, so a
system may still be wrong elsewhere.
"""

from collections.abc import Mapping

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.system.functions import Builder

Array = NDArray[np.float64]

SINGULAR = 1e-12
"""Smallest over largest eigenvalue of an M with ones on its diagonal that counts as singular."""

ROUNDING = 1e-9
"""Difference of M and its transpose, or negative eigenvalue, that is taken for rounding, relative
to the diagonal."""

LEAST_DIAGONAL = 1e-12
"""Least entry of the diagonal, relative to the largest, that an entry of M is compared with: a
coordinate in units a million times as small has 1e-12 of the inertia."""

SAMPLES = 3  # generic configurations near one
SPREADS = (
    0.0,
    0.03,
    0.3,
    3.0,
    30.0,
    300.0,
)  # standard deviations of further ones, for expressions of small domain


GIVEN_AS = {"h": "bias_force", "force": "passive_force", "B": "actuation"}
"""Argument of `from_equations` → the member that it becomes."""


def check_equations(builders: Mapping[str, Builder]) -> bool:
    """Return whether M is singular at each of a few generic configurations.

    Raises:
        ShapeError, ProblemError: M, h, the force or B cannot be right; see below.
    """
    require_numbers_somewhere({name: builders[member]() for name, member in GIVEN_AS.items()})
    return check_inertia(builders["mass_matrix"]())


def check_inertia(mass_matrix: ca.Function) -> bool:
    """Return whether M is singular at each of a few generic configurations.

    Args:
        mass_matrix: (q) → (M).

    Raises:
        ShapeError: M is NaN or infinite at all of them.
        ProblemError: M is not symmetric, or has a negative eigenvalue, at one of them.
    """
    nv = int(mass_matrix.size1_in(0))
    if not nv:
        return False
    generic = _generic(nv)
    inertias = [(q, mass_matrix(q).full()) for q in generic]
    far = [(q, mass_matrix(q).full()) for q in _spread(nv)]
    near = [(q, M) for q, M in inertias if np.all(np.isfinite(M))]
    finite = [*near, *((q, M) for q, M in far if np.all(np.isfinite(M)))]
    if not finite:
        _raise_not_finite("M", ~np.isfinite(inertias[0][1]), len(inertias) + len(far))
    for q, M in finite:
        _require_symmetric(M, q)
    # An expression may be an inertia in a part of the space only, such as that of a length.
    for q, M in near:
        _require_no_negative_eigenvalue(M, q)
    ends = [np.linalg.eigvalsh(_with_diagonal_of_one(M))[[0, -1]] for _, M in near]
    return bool(ends) and all(low <= SINGULAR * abs(high) for low, high in ends)


def require_numbers_somewhere(functions: Mapping[str, ca.Function]) -> None:
    """Raise `ShapeError` for an expression that is NaN or infinite at all sampled states.

    Args:
        functions: name in the message → Function of columns: q, v, t.
    """
    for name, function in functions.items():
        if not function.numel_out(0):
            continue
        n = max(int(function.size1_in(i)) for i in range(function.n_in()))
        places = (*_generic(n), *_spread(n))
        sizes = [int(function.size1_in(i)) for i in range(function.n_in())]
        values = [function.call([x[:size] for size in sizes])[0].full() for x in places]
        never = ~np.any(np.isfinite(values), axis=0)
        if never.any():
            _raise_not_finite(name, never, len(values))


def _generic(nv: int) -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.uniform(0.2, 1.2, nv) for _ in range(SAMPLES)]


def _spread(nv: int) -> list[Array]:
    rng = np.random.default_rng(1)
    return [spread * rng.normal(size=nv) for spread in SPREADS]


def _raise_not_finite(name: str, bad: NDArray[np.bool_], count: int) -> None:
    row, column = np.argwhere(bad)[0]
    raise ShapeError(
        f"{name} is NaN or infinite at all of {count} sampled states, first in row {row}, column "
        f"{column}; expected finite numbers"
    )


def _require_symmetric(M: Array, q: Array) -> None:
    scale = _diagonal_root(M)
    apart = np.abs(M - M.T) / np.outer(scale, scale)
    if apart.max() > ROUNDING:
        i, j = np.unravel_index(int(apart.argmax()), apart.shape)
        raise ProblemError(
            f"M is not symmetric: M[{i}, {j}] = {M[i, j]:g}, M[{j}, {i}] = {M[j, i]:g} at q = "
            f"{np.round(q, 3)}; expected the inertia of a kinetic energy ½ vᵀ M v. If the "
            "equations were solved for something else, multiply them back, or give the skew part "
            "as a force in h"
        )


def _require_no_negative_eigenvalue(M: Array, q: Array) -> None:
    scale = _diagonal_root(M)
    eigenvalues, vectors = np.linalg.eigh(_with_diagonal_of_one(M))
    if eigenvalues[0] < -ROUNDING:
        motion = vectors[:, 0] / scale
        raise ProblemError(
            f"M has a negative eigenvalue: the motion v = {np.round(motion, 3)} has the kinetic "
            f"energy {motion @ M @ motion / 2:.3g} J at q = {np.round(q, 3)}; expected vᵀ M v >= "
            "0 for every v. Check the signs of masses and of the equations"
        )


def _with_diagonal_of_one(M: Array) -> Array:
    """Return the symmetric part of M for coordinates of equal inertia: no unit has an effect."""
    scale = _diagonal_root(M)
    return np.asarray((M + M.T) / 2 / np.outer(scale, scale))


def _diagonal_root(M: Array) -> Array:
    """Return the roots of the diagonal, so that units of coordinates have no effect."""
    diagonal = np.abs(np.diag(M))
    largest = max(float(np.abs(M).max()), np.finfo(float).tiny)
    return np.asarray(np.sqrt(np.maximum(diagonal, LEAST_DIAGONAL * largest)))
