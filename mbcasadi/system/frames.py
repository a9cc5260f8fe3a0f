"""Pose, Jacobian, velocity and bias of a frame as named Functions.

A frame is a site or body of a model, or it is given as expressions of q. Who uses a frame asks
`FrameFunctions` only, which both have.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi import model
from mbcasadi.description import Frame, RigidTree
from mbcasadi.errors import ProblemError, ShapeError, UnsupportedFeatureError
from mbcasadi.model.transmission import frame_quat
from mbcasadi.shapes import require_kind
from mbcasadi.spatial import entries, quaternion_of
from mbcasadi.system.equation_checks import require_numbers_somewhere
from mbcasadi.system.functions import Expression, matrix

Array = NDArray[np.float64]

ORTHONORMAL = 1e-6
"""Largest entry of `Rᵀ R - 1` of a rotation; an iteration has closed the poses."""


@dataclass(frozen=True)
class FrameFunctions:
    """Kinematics of the frame B in the world W.

    Attributes:
        name: of the frame.
        body_frame: the frame as numbers; None for one that was given as an expression.
        pose: (q) → (p, R): (3,) origin `p_WB` and (3, 3) rotation `R_WB`, the identity for a point.
        jacobian: (q) → (J): (6, nv), linear velocity of the origin above angular velocity,
            world axes, as MuJoCo's `mj_jacSite` and `mj_jacBody`; a point has no angular velocity.
        velocity: (q, v) → (velocity): (6,), `J v`.
        bias: (q, v) → (J_dot_v): (6,), the acceleration at zero joint acceleration.
        attitude: (q) → (quat): (4,) quaternion of the rotation; None for a point.
        carrier: (3,) offset r, m → the frame in the axes of the rigid body that carries this one,
            with its origin at r in these axes; None for a point.
    """

    name: str
    body_frame: Frame | None
    pose: ca.Function
    jacobian: ca.Function
    velocity: ca.Function
    bias: ca.Function
    attitude: ca.Function | None
    carrier: Callable[[Array], "FrameFunctions"] | None

    @property
    def frame(self) -> Frame:
        """The frame as numbers, fixed to a body of the tree.

        Raises:
            UnsupportedFeatureError: it was given as an expression.
        """
        if self.body_frame is None:
            raise UnsupportedFeatureError(
                f"frame '{self.name}' is given as an expression and is fixed to no body; expected "
                "a site or body of a model"
            )
        return self.body_frame

    @property
    def quaternion(self) -> ca.Function:
        """(q) → (quat): (4,) the rotation as a quaternion w x y z.

        Raises:
            ProblemError: the frame is a point, given without its rotation.
        """
        if self.attitude is None:
            raise ProblemError(
                f"frame '{self.name}' is a point without a rotation; expected rotation= in "
                "with_frame, or a task of its position only (orientation='')"
            )
        return self.attitude


def frame_functions(tree: RigidTree, frame: Frame) -> FrameFunctions:
    """Build the Functions of one frame of a tree."""
    q = ca.SX.sym("q", tree.nq)
    v = ca.SX.sym("v", tree.nv)
    label = f"frame_{frame.kind}"
    p, R = model.frame_pose(tree, frame, q)
    quat = ca.vertcat(*frame_quat(tree, frame, q))
    root = tree.bodies[frame.body].weld_root

    def carrier(offset: Array) -> FrameFunctions:
        """Return the frame of the body, or of the one it is fixed to, moved by the offset."""
        return frame_functions(tree, Frame("", "body", root, offset, np.array([1.0, 0, 0, 0])))

    return FrameFunctions(
        name=frame.name,
        body_frame=frame,
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
        carrier=carrier,
    )


def expression_frame(
    name: str,
    q: ca.SX,
    position: Expression,
    rotation: Expression | None,
    N: ca.SX,
) -> FrameFunctions:
    """Build the Functions of a frame that is given as expressions of q.

    `J = [∂p/∂q N; ω_i]` with `[ω_i]_× = (∂R/∂q N)_i Rᵀ`, and `J_dot_v = (dJ/dt) v`.

    Args:
        name: of the frame.
        q: (nq, 1) symbols.
        position: (3, 1) origin in world axes, m.
        rotation: (3, 3) rotation `R_WB`; None for a point, whose angular rows are zero.
        N: (nq, nv) velocity map at q.

    Raises:
        ShapeError: a wrong shape, a symbol that is not in q, or an expression that is NaN or
            infinite at all sampled poses.
        ProblemError: the name is no text.
    """
    require_kind("name", name, str)
    if not name:
        raise ProblemError("name is empty; expected the name of a frame")
    p = matrix("position", position, (3, 1))
    R = None if rotation is None else matrix("rotation", rotation, (3, 3))
    given = {"position": p} if R is None else {"position": p, "rotation": R}
    functions = {
        f"frame '{name}': {key}": ca.Function(key, [q], [value], {"allow_free": True})
        for key, value in given.items()
    }
    for function in functions.values():
        if function.has_free():
            raise ShapeError(
                f"frame '{name}' depends on {', '.join(function.get_free())}; expected expressions "
                "of q only, neither of v nor of the time: let what moves be a coordinate"
            )
    require_numbers_somewhere(functions)
    return _from_expressions(name, q, p, R, N)


def require_rotation(frame: FrameFunctions, poses: Sequence[Array]) -> None:
    """Raise unless the rotation of a frame is orthonormal and right-handed.

    Args:
        frame: its Functions.
        poses: (nq,) each, where constraints hold.

    Raises:
        ProblemError: it is neither NaN nor a rotation at one of the poses.
    """
    for q in poses:
        R = np.array(frame.pose(q)[1])
        error = orthonormality_error(R[None])
        if error > ORTHONORMAL or np.linalg.det(R) < 0:
            raise ProblemError(
                f"frame '{frame.name}': rotation has |Rᵀ R - 1| = {error:.3g} and the determinant "
                f"{np.linalg.det(R):.3g} at q = {np.round(q, 3)}; expected the frame's axes in the "
                "world as columns"
            )


def orthonormality_error(R: Array) -> float:
    """Return the largest entry of `|Rᵀ R - 1|` of matrices (n, 3, 3)."""
    return float(np.abs(R.transpose(0, 2, 1) @ R - np.eye(3)).max())


def _from_expressions(name: str, q: ca.SX, p: ca.SX, R: ca.SX | None, N: ca.SX) -> FrameFunctions:
    """Return the Functions of checked expressions."""
    nv = N.shape[1]
    v, axes = ca.SX.sym("v", nv), ca.SX.eye(3) if R is None else R
    angular = [_angular_rate(axes, q, N[:, i]) for i in range(nv)]
    J = ca.densify(ca.vertcat(ca.jacobian(p, q) @ N, ca.horzcat(ca.SX(3, 0), *angular)))
    bias = ca.densify(ca.jtimes(J @ v, q, N @ v))
    expressions = {
        "pose": ([q], [p, axes], ["q"], ["p", "R"]),
        "jacobian": ([q], [J], ["q"], ["J"]),
        "velocity": ([q, v], [J @ v], ["q", "v"], ["velocity"]),
        "bias": ([q, v], [bias], ["q", "v"], ["J_dot_v"]),
    }
    if R is not None:
        expressions["attitude"] = ([q], [_quaternion(R)], ["q"], ["quat"])
    functions = {
        key: ca.Function(f"frame_point_{key}", *parts, {"cse": True})
        for key, parts in expressions.items()
    }

    def carrier(offset: Array) -> FrameFunctions:
        """Return the frame moved by the offset in its own axes."""
        return _from_expressions("", q, p + axes @ ca.DM(offset), axes, N)

    return FrameFunctions(
        name=name,
        body_frame=None,
        pose=functions["pose"],
        jacobian=functions["jacobian"],
        velocity=functions["velocity"],
        bias=functions["bias"],
        attitude=functions.get("attitude"),
        carrier=None if R is None else carrier,
    )


def _quaternion(R: ca.SX) -> ca.SX:
    """Return the (4, 1) quaternion of a rotation."""
    x, y, z = (entries(R[k, :].T) for k in range(3))
    return ca.vertcat(*quaternion_of((x, y, z)))


def _angular_rate(R: ca.SX, q: ca.SX, direction: ca.SX) -> ca.SX:
    """Return (3, 1) ω with `[ω]_× = Ṙ Rᵀ` along a direction of q."""
    turning = ca.SX(ca.jtimes(ca.vec(R), q, direction)).reshape((3, 3)) @ R.T
    return ca.vertcat(turning[2, 1], turning[0, 2], turning[1, 0])
