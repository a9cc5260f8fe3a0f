"""What each quantity is divided by: its natural size at a sample, entry by entry.

Divided by it, a quantity has no unit and is of order one.
"""

import numpy as np

from mbcasadi.validation.agreement.manifold import Array, inertia
from mbcasadi.validation.agreement.samples import Sample


def of_inertia(s: Sample) -> Array:
    """Return (nv, nv) `(M_ii M_jj)^½`."""
    root = s.sizes.roots(inertia(s.model, s.data))
    return np.outer(root, root)


def of_force(s: Sample) -> Array:
    """Return (nv,) `M_ii^½ (vᵀ M v)^½ rate`, v of the mechanism's own size.

    An error below rounding of this size is below that of the forces that move the mechanism.
    """
    M = inertia(s.model, s.data)
    return s.sizes.roots(M) * float(np.sqrt(s.sizes.energy(M))) * s.sizes.rate


def of_energy(s: Sample) -> Array:
    """Return (1,) the size of vᵀ M v."""
    return np.array([s.sizes.energy(inertia(s.model, s.data))])


def of_velocity_map(s: Sample) -> Array:
    """Return (nq, nv) sizes of q over those of the coordinates."""
    return np.outer(s.sizes.configuration, 1 / s.sizes.coordinates)


def of_configuration(s: Sample) -> Array:
    """Return (nq,) 1, or the length of the model."""
    return s.sizes.configuration


def of_step(s: Sample) -> Array:
    """Return (nv,) 1 rad, or the length of the model."""
    return s.sizes.coordinates


def of_actuation(s: Sample) -> Array:
    """Return (nv, nu) the force on each coordinate that a unit of each control can give."""
    return np.outer(1 / s.sizes.coordinates, s.sizes.actuators.torques)


def of_activation(s: Sample) -> Array:
    """Return (na,) the rate of each activation."""
    return s.sizes.actuators.activation_rates


def of_residual(s: Sample) -> Array:
    """Return (nc,) sizes of the residuals."""
    return s.sizes.rows


def of_constraint_jacobian(s: Sample) -> Array:
    """Return (nc, nv) sizes of the residuals over those of the coordinates."""
    return np.outer(s.sizes.rows, 1 / s.sizes.coordinates)


def of_constraint_bias(s: Sample) -> Array:
    """Return (nc,) sizes of the residuals times rate²."""
    return s.sizes.rows * s.sizes.rate**2


def of_pose(s: Sample, position: Array) -> Array:
    """Return (3, 4): 1 for the rotation; the length of the model, or the distance, of the origin.

    Args:
        s: the sample.
        position: (3,) of the frame. Far from the world's origin its rounding is that of the
            distance, and the rotation must not be hidden below it.
    """
    size = np.ones((3, 4))
    size[:, 3] = max(s.sizes.length, float(np.linalg.norm(position)))
    return size


def of_frame_jacobian(s: Sample) -> Array:
    """Return (6, nv): the length, and 1, over the sizes of the coordinates."""
    return np.outer(_motion(s), 1 / s.sizes.coordinates)


def of_frame_velocity(s: Sample) -> Array:
    """Return (6,): the length, and 1, times the rate."""
    return _motion(s) * s.sizes.rate


def of_frame_bias(s: Sample) -> Array:
    """Return (6,): the length, and 1, times rate²."""
    return _motion(s) * s.sizes.rate**2


def _motion(s: Sample) -> Array:
    return np.repeat([s.sizes.length, 1.0], 3)
