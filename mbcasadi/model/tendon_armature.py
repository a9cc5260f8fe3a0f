"""What the armature of tendons adds to bias force and Coriolis matrix.

A tendon with inertia m of its length L has the kinetic energy `m L̇²/2`, `L̇ = J v`, so its share
of `M a + h` is `Jᵀ m (J a + J̇ v)`. The rows of fixed tendons are constant.

MuJoCo's M has no entry between branches and its bias force has: across branches `h = C v + g`
holds and `Ṁ = C + Cᵀ` does not, as M itself is not the one of the energy there.
"""

import casadi as ca

from mbcasadi.description import RigidTree, SpatialTendon
from mbcasadi.model.configuration import tangent_rate
from mbcasadi.model.transmission import tendon_bias, tendon_row
from mbcasadi.spatial import is_zero


def heavy_tendons(tree: RigidTree) -> tuple[SpatialTendon, ...]:
    """Return the spatial tendons with armature."""
    return tuple(
        t for t in tree.tendons if isinstance(t, SpatialTendon) and not is_zero(t.armature)
    )


def tendon_bias_force(tree: RigidTree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return `Σ Jᵀ m J̇ v` over the tendons, (nv, 1), kg m/s².

    Args:
        tree: the mechanism.
        q: (nq, 1) configuration.
        v: (nv, 1) velocity.
    """
    force = ca.SX(tree.nv, 1)
    for tendon in heavy_tendons(tree):
        row = tendon_row(tree, tendon, q)
        force += row.T * (tendon.armature * tendon_bias(tree, tendon, q, v))
    return ca.sparsify(force)


def tendon_coriolis(tree: RigidTree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return `Σ Jᵀ m J̇` over the tendons, (nv, nv), kg/s.

    Args:
        tree: the mechanism.
        q: (nq, 1) configuration.
        v: (nv, 1) velocity.
    """
    C = ca.SX(tree.nv, tree.nv)
    for tendon in heavy_tendons(tree):
        row = tendon_row(tree, tendon, q)
        rate = tangent_rate(tree, ca.densify(row.T), q, v).T
        C += tendon.armature * (row.T @ rate)
    return ca.sparsify(C)
