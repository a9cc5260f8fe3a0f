"""Mechanisms of the papers, from the positions of their masses only.

Angles in rad, masses in kg, lengths in m. No formula of a paper is used here: inertia and bias
come from differences of positions, so that the papers' closed forms can be compared with them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .family import christoffel
from .numerics import Array, partials

GRAVITY = 9.8  # m/s²
EQUAL = np.ones(5)  # masses, inertias or lengths of L15's links


@dataclass(frozen=True)
class Bodies:
    """Planar bodies: ``points(q)`` (k, 2) their centroids, ``turns`` (k, n) their angle rates."""

    points: Callable[[Array], Array]
    masses: Array
    inertias: Array
    turns: Array

    def M(self, q: Array) -> Array:
        """Return ``Σ m JᵀJ + Σ I wᵀw``."""
        J = partials(self.points, q)
        moved = np.einsum("k,kxi,kxj->ij", self.masses, J, J)
        return np.asarray(moved + self.turns.T @ np.diag(self.inertias) @ self.turns)

    def gravity(self, q: Array) -> Array:
        """Return the gradient of the potential ``Σ m g y``."""
        return partials(lambda x: GRAVITY * self.masses @ self.points(x)[:, 1], q)

    def bias(self, q: Array, v: Array) -> Array:
        """Return ``h = C v + ∂V/∂q``."""
        return np.asarray(christoffel(partials(self.M, q), v) @ v + self.gravity(q))


def chain(angles: Array, lengths: Array, along: Array) -> Array:
    """Return points at the fraction ``along`` of each link, from absolute angles."""
    steps = lengths[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    return np.asarray(np.cumsum(steps, axis=0) - (1 - along)[:, None] * steps)


def two_links(uniform: bool) -> Bodies:
    """Return two unit links with unit masses: uniform rods, or points at the links' ends."""
    where, inertia = (0.5, 1 / 12) if uniform else (1.0, 0.0)
    return Bodies(
        points=lambda q: chain(np.cumsum(q), np.ones(2), np.full(2, where)),
        masses=np.ones(2),
        inertias=np.full(2, inertia),
        turns=np.array([[1.0, 0.0], [1.0, 1.0]]),
    )


def five_links(masses: Array = EQUAL, inertias: Array = EQUAL, lengths: Array = EQUAL) -> Bodies:
    """Return the five-link chain of L15: absolute angles, centroids halfway."""
    return Bodies(
        points=lambda q: chain(q, lengths, np.full(5, 0.5)),
        masses=masses,
        inertias=inertias,
        turns=np.eye(5),
    )


def slider_height(q: Array) -> Array:
    """Return the height of the slider-crank's slider, unit links [A05, eq. 66]."""
    return np.array([np.sin(q[0]) + np.sin(q[0] + q[1])])


def slider_rows(q: Array) -> Array:
    """Return the derivative of `slider_height` (1, 2)."""
    last = np.cos(q[0] + q[1])
    return np.array([[np.cos(q[0]) + last, last]])
