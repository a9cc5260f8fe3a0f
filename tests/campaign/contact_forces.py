"""Axes of contacts, and which forces on the points of a body do nothing to it."""

import numpy as np

from campaign.case import Case, Inputs
from campaign.mechanics import Array, skew
from campaign.rows import CERTAINLY_ZERO


def contact_axes(normal) -> Array:
    """Return rows n, t1, t2: t1 is the world's x axis in the tangent plane, or y near x."""
    n = np.asarray(normal, dtype=float) / np.linalg.norm(normal)
    along = np.array([0.0, 1.0, 0.0]) if abs(n[0]) > np.sqrt(0.5) else np.array([1.0, 0.0, 0.0])
    t1 = along - n * (n @ along)
    t1 /= np.linalg.norm(t1)
    return np.vstack([n, t1, np.cross(n, t1)])


def body_forces(case: Case, inputs: Inputs, active, axes, frames) -> tuple[Array, Array]:
    """Return the projector on forces that do nothing to the body that carries them, and the rest.

    The rest are orthonormal rows: what several points of one body do to it, at most six of them.
    """
    nf = 3 * len(active)
    projector, external = np.zeros((nf, nf)), []
    on = [i for i, m in enumerate(inputs.mask[: len(case.contacts)]) if m > 0.5]
    for root in dict.fromkeys(case.contact_roots[i] for i in on):
        group = [k for k, i in enumerate(on) if case.contact_roots[i] == root]
        places = [3 * k + i for k in group for i in range(3)]
        centre = np.mean([frames[k].position for k in group], axis=0)
        arms = [frames[k].position - centre for k in group]
        reach = np.abs(arms).max() or 1.0
        E = np.vstack(
            [
                axes[k] @ np.hstack([np.eye(3), -skew(r) / reach])
                for k, r in zip(group, arms, strict=True)
            ]
        )
        U, s, _ = np.linalg.svd(E)
        rank = int(np.sum(s > CERTAINLY_ZERO * s[0]))
        projector[np.ix_(places, places)] = U[:, rank:] @ U[:, rank:].T
        rows = np.zeros((rank, nf))
        rows[:, places] = U[:, :rank].T
        external.append(rows)
    return projector, np.vstack([np.zeros((0, nf)), *external])
