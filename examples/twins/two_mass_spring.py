"""Two masses on a line, joined by a spring; one force on the first  [L15, section IV].

`q = (x1, x2)`, `V = ½ k (x2 - x1 - l)²` (36), and `M = diag(m1, m2)` (39, corrected).
Underactuated. The servo constraint of (44), `x2 - x1 = 2 l`, is `gap(q)`.
"""

import casadi as ca

import mbcasadi as mb

from .energies import coordinates, moving_mass

MASSES = (1.0, 2.0)  # kg; the paper has symbols only
STIFFNESS = 50.0  # N/m; the paper has symbols only
REST_LENGTH = 0.5  # m; the paper has symbols only
START = (0.0, REST_LENGTH)


def system(
    masses: tuple[float, float] = MASSES,
    stiffness: float = STIFFNESS,
    rest_length: float = REST_LENGTH,
) -> mb.System:
    """Return the masses as a `System` of two coordinates without constraints."""
    q, v = coordinates(2)
    return mb.from_lagrangian(
        q,
        v,
        kinetic=moving_mass(masses[0], q[0], q, v) + moving_mass(masses[1], q[1], q, v),
        potential=0.5 * stiffness * (q[1] - q[0] - rest_length) ** 2,
        B=[[1.0], [0.0]],
        name="two_mass_spring",
    )


def gap(q: ca.SX, rest_length: float = REST_LENGTH) -> ca.SX:
    """Return `x2 - x1 - 2 l`, m, zero where the servo constraint holds  [L15, eq. 44]."""
    return q[1] - q[0] - 2 * rest_length


def to_mjcf(q: ca.SX) -> ca.SX:
    """Return (x1, x2): the coordinates of the file are the twin's."""
    return q
