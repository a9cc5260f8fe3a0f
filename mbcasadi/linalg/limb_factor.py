"""The point nearest to another one under linear equations, limb by limb, whatever their rank.

Least ``|y - y0|`` with ``G y + c = 0``, where the rows of G fall into limbs (`linalg.limbs`): a row
touches own columns ``X`` of its limb and shared columns ``W``.

1. Each limb alone: reflections of its own columns, the largest remainder first, and row operations
   ``H`` with factors of at most one turn its rows into ``H X = diag(σ) Qᵀ``, ``H W = w``: row i has
   one own direction of size σᵢ, from full size to zero, and a shared part.
2. The shared columns: with ``C Cᵀ`` what earlier rows leave of them (`I` at first), a row leaves

       αᵢ = σᵢ² + |Cᵀ wᵢ|²,   Kᵢ = C Cᵀ wᵢ,   C ← C (I - φ φᵀ / (αᵢ + σᵢ √αᵢ)),   φ = Cᵀ wᵢ,

   the squared remainder of Gram-Schmidt over all columns, at the price of the shared ones. This is
   the square-root measurement update of J. E. Potter (Battin, Astronautical Guidance, 1964) with
   the variance σᵢ², zero included: nothing is divided by σᵢ, so all sizes are exact alike.
   A row whose αᵢ is not above its threshold is dropped. The last rows of the limbs, those that a
   straight leg leaves to the shared columns, come last, in the order of their remainders.
3. ``H G = Uᵀ D`` with orthogonal rows D and unit upper triangular U, ``uₖᵢ = Kₖᵀ wᵢ / αₖ``: two
   sweeps over the rows solve ``Uᵀ α U μ = H (G y0 + c)``, and ``y = y0 - Gᵀ Hᵀ μ``.
4. Rows that were dropped give the left null vectors of G. Without their share, contradicting c
   hold in the least-squares sense, and multipliers have the least norm.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.linalg.gram_schmidt import normalize
from mbcasadi.linalg.householder import one_hot, reflector
from mbcasadi.linalg.limbs import Limb, limbs_of
from mbcasadi.shapes import require_rows, require_shape
from mbcasadi.short_text import summarised

LEAST_SCORE = 1e-40
"""Score of a row that is left without an own remainder: every step takes one row."""

REFINEMENTS = 1
"""Steps of refinement. Near a dependency multipliers are large, and without a step the rows hold
to rounding of these; with it they hold to rounding of the solution."""


class FactorRow(NamedTuple):
    """One row of `H G`.

    Fields: `h` (1, m) the row of H; `w` (1, nb) its shared part; `sigma` (1, 1) the size of its
    own part; `threshold2` (1, 1) of the row of G that it was made from.
    """

    h: ca.SX
    w: ca.SX
    sigma: ca.SX
    threshold2: ca.SX


@summarised
class LimbFactor(NamedTuple):
    """The factors of G (m, n), limb by limb, for any rank.

    Fields: `G`; `H` (m, m); `w` (m, nb); `K` (m, nb); `inverse` (m, 1) of α, zero where a row is
    dropped; `null` (k, m) orthonormal or zero rows, with `null @ G = 0`.
    """

    G: ca.SX
    H: ca.SX
    w: ca.SX
    K: ca.SX
    inverse: ca.SX
    null: ca.SX

    @checked
    def nearest(self, y0: ca.SX, c: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return `(y, lam)`: y nearest to y0 with `G⁺ (G y + c) = 0`, and `y = y0 + Gᵀ lam`.

        lam has the least norm.

        Args:
            y0: (n, 1).
            c: (m, 1).
        """
        require_rows("y0", y0, self.G.shape[1])
        require_rows("c", c, self.G.shape[0])
        c = self._without_null(c)
        y, lam = y0, ca.SX(self.G.shape[0], 1)
        for _ in range(1 + REFINEMENTS):
            step = -self.H.T @ self._multipliers(self.H @ (self.G @ y + c))
            y, lam = y + self.G.T @ step, lam + step
        return y, self._without_null(lam)

    @checked
    def shortest(self, b: ca.SX) -> ca.SX:
        """Return the shortest x (n, p) with `G_i x = b_i` for each row that is kept.

        Args:
            b: (m, p).
        """
        require_rows("b", b, self.G.shape[0])
        return self.G.T @ (self.H.T @ self._multipliers(self.H @ b))

    def _multipliers(self, gap: ca.SX) -> ca.SX:
        """Return μ (m, p) of the rows of `H G`, by one sweep down and one up."""
        (m, nb), p = self.w.shape, gap.shape[1]
        z, steps = ca.SX(nb, p), []
        for i in range(m):
            steps.append((gap[i, :] + self.w[i, :] @ z) * self.inverse[i])
            z = z - self.K[i, :].T @ steps[i]
        above, mu = ca.SX(nb, p), []
        for i in reversed(range(m)):
            mu.append(steps[i] - self.K[i, :] @ above * self.inverse[i])
            above = above + self.w[i, :].T @ mu[-1]
        return ca.vertcat(ca.SX(0, p), *reversed(mu))

    def _without_null(self, x: ca.SX) -> ca.SX:
        return x - self.null.T @ (self.null @ x)


@checked
def limb_factor(G: ca.SX, threshold2: ca.SX) -> LimbFactor:
    """Return the factors of G by limbs.

    Args:
        G: (m, n) matrix; its structural zeros define the limbs.
        threshold2: (m, 1) a row is dropped when its squared remainder is not above it; rows are
            compared by their squared remainders beside it.
    """
    require_shape("threshold2", threshold2, (G.shape[0], 1), "(m, 1)")
    limbs = limbs_of(G.sparsity())
    shared = G[:, list(limbs.shared)]
    parts = [list(_limb_rows(G, shared, limb, threshold2)) for limb in limbs.groups]
    base = _Shared(shared.shape[1])
    for row in (row for part in parts for row in part[:-1]):
        base.take(row)
    base.take_by_size([part[-1] for part in parts])
    rows, K, inverse, kept = base.rows, *base.remainders()
    H = ca.vertcat(ca.SX(0, G.shape[0]), *(row.h for row in rows))
    w = ca.vertcat(ca.SX(0, shared.shape[1]), *(row.w for row in rows))
    U = ca.triu(K @ w.T, False) * ca.repmat(inverse, 1, len(rows))
    return LimbFactor(G, H, w, K, inverse, _null_rows(U, kept, H))


def _limb_rows(G: ca.SX, shared: ca.SX, limb: Limb, threshold2: ca.SX) -> Iterator[FactorRow]:
    """Return the rows of one limb after its own elimination, strongest first."""
    m, n = len(limb.rows), len(limb.columns)
    places = list(limb.rows)
    own, limits = ca.densify(G[places, list(limb.columns)]), threshold2[places]
    weight, H, left = _weight(limits), ca.SX.eye(m), ca.SX.ones(m)
    for k in range(m):
        tail = own[:, k:]
        e = _strongest(tail, weight, left) if k < m - 1 else left
        left = left - e if k < m - 1 else ca.SX(m, 1)
        h, sigma = e.T @ H, ca.SX(1, 1)
        if k < n:
            own, sigma = _reflected(own, k, e)
            ratio = left * own[:, k] * _safe_inverse(e.T @ own[:, k])
            H = H - ratio @ h
        of_all = ca.SX(1, G.shape[0])
        of_all[:, places] = h
        yield FactorRow(of_all, h @ shared[places, :], sigma, e.T @ limits)


def _strongest(tail: ca.SX, weight: ca.SX, left: ca.SX) -> ca.SX:
    """Return a one at the row that is left with the largest remainder."""
    if tail.shape[0] == 1:
        return left
    return one_hot(left * (ca.densify(ca.sum2(tail**2)) * weight + LEAST_SCORE))


def _reflected(own: ca.SX, k: int, e: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the matrix with the marked row in column k from there on, and the row's size."""
    tail = own[:, k:]
    x = (e.T @ tail).T
    size2 = ca.sumsqr(x)
    there = size2 > 0
    if tail.shape[1] > 1:
        head = ca.SX(ca.DM.eye(tail.shape[1])[:, 0])
        u, beta = reflector(x, head, there)
        own[:, k:] = tail - (tail @ u) @ (beta * u).T
    return own, there * ca.sqrt(ca.if_else(there, size2, 1))  # no root of zero: it has no slope


def _safe_inverse(x: ca.SX) -> ca.SX:
    """Return `1/x`, or zero for zero."""
    there = ca.fabs(x) > 0
    return there / ca.if_else(there, x, 1)


class _Shared:
    """What rows leave of the shared columns, one row after the other (see module)."""

    def __init__(self, nb: int) -> None:
        self.rows: list[FactorRow] = []
        self._C = ca.SX.eye(nb)
        self._taken: list[tuple[ca.SX, ca.SX, ca.SX]] = []

    def remainders(self) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return (m, nb) K, (m, 1) reciprocals of α, zero where dropped, and (m, 1) flags."""
        K, inverse, kept = zip(*self._taken, strict=True) if self._taken else ((), (), ())
        nb = self._C.shape[0]
        return ca.vertcat(ca.SX(0, nb), *K), _column(inverse), _column(kept)

    def take(self, row: FactorRow) -> tuple[ca.SX, ca.SX]:
        """Add a row; return φ and the factor of `C φ φᵀ`."""
        phi = self._C.T @ row.w.T
        alpha = ca.sumsqr(phi) + row.sigma**2
        keep = alpha > row.threshold2
        safe = ca.if_else(keep, alpha, 1)
        reach, share = self._C @ phi, keep / (safe + row.sigma * ca.sqrt(safe))
        self._C = self._C - (reach * share) @ phi.T
        self._taken.append((reach.T, keep / safe, keep))
        self.rows.append(row)
        return phi, share

    def take_by_size(self, rows: Sequence[FactorRow]) -> None:
        """Add rows, the largest remainder beside its threshold first."""
        if not rows:
            return
        h, w, sigma, threshold2 = (ca.vertcat(*parts) for parts in zip(*rows, strict=True))
        weight, left, phi = _weight(threshold2), ca.SX.ones(len(rows)), w @ self._C
        for k in range(len(rows)):
            e = left
            if k < len(rows) - 1:
                alpha = ca.densify(ca.sum2(phi**2) + sigma**2)
                e = one_hot(left * (alpha * weight + LEAST_SCORE))
            left = left - e
            chosen, share = self.take(FactorRow(e.T @ h, e.T @ w, e.T @ sigma, e.T @ threshold2))
            phi = phi - (phi @ (chosen * share)) @ chosen.T


def _weight(threshold2: ca.SX) -> ca.SX:
    """Return what squared remainders are multiplied by, to be compared with each other."""
    return 1 / ca.if_else(threshold2 > 0, threshold2, 1)


def _column(parts: Iterable[ca.SX]) -> ca.SX:
    return ca.vertcat(ca.SX(0, 1), *parts)


def _null_rows(U: ca.SX, kept: ca.SX, H: ca.SX) -> ca.SX:
    """Return orthonormal or zero rows that span the left null space of G.

    Row d of `U⁻ᵀ H` is one where row d of `H G` is dropped.
    """
    m = U.shape[0]
    lower, null = ca.SX(0, m), ca.SX(0, m)
    for d in range(m):
        unit = ca.SX(1, m)
        unit[d] = 1
        row = unit - U[:d, d].T @ lower
        n: ca.SX = (1 - kept[d]) * (row @ H)
        for other in ca.vertsplit(null):
            n = n - (n @ other.T) @ other
        lower, null = ca.vertcat(lower, row), ca.vertcat(null, normalize(n, ca.SX(0))[0])
    return null
