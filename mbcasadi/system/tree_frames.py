"""Sites, bodies, geoms and fixed cameras of a model as `FrameFunctions`."""

from collections.abc import Callable, Sequence

import casadi as ca
import numpy as np

from mbcasadi import model
from mbcasadi.description import Frame, RigidTree
from mbcasadi.errors import UnknownNameError
from mbcasadi.model.placement import rotation_of
from mbcasadi.model.transmission import frame_quat
from mbcasadi.shapes import require_name
from mbcasadi.system.frames import Array, Carrier, FrameFunctions
from mbcasadi.system.names_of_tree import names_of_tree

KINDS = ("site", "body", "geom", "camera", "contact")


def frame_of_model(
    tree: RigidTree | None, name: str, kind: str, others: Sequence[tuple[str, str]]
) -> Frame:
    """Return a frame of a model by its name.

    Args:
        tree: of the model; None for a system that is given by equations.
        name, kind: of the frame.
        others: kind and name of frames that the system has besides.

    Raises:
        UnknownNameError: no such kind; or no such name, and the message lists the valid ones, or
            says of what kind the frame of this name is.
    """
    require_name("kind of frame", kind, KINDS)
    frames = () if tree is None else tree.frames
    valid = {frame.name: frame for frame in frames if frame.kind == kind}
    kinds = [frame.kind for frame in frames if frame.name == name]
    if name not in valid and kinds:
        raise UnknownNameError(
            f"unknown {kind} {name!r}: it is the name of a {kinds[0]}; expected kind={kinds[0]!r}"
        )
    given = [other for of_kind, other in others if of_kind == kind and other not in valid]
    elsewhere = {} if tree is None else names_of_tree(tree)
    require_name(kind, name, [*valid, *given], elsewhere=elsewhere)
    return valid[name]


def frame_functions(
    tree: RigidTree, frame: Frame, at: Callable[[ca.SX], RigidTree] | None = None
) -> FrameFunctions:
    """Build the Functions of one frame of a tree.

    Args:
        tree: of the model.
        frame: one of its frames.
        at: the tree with the parameters that a configuration carries; itself by default.
    """
    q, numbers = ca.SX.sym("q", tree.nq), tree
    tree = tree if at is None else at(q)
    authored, frame = frame, _of_tree(frame, numbers, tree)
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
        carrier=_carrier(numbers, frame, at) if frame is authored else None,
    )


def _of_tree(frame: Frame, numbers: RigidTree, tree: RigidTree) -> Frame:
    """Return the frame of a tree with parameters: another one where its pose is one of them."""
    return next(
        (
            moved
            for own, moved in zip(numbers.frames, tree.frames, strict=True)
            if own is frame and moved is not frame
        ),
        frame,
    )


def _carrier(tree: RigidTree, frame: Frame, at: Callable[[ca.SX], RigidTree] | None) -> Carrier:
    """Return the body that a frame moves with."""
    root = tree.bodies[frame.body].weld_root

    def frame_at(point: Array) -> FrameFunctions:
        on_root = Frame("", "body", root, point, np.array([1.0, 0, 0, 0]))
        return frame_functions(tree, on_root, at)

    return Carrier(root, point_on_root(tree, root, frame), frame_at)


def point_on_root(tree: RigidTree, root: int, frame: Frame) -> Array:
    """Return the origin of a frame in the axes of the body `root` that it is fixed to."""
    point, body = np.asarray(frame.pos, dtype=float), frame.body
    while body != root:
        carrier = tree.bodies[body]
        point = carrier.pos + rotation_of(carrier.quat) @ point
        body = carrier.parent
    return point
