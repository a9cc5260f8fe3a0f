"""S20: linearised constraints and inverse dynamics."""

import numpy as np

from .family import kkt, state
from .finding import Errors, confirmed, erratum
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


@erratum("S20", "(7)")
def multiplier_matrix() -> Errors:
    """printed: `S` is the linearised constraint Jacobian
    holds: `S = [0; H⁻¹ Fᵀ]`, the acceleration under a unit of each multiplier
    measured: `ẋ` of (7) against the KKT equations, with `S = [0; Fᵀ]` and with the corrected
        one"""
    lever, G, free = linear_model(S.M)
    true = np.concatenate([S.v, kkt(S.M, ROWS, S.M @ free[n:], ROWS_DOT @ S.v)[0]])
    jacobian = np.vstack([np.zeros((n, m)), ROWS.T])

    def motion(matrix: Array) -> Array:
        return free - matrix @ pinv(G @ matrix) @ G @ free

    return error(motion(jacobian), true), error(motion(lever), true)


@erratum("S20", "(9)-(12)")
def reduction() -> Errors:
    """printed: `NᵀS = 0` for all mechanical systems, so `ż = Nᵀ(A x + B u + c)`
    holds: first apply `I - S (G S)⁺ G` to `A x + B u + c`, then reduce"""
    lever, G, free = linear_model(S.M)
    true = np.concatenate([S.v, kkt(S.M, ROWS, S.M @ free[n:], ROWS_DOT @ S.v)[0]])
    N = null_basis(G)
    removed = free - lever @ pinv(G @ lever) @ G @ free
    as_printed = error(N.T @ free, N.T @ true)
    as_corrected = error(N.T @ removed, N.T @ true)
    measured = (
        f"`ż` against the KKT equations; ‖NᵀS‖ = {np.linalg.norm(N.T @ lever):.2f}. It "
        "vanishes where the inertia maps range(Fᵀ) into itself and `Ḟ` maps null(F) to zero, "
        "as at rest; with `M = I` and this motion it is "
        f"{np.linalg.norm(N.T @ linear_model(np.eye(n))[0]):.2f}"
    )
    return as_printed, as_corrected, measured


@erratum("S20", "(8)", holds=1e-05)
def state_in_basis() -> Errors:
    """printed: `x = N z`
    holds: one more assumption; use deviations from an operating point
    measured: share of the state outside range(N), a point on a circle; share of a deviation of
        1e-6"""

    def at(theta: float) -> tuple[Array, Array]:
        q = np.array([np.cos(theta), np.sin(theta)])
        v = 1.5 * np.array([-q[1], q[0]])
        return np.concatenate([q, v]), np.block([[q, np.zeros(2)], [v, q]])

    (x, G), (near, _) = at(0.7), at(0.7 + 1e-6)
    N = null_basis(G)
    outside = np.eye(4) - N @ N.T
    moved = near - x
    as_printed = float(np.linalg.norm(outside @ x) / np.linalg.norm(x))
    as_corrected = float(np.linalg.norm(outside @ moved) / np.linalg.norm(moved))
    return as_printed, as_corrected


@erratum("S20", "(17)")
def triangular_factor() -> Errors:
    """printed: `R` is invertible
    holds: only with full row rank of `F`
    measured: rank that `R` lacks: four rows of rank two; two independent rows"""
    R_all = np.linalg.qr(S.A.T)[1]
    R_some = np.linalg.qr(ROWS.T)[1]
    return len(R_all) - rank(R_all), len(R_some) - rank(R_some)


@erratum("S20", "(22)")
def data_condition() -> Errors:
    """printed: `F a + Ḟ v = 0` restricts the unknowns
    holds: it holds no unknown: it conditions the data
    measured: smallest residual over all `u` and `lam`, for an acceleration that breaks it and
        one that meets it"""
    asked = np.ones(n)

    def miss(a: Array) -> float:
        """Return the residual of both constraints, the best over `u` and `lam`."""
        T = np.eye(n)
        K = np.vstack([np.hstack([T, ROWS.T]), np.zeros((m, n + m))])
        right = np.concatenate([S.M @ a + S.h, ROWS @ a + ROWS_DOT @ S.v])
        return error(K @ pinv(K) @ right, right)

    met = asked - pinv(ROWS) @ (ROWS @ asked + ROWS_DOT @ S.v)
    return miss(asked), miss(met)


@confirmed("S20", "(4), (5)")
def kkt_form() -> float:
    """`M a + h = f + Fᵀ lam`, `F a + Ḟ v = 0`"""
    gaps = (error(S.M @ S.a + S.h, S.f + S.A.T @ S.lam), error(S.A @ S.a, -S.Adot @ S.v))
    return max(gaps)


@confirmed("S20", "(14), (15)")
def pseudo_inverse() -> float:
    """the condition tells whether `B u = ẋ - A x - c` has a solution; `u_ID`"""
    rng = np.random.default_rng(2)
    B, u = rng.normal(size=(6, 3)), rng.normal(size=3)
    within, beyond = B @ u, rng.normal(size=6)
    outside = np.eye(6) - B @ pinv(B)
    gaps = (error(outside @ within, 0.0), error(pinv(B) @ within, u))
    solvable = float(np.linalg.norm(outside @ beyond) < 1e-3)
    return max(*gaps, solvable)


@confirmed("S20", "(16), (18)-(21)")
def split_equations() -> float:
    """`u` and `lam` satisfy (16); they solve the program (22)"""
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
    return max(gaps)


READ = "(1)-(3), (6), (13)"
