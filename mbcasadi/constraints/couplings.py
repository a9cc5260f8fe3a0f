"""Polynomial couplings of two joints or of two tendons: one row each.

`phi = x1 - poly(x2)` with `poly(x) = Σ c_k x^k`, so `A = J1 - poly'(x2) J2` and
`c = J̇1 v - poly'(x2) J̇2 v - poly''(x2) (J2 v)²`; `J̇ = 0` for joints and fixed tendons.
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi.description import JointCoupling, RigidTree, Tendon, TendonCoupling
from mbcasadi.model.tendon_wrenches import unit_wrenches
from mbcasadi.model.transmission import tendon_bias, tendon_length, tendon_row


class Coordinate(NamedTuple):
    """A coordinate x, its Jacobian J (1, nv), and the tendon that it is the length of."""

    x: ca.SX
    J: ca.SX
    tendon: Tendon | None = None


def residual(tree: RigidTree, coupling: JointCoupling | TendonCoupling, q: ca.SX) -> ca.SX:
    """Return `x1 - poly(x2)`, or `x1 - poly[0]` where there is no second coordinate."""
    first, second = _coordinates(tree, coupling, q)
    return first.x - (coupling.poly[0] if second is None else _polynomial(coupling.poly, second.x))


def jacobian(tree: RigidTree, coupling: JointCoupling | TendonCoupling, q: ca.SX) -> ca.SX:
    """Return `J1 - poly'(x2) J2` (1, nv)."""
    first, second = _coordinates(tree, coupling, q)
    return first.J if second is None else first.J - _slope(coupling, second) * second.J


def wrenches(tree: RigidTree, coupling: TendonCoupling, q: ca.SX) -> ca.SX:
    """Return `W1 - poly'(x2) W2` (6, nbody), what a unit multiplier does to the bodies.

    W is what a unit force along a tendon does to them.
    """
    _, second = _coordinates(tree, coupling, q)
    total = unit_wrenches(tree, tree.tendons[coupling.tendon1], q)
    if second is None or coupling.tendon2 is None:
        return total
    return total - _slope(coupling, second) * unit_wrenches(tree, tree.tendons[coupling.tendon2], q)


def bias(tree: RigidTree, coupling: JointCoupling | TendonCoupling, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return `J̇1 v - poly'(x2) J̇2 v - poly''(x2) (J2 v)²`.

    MuJoCo's reference acceleration leaves it out.

    Args:
        tree: the mechanism.
        coupling: of two joints or two tendons.
        q, v: (nq, 1), (nv, 1) state.
    """
    first, second = _coordinates(tree, coupling, q)
    bias_of_first = _rate_of_row(tree, first, q, v)
    if second is None:
        return bias_of_first
    rate, slope = second.J @ v, _derivative(coupling.poly)
    bent = _polynomial(_derivative(slope), second.x) * rate**2
    turned = _polynomial(slope, second.x) * _rate_of_row(tree, second, q, v)
    return bias_of_first - turned - bent


def _slope(coupling: JointCoupling | TendonCoupling, second: Coordinate) -> ca.SX:
    """Return `poly'(x2)`."""
    return _polynomial(_derivative(coupling.poly), second.x)


def _rate_of_row(tree: RigidTree, coordinate: Coordinate, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return `J̇ v` of a coordinate."""
    if coordinate.tendon is None:
        return ca.SX(1, 1)
    return tendon_bias(tree, coordinate.tendon, q, v)


def _coordinates(
    tree: RigidTree, coupling: JointCoupling | TendonCoupling, q: ca.SX
) -> tuple[Coordinate, Coordinate | None]:
    if isinstance(coupling, JointCoupling):
        first = _joint(tree, coupling.joint1, q)
        return first, None if coupling.joint2 is None else _joint(tree, coupling.joint2, q)
    first = _tendon(tree, coupling.tendon1, coupling.length1, q)
    if coupling.tendon2 is None:
        return first, None
    return first, _tendon(tree, coupling.tendon2, coupling.length2, q)


def _joint(tree: RigidTree, index: int, q: ca.SX) -> Coordinate:
    joint = tree.joints[index]
    J = ca.SX(1, tree.nv)
    J[joint.dof] = 1.0
    return Coordinate(q[joint.qpos] - joint.ref, J)


def _tendon(tree: RigidTree, index: int, rest: float, q: ca.SX) -> Coordinate:
    tendon = tree.tendons[index]
    return Coordinate(tendon_length(tree, tendon, q) - rest, tendon_row(tree, tendon, q), tendon)


def _polynomial(poly: tuple[float, ...], x: ca.SX) -> ca.SX:
    """Return `Σ c_k x^k`."""
    value = ca.SX(0)
    for c in reversed(poly):
        value = value * x + c
    return value


def _derivative(poly: tuple[float, ...]) -> tuple[float, ...]:
    """Return the coefficients of the derivative."""
    return tuple(k * c for k, c in enumerate(poly))[1:]
