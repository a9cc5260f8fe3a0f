"""Constrained motion by the equation of Udwadia and Kalaba, non-ideal forces included.

With a root `M = W Wᵀ`, the acceleration in the unit `s = Wᵀ a` turns the kinetic metric into
the Euclidean one, and of all accelerations that the constraint admits nature takes the one
nearest to the free one (Gauss):

    s = s_free + B⁺ (b - B s_free) + (I - B⁺ B) W⁻¹ C,   B = A W⁻ᵀ,  b = -c   [L15, eq. 13]

`C` is the force that the constraint exerts beside its ideal one: its work on any virtual
displacement `w`, `A w = 0`, is `Cᵀ w`. The rank is decided on the rows of `A`, as in every
other formulation, not on those of `B`: a heavy body must not make a row look like a repeated
one.
"""

from typing import Generic, NamedTuple

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.formulation.motion import ConstrainedMotion, require_motion
from mbcasadi.formulation.root import constraint_basis, root_factor
from mbcasadi.linalg import RANK_TOL, Sym
from mbcasadi.shapes import require_shape


class SplitMotion(NamedTuple, Generic[Sym]):
    """Solution of `M a + h = f + f_ideal + f_n`, `A a + c = 0`.

    Fields: `a` (nv, 1) acceleration; `f_ideal` (nv, 1) force `Aᵀ lam`, which does no work on
    virtual displacements; `f_n` (nv, 1) non-ideal force, `A M⁻¹ f_n = 0`; `lam` (nc, 1)
    multipliers of minimum norm.
    """

    a: Sym
    f_ideal: Sym
    f_n: Sym
    lam: Sym


@checked
def udwadia_kalaba(
    M: Sym,
    h: Sym,
    f: Sym,
    A: Sym,
    c: Sym,
    *,
    row_scale: Sym | ca.DM | float = 1.0,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
    root: str = "cholesky",
    f_nonideal: Sym | ca.DM | None = None,
) -> ConstrainedMotion[Sym]:
    """Return `a = M⁻¹ (f - h + f_ideal + f_n)` and `f_c = f_ideal + f_n`  [L15, eq. 13].

    Both roots give the same motion. The Cholesky factor costs a fraction of the symmetric root
    and keeps the zeros of a kinematic tree; L15 uses the symmetric one.

    Args:
        M: (nv, nv) inertia, symmetric positive definite.
        h: (nv, 1) bias force, passive forces subtracted.
        f: (nv, 1) applied force.
        A: (nc, nv) constraint Jacobian, of any rank.
        c: (nc, 1) constraint bias, `A a + c = 0`; L15 writes `b = -c`.
        row_scale, rank_tol, pivot: drop rule of `linalg.row_basis`.
        root: "cholesky" or "symmetric".
        f_nonideal: (nv, 1) prescribed force of the constraint, `C` of L15 (friction, say); the
            constraint takes up a part of it, see `nonideal_split`.

    Raises:
        UnknownNameError: no such root; the message lists the names.
        ShapeError: `f_nonideal` has another shape than `f`.
    """
    require_motion(M, h, f, A, c)
    if f_nonideal is not None:
        require_shape("f_nonideal", f_nonideal, (M.shape[0], 1), "(nv, 1)")
    split = nonideal_split(
        M,
        h,
        f,
        A,
        c,
        f_nonideal,
        row_scale=row_scale,
        rank_tol=rank_tol,
        pivot=pivot,
        root=root,
    )
    return ConstrainedMotion(split.a, split.f_ideal + split.f_n, split.lam)


def nonideal_split(
    M: Sym,
    h: Sym,
    f: Sym,
    A: Sym,
    c: Sym,
    f_nonideal: Sym | ca.DM | None = None,
    *,
    row_scale: Sym | ca.DM | float = 1.0,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
    root: str = "cholesky",
) -> SplitMotion[Sym]:
    """Return the motion with its constraint force in two parts  [L15, eq. 11-13].

    `f_ideal = W B⁺ (b - A M⁻¹ (f - h))` and `f_n = W (I - B⁺ B) W⁻¹ C`. With `Aᵀ = V ...` the
    rows of `Vᵀ W⁻ᵀ` are independent, and `W⁻¹ V = Y R` gives `B⁺` without squaring the
    condition of `M`; `W Y = V R⁻¹` keeps `f_ideal` within range(Aᵀ) to rounding.

    Args:
        M, h, f, A, c: as in `udwadia_kalaba`.
        f_nonideal: (nv, 1) prescribed force of the constraint, or None.
        row_scale, rank_tol, pivot: drop rule of `linalg.row_basis`.
        root: "cholesky" or "symmetric".

    Raises:
        UnknownNameError, ShapeError: as in `udwadia_kalaba`.
    """
    if f_nonideal is not None:
        require_shape("f_nonideal", f_nonideal, f.shape, "the shape of f")
    factor = root_factor(M, root)
    rows = constraint_basis(factor, A, row_scale=row_scale, rank_tol=rank_tol, pivot=pivot)
    Y = rows.V1
    s = factor.divide(f - h)
    s_ideal = rows.rate(c) - Y.T @ s  # added to the free motion by the constraint
    f_ideal = rows.force(s_ideal)
    s, f_n = s + Y @ s_ideal, 0 * f
    if f_nonideal is not None:
        prescribed = factor.divide(f_nonideal + 0 * f)
        resisted = Y.T @ prescribed  # the share that the constraint itself takes up
        s += prescribed - Y @ resisted
        f_n = f_nonideal - rows.force(resisted)
    lam = rows.factor.pinv_transposed_times(f_ideal)
    return SplitMotion(factor.divide_transposed(s), f_ideal, f_n, lam)


def gauss_deviation(M: Sym, a: Sym, a_free: Sym) -> Sym:
    """Return `(a - a_free)ᵀ M (a - a_free)`, least among all admissible `a` for the motion.

    This is Gauss's principle of least constraint, from which L15 takes eq. 11; `a_free` is
    `M⁻¹ (f - h)`, or `M⁻¹ (f - h + C)` with a non-ideal force `C`.
    """
    return (a - a_free).T @ M @ (a - a_free)
