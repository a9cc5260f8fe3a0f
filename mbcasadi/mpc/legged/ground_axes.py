"""The axes of the ground on which a robot walks: z is the normal of all contacts.

MPC and planner compute in these axes, where the ground is level and gravity leans. The robot's
coordinates, and the references of inverse dynamics, are in the world's.
"""

from collections.abc import Sequence

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.contacts.friction_cone import contact_axes
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column

Array = NDArray[np.float64]

PARALLEL = 1e-9
"""Largest difference of the unit normals of contacts on one plane."""


def ground_rotation(normal: ArrayLike) -> Array:
    """Return (3, 3) the rotation from axes of the ground to the world's.

    Its columns are the axes of a contact's forces, t1, t2 and n: the identity on level ground.

    Args:
        normal: (3,) of the ground, of any length.

    Raises:
        ProblemError: a normal of length zero.
    """
    direction = column("normal", normal, 3)
    if not np.linalg.norm(direction) > 0:
        raise ProblemError(f"normal = {direction}; expected three numbers, not zero")
    n, t1, t2 = contact_axes(direction)
    return np.column_stack([t1, t2, n])


def common_normal(contacts: Sequence[Contact]) -> Array:
    """Return (3,) the unit normal of all contacts.

    Raises:
        ProblemError: contacts on different planes.
    """
    normals = np.array([contact.normal for contact in contacts], dtype=float)
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    for contact, normal in zip(contacts, normals, strict=True):
        if np.abs(normal - normals[0]).max() > PARALLEL:
            raise ProblemError(
                f"contact {contact.frame!r}: normal {contact.normal}, that of "
                f"{contacts[0].frame!r} is {contacts[0].normal}; expected the same one, the ground "
                "of a single rigid body is a plane"
            )
    return np.asarray(normals[0])


def to_ground(rotation: Array, a: ca.SX) -> ca.SX:
    """Return a vector of the world in axes of the ground."""
    return ca.sparsify(ca.DM(rotation.T)) @ a


def to_world(rotation: Array, a: ca.SX) -> ca.SX:
    """Return a vector in axes of the ground in those of the world."""
    return ca.sparsify(ca.DM(rotation)) @ a


def rotate_about_vertical(yaw: ca.SX, a: ca.SX) -> ca.SX:
    """Return a horizontal vector (2,), turned about the vertical."""
    c, s = ca.cos(yaw), ca.sin(yaw)
    return ca.vertcat(c * a[0] - s * a[1], s * a[0] + c * a[1])
