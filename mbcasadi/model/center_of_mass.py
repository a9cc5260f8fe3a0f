"""Centre of mass: of all moving bodies, and of all that a free joint carries.

Of a tree, first moments are summed from the leaves to the world. Of a free joint it follows from
the rows of the inertia matrix: with the mass m, the centre of mass c from the free body's origin in
its axes, and the body's rotation R, the rows of M that belong to the joint's linear velocity are

    M_linear = [ m 1   -m R c×   … ],

and `M_linear v` is the linear momentum of all that the joint carries, armature apart.
"""

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Joint, RigidTree
from mbcasadi.model.chain import WORLD, Chain, chain_of, moving_moments
from mbcasadi.model.configuration import tangent_jacobian, tangent_rate
from mbcasadi.model.motion import steps_of
from mbcasadi.spatial import Moments, moments_to_parent, stack


def center_of_mass(tree: RigidTree, q: ca.SX) -> ca.SX:
    """Return `Σ m_i p_i / Σ m_i` (3, 1), m, over all bodies that can move, world axes.

    Raises:
        ProblemError: no body that can move has mass.
    """
    chain = chain_of(tree)
    carried = [Moments(each.mass, each.first) for each in moving_moments(chain)]
    total = sum(world_moments(chain, carried, q), Moments())
    return stack(total.first) / total.mass


def center_of_mass_fun(tree: RigidTree, q: ca.SX) -> ca.Function:
    """Return (q, v) → (p, J, bias) of the centre of mass: `dp/dt = J v`, `bias = J̇ v`.

    Shapes: (3, 1), m; (3, nv); (3, 1), m/s².

    Args:
        tree: the mechanism.
        q: (nq, 1) symbols of the configuration, those in the tree's numbers included.

    Raises:
        ProblemError: no body that can move has mass.
    """
    v = ca.SX.sym("v", tree.nv)
    p = center_of_mass(tree, q)
    J = tangent_jacobian(tree, p, q)
    bias = tangent_rate(tree, J @ v, q, v)
    outputs = [ca.densify(part) for part in (p, J, bias)]
    return ca.Function("center_of_mass", [q, v], outputs, ["q", "v"], ["p", "J", "bias"])


def world_moments(chain: Chain, moments: list[Moments], q: ca.SX) -> list[Moments]:
    """Return the moments of all that each link on the world carries, world axes.

    Args:
        chain: the links.
        moments: mass and first moment of each link alone, in its axes.
        q: (nq, 1) configuration.
    """
    carried, on_world = list(moments), []
    for i in reversed(range(len(chain.links))):
        link, total = chain.links[i], carried[i]
        for step in reversed(steps_of(link, q)):
            total = moments_to_parent(step, total)
        if link.parent == WORLD:
            on_world.append(total)
        else:
            carried[link.parent] = carried[link.parent] + total
    return on_world


def center_of_mass_arm(M_linear: ca.SX, R: ca.SX, joint: Joint, mass: float) -> ca.SX:
    """Return `-R c` (3, 1), m: from the centre of mass to the free body's origin, world axes.

    Args:
        M_linear: (3, nv) rows of M of the joint's linear velocity.
        R: (3, 3) rotation of the free body in the world.
        joint: the free joint.
        mass: of all that the joint carries, kg.
    """
    first = joint.dof + 3
    c_cross = -R.T @ M_linear[:, first : first + 3] / mass
    return -R @ ca.vertcat(c_cross[2, 1], c_cross[0, 2], c_cross[1, 0])


def center_of_mass_velocity(
    M_linear: ca.SX, v: ca.SX, joint: Joint, mass: float, armature: NDArray[np.float64]
) -> ca.SX:
    """Return `M_linear v / m` (3, 1), m/s, without the armature of the free joint.

    Args:
        M_linear: (3, nv) rows of M of the joint's linear velocity.
        v: (nv, 1) velocity.
        joint: the free joint.
        mass: of all that the joint carries, kg.
        armature: (nv,) diagonal that M holds besides the inertia of bodies.
    """
    linear = slice(joint.dof, joint.dof + 3)
    return (M_linear @ v - ca.DM(armature[linear]) * v[linear]) / mass
