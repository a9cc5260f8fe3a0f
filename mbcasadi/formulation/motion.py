"""What every formulation returns."""

from typing import Generic, NamedTuple

from mbcasadi.linalg import Sym


class ConstrainedMotion(NamedTuple, Generic[Sym]):
    """Solution of `M a + h = f + Aᵀ lam`, `A a + c = 0`.

    Fields: `a` (nv, 1) acceleration; `f_c` (nv, 1) constraint force `Aᵀ lam`; `lam` (nc, 1)
    multipliers of minimum norm.
    """

    a: Sym
    f_c: Sym
    lam: Sym
