"""A05: equations about mechanisms, control loops and passive joints that hold as printed."""

import numpy as np

from .family import state
from .finding import confirmed
from .mechanisms import slider_height, slider_rows, two_links
from .numerics import Array, error, null_basis, partials, pinv, projector, rank, rate

S = state(5)
EYE = np.eye(len(S.v))


@confirmed("A05", "(33), (36), (37)")
def circle() -> float:
    """`P`, and `Ṗ v = -‖v‖²/ρ ε⊥`"""
    radius, q = 0.5, np.array([0.3, 0.4])
    v = np.array([-0.4, 0.3]) * 3.0

    def P(x: Array) -> Array:
        return projector(x[None, :])

    normal = -q * (v @ v) / radius**2
    tangent = np.array([-0.8, 0.6])
    gaps = (
        error(rate(P, q, v / 10) * 10 @ v, normal),
        error(normal, -(v @ v) / radius * q / radius),
        error(P(q), np.outer(tangent, tangent)),
    )
    return max(gaps)


@confirmed("A05", "(39)")
def newton() -> float:
    """six iterations from a gap of 0.08 m"""
    q = np.array([0.7, -1.3])
    for _ in range(6):
        q = q - pinv(slider_rows(q)) @ slider_height(q)
    return error(q[1], -2 * q[0])


@confirmed("A05", "(52)")
def continuous_force_loop() -> float:
    """without delay `(G_F + 1) e + G_I ∫e = 0`"""
    gain, integral, wanted, total = 0.7, 2.0, 3.0, 0.4
    force = (wanted + gain * wanted + integral * total) / (1 + gain)  # F = u_F, solved for F
    e = wanted - force
    return error((gain + 1) * e + integral * total, 0.0)


@confirmed("A05", "(57), (59)-(63)")
def passive_joints() -> float:
    """`(I + H) f∥` needs no passive joint and moves the system as `f∥` does"""
    n, active = len(S.f), 4
    B = np.diag([1.0] * active + [0.0] * (n - active))
    along = S.P @ S.f
    Q_p = EYE - B - S.P + B @ S.P
    H = -S.Q @ pinv(Q_p) @ (EYE - B)
    f = along + H @ along
    eta = -pinv(Q_p) @ (EYE - B) @ along
    gaps = (
        error((EYE - B) @ f, 0.0),
        error(S.P @ f, along),
        error(Q_p, (EYE - B) @ S.Q),
        error(f @ f, along @ along + (S.Q @ eta) @ (S.Q @ eta)),
    )
    return max(gaps)


@confirmed("A05", "(58), (64)")
def controllability() -> float:
    """both say that null(A) and the passive joints share only zero: disagreements in 100 random
    pairs"""
    rng = np.random.default_rng(9)
    differ = 0
    for _ in range(100):
        A = rng.integers(-1, 2, size=(3, 5)).astype(float)
        B = np.diag(rng.integers(0, 2, size=5).astype(float))
        passive, V2 = np.eye(5) - B, null_basis(A)
        reach = passive @ (np.eye(5) - V2 @ V2.T)
        solvable = rank(np.hstack([reach, passive @ V2])) == rank(reach)
        apart = rank(np.hstack([V2, passive])) == V2.shape[1] + rank(passive)
        differ += solvable != apart
    return float(differ)


@confirmed("A05", "(66)-(69)")
def crank() -> float:
    """height, Jacobian, M and h of the slider-crank (point masses)"""
    q, v = np.array([0.4, 0.9]), np.array([-0.7, 1.3])
    c2, s2 = np.cos(q[1]), np.sin(q[1])
    points = two_links(uniform=False)
    h = s2 * np.array([-v[1] * (v[1] + 2 * v[0]), v[0] ** 2])
    h += 9.8 * np.array([np.cos(q.sum()) + 2 * np.cos(q[0]), np.cos(q.sum())])
    gaps = (
        error(slider_height(q), points.points(q)[1, 1]),
        error(slider_rows(q), partials(slider_height, q)),
        error(np.array([[3 + 2 * c2, 1 + c2], [1 + c2, 1.0]]), points.M(q)),
        error(h, points.bias(q, v)),
    )
    return max(gaps)
