"""Slider-crank transmissions: a rod between a crank's site and a slider on an axis.

With `d` from the slider's site to the crank's, `e` its z axis and `r` the rod's length, the slider
is at `l = eᵀ d - s`, `s = √((eᵀ d)² + r² - dᵀ d)`. Where the rod is too short to reach the axis,
`l = eᵀ d`, as in MuJoCo; on the border between both the slope grows without bound.
"""

import casadi as ca

from mbcasadi.description import Actuator, Frame, RigidTree
from mbcasadi.model.frames import frame_jacobian, frame_pose


def crank_length(tree: RigidTree, actuator: Actuator, q: ca.SX) -> ca.SX:
    """Return `gear l`."""
    d, e = _rod(tree, actuator, q)
    along, reaches, s = _reach(actuator, d, e)
    return float(actuator.gear[0]) * (along - ca.if_else(reaches, s, 0.0))


def crank_row(tree: RigidTree, actuator: Actuator, q: ca.SX) -> ca.SX:
    """Return `gear ∂l/∂v`, (1, nv): `∂l/∂d = (1 - eᵀd/s) eᵀ + dᵀ/s`, `∂l/∂e = (1 - eᵀd/s) dᵀ`."""
    d, e = _rod(tree, actuator, q)
    along, reaches, s = _reach(actuator, d, e)
    share, inverse = 1.0 - ca.if_else(reaches, along / s, 0.0), ca.if_else(reaches, 1.0 / s, 0.0)
    crank, slider = _frames(tree, actuator)
    J_crank, J_slider = frame_jacobian(tree, crank, q), frame_jacobian(tree, slider, q)
    to_d = share * e + inverse * d
    to_turn = share * ca.cross(e, d)  # de = ω × e
    row = to_d.T @ (J_crank[:3, :] - J_slider[:3, :]) + to_turn.T @ J_slider[3:, :]
    return ca.sparsify(float(actuator.gear[0]) * row)


def _frames(tree: RigidTree, actuator: Actuator) -> tuple[Frame, Frame]:
    assert actuator.reference is not None  # of a slider-crank
    return tree.frames[actuator.target], tree.frames[actuator.reference]


def _rod(tree: RigidTree, actuator: Actuator, q: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return d and e in world axes."""
    crank, slider = _frames(tree, actuator)
    p_slider, R_slider = frame_pose(tree, slider, q)
    return frame_pose(tree, crank, q)[0] - p_slider, R_slider[:, 2]


def _reach(actuator: Actuator, d: ca.SX, e: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return eᵀd, whether the rod reaches the axis, and s (1 where it does not)."""
    along = ca.dot(e, d)
    square = along * along + actuator.rod * actuator.rod - ca.dot(d, d)
    reaches = square > 0.0
    return along, reaches, ca.sqrt(ca.if_else(reaches, square, 1.0))
