"""The rotation rows of a weld.

With `e = conj(q2 ∘ quat2) ∘ q1 ∘ relquat` the rows are `s vec(e)`, `s` the torque scale. Let
`r = R2ᵀ (ω1 - ω2)` be the relative angular velocity in the axes of `q2 ∘ quat2`. Then
`ė = ½ (0, r) ∘ e`, so the rows move with `½ s (e₀ r + r × e_v)`.
"""

import casadi as ca

from mbcasadi.constraints.pairs import Pair, gap_bias
from mbcasadi.description import RigidTree, Weld
from mbcasadi.model.motion import from_columns
from mbcasadi.model.placement import rotation_of
from mbcasadi.model.transmission import quat_in_body, quat_of_numbers
from mbcasadi.spatial import (
    Mat3,
    Quat,
    Vec3,
    add,
    conjugate,
    cross,
    dot,
    multiply,
    rotate_back,
    scale,
    stack,
    subtract,
    transpose,
    vec3,
)


def rotation_residual(tree: RigidTree, weld: Weld, q: ca.SX) -> Vec3:
    """Return `s vec(e)`."""
    e = _error(tree, weld, q)
    return scale(weld.torquescale, (e[1], e[2], e[3]))


def rotation_jacobian(tree: RigidTree, weld: Weld, pair: Pair, q: ca.SX, J: ca.SX) -> ca.SX:
    """Return `½ s (e₀ 1 - [e_v]×) R2ᵀ J`.

    Args:
        tree: the mechanism.
        weld: the constraint.
        pair: its anchors at q.
        q: (nq, 1) configuration.
        J: (3, nv) Jacobian of `ω1 - ω2`, world axes.
    """
    e, axes = _error(tree, weld, q), _axes(weld, pair)
    columns = [
        scale(0.5 * weld.torquescale, _rate(e, rotate_back(axes, unit)))
        for unit in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    ]
    return ca.sparsify(ca.horzcat(*[stack(c) for c in columns])) @ J


def rotation_bias(tree: RigidTree, weld: Weld, pair: Pair, q: ca.SX, v: ca.SX) -> Vec3:
    """Return `½ s (e₀ ṙ + ṙ × e_v - ½ |r|² e_v)`, ṙ at zero joint acceleration.

    Args:
        tree: the mechanism.
        weld: the constraint.
        pair: its anchors at q.
        q, v: (nq, 1), (nv, 1) state.
    """
    _, dw, w, w2 = gap_bias(pair, q, v)
    e, axes = _error(tree, weld, q), _axes(weld, pair)
    r = rotate_back(axes, w)
    dr = rotate_back(axes, subtract(dw, cross(w2, w)))
    bend = scale(-0.5 * dot(r, r), (e[1], e[2], e[3]))
    return scale(0.5 * weld.torquescale, add(_rate(e, dr), bend))


def _rate(e: Quat, r: Vec3) -> Vec3:
    """Return `e₀ r + r × e_v`."""
    return add(scale(e[0], r), cross(r, (e[1], e[2], e[3])))


def _error(tree: RigidTree, weld: Weld, q: ca.SX) -> Quat:
    """Return `e`; the rotation of the bodies' common ancestor cancels."""
    root = _common_ancestor(tree, weld.body1, weld.body2)
    second = multiply(quat_in_body(tree, weld.body2, q, root), quat_of_numbers(weld.quat2))
    first = multiply(quat_in_body(tree, weld.body1, q, root), quat_of_numbers(weld.relquat))
    return multiply(conjugate(second), first)


def _common_ancestor(tree: RigidTree, body1: int, body2: int) -> int:
    ancestors = {body1}
    while body1:
        body1 = tree.bodies[body1].parent
        ancestors.add(body1)
    while body2 not in ancestors:
        body2 = tree.bodies[body2].parent
    return body2


def _axes(weld: Weld, pair: Pair) -> Mat3:
    """Return the rows of the rotation of `q2 ∘ quat2` in the world."""
    on_link = pair.chain.body_pose[weld.body2].R @ rotation_of(weld.quat2)
    columns = pair.poses[pair.links[1]].columns
    x, y, z = (from_columns(columns, vec3(column)) for column in on_link.T)
    return transpose((x, y, z))
