"""Pose, Jacobian, velocity and bias of a frame as named Functions."""

from dataclasses import dataclass

import casadi as ca

from mbcasadi import model
from mbcasadi.description import Frame, RigidTree


@dataclass(frozen=True)
class FrameFunctions:
    """Kinematics of the frame B in the world W.

    Attributes:
        frame: the frame as numbers.
        pose: (q) → (p, R): (3,) origin `p_WB` and (3, 3) rotation `R_WB`.
        jacobian: (q) → (J): (6, nv), linear velocity of the origin above angular velocity,
            world axes, as MuJoCo's `mj_jacSite` and `mj_jacBody`.
        velocity: (q, v) → (velocity): (6,), `J v`.
        bias: (q, v) → (J_dot_v): (6,), the acceleration at zero joint acceleration.
    """

    frame: Frame
    pose: ca.Function
    jacobian: ca.Function
    velocity: ca.Function
    bias: ca.Function


def frame_functions(tree: RigidTree, frame: Frame) -> FrameFunctions:
    """Build the Functions of one frame."""
    q = ca.SX.sym("q", tree.nq)
    v = ca.SX.sym("v", tree.nv)
    label = f"frame_{frame.kind}"
    p, R = model.frame_pose(tree, frame, q)
    return FrameFunctions(
        frame=frame,
        pose=ca.Function(f"{label}_pose", [q], [p, R], ["q"], ["p", "R"]),
        jacobian=ca.Function(
            f"{label}_jacobian", [q], [model.frame_jacobian(tree, frame, q)], ["q"], ["J"]
        ),
        velocity=ca.Function(
            f"{label}_velocity",
            [q, v],
            [model.frame_velocity(tree, frame, q, v)],
            ["q", "v"],
            ["velocity"],
        ),
        bias=ca.Function(
            f"{label}_bias",
            [q, v],
            [model.frame_bias(tree, frame, q, v)],
            ["q", "v"],
            ["J_dot_v"],
        ),
    )
