"""Potential energy of a rigid tree, and the gravity force."""

import casadi as ca

from mbcasadi.description import RigidTree
from mbcasadi.model.center_of_mass import world_moments
from mbcasadi.model.chain import WORLD, Chain, chain_of
from mbcasadi.model.newton_euler import bias_force
from mbcasadi.model.passive import joint_stretches, tendon_stretch
from mbcasadi.model.roots import smooth_root
from mbcasadi.spatial import ZERO3, Moments, Scalar, Vec3, add, dot, is_zero, scale, vec3


def gravity_force(tree: RigidTree, q: ca.SX) -> ca.SX:
    """Return `g = h(q, 0)`, the gravity part of the bias force, (nv, 1)."""
    return bias_force(tree, q, ca.SX.zeros(tree.nv, 1))


def potential_energy(tree: RigidTree, q: ca.SX) -> ca.SX:
    """Return V = gravity + springs, with `V̇ = vᵀ (g - f_passive)` where nothing damps.

    So `T + V` stays constant under passive forces without dampers. Gravity is counted as
    `-Σ m gᵀ p` over all bodies, those fixed to the world included: without gravity
    compensation V is MuJoCo's `energy[0]`. Compensation is a passive force like a spring's, so it
    is in V here, and not in MuJoCo's number. Where joints route it to their actuators
    (`actuatorgravcomp`) it is work of those, and V holds it for the bodies whose joints all do
    without; a body with joints of both kinds has no potential for the rest, and V leaves it out.

    The spring of a tendon with a dead band, and higher terms of a polynomial spring on a ball
    or free joint, make V once or twice differentiable only.

    Args:
        tree: the mechanism.
        q: (nq, 1) configuration.

    Returns:
        Scalar, J.
    """
    energy = _weight_energy(tree, q)
    for joint in tree.joints:
        if not is_zero(joint.stiffness) or joint.stiffness_poly:
            for _, stretch in joint_stretches(tree, joint, q):
                energy += _spring_energy(joint.stiffness, joint.stiffness_poly, stretch)
    for tendon in tree.tendons:
        if not is_zero(tendon.stiffness) or tendon.stiffness_poly:
            stretch = tendon_stretch(tree, tendon, q)
            energy += _spring_energy(tendon.stiffness, tendon.stiffness_poly, stretch)
    return energy


def _weight_energy(tree: RigidTree, q: ca.SX) -> ca.SX:
    """Return `-gᵀ Σ m p` with the first moments summed from the leaves to the world."""
    if all(map(is_zero, tree.gravity)):
        return ca.SX(0)
    chain = chain_of(tree)
    carried, fixed = _weights(chain)
    total = ca.SX(-dot(vec3(tree.gravity), fixed))
    for moments in world_moments(chain, carried, q):
        total -= dot(vec3(tree.gravity), moments.first)
    return total


def _weights(chain: Chain) -> tuple[list[Moments], Vec3]:
    """Return mass and first moment on each link without compensation, and the world's moment.

    Second moments are zero: gravity does not depend on them.
    """
    fixed, on_links = ZERO3, [Moments() for _ in chain.links]
    for i, body in enumerate(chain.tree.bodies):
        link, pose = chain.body_link[i], chain.body_pose[i]
        compensated = body.gravcomp if _has_passive_compensation(chain, link) else 0.0
        weight = body.mass * (1.0 - compensated)
        first = scale(weight, vec3(pose.R @ body.com + pose.p))
        if link == WORLD:
            fixed = add(fixed, first)
        else:
            on_links[link] = on_links[link] + Moments(weight, first)
    return on_links, fixed


def _has_passive_compensation(chain: Chain, link: int) -> bool:
    """Return whether compensation of a body on this link is a passive force on all its joints."""
    path = chain.path(link)
    return bool(path) and all(chain.links[i].joint.compensation == "passive" for i in path)


def _spring_energy(k: Scalar, poly: tuple[float, ...], stretch: ca.SX | Vec3) -> Scalar:
    """Return `k x²/2 + k₁ x³/3 + k₂ x⁴/4 + …`, with x = |stretch| for a vector."""
    if isinstance(stretch, tuple):
        square = dot(stretch, stretch)
        size: Scalar = smooth_root(square) if poly else 0.0
    else:
        square, size = stretch * stretch, stretch
    factor: Scalar = 0.0
    for degree in reversed(range(len(poly))):
        factor = (factor + poly[degree] / (degree + 3)) * size
    return (k / 2 + factor) * square
