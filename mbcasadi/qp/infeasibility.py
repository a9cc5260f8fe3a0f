"""A proof that no point satisfies the rows `lba <= A x <= uba`.

By Farkas' lemma there is none if numbers r exist with

    Aᵀ r = 0,    Σ (uba_i if r_i > 0 else lba_i) r_i < 0,

for `rᵀ A x` would be zero and negative at once. A solver gives r with rounding errors: what is
proven here is that no point lies within a large distance of zero. DAQP finds r where it stops with
"infeasible"; the exported C does the same test.
"""

import casadi as ca

from mbcasadi.description.qp_stages import PROOF_RADIUS, PROOF_ROUNDING, RAY_ROUNDING, UNBOUNDED
from mbcasadi.linalg.symbols import Sym


def proves_infeasible(A: Sym, lba: Sym, uba: Sym, ray: Sym, unit: Sym) -> Sym:
    """Return whether r proves that no point nearer to zero than `PROOF_RADIUS unit` is feasible.

        Σ bound_i r_i + PROOF_RADIUS unit |Aᵀ r| + PROOF_ROUNDING Σ |bound_i r_i| < 0

    Args:
        A, lba, uba: (m, n), (m,), (m,); `UNBOUNDED` or infinity where there is no bound.
        ray: (m,) r.
        unit: size of x to which the radius refers.
    """
    size = ca.mmax(ca.fabs(ray))
    r = ca.if_else(ca.fabs(ray) > RAY_ROUNDING * size, ray / ca.if_else(size > 0, size, 1), 0)
    upper, lower = ca.fmin(uba, UNBOUNDED), ca.fmax(lba, -UNBOUNDED)
    work = r * ca.if_else(r > 0, upper, lower)
    slope = ca.norm_2(ca.densify(A.T @ r))
    error = PROOF_RADIUS * unit * slope + PROOF_ROUNDING * ca.sum1(ca.fabs(work))
    return ca.sum1(work) + error < 0
