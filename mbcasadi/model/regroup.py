"""Constant mass moments of links, and their parts that count with the parent.

Mass on the axis of a hinge moves with the link and with its parent alike: the part
`(m, s_z, E_zz)`. So it is counted with the parent, and the link keeps
`(s_x, s_y, E_xx, E_yy, E_xy, E_xz, E_yz)`. Likewise a slide passes on its rotational inertia,
a ball joint the mass. M and h are the same; the recursions need far fewer products. (These are
the base parameters of identification, used for speed.)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Body, Joint
from mbcasadi.model.placement import Pose
from mbcasadi.spatial import PAIRS, Moments, Scalar, body_moments, scalar, scaled, vec3

Array = NDArray[np.float64]

MOMENT_ROUNDING = 1e-14
"""Second moments below this fraction of the largest one are rounding of exact zeros."""


@dataclass
class NumericMoments:
    """Mass m, first moment s (3,), second moment E (3, 3) about a frame's origin.

    Entries are floats, or expressions where the masses of a model are parameters.
    """

    m: Scalar
    s: Array
    E: Array

    @staticmethod
    def zero() -> "NumericMoments":
        """Return the moments of nothing."""
        return NumericMoments(0.0, np.zeros(3), np.zeros((3, 3)))

    def __add__(self, other: "NumericMoments") -> "NumericMoments":
        """Return the moments of both together."""
        return NumericMoments(self.m + other.m, self.s + other.s, self.E + other.E)

    def in_frame(self, frame: Pose) -> "NumericMoments":
        """Return the moments in another frame, given its pose in the present one."""
        R, p = frame.R, frame.p
        s = self.s - scaled(self.m, p)
        E = self.E - np.outer(self.s, p) - np.outer(p, self.s) + scaled(self.m, np.outer(p, p))
        return NumericMoments(self.m, R.T @ s, R.T @ E @ R)

    def as_moments(self) -> Moments:
        """Return the moments as scalars, rounding errors of zeros removed."""
        s, E = without_rounding(self.s), without_rounding(self.E)
        return Moments(scalar(self.m), vec3(s), tuple(scalar(E[i, j]) for i, j in PAIRS))


def without_rounding(moments: Array) -> Array:
    """Return moments of one kind, rounding errors of zeros removed; expressions are kept."""
    if moments.dtype == object:
        return moments
    return np.where(np.abs(moments) <= MOMENT_ROUNDING * np.abs(moments).max(), 0.0, moments)


def moments_of_body(body: Body) -> NumericMoments:
    """Return the moments of a body about its frame."""
    return NumericMoments(*body_moments(body.mass, np.asarray(body.com), np.asarray(body.inertia)))


def regroup(
    moments: list[NumericMoments], parents: list[int], joints: list[Joint], poses: list[Pose]
) -> None:
    """Pass on, from the leaves to the roots, the moments that each joint does not move alone.

    Args:
        moments: of each link in its own frame; changed in place.
        parents: index of the parent link, negative for the world.
        joints: the joint of each link.
        poses: pose of each link's frame in its parent's, at rest.
    """
    for i in reversed(range(len(moments))):
        shared = _shared_with_parent(moments[i], joints[i].kind)
        if shared is None:
            continue
        moments[i].m -= shared.m
        moments[i].s = moments[i].s - shared.s
        moments[i].E = moments[i].E - shared.E
        if parents[i] >= 0:
            at_parent = shared.in_frame(poses[i].inverse())
            target = moments[parents[i]]
            target.m += at_parent.m
            target.s = target.s + at_parent.s
            target.E = target.E + at_parent.E


def _shared_with_parent(own: NumericMoments, kind: str) -> NumericMoments | None:
    z = np.array([0.0, 0.0, 1.0])
    if kind == "hinge":
        return NumericMoments(own.m, own.s * z, own.E * np.outer(z, z))
    if kind == "slide":
        return NumericMoments(0.0, np.zeros(3), own.E.copy())
    if kind == "ball":
        return NumericMoments(own.m, np.zeros(3), np.zeros((3, 3)))
    return None
