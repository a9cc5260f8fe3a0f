"""What the multipliers of constraints do to the bodies, as wrenches.

A row's multiplier acts as `Aᵀ lam`. Of `phi = p1 - p2` that is the force `lam` on body 1 at its
anchor and `-lam` on body 2 at its own; of a weld's rotation rows, with `A_r = G (J_ω1 - J_ω2)`, the
torques `Gᵀ lam_r` and `-Gᵀ lam_r`. A coupling of tendons acts along the paths of its spatial
tendons. Couplings of joints and fixed tendons act inside joints: on no body.
"""

from collections.abc import Sequence

import casadi as ca

from mbcasadi.constraints import couplings, weld
from mbcasadi.constraints.pairs import Pair, pair_of
from mbcasadi.description import Connect, Equality, RigidTree, TendonCoupling, Weld
from mbcasadi.model.frames import frame_origin
from mbcasadi.spatial import ZERO3, Vec3, add, cross, entries, scale, stack, subtract

FORCE_ROWS = 3


def constraint_wrenches(
    tree: RigidTree, equalities: Sequence[Equality], q: ca.SX, lam: ca.SX
) -> ca.SX:
    """Return (6, nbody): force, N, above moment about the body's origin, N m, world axes.

    MuJoCo counts the same as external forces of bodies (`cfrc_ext`; tendons from 3.14 on).

    Args:
        tree: the mechanism.
        equalities: the constraints, in the order of their rows.
        q: (nq, 1) configuration.
        lam: (nc, 1) multipliers; those below the rows of the equalities act on no body.
    """
    wrenches = ca.SX(6, len(tree.bodies))
    first = 0
    for equality in equalities:
        if isinstance(equality, Connect | Weld):
            own = lam[first : first + equality.size]
            pair = pair_of(tree, equality, q)
            torque = _torque(tree, equality, pair, q, own)
            for end, sign in ((0, 1.0), (1, -1.0)):
                body = (equality.body1, equality.body2)[end]
                if body:  # what acts on the world moves nothing
                    force = scale(sign, entries(own))
                    arm = subtract(pair.points[end], _origin(pair, body))
                    moment = add(cross(arm, force), scale(sign, torque))
                    wrenches[:, body] += stack(force, moment)
        elif isinstance(equality, TendonCoupling):
            wrenches += lam[first] * couplings.wrenches(tree, equality, q)
        first += equality.size
    return wrenches


def _torque(tree: RigidTree, equality: Connect | Weld, pair: Pair, q: ca.SX, lam: ca.SX) -> Vec3:
    """Return the torque on body 1, N m, world axes.

    Args:
        tree: the mechanism.
        equality: the constraint.
        pair: its anchors at q.
        q: (nq, 1) configuration.
        lam: multipliers of its rows.
    """
    if isinstance(equality, Connect):
        return ZERO3
    G = weld.rotation_jacobian(tree, equality, pair, q, ca.SX.eye(3))
    return entries(G.T @ lam[FORCE_ROWS:])


def _origin(pair: Pair, body: int) -> Vec3:
    """Return the world position of the body's origin, m."""
    return frame_origin(pair.poses[pair.chain.body_link[body]], pair.chain.body_pose[body])
