"""A slider-crank whose connecting rod bends: four rigid pieces with springs between them.

`q = (crank, piece1 ... piece4, slider)`: angles from the slider's line, and the slider's place.
Each spring represents the piece of beam around it, `k = E I / (l/4)`. Two rows: the rod ends at
the slider. The same rod with modes instead of pieces is `flexible_slider_crank_modes`.

Dimensions of the "slider crank" problem of the Test Set for IVP Solvers, after Simeon,
Mathematical Modelling of Systems 2, 1996.
"""

import casadi as ca
import numpy as np
from scipy.linalg import eigh, null_space

import mbcasadi as mb

from .energies import (
    GRAVITY,
    coordinates,
    lifted_bar,
    moving_bar,
    moving_mass,
    rod_inertia,
    towards,
    turning_body,
)

CRANK = 0.15  # m
CRANK_MASS = 0.36  # kg
CRANK_INERTIA = 0.002727  # kg m², about its bearing
ROD = 0.3  # m
SECTION = 0.008  # m, width and height of the rod
DENSITY = 7870.0  # kg/m³
ELASTICITY = 2e11  # N/m²
SLIDER_MASS = 0.075552  # kg
ROD_MASS = DENSITY * SECTION**2 * ROD  # 0.151104 kg
BENDING = ELASTICITY * SECTION**4 / 12  # N m², E I
PIECES = 4
START = (0.0, 0.0, 0.0, 0.0, 0.0, CRANK + ROD)  # stretched


def system(pieces: int = PIECES, gravity: float = GRAVITY) -> mb.System:
    """Return the mechanism as a `System` of `pieces + 2` coordinates and two rows."""
    q, v = coordinates(pieces + 2)
    crank, slider = q[0], ca.vertcat(q[pieces + 1], 0)
    mass, length = ROD_MASS / pieces, ROD / pieces
    joint = CRANK * towards(crank)
    kinetic = turning_body(CRANK_INERTIA, crank, q, v) + moving_mass(SLIDER_MASS, slider, q, v)
    potential = lifted_bar(CRANK_MASS, (ca.SX.zeros(2), joint), gravity)
    for k in range(1, pieces + 1):
        ends = joint, joint + length * towards(q[k])
        kinetic += moving_bar(mass, rod_inertia(mass, length), ends, q[k], q, v)
        potential += lifted_bar(mass, ends, gravity)
        joint = ends[1]
    bends = q[2 : pieces + 1] - q[1:pieces]
    potential += 0.5 * BENDING / length * ca.sumsqr(bends)
    return mb.from_lagrangian(
        q,
        v,
        kinetic=kinetic,
        potential=potential,
        B=ca.DM([1] + [0] * (pieces + 1)),
        phi=joint - slider,
        name="flexible_slider_crank",
    )


def bending_frequencies(system: mb.System, start: tuple[float, ...]) -> np.ndarray:
    """Return the frequencies, rad/s, about the straight rod `start` with the crank (q[0]) held.

    `start` is an equilibrium without gravity: the stiffness is `∂h/∂q` on the freedoms left.
    """
    q = ca.SX.sym("q", system.nq)
    force = system.bias_force(q, ca.DM.zeros(system.nv))
    stiffness = ca.Function("stiffness", [q], [ca.jacobian(force, q)])
    held = np.vstack([np.array(system.constraint_jacobian(start)), np.eye(system.nv)[:1]])
    N = null_space(held)
    K, M = (N.T @ np.array(of(start)) @ N for of in (stiffness, system.mass_matrix))
    return np.sqrt(eigh(K, M, eigvals_only=True))


def to_mjcf(q: ca.SX) -> ca.SX:
    """Return the coordinates of the file: each piece's angle from the one before."""
    return ca.vertcat(q[0], q[1:-1] - q[:-2], q[-1])
