"""Gap of two convex geoms, its Jacobian and its bias, from their motion.

With the surface points x1, x2 seen from the centres, the normal n, and the second derivatives H of
the supports, the gap `n·d - h1(n) - h2(n)` at its maximum over n has

    ġ = n·u,  u = (v2 + w2 × x2) - (v1 + w1 × x1),
    g̈ = n·(s2 - s1) - Σ (w × n)·H (w × n) + b·Z b,  b = u + Σ H (w × n),

where s is the acceleration of the material at x at zero joint acceleration, and Z the response of
the normal, `nearest_normal.py`. The last term is the turning of the normal.
"""

import casadi as ca

from mbcasadi.linalg.side_by_side import side_by_side
from mbcasadi.model.geometry.nearest_normal import nearest_normal
from mbcasadi.model.geometry.support_iteration import (
    Slopes,
    pair_of,
    slopes_at,
    smooth_gap,
    surface_point,
)

MOTION = {"p": 3, "R": 9, "v": 3, "w": 3, "a": 3, "dw": 3}
"""Numbers of a geom's motion: pose of its centre, velocities, accelerations at zero joint ones."""
MOTION_SIZE = sum(MOTION.values())


def distance_rows(nv: int, count: int, lanes: int) -> ca.Function:
    """Return (motion1, motion2, sizes, points, sharpness, plane, sign, axes) → (J, gap, bias).

    Args of the Function, a row for each pair: motion of both geoms, `MOTION`; half axes of their
    summands (12,); their points with weights (8, count), one column after the other; sharpness of
    their edges; plane, one where the first one is a plane, else zero; sign (nv,) of each dof: 1
    where it moves the second, -1 the first, 0 both or none. Of all pairs: axes (6, nv) velocity of
    the world's origin above angular velocity that each dof gives.

    Of a plane the normal is its z axis, and does not turn in its axes.
    """
    columns = {
        "motion1": MOTION_SIZE,
        "motion2": MOTION_SIZE,
        "sizes": 12,
        "points": 8 * count,
        "sharpness": 1,
        "plane": 1,
        "sign": nv,
    }
    x = {name: ca.MX.sym(name, lanes, n) for name, n in columns.items()}
    axes = ca.MX.sym("axes", 6, nv)
    motions = [x["motion1"], x["motion2"]]
    d, Q = side_by_side(_relative(), lanes).call(motions)
    shapes = [x["sizes"], x["points"]]
    normal = nearest_normal(count, quick=True, lanes=lanes)
    n, response, _ = normal(*shapes, d, Q, x["sharpness"])
    n = n * (1 - x["plane"]) + x["plane"] @ ca.DM([[0, 0, 1]])
    response = response * (1 - x["plane"])
    row = side_by_side(_row(count), lanes)
    gap, wrench, bias = row.call([*motions, *shapes, x["sharpness"], d, Q, n, response])
    outputs = [x["sign"] * (wrench @ axes), gap, bias]
    return ca.Function("distance_rows", [*x.values(), axes], outputs, {"never_inline": True})


def _parts(motion: ca.SX) -> dict[str, ca.SX]:
    ends = [sum(list(MOTION.values())[:k]) for k in range(len(MOTION) + 1)]
    found = {name: motion[ends[k] : ends[k + 1]] for k, name in enumerate(MOTION)}
    return found | {"R": ca.reshape(found["R"], 3, 3)}


def _relative() -> ca.Function:
    """Return (motion1, motion2) → (d, Q)."""
    motions = [ca.SX.sym("motion", MOTION_SIZE) for _ in range(2)]
    first, second = map(_parts, motions)
    d = first["R"].T @ (second["p"] - first["p"])
    return ca.Function("relative_pose", motions, [d, first["R"].T @ second["R"]])


def _row(count: int) -> ca.Function:
    """Return the Function of motions, shapes and what was solved to (gap, wrench, bias)."""
    motions = [ca.SX.sym("motion", MOTION_SIZE) for _ in range(2)]
    sizes, sharpness, d, n = (ca.SX.sym("x", k) for k in (12, 1, 3, 3))
    points = ca.SX.sym("points", 8, count)
    Q, response = ca.SX.sym("Q", 3, 3), ca.SX.sym("response", 3, 3)
    pair = pair_of(sizes, points, d, Q)
    at = slopes_at(pair, n, sharpness)
    first, second = map(_parts, motions)
    normal = first["R"] @ n
    bias, turning, relative, surface = ca.SX(0), ca.SX(3, 1), ca.SX(3, 1), ca.SX(3, 1)
    for i, (sign, body) in enumerate(((-1, first), (1, second))):
        point = -sign * body["R"] @ surface_point(pair.boxes[i], at[i], sharpness)
        across = ca.cross(body["w"], normal)
        bent = body["R"] @ _bent(pair.boxes[i], at[i], sharpness, body["R"].T @ across)
        inward = ca.cross(body["w"], ca.cross(body["w"], point))
        bias += sign * ca.dot(normal, body["a"] + ca.cross(body["dw"], point) + inward)
        bias -= ca.dot(across, bent)
        relative += sign * (body["v"] + ca.cross(body["w"], point))
        turning += bent
        surface = body["p"] + point
    b = first["R"].T @ (relative + turning)
    bias += ca.dot(b, response @ b)
    wrench = ca.vertcat(normal, ca.cross(surface, normal))  # any point on the line of both
    return ca.Function(
        f"distance_row_{count}",
        [*motions, sizes, points, sharpness, d, Q, n, response],
        [smooth_gap(pair, n, sharpness), wrench, bias],
        {"cse": True},
    )


def _bent(box: ca.SX, at: Slopes, sharpness: ca.SX, u: ca.SX) -> ca.SX:
    """Return (3, 1) `H u` of one shape for a tangent u, all in its axes."""
    y, stretched = at.of_ellipsoid, at.axes * u
    of_box = box / at.roots * (1 - at.of_box**2) * u + ca.dot(box, sharpness**2 / at.roots) * u
    of_ellipsoid = at.axes * (stretched - y * ca.dot(y, stretched)) / at.root
    return of_box + of_ellipsoid + at.spread.moments @ u
