"""The interface of all formulations: their arguments, and the motion that they return."""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple

from mbcasadi.linalg import Sym
from mbcasadi.shapes import require_shape, require_square
from mbcasadi.short_text import summarised


@summarised
class ConstrainedMotion(NamedTuple, Generic[Sym]):
    """Solution of `M a + h = f + Aᵀ lam`, `A a + c = 0`.

    Fields: `a` (nv, 1) acceleration; `f_c` (nv, 1) constraint force `Aᵀ lam`; `lam` (nc, 1)
    multipliers of minimum Euclidean norm, which depend on the units of rows that repeat; a and f_c
    do not.
    """

    a: Sym
    f_c: Sym
    lam: Sym


def require_motion(M: Sym, h: Sym, f: Sym, A: Sym, c: Sym) -> None:
    """Raise `ShapeError` unless the arguments of a formulation fit together.

    Args:
        M: (nv, nv).
        h, f: (nv, 1).
        A, c: (nc, nv), (nc, 1).
    """
    require_square("M", M)
    nv, nc = M.shape[0], A.shape[0]
    require_shape("h", h, (nv, 1), "(nv, 1)")
    require_shape("f", f, (nv, 1), "(nv, 1)")
    require_shape("A", A, (nc, nv), "(nc, nv)")
    require_shape("c", c, (nc, 1), "(nc, 1)")


Equations = Callable[..., ConstrainedMotion[Any]]
"""A formulation, called as `equations(M, h, f, A, c, **options)`. The kind of matrices and the
options differ from one to the next, which a type of callables cannot express."""
