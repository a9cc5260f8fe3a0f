"""The normal of two convex shapes that are nearest, by an iteration of fixed length.

With the support h of the sum of both shapes and d from the first centre to the second, the signed
distance is

    gap = max over |n| = 1 of g(n),  g(n) = nᵀ d - h(n),

separated or overlapping: any n gives a lower bound. At the maximum `d - h'(n) = gap n`. The
iteration follows it from round shapes (sharpness 1, see `summands.py`) to sharp ones by Newton
steps in the tangent plane,

    Bᵀ (h'' + gap I) B x = Bᵀ (d - h'(n)),   n ← n + B x, of unit length.

As in interior methods, the slope `s = t / sqrt(t² + sharpness²)` of each `|t|` is an unknown too,
linearised as `s sqrt(t² + sharpness²) = t` and kept in |s| <= 1; so is the slope y of each
ellipsoid; the mean of the points, each with its share of the sum of exponentials, is taken as it
is. Without them a step that passes an edge would fail unless the sharpness fell slowly
(Chan, Golub and Mulet, SIAM J. Sci. Comput. 20 (1999), 1964). In place of the gap the equations
have the length of `d - h'` with these slopes: it is the gap of separated shapes in the end, and
positive before. The last steps are plain ones.

Of shapes that overlap g has several maxima. So shorter iterations start from other directions,
`way_out.py`; the best n of all steps is taken, and followed once more.

All lengths here are divided by that of the pair; axes are those of the first shape.
"""

from typing import NamedTuple

import casadi as ca

LONGEST_STEP = 0.5
"""Of the unit normal."""
LEAST_CURVATURE = 1e-12
"""Curvature that is added, for points that meet."""
TINY = 1e-30
"""Square of a length that counts as none."""
LEAST_SHARPNESS = 1e-10
"""Of points, where that of edges may be zero."""


class Pair(NamedTuple):
    """Two shapes in the axes of the first one.

    Attributes:
        boxes, ellipsoids: half axes (3, 1) of each one's summands.
        points: (4, K) points of each one with their weights.
        d: (3, 1) from the first centre to the second.
        Q: (3, 3) rotation of the second.
    """

    boxes: tuple[ca.SX, ca.SX]
    ellipsoids: tuple[ca.SX, ca.SX]
    points: tuple[ca.SX, ca.SX]
    d: ca.SX
    Q: ca.SX

    @property
    def length(self) -> ca.SX:
        """L of the supports of points."""
        extents = [ca.mmax(ca.fabs(x[:3, :])) for x in self.points if x.shape[1]]
        return ca.sum1(ca.vertcat(*self.boxes, *self.ellipsoids, *extents))


class Spread(NamedTuple):
    """What a direction n means to some points.

    Attributes:
        reach: `s log Σ w exp(nᵀ x / s)`, s the length that smooths it.
        mean: (3, 1) its slope by n.
        moments: (3, 3) its second derivative.
    """

    reach: ca.SX
    mean: ca.SX
    moments: ca.SX


def _spread(points: ca.SX, t: ca.SX, s: ca.SX) -> Spread:
    """Return it of points with weights (4, K) in a direction in their axes."""
    if not points.shape[1]:
        return Spread(ca.SX(0), ca.SX(3, 1), ca.SX(3, 3))
    x, weights = points[:3, :], points[3, :]
    along = t.T @ x
    most = ca.mmax(along)
    shares = weights * ca.exp((along - most) / s)
    total = ca.sum2(shares)
    mean = x @ shares.T / total
    # Lower triangle, mirrored: the sums are most of what a step costs.
    weighted = x * ca.repmat(shares, 3, 1)
    rows = [[weighted[i, :] @ x[k, :].T for k in range(i + 1)] for i in range(3)]
    squares = [[rows[max(i, k)][min(i, k)] for k in range(3)] for i in range(3)]
    moments = ca.vertcat(*(ca.horzcat(*row) for row in squares)) / total - mean @ mean.T
    return Spread(most + s * ca.log(total), mean, moments / s)


class Slopes(NamedTuple):
    """What a direction n means to one shape.

    Attributes:
        t: (3, 1) the direction in the axes of the shape.
        roots: (3, 1) `sqrt(t² + sharpness²)`.
        axes: (3, 1) half axes of the rounded ellipsoid.
        root: `|axes t|`.
        spread: of the points.
    """

    t: ca.SX
    roots: ca.SX
    axes: ca.SX
    root: ca.SX
    spread: Spread

    @property
    def of_box(self) -> ca.SX:
        """(3, 1) slope of each `|t|`."""
        return self.t / self.roots

    @property
    def of_ellipsoid(self) -> ca.SX:
        """(3, 1) slope of `|axes t|` by `axes t`."""
        return self.axes * self.t / self.root


def slopes_at(pair: Pair, n: ca.SX, sharpness: ca.SX) -> tuple[Slopes, Slopes]:
    """Return what a direction means to both shapes."""
    smoothed = ca.fmax(sharpness, LEAST_SHARPNESS) * pair.length
    first, second = (
        _slopes(ellipsoid, t, sharpness, _spread(points, sign * t, smoothed), sign)
        for ellipsoid, points, t, sign in zip(
            pair.ellipsoids, pair.points, (n, pair.Q.T @ n), (1, -1), strict=True
        )
    )
    return first, second


def _slopes(ellipsoid: ca.SX, t: ca.SX, sharpness: ca.SX, spread: Spread, sign: int) -> Slopes:
    spread = Spread(spread.reach, sign * spread.mean, spread.moments)
    longest = ca.mmax(ellipsoid)
    axes = ca.sqrt(ellipsoid**2 + sharpness**2 * (longest**2 - ellipsoid**2) + TINY)
    return Slopes(t, ca.sqrt(t**2 + sharpness**2), axes, ca.norm_2(axes * t), spread)


def support_slope(box: ca.SX, at: Slopes) -> ca.SX:
    """Return (3, 1) h'(n) of one shape along the sphere, in its axes."""
    return box * at.of_box + at.axes * at.of_ellipsoid + at.spread.mean


def support(box: ca.SX, at: Slopes) -> ca.SX:
    """Return h(n) of one shape."""
    return ca.dot(box, at.roots) + at.root + at.spread.reach


def surface_point(box: ca.SX, at: Slopes, sharpness: ca.SX) -> ca.SX:
    """Return (3, 1) the point of one shape's surface with the normal n, in its axes."""
    return support_slope(box, at) + at.t * ca.dot(box, sharpness**2 / at.roots)


def smooth_gap(pair: Pair, n: ca.SX, sharpness: ca.SX) -> ca.SX:
    """Return g(n) of the rounded shapes."""
    at = slopes_at(pair, n, sharpness)
    supports = [support(box, each) for box, each in zip(pair.boxes, at, strict=True)]
    return ca.dot(n, pair.d) - supports[0] - supports[1]


def residual_at(pair: Pair, n: ca.SX, sharpness: ca.SX) -> ca.SX:
    """Return (3, 1) `d - h'(n)`, along the sphere."""
    at = slopes_at(pair, n, sharpness)
    first, second = (support_slope(box, each) for box, each in zip(pair.boxes, at, strict=True))
    return pair.d - first - pair.Q @ second


def tangents(n: ca.SX) -> ca.SX:
    """Return (3, 2) orthonormal tangents of a unit vector (Duff et al., JCGT 6 (2017), 1)."""
    x, y, z = n[0], n[1], n[2]
    sign = ca.if_else(z >= 0, 1.0, -1.0)
    a = -1 / (sign + z)
    b = x * y * a
    return ca.horzcat(
        ca.vertcat(1 + sign * x * x * a, sign * b, -sign * x), ca.vertcat(b, sign + y * y * a, -y)
    )


class Newton(NamedTuple):
    """The Newton equations `(K + curvature I) x = Bᵀ residual` at a direction.

    Attributes:
        B: (3, 2) tangents.
        K: (2, 2) `Bᵀ h'' B`.
        residual: (3, 1) `d - h'`.
        between: (3, 1) the same with the unknown slopes.
    """

    B: ca.SX
    K: ca.SX
    residual: ca.SX
    between: ca.SX

    def inverse(self, curvature: ca.SX) -> ca.SX:
        """Return (2, 2) `(K + curvature I)⁻¹`, positive definite at any curvature."""
        a, b, c = self.K[0, 0], (self.K[0, 1] + self.K[1, 0]) / 2, self.K[1, 1]
        least = (a + c) / 2 - ca.sqrt(((a - c) / 2) ** 2 + b**2)
        curvature = ca.fmax(curvature, -least / 2) + LEAST_CURVATURE
        a, c = a + curvature, c + curvature
        return ca.vertcat(ca.horzcat(c, -b), ca.horzcat(-b, a)) / (a * c - b * b)


def newton(pair: Pair, n: ca.SX, at: tuple[Slopes, Slopes], slopes: list[ca.SX]) -> Newton:
    """Return the Newton equations.

    Args:
        pair: the shapes.
        n: (3, 1) the direction.
        at: what it means to the shapes.
        slopes: unknown slopes of box and ellipsoid of the first, then of the second.
    """
    B, K = tangents(n), ca.SX(2, 2)
    residual, between = pair.d, pair.d
    for i, turn in ((0, ca.SX.eye(3)), (1, pair.Q)):
        box, (s, y), own = pair.boxes[i], slopes[2 * i : 2 * i + 2], turn.T @ B
        residual = residual - turn @ support_slope(box, at[i])
        between = between - turn @ (box * s + at[i].axes * y + at[i].spread.mean)
        stiffness = box / at[i].roots * (1 - s * at[i].of_box)
        stretched = ca.repmat(at[i].axes, 1, 2) * own
        mixed = (stretched.T @ y) @ (stretched.T @ at[i].of_ellipsoid).T
        K += own.T @ (ca.repmat(stiffness, 1, 2) * own)
        K += (stretched.T @ stretched - (mixed + mixed.T) / 2) / at[i].root
        K += own.T @ at[i].spread.moments @ own
    return Newton(B, K, residual, between)


def step(pair: Pair, n: ca.SX, slopes: list[ca.SX], sharpness: ca.SX) -> list[ca.SX]:
    """Return n and the slopes after a Newton step."""
    at = slopes_at(pair, n, sharpness)
    equations = newton(pair, n, at, slopes)
    inverse = equations.inverse(ca.norm_2(equations.between))
    dn = equations.B @ limited(inverse @ (equations.B.T @ equations.residual))
    later = []
    for i, dt in enumerate((dn, pair.Q.T @ dn)):
        s, y = slopes[2 * i : 2 * i + 2]
        r, y0 = at[i].of_box, at[i].of_ellipsoid
        s = r + (1 - s * r) * dt / at[i].roots
        dm = at[i].axes * dt
        y = y0 + (dm - (y * ca.dot(y0, dm) + y0 * ca.dot(y, dm)) / 2) / at[i].root
        later += [ca.fmin(ca.fmax(s, -1.0), 1.0), y / ca.sqrt(ca.fmax(1.0, ca.sumsqr(y)))]
    return [_unit(n + dn), *later]


def limited(x: ca.SX) -> ca.SX:
    """Return a step that is not too long."""
    return x / ca.fmax(1.0, ca.sqrt(ca.sumsqr(x) + TINY) / LONGEST_STEP)


def _unit(x: ca.SX) -> ca.SX:
    return x / ca.norm_2(x)


def exact_slopes(at: tuple[Slopes, Slopes]) -> list[ca.SX]:
    """Return the slopes that belong to a direction."""
    return [x for each in at for x in (each.of_box, each.of_ellipsoid)]


def exact_newton(pair: Pair, n: ca.SX, sharpness: ca.SX) -> tuple[Newton, ca.SX]:
    """Return the Newton equations of the rounded shapes, and the inverse of their matrix."""
    at = slopes_at(pair, n, sharpness)
    equations = newton(pair, n, at, exact_slopes(at))
    return equations, equations.inverse(ca.dot(n, equations.residual))


def polished(pair: Pair, n: ca.SX, sharpness: ca.SX) -> ca.SX:
    """Return n after a step with exact slopes, where that leaves a smaller residual."""
    equations, inverse = exact_newton(pair, n, sharpness)
    across = equations.B.T @ equations.residual
    new = _unit(n + equations.B @ limited(inverse @ across))
    left = tangents(new).T @ residual_at(pair, new, sharpness)
    return ca.if_else(ca.sumsqr(left) < ca.sumsqr(across), new, n)


def pair_of(sizes: ca.SX, points: ca.SX, d: ca.SX, Q: ca.SX) -> Pair:
    """Return a pair from its numbers.

    Args:
        sizes: (12,) box and ellipsoid of the first, then of the second.
        points: (8, K) points of both, each with their weights.
        d: (3, 1) from the first centre to the second.
        Q: (3, 3) rotation of the second.
    """
    boxes, ellipsoids = (sizes[:3], sizes[6:9]), (sizes[3:6], sizes[9:12])
    return Pair(boxes, ellipsoids, (points[:4, :], points[4:, :]), d, Q)
