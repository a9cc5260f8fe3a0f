"""Rows of bilateral constraints: residual, Jacobian and bias, in the order of the equalities.

A connect or weld between two bodies that a third one carries can be seen from the world, as
MuJoCo does, or from the nearest body that carries both. On the manifold these are the same
rows. Where a loop is open by a gap, the rows seen from the world also hold `axis x gap` for
every joint that carries the whole loop: a planar loop on a moving arm then seems to have rank 3
and to fix the arm. Seen from the carrier, the rank is that of the loop, whatever the gap.
"""

from collections.abc import Callable, Sequence

import casadi as ca

from mbcasadi.constraints import couplings, weld
from mbcasadi.constraints.pairs import gap, gap_bias, gap_jacobian, pair_of, relative_velocity
from mbcasadi.description import Connect, Equality, RigidTree, Weld
from mbcasadi.spatial import stack


def residual(tree: RigidTree, equalities: Sequence[Equality], q: ca.SX) -> ca.SX:
    """Return phi (nc, 1), zero where the constraints hold; MuJoCo's `efc_pos` of equality rows.

    Args:
        tree: the mechanism.
        equalities: the constraints, in the order of their rows.
        q: (nq, 1) configuration.
    """
    return _stack_rows(equalities, lambda e: _residual(tree, e, q), 1)


def jacobian(
    tree: RigidTree, equalities: Sequence[Equality], q: ca.SX, *, relative: bool = False
) -> ca.SX:
    """Return A (nc, nv) with `dphi/dt = A v`; MuJoCo's `efc_J` of equality rows.

    Args:
        tree, equalities, q: as in `residual`.
        relative: see each pair from the nearest body that carries both ends; world axes.
    """
    return _stack_rows(equalities, lambda e: _jacobian(tree, e, q, relative), tree.nv)


def bias(
    tree: RigidTree,
    equalities: Sequence[Equality],
    q: ca.SX,
    v: ca.SX,
    *,
    relative: bool = False,
) -> ca.SX:
    """Return `c = Ȧ v` (nc, 1), so that `A a + c = 0` keeps the constraints.

    It is the second derivative of phi at zero joint acceleration, from the accelerations of
    the bodies; exact for couplings too, where MuJoCo's reference acceleration leaves it out.

    Args:
        tree, equalities, q: as in `residual`.
        v: (nv, 1) velocity.
        relative: as in `jacobian`.
    """
    return _stack_rows(equalities, lambda e: _bias(tree, e, q, v, relative), 1)


def _stack_rows(
    equalities: Sequence[Equality], rows: Callable[[Equality], ca.SX], width: int
) -> ca.SX:
    if not equalities:
        return ca.SX(0, width)
    return ca.sparsify(ca.vertcat(*[rows(equality) for equality in equalities]))


def _residual(tree: RigidTree, equality: Equality, q: ca.SX) -> ca.SX:
    match equality:
        case Connect():
            return stack(gap(pair_of(tree, equality, q)))
        case Weld():
            rotation = weld.rotation_residual(tree, equality, q)
            return stack(gap(pair_of(tree, equality, q)), rotation)
    return couplings.residual(tree, equality, q)


def _jacobian(tree: RigidTree, equality: Equality, q: ca.SX, relative: bool) -> ca.SX:
    if not isinstance(equality, Connect | Weld):
        return couplings.jacobian(tree, equality, q)
    pair = pair_of(tree, equality, q)
    linear, angular = gap_jacobian(pair, relative=relative)
    if isinstance(equality, Connect):
        return linear
    return ca.vertcat(linear, weld.rotation_jacobian(tree, equality, pair, q, angular))


def _bias(tree: RigidTree, equality: Equality, q: ca.SX, v: ca.SX, relative: bool) -> ca.SX:
    if not isinstance(equality, Connect | Weld):
        return couplings.bias(tree, equality, q, v)
    pair = pair_of(tree, equality, q)
    v = relative_velocity(pair, v) if relative else v
    gap_acceleration, *_ = gap_bias(pair, q, v)
    if isinstance(equality, Connect):
        return stack(gap_acceleration)
    return stack(gap_acceleration, weld.rotation_bias(tree, equality, pair, q, v))
