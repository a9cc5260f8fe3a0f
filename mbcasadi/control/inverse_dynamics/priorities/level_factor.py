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
from mbcasadi.linalg.branches import either
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
        ZQ: (c, c) `Z Q` with Q orthogonal, `z = Q (s, r)`.
        L_inv: (k, k) `s = s_0 + L_inv x_s`, in which the cost is `½ |x_s|²`.
        s_0: (k,) the optimum without inequalities.
        distance: length of x_s between `s = 0` and s_0.
        free: (c,) the share in which the levels below may use each column of Q.
        damping: (k,) Λ².
        unseen: (k,) one for directions that the level does not see.
        weak2: sum of `Σ_i W_i R_ji²` over the directions that are not strict.
    """

    ZQ: ca.SX
    L_inv: ca.SX
    s_0: ca.SX
    distance: ca.SX
    free: ca.SX
    damping: ca.SX
    unseen: ca.SX
    weak2: ca.SX


def factor_level(
    A: ca.SX, b: ca.SX, weight: ca.SX, damping: float, Z: ca.SX | None = None
) -> LevelFactor:
    """Return the coordinates of a level.

    Of matrix expressions a level that sees nothing of what is left, as a posture behind levels that
    take all motion, costs next to nothing.

    Args:
        A: (m, c) rows of usual length one, over Z where it is given.
        b: (m,).
        weight: (m,) W, at most one; rows of weight zero are zero.
        damping: θ.
        Z: (c, c) directions that are left free; all where None.
    """
    m, c = A.shape
    k = min(m, c)
    Q, R = orthogonal_factor(A, type(A)(ca.DM.ones(m) * DROPPED**2))
    strengths = in_scalars("level_strength", _strength, {"R": R, "W": weight, "theta": damping})
    t, unseen, floor, weak2 = strengths
    seen = {"R": R, "weight": weight, "b": b, "t": t, "unseen": unseen, "floor": floor}
    seen |= {"Q": ca.densify(Q)} | ({} if Z is None else {"Z": Z})
    parts = either("seen", ca.mmin(unseen) < 1, seen, _seen, _unseen)
    lam2, ZQ, L_inv, half = parts
    (free,) = in_scalars("level_free", _free, {"t": t, "theta": damping})
    return LevelFactor(
        ZQ=ZQ,
        L_inv=L_inv,
        s_0=linalg.product(L_inv, half),
        distance=length(half),
        free=ca.vertcat(free, ca.DM.ones(c - k)),
        damping=lam2 + (1 - unseen) * floor,
        unseen=unseen,
        weak2=weak2,
    )


def _seen(x: dict[str, ca.SX]) -> list[ca.SX]:
    """Return Λ², `Z Q`, L_inv, and half of the way to the optimum."""
    R, t, unseen, floor = (x[key] for key in ("R", "t", "unseen", "floor"))
    gram = ca.densify(linalg.weighted_gram(R, x["weight"], ca.densify(floor)))
    has_weak = ca.mmax(ca.logic_and(t < 1, unseen < 1)) > 0
    (K,) = either("weak", has_weak, {"gram": gram}, _stiffness, lambda y: [0 * y["gram"][:, 0]])
    known = {"t": t, "K": K, "unseen": unseen, "floor": floor}
    (lam2,) = in_scalars("level_damping", _damping, known)
    L_inv = linalg.inverse_factor(ca.densify(gram + ca.diag(lam2)))
    half = linalg.product(L_inv.T, linalg.product(R, x["weight"] * x["b"]))
    return [lam2, linalg.product(x["Z"], x["Q"]) if "Z" in x else x["Q"], L_inv, half]


def _unseen(x: dict[str, ca.SX]) -> list[ca.SX]:
    """Return the same where no direction is seen: only their small weights are left."""
    k = x["t"].numel()
    L_inv = ca.densify(ca.diag(1 / ca.sqrt(x["floor"])))
    eye = type(L_inv)(ca.DM.eye(x["Q"].shape[0]))
    return [0 * x["t"], x.get("Z", ca.densify(eye)), L_inv, type(L_inv)(ca.DM.zeros(k))]


def _strength(known: dict[str, ca.SX]) -> list[ca.SX]:
    """Return t, at most 1; which directions are unseen; their small weight; the weak squares."""
    R = ca.densify(known["R"])
    pivot = ca.vertcat(*(ca.mmax(ca.fabs(R[j, :])) for j in range(R.shape[0])))
    t = ca.fmin(pivot / known["theta"], 1)
    weak2 = ca.sum1((t < 1) * ((R**2) @ known["W"]))
    return [t, pivot <= UNSEEN, FREE**2 * (1 - t) ** 2, weak2]


def _stiffness(known: dict[str, ca.SX]) -> list[ca.SX]:
    """Return K (k,): what each direction meets where those before it, the stronger ones, follow.

    `gram` (k, k) is the stiffness, its small weights included; its lower triangle is read.
    """
    gram = known["gram"]
    k = gram.shape[0]
    last_first = list(reversed(range(k)))
    places = [max(i, j) + k * min(i, j) for j in last_first for i in last_first]
    L_inv = linalg.inverse_factor(ca.reshape(ca.vec(ca.densify(gram))[places], k, k))
    root = ca.densify(ca.diag(L_inv))[last_first, 0]
    return [1 / (root * root)]


def _damping(known: dict[str, ca.SX]) -> list[ca.SX]:
    """Return Λ² (k,)."""
    t, unseen = known["t"], known["unseen"]
    K = ca.fmax(known["K"] - known["floor"], 0)
    seen2 = ca.if_else(unseen, 1, t**2)
    return [ca.if_else(unseen, 0, K * (1 - t**2) / seen2 * ca.fmin(1, t / SMALL))]


def _free(known: dict[str, ca.SX]) -> list[ca.SX]:
    """Return the share for the levels below (k,)."""
    t, theta = known["t"], known["theta"]
    return [(1 - t**2) / ((1 - t**2) + t**2 / theta)]
