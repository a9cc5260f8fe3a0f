"""Directions in which a pair of convex shapes that overlap may be nearest to being apart.

The overlap in a direction n, `h(n) - nᵀ d`, has several minima over n. Those of polyhedra are at
their faces and at products of edges. Directions are sampled: the axes of both shapes, the products
of these, and an even lattice.
"""

import casadi as ca
import numpy as np

from mbcasadi.model.geometry.even_directions import even_directions

WAYS = 3
"""Directions that are returned."""
LATTICE = 96
"""Directions beside those of the axes."""
OTHER = 0.9
"""Cosine below which a direction is another one."""
TINY = 1e-30
"""Square of a length that counts as none."""
APART = 1e-12
"""By which directions with the same overlap are told from each other."""
EXCLUDED = 1e6
"""Lengths of the pair, as overlap of directions that are none."""


def ways_out(sizes: ca.MX, points: ca.MX, d: ca.MX, Q: ca.MX) -> list[ca.MX]:
    """Return `WAYS` directions (3, 1) with the least overlaps of all, not near each other.

    Args:
        sizes, points, d, Q: the pair as in `support_iteration.pair_of`, by its length.
    """
    directions = _directions(Q)
    gaps = _gaps(sizes, points, d, Q, directions)
    gaps += APART * ca.DM(np.arange(gaps.shape[1])).T
    found = []
    for _ in range(WAYS):
        chosen = gaps >= ca.mmax(gaps)
        found.append(directions @ chosen.T / ca.sum2(chosen))
        gaps -= EXCLUDED * (found[-1].T @ directions > OTHER)
    return found


def _directions(Q: ca.MX) -> ca.MX:
    """Return (3, n) unit directions."""
    own = ca.MX.eye(3)
    products = [ca.cross(own[:, i], Q[:, k]) for i in range(3) for k in range(3)]
    lengths = [ca.sumsqr(x) for x in products]
    products = [
        ca.if_else(length > TINY, x / ca.sqrt(ca.fmax(length, TINY)), own[:, 0])
        for x, length in zip(products, lengths, strict=True)
    ]
    axes = ca.horzcat(own, Q, *products)
    return ca.horzcat(axes, -axes, ca.DM(even_directions(LATTICE).T))


def _gaps(sizes: ca.MX, points: ca.MX, d: ca.MX, Q: ca.MX, directions: ca.MX) -> ca.MX:
    """Return (1, n) the gap in each direction."""
    gaps = d.T @ directions
    for k, turned in enumerate((directions, -Q.T @ directions)):
        box, ellipsoid = sizes[6 * k : 6 * k + 3], sizes[6 * k + 3 : 6 * k + 6]
        stretched = turned * ca.repmat(ellipsoid, 1, turned.shape[1])
        gaps -= box.T @ ca.fabs(turned) + ca.sqrt(ca.sum1(stretched**2) + TINY)
        along = points[4 * k : 4 * k + 3, :].T @ turned
        rows = [along[i, :] for i in range(along.shape[0])]
        if rows:
            most = rows[0]
            for row in rows[1:]:
                most = ca.fmax(most, row)
            gaps -= most
    return gaps
