"""The modes of a linear system, described by the joints that move in them."""

from dataclasses import dataclass

import numpy as np

from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.operating_point import Array
from mbcasadi.control.regulators.text import shorten
from mbcasadi.system.coordinates import rate_names

STEADY = 1e-6
"""Real part of an eigenvalue, relative to the norm of dfdx, that counts as zero: an eigenvalue
that is zero twice comes out of rounding errors as the square root of 1e-16."""

MOVES = 0.2
"""Share of the largest entry from which on a joint counts as moving in a mode."""


ALIKE = 6
"""Digits of a share used to sort joints; joints with equal shares keep the model's order."""


@dataclass(frozen=True, eq=False)
class Mode:
    """One motion `exp(s t)` of the free system.

    Attributes:
        eigenvalue: s, 1/s; of a discrete system that of the continuous one behind it.
        decays: whether the mode is stable.
        shape: (nv,) complex δq, its largest entry one; δv where no position moves.
        joints: those that move in it, the largest motion first.
    """

    eigenvalue: complex
    decays: bool
    shape: Array
    joints: tuple[str, ...]

    @property
    def in_words(self) -> str:
        """`a mode that grows (e-fold in 0.31 s), in which pole, cart move`."""
        s = self.eigenvalue
        rate = "drifts" if abs(s.real) < np.finfo(float).tiny else _rate(s.real)
        turns = f"swings at {abs(s.imag) / (2 * np.pi):.3g} Hz and " if s.imag else ""
        if turns and rate == "drifts":
            rate = "never dies out"
        moves = "moves" if len(self.joints) == 1 else "move"
        return f"a mode that {turns}{rate}, in which {shorten(self.joints)} {moves}"


def mode_of(linear: Linearization, s: complex, x: Array) -> Mode:
    """Return the mode of an eigenvalue and a vector x (nx,) of the linear system."""
    shape = linear.to_dq @ x
    if np.abs(shape).max(initial=0.0) <= STEADY * np.abs(x).max():
        shape = linear.to_dv @ x
    largest = shape[np.abs(shape).argmax()]
    shape = shape / largest
    size = np.abs(shape)
    names = rate_names(linear.system)
    joints = tuple(
        names[i] for i in np.argsort(-size.round(ALIKE), kind="stable") if size[i] >= MOVES
    )
    scale = float(np.linalg.norm(generator(linear)[0], 2))
    steady = STEADY * scale
    s = complex(0.0 if abs(s.real) < steady else s.real, 0.0 if abs(s.imag) < steady else s.imag)
    return Mode(s, s.real < 0, shape, joints)


def generator(linear: Linearization) -> tuple[Array, Array]:
    """Return (dfdx, dfdu) as rates: of a discrete system `(dfdx - I)/period`, `dfdu/period`."""
    if linear.period is None:
        return linear.dfdx, linear.dfdu
    return (linear.dfdx - np.eye(linear.nx)) / linear.period, linear.dfdu / linear.period


def continuous_eigenvalue(linear: Linearization, s: complex) -> complex:
    """Return the s of `exp(s t)` for an eigenvalue of `generator`."""
    if linear.period is None:
        return s
    z = 1 + s * linear.period
    return complex(np.log(z) / linear.period) if z != 0 else complex(-np.inf)


def _rate(real: float) -> str:
    return f"{'grows' if real > 0 else 'decays'} (e-fold in {1 / abs(real):.3g} s)"
