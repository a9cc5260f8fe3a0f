"""Families of least-distance problems, many at once: rows (k, m, n), bounds (k, m).

Each returns A, lower, upper; what is known of a family is in `FAMILIES`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

NONE = 1e30
FEASIBLE, INFEASIBLE, UNKNOWN = "feasible", "infeasible", "unknown"
Problems = tuple[np.ndarray, np.ndarray, np.ndarray]


class Size(NamedTuple):
    """Number of problems, rows and unknowns."""

    k: int
    m: int
    n: int


def values_at(A, x):
    return np.einsum("kmn,kn->km", A, x)


def bounds_around(rng, A, x=None):
    """Return bounds that hold at a random point, some of them exactly."""
    k, m, n = A.shape
    values = values_at(A, 3 * rng.normal(size=(k, n)) if x is None else x)
    lengths = np.linalg.norm(A, axis=2)
    low = values - lengths * rng.exponential(size=(k, m)) * (rng.random((k, m)) < 0.7)
    return low, values + lengths * rng.exponential(size=(k, m))


def rows(rng, size):
    return rng.normal(size=(size.k, size.m, size.n))


def plain(rng, size) -> Problems:
    A = rows(rng, size)
    return A, *bounds_around(rng, A)


def one_sided(rng, size) -> Problems:
    A, low, high = plain(rng, size)
    side = rng.random(low.shape) < 0.5
    return A, np.where(side, low, -np.inf), np.where(side, np.inf, high)


def degenerate(rng, size) -> Problems:
    """Far more rows than unknowns meet in one point."""
    A = rows(rng, size)
    x = 3 * rng.normal(size=(size.k, size.n))
    low, high = bounds_around(rng, A, x)
    values = values_at(A, x)
    meets = rng.random(low.shape)
    return A, np.where(meets < 0.4, values, low), np.where(meets > 0.6, values, high)


def repeated(rng, size) -> Problems:
    """Half of the rows are multiples of the other half, their bounds their own."""
    A = rows(rng, size)
    half = size.m // 2
    factor = rng.choice([-2.0, -1.0, 1.0, 0.5, 3.0], size=(size.k, half, 1))
    A[:, -half:] = A[:, :half] * factor
    return A, *bounds_around(rng, A)


def copies(rng, size) -> Problems:
    """Rows that occur several times with the same bounds."""
    A, low, high = plain(rng, size)
    source = rng.integers(0, max(1, size.m // 4), size=(size.k, size.m))
    pick = np.arange(size.k)[:, None], source
    return A[pick], low[pick], high[pick]


def dependent_equalities(rng, size) -> Problems:
    A = rows(rng, size)
    few = max(1, size.n // 3)
    A[:, few : 2 * few] = rng.normal(size=(size.k, few, few)) @ A[:, :few]
    x = 3 * rng.normal(size=(size.k, size.n))
    low, high = bounds_around(rng, A, x)
    low[:, : 2 * few] = high[:, : 2 * few] = values_at(A, x)[:, : 2 * few]
    return A, low, high


def equalities(rng, size) -> Problems:
    """As many equal bounds as unknowns, and a few more: one point is left."""
    A = rows(rng, size)
    x = 3 * rng.normal(size=(size.k, size.n))
    low, high = bounds_around(rng, A, x)
    most = min(size.m, size.n + 2)
    low[:, :most] = high[:, :most] = values_at(A, x)[:, :most]
    return A, low, high


def narrow(rng, size) -> Problems:
    """Bounds that almost meet."""
    A = rows(rng, size)
    x = 3 * rng.normal(size=(size.k, size.n))
    low, high = bounds_around(rng, A, x)
    values, width = values_at(A, x), 10.0 ** rng.uniform(-15, -6, size=low.shape)
    tight = rng.random(low.shape) < 0.3
    return A, np.where(tight, values - width, low), np.where(tight, values + width, high)


def masked(rng, size) -> Problems:
    """Rows that are switched off: zeros, or what rounding leaves of them."""
    A, low, high = plain(rng, size)
    is_off = rng.random(low.shape) < 0.4
    noise = rng.choice([0.0, 1e-17], size=(size.k, 1, 1)) * rows(rng, size)
    A = np.where(is_off[:, :, None], noise, A)
    return A, np.where(is_off, -1e6, low), np.where(is_off, 0.0, high)


def nearly_parallel(rng, size) -> Problems:
    A = rows(rng, size)
    half = size.m // 2
    apart = 10.0 ** rng.uniform(-10, -1, size=(size.k, half, 1))
    A[:, -half:] = A[:, :half] + apart * rng.normal(size=(size.k, half, size.n))
    return A, *bounds_around(rng, A)


def nearly_in_a_subspace(rng, size) -> Problems:
    A = rows(rng, size)
    A = A * 10.0 ** rng.uniform(-6, 0, size=(size.k, 1, size.n))
    return A, *bounds_around(rng, A)


def badly_scaled(rng, size) -> Problems:
    A, low, high = plain(rng, size)
    scale = 10.0 ** rng.uniform(-6, 6, size=low.shape)
    return A * scale[:, :, None], low * scale, high * scale


def large_and_small(rng, size) -> Problems:
    A, low, high = plain(rng, size)
    scale = 10.0 ** rng.uniform(-8, 8, size=(size.k, 1))
    return A, low * scale, high * scale


def low_rank(rng, size) -> Problems:
    rank = max(1, size.n // 2)
    A = rng.normal(size=(size.k, size.m, rank)) @ rng.normal(size=(size.k, rank, size.n))
    return A, *bounds_around(rng, A)


def integers(rng, size) -> Problems:
    """Small whole numbers: exact ties everywhere."""
    A = rng.integers(-1, 2, size=(size.k, size.m, size.n)).astype(float)
    values = values_at(A, rng.integers(-2, 3, size=(size.k, size.n)).astype(float))
    return (
        A,
        values - rng.integers(0, 3, size=values.shape),
        values + rng.integers(0, 3, values.shape),
    )


def tangent(rng, size) -> Problems:
    """Rows that touch a ball beside one point: almost all matter."""
    centre = rng.normal(size=(size.k, 1, size.n))
    A = centre + 10.0 ** rng.uniform(-4, 0, size=(size.k, 1, 1)) * rows(rng, size)
    A *= np.where(np.sum(A * centre, axis=2) < 0, -1, 1)[:, :, None]
    A /= np.linalg.norm(A, axis=2)[:, :, None]
    ones = np.ones((size.k, size.m))
    return A, ones, np.full_like(ones, np.inf)


def pyramids(rng, size) -> Problems:
    """Limits of each unknown and friction pyramids of contacts, seen through a random basis."""
    k, m, n = size
    A = np.zeros((k, m, n))
    for i in range(min(m, n)):
        A[:, i, i] = 1.0
    for first in range(n, m - 4, 5):
        normal, across, along = (rng.normal(size=(k, n)) for _ in range(3))
        faces = [normal - across, normal + across, normal - along, normal + along, normal]
        A[:, first : first + 5] = np.stack(faces, axis=1)
    A = A @ rng.normal(size=(k, n, n))
    values = values_at(A, rng.normal(size=(k, n)))
    low = np.where(values > 0, 0.0, values - rng.exponential(size=values.shape))
    return A, low, np.where(np.arange(m) < n, values + rng.exponential(size=values.shape), NONE)


def pair_apart(rng, size) -> Problems:
    """Two rows that contradict each other, by 1e-6 to 10."""
    A, low, high = plain(rng, size)
    length = np.linalg.norm(A[:, 0], axis=1)
    gap = 10.0 ** rng.uniform(-6, 1, size=size.k)
    A[:, 1] = -A[:, 0]
    low[:, 0], low[:, 1] = length, (gap - 1.0) * length
    high[:, :2] = np.inf
    return A, low, high


def sum_apart(rng, size) -> Problems:
    """A positive combination of rows is the negative of another, and their bounds exclude it."""
    A, low, high = plain(rng, size)
    few = min(size.n, size.m - 1)
    weights = rng.uniform(0.1, 1.1, size=(size.k, few))
    A[:, few] = -np.einsum("kf,kfn->kn", weights, A[:, :few])
    gap = 10.0 ** rng.uniform(-5, 1, size=size.k)
    low[:, few] = gap - np.einsum("kf,kf->k", weights, low[:, :few])
    high[:, : few + 1] = np.inf
    return A, low, high


def near_rows_apart(rng, size) -> Problems:
    """The same with rows that are nearly parallel."""
    A, low, high = plain(rng, size)
    few = min(size.n, size.m - 1)
    apart = 10.0 ** rng.uniform(-3, -1, size=(size.k, 1, 1))
    A[:, 1:few] = A[:, :1] + apart * A[:, 1:few]
    weights = rng.uniform(0.1, 1.1, size=(size.k, few))
    A[:, few] = -np.einsum("kf,kfn->kn", weights, A[:, :few])
    gap = 10.0 ** rng.uniform(-2, 1, size=size.k)
    low[:, few] = gap - np.einsum("kf,kf->k", weights, low[:, :few])
    high[:, : few + 1] = np.inf
    return A, low, high


def equalities_apart(rng, size) -> Problems:
    A, low, high = dependent_equalities(rng, size)
    few = max(1, size.n // 3)
    low[:, few] += 10.0 ** rng.uniform(-4, 1, size=size.k) * np.linalg.norm(A[:, few], axis=1)
    high[:, few] = low[:, few]
    return A, low, high


def one_row_impossible(rng, size) -> Problems:
    A, low, high = plain(rng, size)
    kind = rng.integers(0, 3, size=size.k)
    low[kind == 0, 0] = high[kind == 0, 0] + 1e-3
    A[kind == 1, 0], low[kind == 1, 0], high[kind == 1, 0] = 0.0, 0.1, 1.0
    high[kind == 2, 0] = -np.inf
    return A, low, high


def hardly_apart(rng, size) -> Problems:
    """Contradictions between rounding errors and what can be proven."""
    A, low, high = pair_apart(rng, size)
    low[:, 1] = (10.0 ** rng.uniform(-16, -7, size=size.k) - 1.0) * low[:, 0]
    return A, low, high


def random_bounds(rng, size) -> Problems:
    A = rows(rng, size)
    ends = np.sort(2 * rng.normal(size=(2, size.k, size.m)), axis=0)
    use = rng.random((2, size.k, size.m)) < 0.35
    return A, np.where(use[0], ends[0], -NONE), np.where(use[1], ends[1], NONE)


FAMILIES: dict[Callable[..., Problems], str] = {
    plain: FEASIBLE, one_sided: FEASIBLE, degenerate: FEASIBLE, repeated: FEASIBLE,
    copies: FEASIBLE, dependent_equalities: FEASIBLE, equalities: FEASIBLE, narrow: FEASIBLE,
    masked: FEASIBLE, nearly_parallel: FEASIBLE, nearly_in_a_subspace: FEASIBLE,
    badly_scaled: FEASIBLE, large_and_small: FEASIBLE, low_rank: FEASIBLE, integers: FEASIBLE,
    tangent: FEASIBLE, pyramids: FEASIBLE, pair_apart: INFEASIBLE, sum_apart: INFEASIBLE,
    near_rows_apart: INFEASIBLE,
    equalities_apart: INFEASIBLE, one_row_impossible: INFEASIBLE, hardly_apart: UNKNOWN,
    random_bounds: UNKNOWN,
}  # fmt: skip
