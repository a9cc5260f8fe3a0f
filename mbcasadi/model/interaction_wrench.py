"""The wrench between a body and what carries it: what force and torque sensors read.

    w_b = Σ_c ( ṗ_c - m_c g - w_ext,c )        over the body b and all that it carries

with the momentum p_c of a body and the external wrench on it, all about one point: MuJoCo's
`cfrc_int` (MuJoCo, computation chapter, recursive Newton-Euler after the constraint solver). It is
what the parent, and with it the joint, does to the body. Spring, damper and actuator forces of the
joints that carry b are inside it; those of joints further out, fixed tendons, couplings of joints,
limits and dry friction act between bodies of the sum, or are parts of w_b, and have no term of
their own. Forces of spatial tendons are external (`tendon_wrenches`). MuJoCo counts no other force
on bodies: gravity compensation, fluid and actuators at sites stay inside w_b.
"""

import casadi as ca

from mbcasadi.model.chain import WORLD
from mbcasadi.model.frames import frame_origin, point_jacobian
from mbcasadi.model.motion import Wrench, from_columns, steps_of, wrench_before
from mbcasadi.model.newton_euler import newton_euler
from mbcasadi.model.sensed_state import SensedFrame, SensedState
from mbcasadi.model.subtree import bodies_of_subtree, moments_of_bodies
from mbcasadi.spatial import ZERO3, Vec3, add, cross, entries, subtract


def interaction_wrench(state: SensedState, site: SensedFrame) -> Wrench:
    """Return force, N, and moment about a site, N m, on the site's body, in the site's axes.

    Args:
        state: of the mechanism.
        site: frame on the body.
    """
    members = bodies_of_subtree(state.tree, site.frame.body)
    force, moment = _momentum_rate(state, site.link, members)
    force, moment = (from_columns(site.pose.columns, x) for x in (force, moment))
    moment = subtract(moment, cross(subtract(site.origin, site.pose.origin), force))
    for body in members:
        outer_force, outer_moment = _external(state, body, site.origin)
        force, moment = subtract(force, outer_force), subtract(moment, outer_moment)
    return site.in_axes(force), site.in_axes(moment)


def _momentum_rate(state: SensedState, root: int, members: list[int]) -> Wrench:
    """Return `Σ ṗ - m g` of bodies about the origin of the link `root`, in its axes.

    Args:
        state: of the mechanism.
        root: link that carries the first of them.
        members: the bodies, all on `root` or on links that it carries.
    """
    chain, moments = state.chain, moments_of_bodies(state.chain, members)
    inner = chain.path(root)
    links = sorted({k for b in members for k in chain.path(chain.body_link[b])} - {*inner} | {root})
    wrenches = {
        link: newton_euler(moments[link].as_moments(), state.motions[link]) for link in links
    }
    for link in reversed(links):
        if link == root:
            continue
        force, moment = wrench_before(steps_of(chain.links[link], state.q), wrenches[link])
        below = wrenches[chain.links[link].parent]
        wrenches[chain.links[link].parent] = (add(below[0], force), add(below[1], moment))
    return wrenches[root]


def _external(state: SensedState, body: int, point: Vec3) -> Wrench:
    """Return the external force on a body and its moment about a point, world axes.

    The world has none: what acts on it moves nothing.
    """
    if body == 0:
        return ZERO3, ZERO3
    column = state.wrenches[:, body]
    force, moment = entries(column), entries(column, 3)
    return force, add(moment, cross(subtract(body_origin(state, body), point), force))


def body_origin(state: SensedState, body: int) -> Vec3:
    """Return the world position of a body's origin, m."""
    link = state.chain.body_link[body]
    return frame_origin(state.poses[link], state.chain.body_pose[body])


def generalised_force(state: SensedState) -> ca.SX:
    """Return `Σ J_bᵀ w_b` (nv, 1), the generalised force of the external wrenches."""
    force = ca.SX(state.tree.nv, 1)
    for body in range(1, len(state.tree.bodies)):
        link = state.chain.body_link[body]
        if link == WORLD:
            continue
        J = point_jacobian(state.chain, state.poses, link, body_origin(state, body))
        force += J.T @ state.wrenches[:, body]
    return ca.sparsify(force)
