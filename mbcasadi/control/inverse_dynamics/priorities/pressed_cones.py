"""What quadratic cones leave the levels after one at whose optimum they are active.

A cone that is active there has a multiplier, so at every optimum of the level its s lies on the ray
that the multiplier touches, or at the apex. Its cone, cut down to the optima, has no interior: the
next level would have no finite multipliers. So it is given the ray alone (facial reduction): of the
directions that are left, those that leave the ray are taken away.

Source: J. Borwein, H. Wolkowicz, Regularizing the abstract convex program, J. Mathematical Analysis
and Applications 83 (1981).
"""

import casadi as ca
import numpy as np

from mbcasadi import linalg
from mbcasadi.control.inverse_dynamics.priorities.level_factor import DROPPED
from mbcasadi.description.qp_stages import CONE_ROWS
from mbcasadi.linalg.factor import orthogonal_factor
from mbcasadi.linalg.scalars import in_scalars
from mbcasadi.qp.quadratic_cones import first_rows

ACTIVE = 0.5
"""The first entry of an active cone is beyond this, at its apex below minus this."""

PRESSED = 1e-9
"""Share of a level's size above which a multiplier of a row of unit length is not rounding."""

ON_RAY = 1e-6
"""A direction of unit length that leaves all rays by less keeps them. Rays are known to the root of
the slack that the cascade gives to cones."""

BESIDE_RAY = 1e-5
"""Weight of a force beside that of its multiplier, each by its size, in the direction of a ray: the
force is beside the ray by the root of what the solver tolerates."""

WEAK = 3e-4
"""A direction of unit length that changes the values across the rays by less is used little to come
onto them: it would be a long step for a small error."""

RADIAL = 100.0
"""Weight of the rows that leave a cone beside those around it: an error of these is one of the cone
to second order only."""

NO_ROW = 1e-150
"""Squared length that stands for zero in a denominator."""


def along_rays(
    Z: ca.SX, all_Z: ca.SX, C: ca.SX, found: dict[str, ca.SX], size: ca.SX, cones: int
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return the directions that keep s of each pressed cone on its ray, and which rows are gone.

    A cone on its ray has `0 <= s_0` alone: its rows across the ray are rounding. The third value is
    the step (n,) onto the rays: a cone that is met to the solver's tolerance is beside its ray by
    the root of it. The level itself may have to move: its cost grows by the square of the step.

    Args:
        Z: (n, c) directions that the level leaves free; those that leave a ray become zero.
        all_Z: (n, c) directions, those of the level too.
        C: (m, n) rows, the last ones of cones.
        found: `active` (m,), the kind of each cone first, `lam_a` (m,), and the rows' values less
            their lower bounds, `inside` (m,).
        size: of the level's cost.
        cones: their number.
    """
    first = C.shape[0] - CONE_ROWS * cones
    known = {key: found[key][first:, 0] for key in ("active", "lam_a", "inside")}
    known |= {"rows": C[first:, :], "least": PRESSED * size}
    across, beside, pressed = in_scalars("across_rays", lambda k: _across(**k), known)
    least_rest = type(C)(ca.DM.ones(across.shape[0]) * DROPPED**2)
    Q, R = orthogonal_factor(linalg.product(across, Z), least_rest)
    (left,) = in_scalars("left_by_cones", lambda k: [_left(k["R"])], {"R": R})
    rest = type(Z)(ca.DM.ones(Z.shape[1] - left.numel()))
    kept = ca.repmat(ca.vertcat(left, rest).T, Z.shape[0], 1)
    spread = ca.DM(np.kron(np.eye(cones), [[0.0], [1.0], [1.0]]))
    rows_across = ca.vertcat(ca.DM.zeros(first), ca.mtimes(spread, pressed))
    weights = ca.DM(np.tile([1.0, RADIAL, RADIAL], cones))
    onto = _onto(ca.diag(weights) @ linalg.product(across, all_Z), weights * beside)
    return linalg.product(Z, Q) * kept, rows_across, linalg.product(all_Z, onto)


def _across(rows: ca.SX, active: ca.SX, lam_a: ca.SX, inside: ca.SX, least: ca.SX) -> list[ca.SX]:
    """Return rows that no step along the rays changes, their values, and which cones are pressed.

    The rows have a length of one or less, their values are zero on the rays.

    Force and multiplier are on opposite sides of a cone's axis: the direction of a ray is that of
    the multiplier, and of the force where that is rounding.
    """
    parts, beside, pressed = [], [], []
    for i in first_rows(rows.shape[0], rows.shape[0] // CONE_ROWS):
        s_0, s_1, s_2 = (rows[i + k, :] for k in range(CONE_ROWS))
        size = ca.sqrt(sum(ca.sumsqr(each) for each in (s_0, s_1, s_2)) + NO_ROW)
        kind = active[i, 0]
        force, multiplier = (x[i + 1 : i + CONE_ROWS, 0] for x in (inside, lam_a))
        across = BESIDE_RAY * force / size + size * multiplier
        cosine, sine = ca.vertsplit(across / ca.sqrt(ca.sumsqr(across) + NO_ROW))
        radial = cosine * s_1 + sine * s_2
        presses = ca.logic_and(-lam_a[i, 0] * size > least, ca.fabs(kind) > ACTIVE)
        at_apex = ca.logic_and(presses, kind < -ACTIVE)
        parts += [presses * (cosine * s_2 - sine * s_1) / size, presses * (s_0 - radial) / size]
        parts.append(at_apex * (s_0 + radial) / size)
        height, along = inside[i, 0], cosine * inside[i + 1, 0] + sine * inside[i + 2, 0]
        beside.append(presses * (cosine * inside[i + 2, 0] - sine * inside[i + 1, 0]) / size)
        beside += [presses * (height - along) / size, at_apex * (height + along) / size]
        pressed.append(presses)
    return [ca.densify(ca.vertcat(*parts)), ca.vertcat(*beside), ca.vertcat(*pressed)]


def _left(R: ca.SX) -> ca.SX:
    """Return one for each direction that changes no row."""
    R = ca.densify(R)
    pivots = [ca.mmax(ca.fabs(R[j, :])) for j in range(R.shape[0])]
    return ca.vertcat(*(pivot <= ON_RAY for pivot in pivots))


def _onto(rows: ca.SX, beside: ca.SX) -> ca.SX:
    """Return the damped step (c,) along the directions that brings the rows' values near zero."""
    damped = linalg.product(rows, rows.T) + WEAK**2 * ca.DM.eye(rows.shape[0])
    L_inv = linalg.inverse_factor(ca.densify(damped))
    return -linalg.product(rows.T, linalg.product(L_inv, linalg.product(L_inv.T, beside)))
