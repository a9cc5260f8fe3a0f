"""A frame as named Functions: what tasks, contacts and laws know of a point or of a body.

A frame is a site, body or geom of a model (`tree_frames.py`), a point at which a geom touches a
plane (`contact_frames.py`) or another geom (`pair_frames.py`), or it is given as expressions of q
(`expression_frames.py`). All are `FrameFunctions`, and nothing else is required of a frame.
"""

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import ProblemError
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Carrier:
    """The rigid body that carries a frame.

    Attributes:
        body: index of the body in the model's tree, of the first one of those that are fixed to
            each other; 0 is the world. None for a frame that is given as expressions: its body is
            known by its axes only.
        point: (3,) the frame's origin in the body's axes, m; zero for expressions, whose body has
            its origin and axes in the frame itself.
        frame_at: (3,) point in the body's axes, m → the frame there, with the body's axes.
        rolling: () for a frame that is fixed to the body. A frame that touches a plane where the
            body rolls is off its `point` by a vector that moves over the surface; frames of one
            body with equal `rolling` have this vector in common, and `frame_at` adds it.
    """

    body: int | None
    point: Array
    frame_at: Callable[[Array], "FrameFunctions"]
    rolling: tuple[object, ...] = ()


@summarised
@dataclass(frozen=True)
class FrameFunctions:
    """Kinematics of the frame B in the world W.

    Attributes:
        name: of the frame.
        pose: (q) → (p, R): (3,) origin `p_WB` and (3, 3) rotation `R_WB`, the identity for a point.
        jacobian: (q) → (J): (6, nv), linear velocity of the origin above angular velocity,
            world axes, as MuJoCo's `mj_jacSite` and `mj_jacBody`; a point has no angular velocity.
        velocity: (q, v) → (velocity): (6,), `J v`.
        bias: (q, v) → (J_dot_v): (6,), the acceleration at zero joint acceleration.
        attitude: (q) → (quat): (4,) quaternion w x y z of the rotation; None for a point.
        carrier: the rigid body that carries the frame; None for a point.
    """

    name: str
    pose: ca.Function
    jacobian: ca.Function
    velocity: ca.Function
    bias: ca.Function
    attitude: ca.Function | None
    carrier: Carrier | None

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


def require_fixed(frame: FrameFunctions) -> None:
    """Raise `ProblemError` for a frame whose Jacobian is not the derivative of its position."""
    if frame.carrier is not None and frame.carrier.rolling:
        raise ProblemError(
            f"frame '{frame.name}' moves over the surface of its body, which rolls, and its "
            "Jacobian is that of the material; expected a site, a body, a geom, or a contact that "
            "is fixed to its body"
        )
