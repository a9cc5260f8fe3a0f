"""Constant rows of a QP, with their lengths, when the C is written."""

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description.qp_stages import ZERO_ROW

FULL_SHARE = 0.5
"""Rows with a greater share of nonzeros are stored with their zeros."""

FAR = 1e150
"""Above this, squares overflow."""


@dataclass(frozen=True)
class ConstantRows:
    """Constant rows.

    Attributes:
        A: (m, n) the rows.
    """

    A: NDArray[np.float64]

    @cached_property
    def length2(self) -> NDArray[np.float64]:
        """(m,) squared lengths."""
        squares: NDArray[np.float64] = np.sum(self.A**2, axis=1)
        return squares

    @property
    def scale(self) -> NDArray[np.float64]:
        """(m,) one over the lengths; zero for rows that count as zero."""
        longest = np.max(self.length2, initial=0.0)
        present = (self.length2 > ZERO_ROW**2 * longest) & (self.length2 >= np.finfo(float).tiny)
        return np.where(present, 1 / np.sqrt(np.where(present, self.length2, 1.0)), 0.0)

    @property
    def pattern(self) -> ca.Sparsity:
        """(m, n) where the rows are stored."""
        return stored_pattern(ca.sparsify(ca.DM(self.A)).sparsity())

    @property
    def nonzeros(self) -> list[float]:
        """The stored numbers, column by column."""
        return [float(number) for number in ca.project(ca.DM(self.A), self.pattern).nonzeros()]


def stored_pattern(pattern: ca.Sparsity) -> ca.Sparsity:
    """Return the pattern in which rows are stored: full where zeros are in the minority.

    Loops of a fixed length over whole columns are then the faster ones.
    """
    full = pattern.nnz() >= FULL_SHARE * pattern.numel()
    return ca.Sparsity.dense(*pattern.shape) if full else pattern


def constant_rows_of(function: ca.Function, far: float = FAR) -> ConstantRows | None:
    """Return the rows of the output A_qp; None where they depend on an input or exceed `far`."""
    place = function.name_out().index("A_qp")
    inputs = function.sx_in() if function.is_a("SXFunction") else function.mx_in()
    A_qp = function.call(inputs)[place]
    if not A_qp.is_constant():
        return None
    rows = ConstantRows(np.array(ca.densify(ca.evalf(A_qp)), dtype=float).reshape(A_qp.shape))
    with np.errstate(over="ignore", invalid="ignore"):
        finite = bool(np.sum(rows.length2) < far**2)
    return rows if finite else None
