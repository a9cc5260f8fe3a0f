"""Forces of a medium on an ellipsoid: added mass, lift, and drag.

See MuJoCo's documentation, "Fluid forces", ellipsoid model. The added mass has its gyroscopic terms
only; what it would add to M is left out, as there. All forces but those of viscosity are quadratic
in the velocity and have a continuous first derivative, zero at rest.
"""

import math
from typing import NamedTuple

import casadi as ca

from mbcasadi.description import Fluid, FluidEllipsoid
from mbcasadi.model.roots import length_of, smooth_root
from mbcasadi.spatial import Scalar, Vec3, add, cross, dot, scale, vec3


class Silhouette(NamedTuple):
    """An ellipsoid seen along its velocity u.

    Fields: `normal` of the cross-section behind the silhouette, of any length; `cos_alpha` its
    cosine with u, over that length; `area` of the silhouette, m², zero at rest.
    """

    normal: Vec3
    cos_alpha: Scalar
    area: Scalar


def ellipsoid_wrench(
    medium: Fluid, ellipsoid: FluidEllipsoid, w: Vec3, u: Vec3
) -> tuple[Vec3, Vec3]:
    """Return force, N, and moment, N m, about the geom's centre, in its axes.

    Args:
        medium: density and viscosity.
        ellipsoid: the geom.
        w: angular velocity, rad/s, in the geom's axes.
        u: velocity of its centre relative to the medium, m/s, in the geom's axes.
    """
    seen = _silhouette(ellipsoid, u, medium.held_above)
    added_force, added_moment = _added_mass(medium.density, ellipsoid, w, u)
    lift = _lift(medium.density, ellipsoid, w, u, seen)
    drag, torque = _drag(medium, ellipsoid, w, u, seen)
    force = add(add(added_force, lift), drag)
    moment = add(added_moment, torque)
    return scale(ellipsoid.strength, force), scale(ellipsoid.strength, moment)


def _added_mass(rho: float, e: FluidEllipsoid, w: Vec3, u: Vec3) -> tuple[Vec3, Vec3]:
    """Return `p × w` and `p × u + L × w` of the momenta `p = ρ m u`, `L = ρ I w` of the medium."""
    p: Vec3 = (
        rho * e.added_mass[0] * u[0],
        rho * e.added_mass[1] * u[1],
        rho * e.added_mass[2] * u[2],
    )
    L: Vec3 = (
        rho * e.added_inertia[0] * w[0],
        rho * e.added_inertia[1] * w[1],
        rho * e.added_inertia[2] * w[2],
    )
    return cross(p, w), add(cross(p, u), cross(L, w))


def _lift(rho: float, e: FluidEllipsoid, w: Vec3, u: Vec3, seen: Silhouette) -> Vec3:
    """Return Magnus' `c ρ V w × u` and Kutta's `c ρ A cos α (n × u) × u`."""
    volume = 4.0 / 3.0 * math.pi * e.semiaxes[0] * e.semiaxes[1] * e.semiaxes[2]
    magnus = scale(e.magnus_lift * rho * volume, cross(w, u))
    circulation = e.kutta_lift * rho * seen.cos_alpha * seen.area
    return add(magnus, scale(circulation, cross(cross(seen.normal, u), u)))


def _silhouette(e: FluidEllipsoid, u: Vec3, held_above: float) -> Silhouette:
    """Return the silhouette of an ellipsoid that moves with u, and the normal behind it.

    With the normal `n_i = (s_j s_k)² u_i` the area is `π (nᵀn / nᵀu)^½`  [MuJoCo].
    """
    x, y, z = e.semiaxes
    normal: Vec3 = ((y * z) ** 2 * u[0], (z * x) ** 2 * u[1], (x * y) ** 2 * u[2])
    along, square = dot(normal, u), dot(normal, normal)
    area = math.pi * smooth_root(square / _positive(along, held_above))
    return Silhouette(normal, along / _positive(length_of(u) * square, held_above), area)


def _positive(denominator: Scalar, held_above: float) -> ca.SX:
    """Return a denominator that is not zero; what it divides is zero where it was."""
    if held_above:
        return ca.fmax(held_above, denominator)
    return ca.if_else(denominator > 0.0, denominator, 1.0)


def _drag(
    medium: Fluid, e: FluidEllipsoid, w: Vec3, u: Vec3, seen: Silhouette
) -> tuple[Vec3, Vec3]:
    """Return `-(3 π D η + ρ |u| (c_b A + c_s (A_max - A))) u` and `-(π D³ η + ρ |K w|) w`.

    D is the diameter of the sphere with the same mean axis, A the silhouette, and K holds the
    moments of area of the ellipsoid, blunt and slender.
    """
    rho, eta = medium.density, medium.viscosity
    diameter = 2.0 / 3.0 * (e.semiaxes[0] + e.semiaxes[1] + e.semiaxes[2])
    _, middle, longest = sorted(e.semiaxes)
    beside = math.pi * longest * middle - seen.area
    pressure = rho * length_of(u) * (e.blunt_drag * seen.area + e.slender_drag * beside)
    most = 8.0 / 15.0 * math.pi * middle * longest**4
    moments = [
        e.angular_drag * m + e.slender_drag * (most - m) for m in _area_moments(vec3(e.semiaxes))
    ]
    swirl = rho * length_of((moments[0] * w[0], moments[1] * w[1], moments[2] * w[2]))
    linear = 3.0 * math.pi * diameter * eta + pressure
    angular = math.pi * diameter**3 * eta + swirl
    return scale(-linear, u), scale(-angular, w)


def _area_moments(semiaxes: Vec3) -> list[Scalar]:
    """Return `8/15 π a_i max(a_j, a_k)⁴` for each axis."""
    sides = [(semiaxes[i], semiaxes[(i + 1) % 3], semiaxes[(i + 2) % 3]) for i in range(3)]
    return [8.0 / 15.0 * math.pi * a * ca.fmax(b, c) ** 4 for a, b, c in sides]
