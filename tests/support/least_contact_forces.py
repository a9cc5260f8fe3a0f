"""Actuator forces at rest with the least contact forces, loops eliminated by their null space."""

from collections.abc import Sequence

import numpy as np
import scipy.linalg

import mbcasadi as mb


def least_contact_forces(
    system: mb.System, feet: Sequence[mb.Contact], q: np.ndarray, d: np.ndarray
) -> np.ndarray:
    """Return forces (nu,) of motors on joints that balance gravity and d (nv,).

    Contact forces f are the least ones, by the inertia w that each component sees, `Σ f²/w`, with
    which loops can balance all coordinates without motor.
    """
    still = np.zeros(system.nv)
    g, M = np.array(system.bias_force(q, still)).ravel() - d, np.array(system.mass_matrix(q))
    g -= np.array(system.passive_force(q, still)).ravel()
    A, B = np.array(system.constraint_jacobian(q)), np.array(system.actuation(q))
    J = np.vstack([np.array(system.frame(foot.frame).jacobian(q))[:3] for foot in feet])
    root = 1 / np.sqrt(np.einsum("ij,jk,ik->i", J, np.linalg.inv(M), J))
    free = ~np.abs(B).any(axis=1)
    of_loops = scipy.linalg.null_space(A[:, free])  # motions of these that loops allow
    f = (
        root
        * np.linalg.lstsq(of_loops.T @ J[:, free].T * root, of_loops.T @ g[free], rcond=None)[0]
    )
    lam = np.linalg.lstsq(A[:, free].T, g[free] - J[:, free].T @ f, rcond=None)[0]
    return np.linalg.lstsq(B, g - J.T @ f - A.T @ lam, rcond=None)[0]
