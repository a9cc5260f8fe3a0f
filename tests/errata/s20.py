"""S20: linearised constraints and inverse dynamics."""

import numpy as np

from .family import kkt, state
from .finding import Confirmation, Finding
from .numerics import Array, error, null_basis, pinv, rank, rate

S = state(20)
ROWS = S.family.rows(S.q)  # two independent rows
ROWS_DOT = rate(S.family.rows, S.q, S.v)
n, m = len(S.v), len(ROWS)


def linear_model(M: Array) -> tuple[Array, Array, Array]:
    """Return `S`, `G` of (7) and the free rate `A x + B u + c`, for an inertia."""
    rng = np.random.default_rng(1)
    zero = np.zeros((n, m))
    lever = np.vstack([zero, np.linalg.solve(M, ROWS.T)])
    G = np.block([[ROWS, np.zeros((m, n))], [ROWS_DOT, ROWS]])
    return lever, G, np.concatenate([S.v, rng.normal(size=n)])


def multiplier_matrix() -> Finding:
    """Return the check of S in (7), by the motion that `G ẋ = 0` then selects."""
    lever, G, free = linear_model(S.M)
    true = np.concatenate([S.v, kkt(S.M, ROWS, S.M @ free[n:], ROWS_DOT @ S.v)[0]])
    jacobian = np.vstack([np.zeros((n, m)), ROWS.T])

    def motion(matrix: Array) -> Array:
        return free - matrix @ pinv(G @ matrix) @ G @ free

    return Finding(
        "S20",
        "(7)",
        printed="`S` is the linearised constraint Jacobian",
        correct="`S = [0; H⁻¹ Fᵀ]`, the acceleration under a unit of each multiplier",
        printed_error=error(motion(jacobian), true),
        correct_error=error(motion(lever), true),
        note="`ẋ` of (7) against the KKT equations, with `S = [0; Fᵀ]` and with the corrected one",
    )


def reduction() -> Finding:
    """Return the check of the step from (9) to (10)."""
    lever, G, free = linear_model(S.M)
    true = np.concatenate([S.v, kkt(S.M, ROWS, S.M @ free[n:], ROWS_DOT @ S.v)[0]])
    N = null_basis(G)
    removed = free - lever @ pinv(G @ lever) @ G @ free
    return Finding(
        "S20",
        "(9)-(12)",
        printed="`NᵀS = 0` for all mechanical systems, so `ż = Nᵀ(A x + B u + c)`",
        correct="first apply `I - S (G S)⁺ G` to `A x + B u + c`, then reduce",
        printed_error=error(N.T @ free, N.T @ true),
        correct_error=error(N.T @ removed, N.T @ true),
        note=(
            f"`ż` against the KKT equations; ‖NᵀS‖ = {np.linalg.norm(N.T @ lever):.2f}. It "
            "vanishes where the inertia maps range(Fᵀ) into itself and `Ḟ` maps null(F) to zero, "
            "as at rest; with `M = I` and this motion it is "
            f"{np.linalg.norm(N.T @ linear_model(np.eye(n))[0]):.2f}"
        ),
    )


def state_in_basis() -> Finding:
    """Return the check of (8), on a particle that moves on a circle."""

    def at(theta: float) -> tuple[Array, Array]:
        q = np.array([np.cos(theta), np.sin(theta)])
        v = 1.5 * np.array([-q[1], q[0]])
        return np.concatenate([q, v]), np.block([[q, np.zeros(2)], [v, q]])

    (x, G), (near, _) = at(0.7), at(0.7 + 1e-6)
    N = null_basis(G)
    outside = np.eye(4) - N @ N.T
    moved = near - x
    return Finding(
        "S20",
        "(8)",
        printed="`x = N z`",
        correct="one more assumption; use deviations from an operating point",
        printed_error=float(np.linalg.norm(outside @ x) / np.linalg.norm(x)),
        correct_error=float(np.linalg.norm(outside @ moved) / np.linalg.norm(moved)),
        note=(
            "share of the state outside range(N), a point on a circle; share of a deviation of 1e-6"
        ),
        holds=1e-05,
    )


def triangular_factor() -> Finding:
    """Return the check of (17): when R is invertible."""
    R_all = np.linalg.qr(S.A.T)[1]
    R_some = np.linalg.qr(ROWS.T)[1]
    return Finding(
        "S20",
        "(17)",
        printed="`R` is invertible",
        correct="only with full row rank of `F`",
        printed_error=len(R_all) - rank(R_all),
        correct_error=len(R_some) - rank(R_some),
        note="rank that `R` lacks: four rows of rank two; two independent rows",
    )


def data_condition() -> Finding:
    """Return the check of the second constraint of (22)."""
    asked = np.ones(n)

    def miss(a: Array) -> float:
        """Return the residual of both constraints, the best over `u` and `lam`."""
        T = np.eye(n)
        K = np.vstack([np.hstack([T, ROWS.T]), np.zeros((m, n + m))])
        right = np.concatenate([S.M @ a + S.h, ROWS @ a + ROWS_DOT @ S.v])
        return error(K @ pinv(K) @ right, right)

    met = asked - pinv(ROWS) @ (ROWS @ asked + ROWS_DOT @ S.v)
    return Finding(
        "S20",
        "(22)",
        printed="`F a + Ḟ v = 0` restricts the unknowns",
        correct="it holds no unknown: it conditions the data",
        printed_error=miss(asked),
        correct_error=miss(met),
        note=(
            "smallest residual over all `u` and `lam`, for an acceleration that breaks it and "
            "one that meets it"
        ),
    )


def kkt_form() -> Confirmation:
    """Return the check of the full description."""
    gaps = (error(S.M @ S.a + S.h, S.f + S.A.T @ S.lam), error(S.A @ S.a, -S.Adot @ S.v))
    return Confirmation(
        "S20",
        "(4), (5)",
        statement="`M a + h = f + Fᵀ lam`, `F a + Ḟ v = 0`",
        error=max(gaps),
    )


def pseudo_inverse() -> Confirmation:
    """Return the check of the inverse dynamics of a linear model."""
    rng = np.random.default_rng(2)
    B, u = rng.normal(size=(6, 3)), rng.normal(size=3)
    within, beyond = B @ u, rng.normal(size=6)
    outside = np.eye(6) - B @ pinv(B)
    gaps = (error(outside @ within, 0.0), error(pinv(B) @ within, u))
    solvable = float(np.linalg.norm(outside @ beyond) < 1e-3)
    return Confirmation(
        "S20",
        "(14), (15)",
        statement="the condition tells whether `B u = ẋ - A x - c` has a solution; `u_ID`",
        error=max(*gaps, solvable),
    )


def split_equations() -> Confirmation:
    """Return the checks of the split by QR, and of the quadratic program."""
    rng = np.random.default_rng(3)
    T = rng.normal(size=(n, 4))
    a = S.a
    Q_full = np.linalg.qr(ROWS.T, mode="complete")[0]
    R = Q_full[:, :m].T @ ROWS.T
    force = S.M @ a + S.h
    u = pinv(Q_full[:, m:].T @ T) @ Q_full[:, m:].T @ force
    lam = np.linalg.solve(R, Q_full[:, :m].T @ (force - T @ u))
    size = 4 + m + n  # minimise u·u/2 subject to the equations: KKT of the program
    E = np.hstack([T, ROWS.T])
    K = np.zeros((size, size))
    K[:4, :4], K[4 + m :, : 4 + m], K[: 4 + m, 4 + m :] = np.eye(4), E, E.T
    best = np.linalg.solve(K, np.concatenate([np.zeros(4 + m), force]))
    gaps = (error(T @ u + ROWS.T @ lam, force), error(best[:4], u), error(best[4 : 4 + m], lam))
    return Confirmation(
        "S20",
        "(16), (18)-(21)",
        statement="`u` and `lam` satisfy (16); they solve the program (22)",
        error=max(gaps),
    )


READ = "(1)-(3), (6), (13)"
