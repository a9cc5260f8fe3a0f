"""Placement of the closed loop's poles, by SciPy."""

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.law import Law
from mbcasadi.control.law_interface.options import LAW_OPTIONS, LawOptions
from mbcasadi.control.regulators.controllability import controllability
from mbcasadi.control.regulators.discrete import discretize
from mbcasadi.control.regulators.feedback import feedback, require_continuous
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.lqr import require_equilibrium
from mbcasadi.control.regulators.modes import scaled_generator
from mbcasadi.control.regulators.operating_point import Array
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.system.sizes import control_sizes

MISSED = 1e-6
"""Distance of a pole from its desired place, relative to the fastest one, that is an error."""

REDUNDANT = 1e-10
"""Singular value of dfdu, relative to the largest in the sizes of controls, of controls without a
common effect."""


@checked
def pole_placement(
    linear: Linearization,
    poles: Sequence[complex],
    *,
    track_reference: bool = False,
    options: LawOptions = LAW_OPTIONS,
) -> Law:
    """Return `u = u_0 - K x`, the closed loop with the given poles under exact hold.

    Poles give the decay of x and not its cost: with few motors or a small margin
    of controllability the gains are large. Prefer `lqr` where that matters.

    Args:
        linear: from `linearize` at an equilibrium.
        poles: nx of them, 1/s, complex ones in pairs, none more often than there are controls.
        track_reference: as in `feedback`.
        options: see `LawOptions`.

    Raises:
        ProblemError: as `poles_gain`.
    """
    return feedback(
        linear,
        poles_gain(linear, poles, period=options.sample_time),
        track_reference=track_reference,
        options=replace(options, name=options.name or "pole_placement"),
        notes={"law": "pole placement on the constraint manifold, exact hold"},
    )


@checked
def poles_gain(
    linear: Linearization, poles: Sequence[complex], *, period: float | None = None
) -> Array:
    """Return K (nu, nx) that gives `dfdx - dfdu K` these eigenvalues.

    With a period, the poles s become `e^(s period)` of the system under exact hold. Of redundant
    motors K commands no combination that only changes internal forces, each control by the largest
    torque that it gives. Nothing depends on the units of the model.

    Args:
        linear: from `linearize` at an equilibrium.
        poles: nx of them, 1/s.
        period: s, or None for a continuous control.

    Raises:
        ShapeError: not nx poles.
        ProblemError: no equilibrium; poles that are not in pairs, repeat too often, or do not
            decay; a mode that no control moves (it is named); SciPy missed the poles.
    """
    require_continuous(linear)
    require_equilibrium(linear)
    desired = np.asarray(poles, dtype=complex)
    if desired.shape != (linear.nx,):
        raise ShapeError(
            f"poles has shape {desired.shape}, expected ({linear.nx},), one for each x"
        )
    if not np.all(desired.real < 0):
        raise ProblemError(f"poles {list(poles)}; expected negative real parts, 1/s")
    report = controllability(linear)
    if not report.controllable:
        raise ProblemError(f"{report.in_words}. Poles can be placed of controllable systems only")
    system = linear if period is None else discretize(linear, period)
    placed = desired if period is None else np.exp(desired * period)
    try:
        K = _placed_gain(system, placed)
    except ValueError as error:
        raise ProblemError(f"poles {list(poles)}: {error}") from error
    eigenvalues = np.linalg.eigvals(system.dfdx - system.dfdu @ K)
    rates = eigenvalues if period is None else np.log(eigenvalues) / period
    distance = max(float(np.abs(rates - pole).min()) for pole in desired)
    if distance > MISSED * np.abs(desired).max():
        raise ProblemError(
            f"poles {list(poles)}: SciPy's come out at {np.round(rates, 3)}; expected poles that "
            "differ from each other, or a system that is easier to control"
        )
    return np.asarray(K)


def _placed_gain(system: Linearization, poles: Array) -> Array:
    """Return K (nu, nx) of SciPy, found for numbers without units: many K have the same poles.

    Raises:
        ValueError: SciPy does not place these poles.
    """
    scale, controls = scaled_generator(system)[1], control_sizes(system.system)
    A = system.dfdx * scale / scale[:, None]
    B = system.dfdu / scale[:, None] / controls
    rate, strength = (1.0 if system.period else np.linalg.norm(A, 2)), np.linalg.norm(B)
    mix = _independent(B)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the resulting poles are checked
        placed = scipy.signal.place_poles(A / rate, B @ mix / strength, poles / rate)
    return np.asarray(mix @ placed.gain_matrix * rate / strength / controls[:, None] / scale)


def _independent(dfdu: Array) -> Array:
    """Return (nu, rank) orthonormal combinations of controls with different effects."""
    _, s, Vt = np.linalg.svd(dfdu)
    return np.asarray(Vt[: int(np.sum(s > REDUNDANT * s.max(initial=0.0)))].T)
