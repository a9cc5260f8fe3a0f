"""Pose, Jacobian, velocity and bias of a frame as named Functions."""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from mbcasadi import model
from mbcasadi.description import Frame, RigidTree
from mbcasadi.errors import ProblemError, ShapeError, UnsupportedFeatureError
from mbcasadi.shapes import require_kind
from mbcasadi.system.functions import Expression, matrix


@dataclass(frozen=True)
class FrameFunctions:
    """Kinematics of the frame B in the world W.

    Attributes:
        name: of the frame.
        body_frame: the frame as numbers; None for one that was given as an expression.
        pose: (q) → (p, R): (3,) origin `p_WB` and (3, 3) rotation `R_WB`.
        jacobian: (q) → (J): (6, nv), linear velocity of the origin above angular velocity,
            world axes, as MuJoCo's `mj_jacSite` and `mj_jacBody`.
        velocity: (q, v) → (velocity): (6,), `J v`.
        bias: (q, v) → (J_dot_v): (6,), the acceleration at zero joint acceleration.
    """

    name: str
    body_frame: Frame | None
    pose: ca.Function
    jacobian: ca.Function
    velocity: ca.Function
    bias: ca.Function

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


def frame_functions(tree: RigidTree, frame: Frame) -> FrameFunctions:
    """Build the Functions of one frame."""
    q = ca.SX.sym("q", tree.nq)
    v = ca.SX.sym("v", tree.nv)
    label = f"frame_{frame.kind}"
    p, R = model.frame_pose(tree, frame, q)
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
        ShapeError: a wrong shape, or a symbol that is not in q.
        ProblemError: the name is no text.
    """
    require_kind("name", name, str)
    if not name:
        raise ProblemError("name is empty; expected the name of a frame")
    v = ca.SX.sym("v", N.shape[1])
    p = matrix("position", position, (3, 1))
    R = matrix("rotation", np.eye(3) if rotation is None else rotation, (3, 3))
    angular = [_angular_rate(R, q, N[:, i]) for i in range(N.shape[1])]
    J = ca.densify(ca.vertcat(ca.jacobian(p, q) @ N, ca.horzcat(ca.SX(3, 0), *angular)))
    bias = ca.densify(ca.jtimes(J @ v, q, N @ v))
    expressions = {
        "pose": ([q], [p, R], ["q"], ["p", "R"]),
        "jacobian": ([q], [J], ["q"], ["J"]),
        "velocity": ([q, v], [J @ v], ["q", "v"], ["velocity"]),
        "bias": ([q, v], [bias], ["q", "v"], ["J_dot_v"]),
    }
    functions = {
        key: ca.Function(f"frame_point_{key}", *parts, {"allow_free": True, "cse": True})
        for key, parts in expressions.items()
    }
    if functions["pose"].has_free():
        free = ", ".join(functions["pose"].get_free())
        raise ShapeError(f"frame '{name}' depends on {free}; expected expressions of q only")
    return FrameFunctions(name=name, body_frame=None, **functions)


def _angular_rate(R: ca.SX, q: ca.SX, direction: ca.SX) -> ca.SX:
    """Return (3, 1) ω with `[ω]_× = Ṙ Rᵀ` along a direction of q."""
    turning = ca.SX(ca.jtimes(ca.vec(R), q, direction)).reshape((3, 3)) @ R.T
    return ca.vertcat(turning[2, 1], turning[0, 2], turning[1, 0])
