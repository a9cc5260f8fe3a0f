"""The interface of all formulations: their arguments, and the motion that they return."""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple

from mbcasadi.linalg import Sym


class ConstrainedMotion(NamedTuple, Generic[Sym]):
    """Solution of `M a + h = f + Aᵀ lam`, `A a + c = 0`.

    Fields: `a` (nv, 1) acceleration; `f_c` (nv, 1) constraint force `Aᵀ lam`; `lam` (nc, 1)
    multipliers of minimum Euclidean norm, which depend on the units of rows that repeat; a and f_c
    do not.
    """

    a: Sym
    f_c: Sym
    lam: Sym


Equations = Callable[..., ConstrainedMotion[Any]]
"""A formulation, called as `equations(M, h, f, A, c, **options)`. The kind of matrices and the
options differ from one to the next, which a type of callables cannot express."""
