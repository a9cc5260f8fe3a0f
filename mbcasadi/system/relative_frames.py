"""A frame as another one sees it, as `FrameFunctions`.

With origin and rotation `p_B`, `R_B` of the frame and `p_C`, `R_C` of the base in the world, and
`r = p_B - p_C`:

    p = R_Cᵀ r,   ṗ = R_Cᵀ (ṙ - ω_C × r),   ω = R_Cᵀ (ω_B - ω_C),
    p̈ = R_Cᵀ (r̈ - ω̇_C × r - 2 ω_C × ṙ + ω_C × (ω_C × r)),   ω̇ = R_Cᵀ (ω̇_B - ω̇_C - ω_C × ω_B).
"""

import casadi as ca

from mbcasadi.spatial import conjugate, multiply
from mbcasadi.system.frames import FrameFunctions, require_fixed


def relative_frame(
    frame: FrameFunctions, base: FrameFunctions, sizes: tuple[int, int]
) -> FrameFunctions:
    """Build the Functions of a frame B seen from a base C.

    Args:
        frame: B in the world.
        base: C in the world; it needs a rotation.
        sizes: nq, nv.

    Raises:
        ProblemError: the base is a point without a rotation, or one of them rolls.
    """
    require_fixed(frame)
    require_fixed(base)
    nq, nv = sizes
    q, v = ca.SX.sym("q", nq), ca.SX.sym("v", nv)
    quat_C = base.quaternion(q)
    (p_B, R_B), (p_C, R_C) = frame.pose(q), base.pose(q)
    r = p_B - p_C
    J = _relative_jacobian(R_C, r, frame.jacobian(q), base.jacobian(q))
    quat = None if frame.attitude is None else _relative_quaternion(quat_C, frame.attitude(q))
    functions = {
        "pose": ([q], {"p": R_C.T @ r, "R": R_C.T @ R_B}),
        "jacobian": ([q], {"J": J}),
        "velocity": ([q, v], {"velocity": J @ v}),
        "bias": ([q, v], {"J_dot_v": _relative_bias(frame, base, q, v)}),
    }
    made = {
        key: ca.Function(
            f"relative_{key}", inputs, list(outputs.values()), ["q", "v"][: len(inputs)], [*outputs]
        )
        for key, (inputs, outputs) in functions.items()
    }
    attitude = (
        None if quat is None else ca.Function("relative_attitude", [q], [quat], ["q"], ["quat"])
    )
    name = f"{frame.name} from {base.name}"
    return FrameFunctions(name=name, **made, attitude=attitude, carrier=None)


def _relative_jacobian(R_C: ca.SX, r: ca.SX, J_B: ca.SX, J_C: ca.SX) -> ca.SX:
    """Return J (6, nv): ṗ above ω."""
    linear = J_B[:3, :] - J_C[:3, :] + ca.skew(r) @ J_C[3:, :]
    return ca.vertcat(R_C.T @ linear, R_C.T @ (J_B[3:, :] - J_C[3:, :]))


def _relative_quaternion(quat_C: ca.SX, quat_B: ca.SX) -> ca.SX:
    """Return the quaternion w x y z of `R_Cᵀ R_B`."""
    w, x, y, z = ca.vertsplit(ca.densify(quat_C))
    b0, b1, b2, b3 = ca.vertsplit(ca.densify(quat_B))
    return ca.vertcat(*multiply(conjugate((w, x, y, z)), (b0, b1, b2, b3)))


def _relative_bias(frame: FrameFunctions, base: FrameFunctions, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return p̈ above ω̇ (6, 1) at zero joint acceleration."""
    (p_B, _), (p_C, R_C) = frame.pose(q), base.pose(q)
    rate_B, rate_C = frame.velocity(q, v), base.velocity(q, v)
    bias_B, bias_C = frame.bias(q, v), base.bias(q, v)
    r, r_dot, w_C = p_B - p_C, rate_B[:3] - rate_C[:3], rate_C[3:]
    turning = 2 * ca.cross(w_C, r_dot) - ca.cross(w_C, ca.cross(w_C, r))
    linear = bias_B[:3] - bias_C[:3] - ca.cross(bias_C[3:], r) - turning
    angular = bias_B[3:] - bias_C[3:] - ca.cross(w_C, rate_B[3:])
    return ca.vertcat(R_C.T @ linear, R_C.T @ angular)
