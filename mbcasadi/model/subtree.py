"""Mass, centre of mass and momentum of a body with all that it carries, as MuJoCo's subtrees.

What is fixed to the world counts as mass that does not move. A subtree without mass has its centre
where its body has the centre of mass, and no momentum, as in MuJoCo.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from mbcasadi.description import RigidTree
from mbcasadi.model.chain import WORLD, Chain, chain_of
from mbcasadi.model.frames import frame_origin
from mbcasadi.model.momentum import angular_momentum, flow_in_world
from mbcasadi.model.motion import link_poses
from mbcasadi.model.placement import Pose
from mbcasadi.model.regroup import NumericMoments, moments_of_body
from mbcasadi.spatial import ZERO3, Vec3, add, scale, stack

LEAST_MASS = 1e-15
"""kg, below which MuJoCo takes a subtree for massless (`mjMINVAL`)."""


@dataclass(frozen=True)
class SubtreeMotion:
    """Of a body and all that it carries, world axes.

    Attributes:
        mass: kg.
        center: of mass, m.
        linear: momentum, kg m/s.
        angular: momentum about the centre of mass, kg m²/s.
    """

    mass: float
    center: Vec3
    linear: Vec3
    angular: Vec3


def bodies_of_subtree(tree: RigidTree, body: int) -> list[int]:
    """Return a body and all that it carries; a parent comes before its children."""
    members = {body}
    for i, each in enumerate(tree.bodies):
        if i and each.parent in members:
            members.add(i)
    return sorted(members)


def subtree_motion(tree: RigidTree, body: int, q: ca.SX, v: ca.SX) -> SubtreeMotion:
    """Return mass, centre of mass and momenta of a subtree.

    Args:
        tree: the mechanism.
        body: index of the body.
        q, v: (nq, 1), (nv, 1) state.
    """
    chain = chain_of(tree)
    members = bodies_of_subtree(tree, body)
    moments = moments_of_bodies(chain, members)
    mass = sum(tree.bodies[i].mass for i in members)
    whole = flow_in_world(chain, [moments[k].as_moments() for k in range(len(chain.links))], q, v)
    if _massless(mass):
        return SubtreeMotion(mass, _own_center(chain, body, q), ZERO3, ZERO3)
    first = add(whole.moments.first, moments[WORLD].as_moments().first)
    center = scale(1 / mass, first)
    return SubtreeMotion(mass, center, whole.flow, angular_momentum(whole, center))


def subtree_fun(tree: RigidTree, body: int, q: ca.SX) -> ca.Function:
    """Return (q, v) → (p, velocity, momentum) of a body with all that it carries.

    Shapes: (3, 1) centre of mass, m; (3, 1) its velocity, m/s; (6, 1) linear momentum, kg m/s,
    above the angular one about the centre of mass, kg m²/s. World axes.

    Args:
        tree: the mechanism.
        body: index of the body.
        q: (nq, 1) symbols of the configuration, those in the tree's numbers included.
    """
    v = ca.SX.sym("v", tree.nv)
    motion = subtree_motion(tree, body, q, v)
    outputs = [
        stack(motion.center),
        stack(mean_velocity(motion)),
        stack(motion.linear, motion.angular),
    ]
    return ca.Function(
        "subtree",
        [q, v],
        [ca.densify(part) for part in outputs],
        ["q", "v"],
        ["p", "velocity", "momentum"],
        {"cse": True},
    )


def mean_velocity(motion: SubtreeMotion) -> Vec3:
    """Return the velocity of the centre of mass, m/s, world axes."""
    if _massless(motion.mass):
        return ZERO3
    return scale(1 / motion.mass, motion.linear)


def moments_of_bodies(chain: Chain, members: list[int]) -> dict[int, NumericMoments]:
    """Return the moments of these bodies by the link that carries them, in its axes.

    The key `WORLD` has those that are fixed to the world.
    """
    total = {link: NumericMoments.zero() for link in (WORLD, *range(len(chain.links)))}
    for i in members:
        link, pose = chain.body_link[i], chain.body_pose[i]
        own = moments_of_body(chain.tree.bodies[i]).in_frame(pose.inverse())
        total[link] = total[link] + own
    return total


def _massless(mass: float) -> bool:
    return isinstance(mass, float) and mass < LEAST_MASS


def _own_center(chain: Chain, body: int, q: ca.SX) -> Vec3:
    link, pose = chain.body_link[body], chain.body_pose[body]
    mounted = pose @ Pose(np.eye(3), np.asarray(chain.tree.bodies[body].com))
    return frame_origin(link_poses(chain, q, {link})[link], mounted)
