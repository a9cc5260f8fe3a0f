"""Sites and bodies of a model as `FrameFunctions`."""

import casadi as ca
import numpy as np

from mbcasadi import model
from mbcasadi.description import Frame, RigidTree
from mbcasadi.model.placement import rotation_of
from mbcasadi.model.transmission import frame_quat
from mbcasadi.system.frames import Array, Carrier, FrameFunctions


def frame_functions(tree: RigidTree, frame: Frame) -> FrameFunctions:
    """Build the Functions of one frame of a tree."""
    q = ca.SX.sym("q", tree.nq)
    v = ca.SX.sym("v", tree.nv)
    label = f"frame_{frame.kind}"
    p, R = model.frame_pose(tree, frame, q)
    quat = ca.vertcat(*frame_quat(tree, frame, q))
    return FrameFunctions(
        name=frame.name,
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
        attitude=ca.Function(f"{label}_attitude", [q], [quat], ["q"], ["quat"]),
        carrier=_carrier(tree, frame),
    )


def _carrier(tree: RigidTree, frame: Frame) -> Carrier:
    """Return the body that a frame moves with."""
    root = tree.bodies[frame.body].weld_root

    def frame_at(point: Array) -> FrameFunctions:
        return frame_functions(tree, Frame("", "body", root, point, np.array([1.0, 0, 0, 0])))

    return Carrier(root, _point_on(tree, root, frame), frame_at)


def _point_on(tree: RigidTree, root: int, frame: Frame) -> Array:
    """Return the origin of a frame in the axes of the body `root` that it is fixed to."""
    point, body = np.asarray(frame.pos, dtype=float), frame.body
    while body != root:
        carrier = tree.bodies[body]
        point = carrier.pos + rotation_of(carrier.quat) @ point
        body = carrier.parent
    return point
