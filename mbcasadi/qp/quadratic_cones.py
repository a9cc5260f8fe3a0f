"""Quadratic cones among the rows of a QP: warm start, dual cone, violations, complementarity.

A cone has `CONE_ROWS` rows s_0, s_1, s_2, the last ones of the problem, and holds where
`|(s_1, s_2)| <= s_0`, s being the rows' values less their lower bounds. Its multipliers are -z with
z in the same cone (it is its own dual), and `zᵀ s = 0` at the optimum.
"""

import casadi as ca

from mbcasadi.description.qp_stages import CONE_ROWS
from mbcasadi.linalg.scalars import in_scalars
from mbcasadi.qp.input_guard import active_signs
from mbcasadi.qp.kkt_residuals import length, positive

LARGEST_ENTRY = 2.0
"""An entry of a cone's warm start beyond this is none: it holds a sign, a cosine and a sine."""


def first_rows(m: int, cones: int) -> range:
    """Return the first row of each cone among m rows."""
    return range(m - CONE_ROWS * cones, m, CONE_ROWS)


def warm_values(active: ca.SX, cones: int) -> ca.SX:
    """Return an active set that a solver may start from, whatever it holds."""
    linear = active.numel() - CONE_ROWS * cones
    of_cones = active[linear:, 0]
    known = ca.if_else(ca.fabs(of_cones) <= LARGEST_ENTRY, of_cones, 0)
    return ca.vertcat(active_signs(active[:linear, 0]), known)


def warm_starts(active: ca.SX, m: int, cones: int) -> ca.SX:
    """Return the active sets of problems of m rows each, one behind the other, as `warm_values`."""
    firsts = range(0, active.numel(), max(m, 1))
    own = [warm_values(active[k : k + m, 0], cones) for k in firsts]
    return ca.vertcat(active[:0, 0], *own)


def in_dual_cones(mu: ca.SX, cones: int) -> ca.SX:
    """Return multipliers (m,) of which those of cones are dual feasible.

    `z_0` becomes `max(z_0, |(z_1, z_2)|)`: what was missing shows as a residual of stationarity.
    """
    if not cones:
        return mu
    projected: ca.SX = in_scalars("dual_cones", lambda k: [_raised(k["mu"], cones)], {"mu": mu})[0]
    return projected


def _raised(mu: ca.SX, cones: int) -> ca.SX:
    entries = ca.vertsplit(mu)
    for i in first_rows(len(entries), cones):
        entries[i] -= positive(entries[i] + length(mu[i + 1 : i + CONE_ROWS, 0]))
    return ca.vertcat(*entries)


def violations(value: ca.SX, lower: ca.SX, upper: ca.SX, cones: int) -> ca.SX:
    """Return by how much each row is violated (m,); a cone counts at its first row."""
    linear = value.numel() - CONE_ROWS * cones
    rows = positive(value - upper) + positive(lower - value)
    parts = [rows[:linear, 0]]
    for i in first_rows(value.numel(), cones):
        s = value[i : i + CONE_ROWS, 0] - lower[i : i + CONE_ROWS, 0]
        parts += [positive(length(s[1:, 0]) - s[0]), ca.SX(CONE_ROWS - 1, 1)]
    return ca.densify(ca.vertcat(*parts))


def sizes(usual: ca.SX, cones: int) -> ca.SX:
    """Return what each row's violation is compared with (m,); that of a cone with all its rows."""
    entries = ca.vertsplit(usual)
    for i in first_rows(len(entries), cones):
        entries[i] = length(usual[i : i + CONE_ROWS, 0])
    return ca.vertcat(ca.SX(0, 1), *entries)


def gaps(mu: ca.SX, value: ca.SX, lower: ca.SX, upper: ca.SX, cones: int) -> ca.SX:
    """Return `|mu_i gap_i|` of each row (m,); `|zᵀ s|` at the first row of a cone."""
    linear = value.numel() - CONE_ROWS * cones
    above, below = value - upper, lower - value
    rows = ca.fabs(positive(mu) * above) + ca.fabs(positive(-mu) * below)
    parts = [rows[:linear, 0]]
    for i in first_rows(value.numel(), cones):
        of_cone = slice(i, i + CONE_ROWS)
        parts += [ca.fabs(ca.dot(mu[of_cone, 0], below[of_cone, 0])), ca.SX(CONE_ROWS - 1, 1)]
    return ca.densify(ca.vertcat(*parts))
