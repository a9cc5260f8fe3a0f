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
from .finding import Finding
from .mechanisms import five_links
from .numerics import Array, error, partials, pinv, power, rank, rate, spd


def constraint_equation() -> Finding:
    """Return the check of (5) on the two robots."""
    x = instants()[9]
    h = np.array([x.t]), np.ones(1)
    a = rate(lambda s: rate(lambda t: pose(t[0]), s, h[1]), *h)
    return Finding(
        "L15",
        "(5)",
        printed="`A = b`",
        correct="`A a = b`",
        printed_error=x.A.size - x.b.size,
        correct_error=error(x.A @ a, x.b),
        note=(
            "entries of `A` without a partner in `b`, two robots; ‖A a - b‖ along the "
            "prescribed motion"
        ),
    )


def total_rate() -> Finding:
    """Return the check of (20), (21): the rate of an entry."""
    v = np.array([0.4, -0.8, 1.1])

    def entry(x: Array) -> Array:
        return np.array([np.sin(x[0] * x[1]) + x[2] ** 2 * x[0] + np.cos(x[3] * x[1])])

    x = np.array([0.3, 0.7, -0.5, 1.2])  # q, t
    slopes = partials(entry, x)[0]
    true = rate(entry, x, np.append(v, 1.0))[0]
    printed = [3 * slopes[k] * v[k] + slopes[3] for k in range(3)]
    return Finding(
        "L15",
        "(20), (21)",
        printed="`Σ_i (∂A_l/∂q_k) v_k + ∂A_l/∂t`",
        correct="the sum runs over k",
        printed_error=min(error(p, true) for p in printed),
        correct_error=error(slopes[:3] @ v + slopes[3], true),
        note="against the rate along a motion; as printed for the best choice of k",
    )


def feeling_reaction() -> Finding:
    """Return the check of (14), (16), (35) on the two robots."""
    found = instants()
    printed = [misses(x, printed_control(x), feels=False)[0] for x in found]
    figures = np.array([figures_control(x) for x in found])
    smallest = np.array([smallest_control(x) for x in found])
    held = [
        max(misses(x, u, feels=True))
        for c in (figures, smallest)
        for x, u in zip(found, c, strict=True)
    ]
    return Finding(
        "L15",
        "(14), (16), (35)",
        printed="`Qᶜ` from `Q` alone",
        correct=(
            "`Qᶜ(Q + B u)`; minimum norm: `u = (A_s G B)⁺ (b_s - A_s a₀)`, `G = M⁻¹ - M⁻¹Aᵀ(A "
            "M⁻¹Aᵀ)⁺A M⁻¹`, `a₀` the motion at `u = 0`"
        ),
        printed_error=max(printed),
        correct_error=max(held),
        note=(
            "two robots, largest component of `A a - b` over one period; with either consistent "
            "control of the table above, of `A_s a - b_s` too"
        ),
    )


def free_vectors() -> Finding:
    """Return the check of (29), (30): the free vector of the servo force."""
    rng = np.random.default_rng(1)
    C, a, c, r = rng.normal(size=(2, 5)), *rng.normal(size=(3, 5))
    b = rng.normal(size=2)
    free = np.eye(5) - pinv(C) @ C
    motion = pinv(C) @ b + free @ c  # (28)
    shortest = pinv(C) @ (b - C @ a)

    def force(vector: Array) -> Array:
        return np.asarray(shortest + free @ vector)

    longer = np.linalg.norm(force(r)) - np.linalg.norm(force(np.zeros(5)))
    return Finding(
        "L15",
        "(29), (30)",
        printed="`F = C⁺(b - C a) + (I - C⁺C) c` with the c of (28), `min ‖F‖ = C⁺(b - C a)`",
        correct="with `r = c - a`; `C⁺(b - C a)` is the minimiser (arg min), at `r = 0`",
        printed_error=error(force(c), motion - a),
        correct_error=max(error(force(c - a), motion - a), max(0.0, -longer)),
        note="against `F = ẍ - a` of (28)",
    )


def free_control_size() -> Finding:
    """Return the check of the size of s in (35)."""
    x = instants()[7]
    CB = x.A_s @ np.linalg.solve(x.M, B)
    freedom = np.eye(6) - pinv(CB) @ CB
    return Finding(
        "L15",
        "(35)",
        printed="`s ∈ R^m`",
        correct="`s ∈ R^p`, one entry for each input",
        printed_error=abs(len(CB) - freedom.shape[1]),
        correct_error=abs(B.shape[1] - freedom.shape[1]),
        note="entries that `s` lacks, m = 3 rows and p = 6 inputs",
    )


def column_sizes() -> Finding:
    """Return the check of (51): which columns vanish."""
    q = np.array([0.3, -0.4, 0.8, 1.1, -0.9])
    J = partials(five_links().points, q)
    above = max(float(np.abs(J[i, :, i + 1 :]).max()) for i in range(4))
    own = min(float(np.abs(J[i, :, i]).max()) for i in range(5))
    return Finding(
        "L15",
        "(51)",
        printed="the columns of link i are zero for `j ≥ i`",
        correct="for `j > i`",
        printed_error=own,
        correct_error=above,
        note="largest entry of column i (smallest over the links), and of the columns beyond i",
    )


def first_link() -> Finding:
    """Return the check of (58): the velocity of the first link."""
    q = np.array([0.6, -0.4, 0.8, 1.1, -0.9])
    true = partials(five_links().points, q)[0, :, 0]
    half = np.array([np.sin(q[0]), np.cos(q[0])]) / 2
    return Finding(
        "L15",
        "(58)",
        printed="`ẋ1 = + (l1/2) sin θ1 θ̇1`",
        correct="`- (l1/2) sin θ1 θ̇1`",
        printed_error=error(half, true),
        correct_error=error(half * [-1.0, 1.0], true),
        note="against differences of the position",
    )


def least_norm() -> Finding:
    """Return the check of (71): the control of minimum norm."""
    found = instants()
    printed = np.array([np.linalg.norm(figures_control(x)) for x in found])
    least = np.array([np.linalg.norm(smallest_control(x)) for x in found])
    rng = np.random.default_rng(2)
    A, M, inputs, b = rng.normal(size=(2, 4)), spd(rng, 4), rng.normal(size=(4, 5)), np.ones(2)
    CB = A @ power(M, -0.5) @ power(M, -0.5) @ inputs
    return Finding(
        "L15",
        "(71)",
        printed="`u = (C B̄) + b̄`, the smallest of all controls",
        correct="`u = (C B̄)⁺ b̄`; not the smallest of the whole system",
        printed_error=float(np.max(printed / least) - 1),
        correct_error=error(CB @ pinv(CB) @ b, b),
        note=(
            "largest excess of ‖u‖ over the minimum norm, five links (a 3×6 matrix plus three "
            "entries has no meaning); residual of (32) with `⁺`"
        ),
    )


def free_indices() -> Finding:
    """Return the check of (A1): the columns of the linear Jacobians."""
    q = np.array([0.3, -0.4, 0.8, 1.1, -0.9])
    J = partials(five_links().points, q)[4]
    second, third = (np.array([-np.sin(x), np.cos(x)]) for x in q[1:3])
    return Finding(
        "L15",
        "(A1)",
        printed="column 2 of link 5 given twice, once as `l3 (-sin θ3, cos θ3)`",
        correct="that is column 3; column 2 is `l2 (-sin θ2, cos θ2)`",
        printed_error=error(third, J[:, 1]),
        correct_error=max(error(third, J[:, 2]), error(second, J[:, 1])),
        note="against differences of the position",
    )


def angular_velocity() -> Finding:
    """Return the check of (59): the angular velocities."""
    q, v = np.array([0.3, -0.4, 0.8, 1.1, -0.9]), np.array([0.2, 0.7, -0.5, 0.1, 0.4])
    omega = rate(lambda x: five_links().turns @ x, q, v)
    return Finding(
        "L15",
        "(59)",
        printed="`ω = (…, 1, …) q`",
        correct="`ω = (…, 1, …) v`",
        printed_error=error(q, omega),
        correct_error=error(v, omega),
        note="against the rates of the absolute angles",
    )


def controllability() -> Finding:
    """Return the check of (34): when servo rows can be realised."""
    CB, b = np.zeros((2, 3)), np.zeros(2)
    lacking = 1 - rank(CB)
    return Finding(
        "L15",
        "(34)",
        printed="`rank(C B̄) ≥ 1` is necessary",
        correct="(33) alone decides: `C B̄ = 0`, `b̄ = 0` is met",
        printed_error=lacking,
        correct_error=error(CB @ pinv(CB) @ b, b),
        note="rank that `C B̄` lacks in a case that any u satisfies; residual of (32) in it",
    )
