"""A slider-crank whose connecting rod bends in its first modes: elastic coordinates.

`q = (crank, chord, slider, eta1 ... etan)`: angles of the crank and of the rod's chord, the
slider's place, and the amplitudes of `w(s) = Σ eta_k sin(kπs/l)`, the deflection across the
chord. Two rows: the chord ends at the slider. Bending is linear and the rod does not stretch,
so the chord keeps its length. Dimensions as in `flexible_slider_crank`.

With `ṙ = ṗ + (ẇ + s β̇) n - w β̇ e`, chord direction e, its normal n, and mass `mu` per length, all
integrals over s of ½ mu |ṙ|² are exact.
"""

import casadi as ca
import numpy as np

import mbcasadi as mb

from .energies import GRAVITY, coordinates, lifted_bar, moving_mass, towards, turning_body
from .flexible_slider_crank import (
    BENDING,
    CRANK,
    CRANK_INERTIA,
    CRANK_MASS,
    ROD,
    ROD_MASS,
    SLIDER_MASS,
)

MODES = 2
START = (0.0, 0.0, CRANK + ROD, 0.0, 0.0)  # stretched and straight


def system(modes: int = MODES, gravity: float = GRAVITY) -> mb.System:
    """Return the mechanism as a `System` of `modes + 3` coordinates and two rows."""
    q, v = coordinates(modes + 3)
    crank, chord, slider, eta = q[0], q[1], ca.vertcat(q[2], 0), q[3:]
    pin = CRANK * towards(crank)
    kinetic = turning_body(CRANK_INERTIA, crank, q, v) + moving_mass(SLIDER_MASS, slider, q, v)
    kinetic += rod_kinetic(ca.jtimes(pin, q, v), chord, v[1], eta, v[3:])
    potential = lifted_bar(CRANK_MASS, (ca.SX.zeros(2), pin), gravity)
    area, _ = mode_integrals(modes)
    middle = pin[1] + ROD / 2 * ca.sin(chord) + ca.dot(area, eta) / ROD * ca.cos(chord)
    potential += ROD_MASS * gravity * middle + ca.dot(bending_stiffness(modes), eta**2) / 2
    return mb.from_lagrangian(
        q,
        v,
        kinetic=kinetic,
        potential=potential,
        B=ca.DM([1] + [0] * (modes + 2)),
        phi=pin + ROD * towards(chord) - slider,
        name="flexible_slider_crank_modes",
    )


def rod_kinetic(
    pin_rate: ca.SX, chord: ca.SX, chord_rate: ca.SX, eta: ca.SX, eta_rate: ca.SX
) -> ca.SX:
    """Return the kinetic energy, J, of a rod that starts at a pin of velocity `pin_rate`."""
    area, moment = mode_integrals(int(eta.numel()))
    along, across = towards(chord), towards(chord + ca.pi / 2)
    squared_rate = ROD / 2 * ca.sumsqr(eta_rate) + ROD**3 / 3 * chord_rate**2
    squared_rate += 2 * chord_rate * ca.dot(moment, eta_rate)
    squared = ROD * ca.sumsqr(pin_rate) + squared_rate + ROD / 2 * chord_rate**2 * ca.sumsqr(eta)
    sweep = ca.dot(area, eta_rate) + ROD**2 / 2 * chord_rate
    squared += 2 * sweep * ca.dot(pin_rate, across)
    squared -= 2 * chord_rate * ca.dot(area, eta) * ca.dot(pin_rate, along)
    return ROD_MASS / ROD / 2 * squared


def mode_integrals(modes: int) -> tuple[ca.DM, ca.DM]:
    """Return `∫ sin(kπs/l) ds`, m, and `∫ s sin(kπs/l) ds`, m², over the rod, each (n, 1)."""
    k = np.arange(1, modes + 1)
    sign = (-1.0) ** k
    return ca.DM(ROD * (1 - sign) / (k * np.pi)), ca.DM(-(ROD**2) * sign / (k * np.pi))


def bending_stiffness(modes: int) -> ca.DM:
    """Return `E I (kπ/l)⁴ l/2`, N/m, of each mode, (n, 1)."""
    k = np.arange(1, modes + 1)
    return ca.DM(BENDING * (k * np.pi / ROD) ** 4 * ROD / 2)
