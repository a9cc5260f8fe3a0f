"""A point of the body of a frame, off the frame's origin.

    p_C = p + R o,   J_C = [J_p - [R o]× J_ω; J_ω],
    J̇_C v = [b_p + b_ω × R o + ω × (ω × R o); b_ω],

with the constant o in the axes of the frame.
"""

from dataclasses import replace
from typing import Any

import casadi as ca

from mbcasadi.system.frames import FrameFunctions

Vector3 = tuple[float, float, float]


def shifted_frame(frame: FrameFunctions, offset: Vector3, sizes: tuple[int, int]) -> FrameFunctions:
    """Return a frame with the same axes, and its origin at a point in them.

    Args:
        frame: that is fixed to its body, with a rotation.
        offset: (3,) o, m.
        sizes: nq, nv.
    """
    q, v = ca.SX.sym("q", sizes[0]), ca.SX.sym("v", sizes[1])
    p, R = frame.pose(q)
    arm, J, bias = R @ ca.DM(offset), frame.jacobian(q), frame.bias(q, v)
    w = J[3:, :] @ v
    J = ca.vertcat(J[:3, :] - ca.skew(arm) @ J[3:, :], J[3:, :])
    linear = bias[:3] + ca.cross(bias[3:], arm) + ca.cross(w, ca.cross(w, arm))
    functions = {
        "pose": ([q], {"p": p + arm, "R": R}),
        "jacobian": ([q], {"J": J}),
        "velocity": ([q, v], {"velocity": J @ v}),
        "bias": ([q, v], {"J_dot_v": ca.vertcat(linear, bias[3:])}),
    }
    made: dict[str, Any] = {
        key: ca.Function(
            f"shifted_{key}", inputs, list(outputs.values()), ["q", "v"][: len(inputs)], [*outputs]
        )
        for key, (inputs, outputs) in functions.items()
    }
    return replace(frame, **made, carrier=None)
