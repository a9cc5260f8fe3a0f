"""The modes of a linear system, described by the joints that move in them."""

from dataclasses import dataclass

import numpy as np

from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.operating_point import Array
from mbcasadi.control.regulators.text import shorten
from mbcasadi.system.coordinates import rate_names
from mbcasadi.system.pulling_inputs import activation_names

STEADY = 1e-6
"""Real part of an eigenvalue, relative to the norm of dfdx in scaled coordinates, that counts as
zero: an eigenvalue that is zero twice comes out of rounding errors as the square root of 1e-16."""

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
        shape: (nv,) complex δq, one for the joint that moves most in rad and lengths of the model;
            δv where no position moves.
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
            rate = "does not decay"
        moves = "moves" if len(self.joints) == 1 else "move"
        return f"a mode that {turns}{rate}, in which {shorten(self.joints)} {moves}"


def mode_of(linear: Linearization, s: complex, x: Array) -> Mode:
    """Return the mode of an eigenvalue and a vector x (nx,) of the linear system."""
    scaled_A, scale = scaled_generator(linear)
    shape, unit = linear.to_dq @ x, linear.system.scales.coordinates
    if np.abs(shape / unit).max(initial=0.0) <= STEADY * np.abs(x / scale).max():
        shape = linear.to_dv @ x
    size, names = np.abs(shape / unit), rate_names(linear.system)
    if size.max(initial=0.0) > 0.0:
        shape, size = shape / shape[size.argmax()], size / size.max()
    else:  # activations without an effect
        names = activation_names(linear.system)
        size = np.abs(linear.to_dact @ x)
        size = size / size.max(initial=np.finfo(float).tiny)
    joints = tuple(
        names[i] for i in np.argsort(-size.round(ALIKE), kind="stable") if size[i] >= MOVES
    )
    steady = STEADY * float(np.linalg.norm(scaled_A, 2))
    s = complex(0.0 if abs(s.real) < steady else s.real, 0.0 if abs(s.imag) < steady else s.imag)
    return Mode(s, s.real < 0, shape, joints)


def generator(linear: Linearization) -> tuple[Array, Array]:
    """Return (dfdx, dfdu) as rates: of a discrete system `(dfdx - I)/period`, `dfdu/period`."""
    if linear.period is None:
        return linear.dfdx, linear.dfdu
    return (linear.dfdx - np.eye(linear.nx)) / linear.period, linear.dfdu / linear.period


def rate_of(linear: Linearization) -> float:
    """Return the rate of the system's own motion, 1/s: that of the mechanism at least."""
    A = generator(linear)[0]
    return max(_own_rate(linear, A), linear.system.scales.rate)


def relative_drift(linear: Linearization) -> float:
    """Return the largest drift of x, relative to the rate of the system's own motion."""
    rate = rate_of(linear)
    scale = np.concatenate(
        [
            np.full(linear.n_q, rate),
            np.full(linear.n_v, rate**2),
            rate * _activation_scale(linear, generator(linear)[0], rate),
        ]
    )
    return float(np.abs(linear.drift / scale).max(initial=0.0))


def scaled_generator(linear: Linearization) -> tuple[Array, Array]:
    """Return `S⁻¹ dfdx S` and the diagonal (nx,) of S.

    S holds units of x in which position and velocity change at the same rate: 1 for ξ, 1/s for η,
    and for an activation what moves the mechanism as much.
    """
    A = generator(linear)[0]
    rate = _own_rate(linear, A)
    if rate <= np.finfo(float).eps * linear.system.scales.rate:
        rate = linear.system.scales.rate
    own = _activation_scale(linear, A, rate)
    scale = np.concatenate([np.ones(linear.n_q), np.full(linear.n_v, rate), own])
    return A * scale / scale[:, None], scale


def _activation_scale(linear: Linearization, A: Array, rate: float) -> Array:
    """Return (na,) activations that accelerate by `rate²`; 1 where there is no effect."""
    first, end = linear.n_q, linear.n_q + linear.n_v
    effect = np.linalg.norm(A[first:end, end:], axis=0)
    return np.asarray(np.where(effect > 0, rate**2 / np.where(effect > 0, effect, 1.0), 1.0))


def _own_rate(linear: Linearization, A: Array) -> float:
    """Return the rate at which velocities change by positions and by themselves, 1/s."""
    moving = slice(linear.n_q, linear.n_q + linear.n_v)
    slow, fast = A[moving, : linear.n_q], A[moving, moving]
    return float(max(np.sqrt(np.linalg.norm(slow)), np.linalg.norm(fast)))


def continuous_eigenvalue(linear: Linearization, s: complex) -> complex:
    """Return the s of `exp(s t)` for an eigenvalue of `generator`."""
    if linear.period is None:
        return s
    z = 1 + s * linear.period
    return complex(np.log(z) / linear.period) if z != 0 else complex(-np.inf)


def _rate(real: float) -> str:
    return f"{'grows' if real > 0 else 'decays'} (e-fold in {1 / abs(real):.3g} s)"
