"""What a judge knows of a mechanism: its numbers at a state, from MuJoCo or from closed forms.

`M a = f + B p + Aᵀ lam + J_cᵀ force`, `A a + c = 0`. Nothing in this folder reads an expression of
the package: it reads the controller's inputs, outputs, weights and scales only.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class FrameNumbers:
    """A frame at a state: place, axes, Jacobian (linear above angular) and bias `J̇ v`."""

    position: Array
    rotation: Array
    J: Array
    c: Array


@dataclass(frozen=True)
class Numbers:
    """A mechanism at a state; `f` holds all forces but those of actuators and constraints.

    `frames` are by (kind, name), `body_of` names the rigid body of each.
    """

    M: Array
    f: Array
    B: Array
    A: Array
    c: Array
    frames: dict[tuple[str, str], FrameNumbers] = field(default_factory=dict)


class Mechanics(ABC):
    """A mechanism by numbers; `on` has one entry for each equality constraint."""

    nq: int
    nv: int
    nu: int

    @abstractmethod
    def integrate(self, q: Array, dv: Array) -> Array:
        """Return `q ⊕ dv`."""

    @abstractmethod
    def difference(self, q0: Array, q1: Array) -> Array:
        """Return dv with `q0 ⊕ dv = q1`."""

    @abstractmethod
    def residual(self, q: Array, on: Array) -> Array:
        """Return phi of the rows that are on."""

    @abstractmethod
    def rows(self, q: Array, on: Array) -> Array:
        """Return A of the rows that are on."""

    @abstractmethod
    def numbers(self, q: Array, v: Array, on: Array) -> Numbers:
        """Return everything at a state."""

    def servos(self, q: Array, v: Array) -> tuple[Array, Array, Array]:  # noqa: ARG002
        """Return gain, bias (nu,) of `p = gain u + bias`, and limits (nu, 2) of p: motors."""
        return np.ones(self.nu), np.zeros(self.nu), np.tile([-np.inf, np.inf], (self.nu, 1))


def skew(r: Array) -> Array:
    """Return the matrix of `r ×`."""
    return np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
