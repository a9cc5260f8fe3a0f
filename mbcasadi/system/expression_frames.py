"""Frames that are given as expressions of q, as `FrameFunctions`."""

from collections.abc import Sequence

import casadi as ca
import numpy as np

from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.shapes import require_kind
from mbcasadi.spatial import entries, quaternion_of
from mbcasadi.system.equation_checks import require_numbers_somewhere
from mbcasadi.system.frames import Array, Carrier, FrameFunctions
from mbcasadi.system.functions import Expression, matrix

ORTHONORMAL = 1e-6
"""Largest entry of `Rᵀ R - 1` of a rotation; an iteration has closed the poses."""


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
    J = ca.sparsify(ca.vertcat(ca.jacobian(p, q) @ N, ca.horzcat(ca.SX(3, 0), *angular)))
    bias = ca.densify(ca.jtimes(J @ v, q, N @ v))
    expressions = {
        "pose": ([q], [ca.densify(p), ca.densify(axes)], ["q"], ["p", "R"]),
        "jacobian": ([q], [J], ["q"], ["J"]),
        "velocity": ([q, v], [ca.densify(J @ v)], ["q", "v"], ["velocity"]),
        "bias": ([q, v], [bias], ["q", "v"], ["J_dot_v"]),
    }
    if R is not None:
        expressions["attitude"] = ([q], [_quaternion(R)], ["q"], ["quat"])
    functions = {
        key: ca.Function(f"frame_point_{key}", *parts, {"cse": True})
        for key, parts in expressions.items()
    }

    def frame_at(point: Array) -> FrameFunctions:
        """Return the frame with another origin in its own axes."""
        return _from_expressions("", q, p + axes @ ca.DM(point), axes, N)

    return FrameFunctions(
        name=name,
        pose=functions["pose"],
        jacobian=functions["jacobian"],
        velocity=functions["velocity"],
        bias=functions["bias"],
        attitude=functions.get("attitude"),
        carrier=None if R is None else Carrier(None, np.zeros(3), frame_at),
    )


def _quaternion(R: ca.SX) -> ca.SX:
    """Return the (4, 1) quaternion of a rotation."""
    x, y, z = (entries(R[k, :].T) for k in range(3))
    return ca.vertcat(*quaternion_of((x, y, z)))


def _angular_rate(R: ca.SX, q: ca.SX, direction: ca.SX) -> ca.SX:
    """Return (3, 1) ω with `[ω]_× = Ṙ Rᵀ` along a direction of q."""
    turning = ca.SX(ca.jtimes(ca.vec(R), q, direction)).reshape((3, 3)) @ R.T
    return ca.vertcat(turning[2, 1], turning[0, 2], turning[1, 0])
