"""A falling particle whose horizontal speed is tied to its vertical speed  (Appell and Hamel).

`q = (x, y, z)`. One row that is not linear in the velocity, `psi = ẋ² + ẏ² - k² ż² = 0`: the
classical limit of a mechanism with a rolling wheel. The constraint force is `Aᵀ lam` with
`A = ∂psi/∂v` (Chetaev), so

    z̈ = -g / (1 + k²),    (ẍ, ÿ) = -g / ((1 + k²) ż) (ẋ, ẏ).

The row loses its rank at rest, where the velocity is zero.
"""

import casadi as ca

import mbcasadi as mb

from .energies import GRAVITY, coordinates, lifted_mass, moving_mass

MASS = 1.5  # kg; chosen
RATIO = 0.8  # k, horizontal over vertical speed; chosen


def system(ratio: float = RATIO, gravity: float = GRAVITY) -> mb.System:
    """Return the particle as a `System` of three coordinates and one row nonlinear in v."""
    q, v = coordinates(3)
    return mb.from_lagrangian(
        q,
        v,
        kinetic=moving_mass(MASS, q, q, v),
        potential=lifted_mass(MASS, q[2], gravity),
        psi=ca.sumsqr(v[:2]) - (ratio * v[2]) ** 2,
        name="appell_hamel",
    )
