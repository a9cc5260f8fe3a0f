"""One level in coordinates of its own, with a stated damping where it is singular.

The residual of a level over what the levels before it have left free is `A z - b`. A pivoted
orthogonal factorisation, `Aᵀ = V R` with `Q = [V, Z]` orthogonal, gives `z = Q (s, r)`: r does not
change the residual, and the level is

    min ½ |Rᵀ s - b|²_W + ½ sᵀ Λ² s.

The rows of A have a usual length of one. A direction j whose pivot R_jj is above the damping θ is
strict: `Λ_j = 0`, and no level below moves it. One that is weaker is damped,

    Λ_j² = K_j (θ² / R_jj² - 1) min(1, R_jj / (κ θ)),

with K_j the stiffness `Rᵀ W R` in direction j where the stronger directions follow. So an error b
moves it by no more than `b / θ`, and by `b R_jj / θ²` down to `R_jj = κ θ`; and it is handed over:
the levels below may use it, from nothing at `R_jj = θ` to all of it at `R_jj = 0`, by the factor
`1 - t²` over `1 - t² + t² / θ` with `t = R_jj / θ`.
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi import linalg
from mbcasadi.description.tolerance import tolerance
from mbcasadi.linalg.factor import orthogonal_factor
from mbcasadi.linalg.scalars import in_scalars
from mbcasadi.qp.kkt_residuals import length

SMALL = 1e-3
"""κ: below this share of the damping a direction fades into one that the level does not see."""

UNSEEN = tolerance(1e-9)
"""A direction that is weaker than this is rounding: the level does not see it."""

DROPPED = tolerance(1e-12)
"""Remainders of this length are not made to directions at all."""

FREE = 6e-5
"""Root of the weight that a direction which a level does not see has in its problem. The problem
is solved again around its solution, so little of it is left; rounding grows with its inverse."""


class LevelFactor(NamedTuple):
    """The coordinates of a level.

    Attributes:
        Q: (c, c) orthogonal, `z = Q (s, r)`.
        L_inv: (k, k) `s = s_0 + L_inv x_s`, in which the cost is `½ |x_s|²`.
        s_0: (k,) the optimum without inequalities.
        distance: length of x_s between `s = 0` and s_0.
        free: (c,) the share in which the levels below may use each column of Q.
        damping: (k,) Λ².
        unseen: (k,) one for directions that the level does not see.
        weak2: sum of `Σ_i W_i R_ji²` over the directions that are not strict.
    """

    Q: ca.SX
    L_inv: ca.SX
    s_0: ca.SX
    distance: ca.SX
    free: ca.SX
    damping: ca.SX
    unseen: ca.SX
    weak2: ca.SX


def factor_level(A: ca.SX, b: ca.SX, weight: ca.SX, damping: float) -> LevelFactor:
    """Return the coordinates of a level.

    Args:
        A: (m, c) rows of usual length one.
        b: (m,).
        weight: (m,) W, at most one; rows of weight zero are zero.
        damping: θ.
    """
    m, c = A.shape
    k = min(m, c)
    Q, R = orthogonal_factor(A, type(A)(ca.DM.ones(m) * DROPPED**2))
    strengths = in_scalars("level_strength", _strength, {"R": R, "W": weight, "theta": damping})
    t, unseen, floor, weak2 = strengths
    gram = linalg.weighted_gram(R, weight, ca.densify(floor))
    lam2, free = in_scalars(
        "level_damping",
        _damping,
        {"t": t, "K": _stiffness(gram), "unseen": unseen, "floor": floor, "theta": damping},
    )
    L_inv = linalg.inverse_factor(ca.densify(gram + ca.diag(lam2)))
    half = linalg.product(L_inv.T, linalg.product(R, weight * b))
    return LevelFactor(
        Q=ca.densify(Q),
        L_inv=L_inv,
        s_0=linalg.product(L_inv, half),
        distance=length(half),
        free=ca.vertcat(free, ca.DM.ones(c - k)),
        damping=lam2 + (1 - unseen) * floor,
        unseen=unseen,
        weak2=weak2,
    )


def _strength(known: dict[str, ca.SX]) -> list[ca.SX]:
    """Return t, at most 1; which directions are unseen; their small weight; the weak squares."""
    R = ca.densify(known["R"])
    pivot = ca.vertcat(*(ca.mmax(ca.fabs(R[j, :])) for j in range(R.shape[0])))
    t = ca.fmin(pivot / known["theta"], 1)
    weak2 = ca.sum1((t < 1) * ((R**2) @ known["W"]))
    return [t, pivot <= UNSEEN, FREE**2 * (1 - t) ** 2, weak2]


def _stiffness(gram: ca.SX) -> ca.SX:
    """Return K (k,): what each direction meets where those before it, the stronger ones, follow.

    Args:
        gram: (k, k) stiffness, its small weights included; its lower triangle is read.
    """
    k = gram.shape[0]
    last_first = list(reversed(range(k)))
    places = [max(i, j) + k * min(i, j) for j in last_first for i in last_first]
    L_inv = linalg.inverse_factor(ca.reshape(ca.vec(ca.densify(gram))[places], k, k))
    root = ca.densify(ca.diag(L_inv))[last_first, 0]
    return 1 / (root * root)


def _damping(known: dict[str, ca.SX]) -> list[ca.SX]:
    """Return Λ² and the share for the levels below, (k,) each."""
    t, theta, unseen = known["t"], known["theta"], known["unseen"]
    K = ca.fmax(known["K"] - known["floor"], 0)
    seen2 = ca.if_else(unseen, 1, t**2)
    lam2 = ca.if_else(unseen, 0, K * (1 - t**2) / seen2 * ca.fmin(1, t / SMALL))
    return [lam2, (1 - t**2) / ((1 - t**2) + t**2 / theta)]
