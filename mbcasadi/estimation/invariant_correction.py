"""An estimate of the invariant filter without an error that was found, and the errors after it."""

import casadi as ca

from mbcasadi.estimation.invariant import (
    BETA_A,
    BETA_G,
    NU,
    THETA,
    Layout,
    Mean,
)
from mbcasadi.estimation.rotations import product
from mbcasadi.spatial.integrals import integrals
from mbcasadi.spatial.quaternion_columns import column_of, matrix_of, quat_of
from mbcasadi.spatial.quaternions import exponential
from mbcasadi.spatial.vectors import entries


def corrected(layout: Layout, mean: Mean, e: ca.SX) -> Mean:
    """Return the estimate without an error e (n,): `Exp(-θ)` applied, then the others.

    p moves by `-(π + θ × p)`, its own error: turned about the origin it would err by `|p| θ²/2`.
    """
    theta = e[THETA]
    back = exponential(entries(-theta))
    E, J = matrix_of(back), integrals(-theta).first
    places, turns = list[ca.SX](), list[ca.SX]()
    for i, landmark in enumerate(layout.landmarks):
        at = layout.first[i]
        places.append(E @ mean.places[i] - J @ e[at : at + 3])
        if landmark.sole:
            step = exponential(entries(-theta - e[at + 3 : at + 6]))
            turns.append(column_of(product(step, quat_of(mean.turns[layout.sole(i)]))))
    n = layout.n
    return Mean(
        quat=column_of(product(back, quat_of(mean.quat))),
        v=E @ mean.v - J @ e[NU],
        p=mean.p - e[n - 3 :] - ca.cross(theta, mean.p),
        b_g=mean.b_g - e[BETA_G],
        b_a=mean.b_a - e[BETA_A],
        places=tuple(places),
        turns=tuple(turns),
        passive=mean.passive - e[[*layout.bent, *layout.bending]],
    )


def reset_map(layout: Layout, mean: Mean, e: ca.SX) -> ca.SX:
    """Return J (n, n) of the errors by removing an estimate e (n,) of them, to second order.

    What is left of an error ξ is `Log(Exp(-e) Exp(ξ)) ≈ (1 - ½ ad_e)(ξ - e)`; of that of p,
    `δ = π + θ × p`, it is δ, and π is `δ - θ × p` at the new p.

    Args:
        layout: of the errors.
        mean: the estimate before.
        e: (n,).
    """
    J = ca.SX.eye(layout.n)
    half = ca.skew(e[THETA]) / 2
    J[THETA, THETA] -= half
    pi = slice(layout.n - 3, layout.n)
    delta = e[pi] + ca.cross(e[THETA], mean.p)
    J[pi, THETA] = ca.skew(mean.p - delta) @ J[THETA, THETA] - ca.skew(mean.p)
    for rows in [NU, *(slice(at, at + 3) for at in layout.first)]:
        J[rows, rows] -= half
        J[rows, THETA] = -ca.skew(e[rows]) / 2
    for i, landmark in enumerate(layout.landmarks):
        if landmark.sole:
            rows = slice(layout.first[i] + 3, layout.first[i] + 6)
            J[rows, rows] -= half + ca.skew(e[rows]) / 2
            J[rows, THETA] = -ca.skew(e[rows]) / 2
    return J
