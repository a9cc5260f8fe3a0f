"""What spatial tendons do to the bodies along their paths, as wrenches.

A force F along the length, `Jᵀ F` in the joints, acts on the ends of each straight piece: `F u/d`
on the body of its end, `-F u/d` on that of its start, with the direction u and the divisor d of the
last pulley. Ends are sites, and points of contact on geoms. Hence `Σ J_bᵀ w_b = Jᵀ F`.

    F = spring + damper + Σ gear f_actuator - m (J a + J̇ v)

A tendon that pulls has F < 0. MuJoCo counts these wrenches as external forces of bodies
(`cfrc_ext`, from 3.14 on; measured), but none of a fixed tendon.
"""

import casadi as ca

from mbcasadi.description import RigidTree, SpatialTendon, Tendon
from mbcasadi.model.actuation import forces_of_actuators, unbounded_force
from mbcasadi.model.frames import frame_origin
from mbcasadi.model.passive import tendon_force
from mbcasadi.model.sensed_state import SensedState
from mbcasadi.model.tendon_path import Point, PosedLinks, path_of, posed_links
from mbcasadi.model.transmission import actuator_length, moment_row, tendon_bias, tendon_row
from mbcasadi.spatial import Vec3, cross, is_zero, scale, stack, subtract


def unit_wrenches(tree: RigidTree, tendon: Tendon, q: ca.SX) -> ca.SX:
    """Return (6, nbody): what a unit force along a tendon does to the bodies.

    Force above moment about the body's origin, m, world axes. Zero for a fixed tendon, and for the
    world, where it moves nothing.

    Args:
        tree: the mechanism.
        tendon: one of its tendons.
        q: (nq, 1) configuration.
    """
    wrenches = ca.SX(6, len(tree.bodies))
    if not isinstance(tendon, SpatialTendon):
        return wrenches
    posed = posed_links(tree, tendon, q)
    for piece in path_of(posed, tendon).pieces:
        if piece.start.body == piece.end.body:
            continue
        for point, share in ((piece.end, piece.share), (piece.start, -piece.share)):
            if point.body:
                force = scale(share, piece.direction)
                arm = subtract(point.place, _origin(posed, point))
                wrenches[:, point.body] += stack(force, cross(arm, force))
    return ca.sparsify(wrenches)


def tendon_wrenches(state: SensedState) -> ca.SX:
    """Return (6, nbody): force, N, above moment about the body's origin, N m, world axes.

    Those of springs, dampers, actuators and armature of all spatial tendons.
    """
    tree = state.tree
    wrenches = ca.SX(6, len(tree.bodies))
    for tendon, pull in zip(tree.tendons, _actuator_forces(state), strict=True):
        if not isinstance(tendon, SpatialTendon):
            continue
        row = tendon_row(tree, tendon, state.q)
        force = pull + tendon_force(tree, tendon, state.q, row @ state.v)
        if not is_zero(tendon.armature):
            acceleration = row @ state.a + tendon_bias(tree, tendon, state.q, state.v)
            force -= tendon.armature * acceleration
        if not force.is_zero():
            wrenches += force * unit_wrenches(tree, tendon, state.q)
    return ca.sparsify(wrenches)


def _actuator_forces(state: SensedState) -> list[ca.SX]:
    """Return what the actuators give along each tendon, clipped."""
    tree, actuators, q = state.tree, state.actuators, state.q
    total = [ca.SX(1, 1) for _ in tree.tendons]
    if all(actuator.transmission != "tendon" for actuator in actuators):
        return total
    forces = forces_of_actuators(tree, actuators, q, state.v, state.u, state.act)
    for actuator, force in zip(actuators, forces, strict=True):
        if actuator.transmission == "tendon":
            rate = moment_row(tree, actuator, q) @ state.v
            free = unbounded_force(actuator, actuator_length(tree, actuator, q), rate, state.act)
            total[actuator.target] += float(actuator.gear[0]) * (force + free)
    return total


def _origin(posed: PosedLinks, point: Point) -> Vec3:
    """Return the world position of the origin of a point's body, m."""
    return frame_origin(posed.poses[point.link], posed.chain.body_pose[point.body])
