"""L15: Udwadia-Kalaba equations and servo constraints, statements about matrices."""

import numpy as np

from .coordinated import (
    B,
    figures_control,
    instants,
    misses,
    pose,
    printed_control,
    smallest_control,
)
from .finding import Errors, erratum
from .mechanisms import five_links
from .numerics import Array, error, partials, pinv, power, rank, rate, spd


@erratum("L15", "(5)")
def constraint_equation() -> Errors:
    """printed: `A = b`
    holds: `A a = b`
    measured: entries of `A` without a partner in `b`, two robots; ‖A a - b‖ along the
        prescribed motion"""
    x = instants()[9]
    h = np.array([x.t]), np.ones(1)
    a = rate(lambda s: rate(lambda t: pose(t[0]), s, h[1]), *h)
    return x.A.size - x.b.size, error(x.A @ a, x.b)


@erratum("L15", "(20), (21)")
def total_rate() -> Errors:
    """printed: `Σ_i (∂A_l/∂q_k) v_k + ∂A_l/∂t`
    holds: the sum runs over k
    measured: against the rate along a motion; as printed for the best choice of k"""
    v = np.array([0.4, -0.8, 1.1])

    def entry(x: Array) -> Array:
        return np.array([np.sin(x[0] * x[1]) + x[2] ** 2 * x[0] + np.cos(x[3] * x[1])])

    x = np.array([0.3, 0.7, -0.5, 1.2])  # q, t
    slopes = partials(entry, x)[0]
    true = rate(entry, x, np.append(v, 1.0))[0]
    printed = [3 * slopes[k] * v[k] + slopes[3] for k in range(3)]
    return min(error(p, true) for p in printed), error(slopes[:3] @ v + slopes[3], true)


@erratum("L15", "(14), (16), (35)")
def feeling_reaction() -> Errors:
    """printed: `Qᶜ` from `Q` alone
    holds: `Qᶜ(Q + B u)`; minimum norm: `u = (A_s G B)⁺ (b_s - A_s a₀)`, `G = M⁻¹ - M⁻¹Aᵀ(A
        M⁻¹Aᵀ)⁺A M⁻¹`, `a₀` the motion at `u = 0`
    measured: two robots, largest component of `A a - b` over one period; with either consistent
        control of the table above, of `A_s a - b_s` too"""
    found = instants()
    printed = [misses(x, printed_control(x), feels=False)[0] for x in found]
    figures = np.array([figures_control(x) for x in found])
    smallest = np.array([smallest_control(x) for x in found])
    held = [
        max(misses(x, u, feels=True))
        for c in (figures, smallest)
        for x, u in zip(found, c, strict=True)
    ]
    return max(printed), max(held)


@erratum("L15", "(29), (30)")
def free_vectors() -> Errors:
    """printed: `F = C⁺(b - C a) + (I - C⁺C) c` with the c of (28), `min ‖F‖ = C⁺(b - C a)`
    holds: with `r = c - a`; `C⁺(b - C a)` is the minimiser (arg min), at `r = 0`
    measured: against `F = ẍ - a` of (28)"""
    rng = np.random.default_rng(1)
    C, a, c, r = rng.normal(size=(2, 5)), *rng.normal(size=(3, 5))
    b = rng.normal(size=2)
    free = np.eye(5) - pinv(C) @ C
    motion = pinv(C) @ b + free @ c  # (28)
    shortest = pinv(C) @ (b - C @ a)

    def force(vector: Array) -> Array:
        return np.asarray(shortest + free @ vector)

    longer = np.linalg.norm(force(r)) - np.linalg.norm(force(np.zeros(5)))
    return error(force(c), motion - a), max(error(force(c - a), motion - a), max(0.0, -longer))


@erratum("L15", "(35)")
def free_control_size() -> Errors:
    """printed: `s ∈ R^m`
    holds: `s ∈ R^p`, one entry for each input
    measured: entries that `s` lacks, m = 3 rows and p = 6 inputs"""
    x = instants()[7]
    CB = x.A_s @ np.linalg.solve(x.M, B)
    freedom = np.eye(6) - pinv(CB) @ CB
    return abs(len(CB) - freedom.shape[1]), abs(B.shape[1] - freedom.shape[1])


@erratum("L15", "(51)")
def column_sizes() -> Errors:
    """printed: the columns of link i are zero for `j ≥ i`
    holds: for `j > i`
    measured: largest entry of column i (smallest over the links), and of the columns beyond i"""
    q = np.array([0.3, -0.4, 0.8, 1.1, -0.9])
    J = partials(five_links().points, q)
    above = max(float(np.abs(J[i, :, i + 1 :]).max()) for i in range(4))
    own = min(float(np.abs(J[i, :, i]).max()) for i in range(5))
    return own, above


@erratum("L15", "(58)")
def first_link() -> Errors:
    """printed: `ẋ1 = + (l1/2) sin θ1 θ̇1`
    holds: `- (l1/2) sin θ1 θ̇1`
    measured: against differences of the position"""
    q = np.array([0.6, -0.4, 0.8, 1.1, -0.9])
    true = partials(five_links().points, q)[0, :, 0]
    half = np.array([np.sin(q[0]), np.cos(q[0])]) / 2
    return error(half, true), error(half * [-1.0, 1.0], true)


@erratum("L15", "(71)")
def least_norm() -> Errors:
    """printed: `u = (C B̄) + b̄`, the smallest of all controls
    holds: `u = (C B̄)⁺ b̄`; not the smallest of the whole system
    measured: largest excess of ‖u‖ over the minimum norm, five links (a 3×6 matrix plus three
        entries has no meaning); residual of (32) with `⁺`"""
    found = instants()
    printed = np.array([np.linalg.norm(figures_control(x)) for x in found])
    least = np.array([np.linalg.norm(smallest_control(x)) for x in found])
    rng = np.random.default_rng(2)
    A, M, inputs, b = rng.normal(size=(2, 4)), spd(rng, 4), rng.normal(size=(4, 5)), np.ones(2)
    CB = A @ power(M, -0.5) @ power(M, -0.5) @ inputs
    return float(np.max(printed / least) - 1), error(CB @ pinv(CB) @ b, b)


@erratum("L15", "(A1)")
def free_indices() -> Errors:
    """printed: column 2 of link 5 given twice, once as `l3 (-sin θ3, cos θ3)`
    holds: that is column 3; column 2 is `l2 (-sin θ2, cos θ2)`
    measured: against differences of the position"""
    q = np.array([0.3, -0.4, 0.8, 1.1, -0.9])
    J = partials(five_links().points, q)[4]
    second, third = (np.array([-np.sin(x), np.cos(x)]) for x in q[1:3])
    return error(third, J[:, 1]), max(error(third, J[:, 2]), error(second, J[:, 1]))


@erratum("L15", "(59)")
def angular_velocity() -> Errors:
    """printed: `ω = (…, 1, …) q`
    holds: `ω = (…, 1, …) v`
    measured: against the rates of the absolute angles"""
    q, v = np.array([0.3, -0.4, 0.8, 1.1, -0.9]), np.array([0.2, 0.7, -0.5, 0.1, 0.4])
    omega = rate(lambda x: five_links().turns @ x, q, v)
    return error(q, omega), error(v, omega)


@erratum("L15", "(34)")
def controllability() -> Errors:
    """printed: `rank(C B̄) ≥ 1` is necessary
    holds: (33) alone decides: `C B̄ = 0`, `b̄ = 0` is met
    measured: rank that `C B̄` lacks in a case that any u satisfies; residual of (32) in it"""
    CB, b = np.zeros((2, 3)), np.zeros(2)
    lacking = 1 - rank(CB)
    return lacking, error(CB @ pinv(CB) @ b, b)
