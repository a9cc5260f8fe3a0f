"""A05: equations about mechanisms, control loops and passive joints that hold as printed."""

import numpy as np

from .family import state
from .finding import Confirmation
from .mechanisms import slider_height, slider_rows, two_links
from .numerics import Array, error, null_basis, partials, pinv, projector, rank, rate

S = state(5)
EYE = np.eye(len(S.v))


def circle() -> Confirmation:
    """Return the checks of the particle on a circle."""
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
    return Confirmation(
        "A05",
        "(33), (36), (37)",
        statement="`P`, and `Ṗ v = -‖v‖²/ρ ε⊥`",
        error=max(gaps),
    )


def newton() -> Confirmation:
    """Return the check of the position correction on the slider-crank."""
    q = np.array([0.7, -1.3])
    for _ in range(6):
        q = q - pinv(slider_rows(q)) @ slider_height(q)
    return Confirmation(
        "A05",
        "(39)",
        statement="six iterations from a gap of 0.08 m",
        error=error(q[1], -2 * q[0]),
    )


def continuous_force_loop() -> Confirmation:
    """Return the check of the force loop in continuous time."""
    gain, integral, wanted, total = 0.7, 2.0, 3.0, 0.4
    force = (wanted + gain * wanted + integral * total) / (1 + gain)  # F = u_F, solved for F
    e = wanted - force
    return Confirmation(
        "A05",
        "(52)",
        statement="without delay `(G_F + 1) e + G_I ∫e = 0`",
        error=error((gain + 1) * e + integral * total, 0.0),
    )


def passive_joints() -> Confirmation:
    """Return the checks of the law for passive joints."""
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
    return Confirmation(
        "A05",
        "(57), (59)-(63)",
        statement="`(I + H) f∥` needs no passive joint and moves the system as `f∥` does",
        error=max(gaps),
    )


def controllability() -> Confirmation:
    """Return the check that the two forms of the condition on passive joints agree."""
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
    return Confirmation(
        "A05",
        "(58), (64)",
        statement=(
            "both say that null(A) and the passive joints share only zero: disagreements in 100 "
            "random pairs"
        ),
        error=float(differ),
    )


def crank() -> Confirmation:
    """Return the checks of the slider-crank's closed forms."""
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
    return Confirmation(
        "A05",
        "(66)-(69)",
        statement="height, Jacobian, M and h of the slider-crank (point masses)",
        error=max(gaps),
    )
