"""Measured motions: states, accelerations and actuator forces, filtered and closed."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.identification.free_motion import FreeMotion
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import matrix, real_array, require_positive, require_whole
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.system.parametric import at_model_values

Array = NDArray[np.float64]

FILTER_ORDER = 4
"""Of the Butterworth filter, which runs forwards and backwards: no phase, twice the order."""

SETTLING = 3.0
"""Periods of the cut-off frequency at both ends that the filter spoils, and that are left out."""

EVEN = 1e-6
"""Relative difference of time steps that counts as rounding."""

LEAST = 4
"""Ticks of a recording below which it has no accelerations."""


@summarised
@readable_fields
@dataclass(frozen=True)
class Samples:
    """States of a motion with the forces of its actuators; row k of each is sample k.

    Attributes:
        q, v, a: (n, nq), (n, nv), (n, nv) state and acceleration.
        f: (n, nv) generalised force of the actuators, MuJoCo's `qfrc_actuator`.
    """

    q: Array
    v: Array
    a: Array
    f: Array

    def __post_init__(self) -> None:
        """Check the shapes."""
        arrays = {name: real_array(name, getattr(self, name)) for name in ("q", "v", "a", "f")}
        shapes = {name: array.shape for name, array in arrays.items()}
        if any(len(shape) != 2 for shape in shapes.values()) or (
            len({shape[0] for shape in shapes.values()}) != 1
            or not shapes["v"] == shapes["a"] == shapes["f"]
        ):
            raise ShapeError(
                f"samples have shapes {shapes}; expected one row for each sample: q (n, nq), "
                "v, a and f (n, nv)"
            )
        for name, array in arrays.items():
            if not np.all(np.isfinite(array)):
                raise ShapeError(f"{name} holds NaN or infinity; expected finite numbers")
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.v)


@checked
@at_model_values
def filtered_samples(
    system: System,
    t: ArrayLike,
    q: ArrayLike,
    u: ArrayLike,
    *,
    cutoff: float,
    every: int = 1,
    held: bool = True,
) -> Samples:
    """Return samples from measured positions and controls.

    `v = d/dt q̂`, `a = d/dt v` by central differences of filtered positions; the actuators' force
    `B u + f_0` passes through the same filter (Butterworth, forwards and backwards), so what the
    filter takes from one side of the equations it takes from the other. Then the states are closed:
    `phi(q) = 0` by Newton's steps, `v` and `a` those nearest with `A v = 0`, `A a + c = 0`.

    Args:
        system: the mechanism; actuators without activation.
        t: (n,) s, evenly spaced.
        q: (n, nq) measured positions of all joints.
        u: (n, nu) controls.
        cutoff: Hz, of the filter: above the motion, below the noise.
        every: every how many ticks one sample is kept.
        held: row k of u acts from t_k to t_(k+1), as in a recording of a sampled law; else it was
            measured at t_k.

    Raises:
        ShapeError, ProblemError: sizes, uneven times, a recording too short for the filter.
    """
    require_positive(cutoff=cutoff)
    require_whole(1, every=every)
    if system.na:
        raise ProblemError(
            f"'{system.name}' has actuators with activation states: u does not tell their force; "
            "make Samples with the measured f"
        )
    times = real_array("t", t).ravel()
    step = _even_step(times, cutoff)
    measured = matrix("q", q, (times.size, system.nq))
    controls = matrix("u", u, (times.size, system.nu))
    if held:  # around t_k half the last command acts, and half the present one
        controls = (controls + np.vstack([controls[:1], controls[:-1]])) / 2
    smooth = LowPass(cutoff, step)
    q_hat, v, a = _rates(system, measured, step, smooth)
    forces = [
        system.actuation(x).full() @ w + system.actuator_bias(x, y).full().ravel()
        for x, y, w in zip(q_hat, v, controls, strict=True)
    ]
    spoilt = max(1, round(SETTLING / (cutoff * step)))
    kept = slice(spoilt, times.size - spoilt, every)
    f = smooth(np.array(forces))
    return closed_samples(system, Samples(q_hat[kept], v[kept], a[kept], f[kept]))


@checked
@at_model_values
def closed_samples(system: System, samples: Samples) -> Samples:
    """Return the samples nearest on the constraints: `phi = 0`, `A v = 0`, `A a + c = 0`.

    Nearest in the sizes of the coordinates; rows that a mask switches off initially are off.
    """
    require_sizes(system, samples)
    motion = FreeMotion(system)
    closed = [motion.closed(*state) for state in zip(samples.q, samples.v, samples.a, strict=True)]
    q, v, a = (np.array(column) for column in zip(*closed, strict=True))
    return Samples(q, v, a, samples.f)


def require_sizes(system: System, samples: Samples) -> None:
    """Raise `ShapeError` unless samples are of this system, and there are some."""
    sizes = (samples.q.shape[1], samples.v.shape[1])
    if sizes != (system.nq, system.nv) or not len(samples):
        raise ShapeError(
            f"{len(samples)} samples with nq, nv = {sizes}; expected at least one of "
            f"'{system.name}' with {(system.nq, system.nv)}"
        )


def _even_step(t: Array, cutoff: float) -> float:
    steps = np.diff(t)
    if t.size < LEAST or not np.all(np.abs(steps - steps.mean()) <= EVEN * abs(steps.mean())):
        raise ProblemError(f"t holds {t.size} times; expected at least {LEAST}, evenly spaced")
    step = float(steps.mean())
    if step <= 0 or cutoff * step >= 0.5:  # Nyquist
        raise ProblemError(
            f"cutoff {cutoff:g} Hz with a time step of {step:g} s; expected less than half the "
            "sampling rate"
        )
    if 2 * SETTLING / cutoff >= t[-1] - t[0]:
        raise ProblemError(
            f"the recording lasts {t[-1] - t[0]:g} s, and the filter of {cutoff:g} Hz spoils "
            f"{SETTLING / cutoff:g} s at both ends; record longer, or take a higher cutoff"
        )
    return step


class LowPass:
    """A Butterworth filter forwards and backwards, along the rows."""

    def __init__(self, cutoff: float, step: float) -> None:
        self._sections = scipy.signal.butter(FILTER_ORDER, cutoff, fs=1 / step, output="sos")

    def __call__(self, rows: Array) -> Array:
        """Return the rows (n, k) filtered along n."""
        return np.asarray(scipy.signal.sosfiltfilt(self._sections, rows, axis=0))


def _rates(system: System, q: Array, step: float, smooth: LowPass) -> tuple[Array, Array, Array]:
    """Return filtered q, v and a; differences are those of the manifold of configurations."""
    moved = [system.difference(*pair).full().ravel() for pair in pairwise(q)]
    path = np.vstack([np.zeros(system.nv), np.cumsum(moved, axis=0)])
    smoothed = smooth(path)
    q_hat = [
        system.integrate(place, shift).full().ravel()
        for place, shift in zip(q, smoothed - path, strict=True)
    ]
    v = np.gradient(smoothed, step, axis=0)
    a = np.zeros_like(v)
    a[1:-1] = (smoothed[2:] - 2 * smoothed[1:-1] + smoothed[:-2]) / step**2
    return np.array(q_hat), v, a
