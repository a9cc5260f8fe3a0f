"""Constant rows of a QP, scaled to unit length when the C is written.

    min ½ xᵀx,  lba <= A x <= uba     has the same x as     lba_i d_i <= (A_i d_i) x <= uba_i d_i

with `d_i = 1 / ‖A_i‖`. The multiplier of row i of the first is `d_i` times that of the second. A
row that counts as zero has `d_i = 0`: the solver never activates it.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description.qp_stages import ZERO_ROW

FAR = 1e150
"""Above this, squares overflow."""


@dataclass(frozen=True)
class UnitRows:
    """Constant rows.

    Attributes:
        A: (m, n) the rows, zero where they count as zero, of unit length elsewhere.
        scale: (m,) `1 / ‖A_i‖` of the given rows.
    """

    A: NDArray[np.float64]
    scale: NDArray[np.float64]


def unit_rows(function: ca.Function) -> UnitRows | None:
    """Return the rows of the output A_qp; None where they depend on an input or are not finite."""
    place = function.name_out().index("A_qp")
    inputs = function.sx_in() if function.is_a("SXFunction") else function.mx_in()
    A_qp = function.call(inputs)[place]
    if not A_qp.is_constant():
        return None
    A = np.array(ca.densify(ca.evalf(A_qp)), dtype=float).reshape(A_qp.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.sum(A**2, axis=1)
    if not np.sum(squares) < FAR**2:
        return None
    longest = np.max(squares, initial=0.0)
    present = (squares > ZERO_ROW**2 * longest) & (squares >= np.finfo(float).tiny)
    scale = np.where(present, 1 / np.sqrt(np.where(present, squares, 1.0)), 0.0)
    return UnitRows(A * scale[:, None], scale)
