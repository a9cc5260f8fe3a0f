"""Newton's method from an interior-point solution, with the rows and cones that are active there.

An interior-point method that ends with a gap of 1e-12 has z to 1e-6 only. With the active set that
it found, the Karush-Kuhn-Tucker conditions are equations, and a few steps give all digits.
"""

import numpy as np

from campaign.full_form import Full
from campaign.mechanics import Array

ACTIVE = 1e-6  # scaled distance from a row or cone, relative to the size of z
STEPS = 6
SMALL = 1e-12  # singular values, relative: redundant active rows


def polished(full: Full, z: Array) -> Array | None:
    """Return z with all digits; None where a limit or a multiplier contradicts the active set."""
    size, H, g = np.linalg.norm(z), full.R.T @ full.R, -full.R.T @ full.r
    at = np.flatnonzero(full.C @ z > full.d - ACTIVE * size * full.unit)
    surfaces, apexes = _touched(full, z, ACTIVE * size)
    rows = np.vstack([full.E, full.C[at], *(np.eye(len(z))[f : f + 3] for f, _ in apexes)])
    right = np.concatenate([full.e, full.d[at], np.zeros(3 * len(apexes))])
    multipliers = None
    for _ in range(STEPS):
        parts = [_surface(z, *cone) for cone in surfaces]
        J = np.vstack([rows, *(gradient for _, gradient, _ in parts)])
        miss = np.concatenate([rows @ z - right, [value for value, _, _ in parts]])
        if multipliers is None:
            multipliers = np.linalg.lstsq(J.T, -(H @ z + g), rcond=SMALL)[0]
        curved = H + sum(
            (m * curve for m, (_, _, curve) in zip(multipliers[len(rows) :], parts, strict=True)),
            np.zeros_like(H),
        )
        k = len(J)
        KKT = np.block([[curved, J.T], [J, np.zeros((k, k))]])
        step = np.linalg.lstsq(KKT, np.concatenate([-(H @ z + g), -miss]), rcond=SMALL)[0]
        z, multipliers = z + step[: len(z)], step[len(z) :]
    inside = np.all(full.C @ z <= full.d + ACTIVE**1.5 * size * full.unit)
    pushing = np.all(multipliers[len(rows) :] >= 0)
    return z if inside and pushing and np.linalg.norm(step[: len(z)]) < 1e-9 * size else None


def _touched(full: Full, z: Array, near: float):
    """Return the cones whose surface, and those whose apex is active."""
    surfaces, apexes = [], []
    for first, scales in full.cones:
        s = scales / scales.max() * z[first : first + 3]
        if np.linalg.norm(s) < near:
            apexes.append((first, scales))
        elif np.hypot(s[1], s[2]) > s[0] - near:
            surfaces.append((first, scales / scales.max()))
    return surfaces, apexes


def _surface(z: Array, first: int, scales: Array) -> tuple[float, Array, Array]:
    """Return `|(s_1, s_2)| - s_0` with its gradient and Hessian."""
    n, s = len(z), scales * z[first : first + 3]
    across = float(np.hypot(s[1], s[2]))
    t = s[1:] / across
    gradient, curve = np.zeros((1, n)), np.zeros((n, n))
    gradient[0, first : first + 3] = scales * np.array([-1.0, *t])
    turned = (np.eye(2) - np.outer(t, t)) / across
    curve[first + 1 : first + 3, first + 1 : first + 3] = np.outer(scales[1:], scales[1:]) * turned
    return across - s[0], gradient, curve
