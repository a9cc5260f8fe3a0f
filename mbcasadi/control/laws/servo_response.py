"""The response of servo rows to accelerations and controls, scaled so that rounding is small.

Whether a response `A_s G B` is zero cannot be decided from its entries: where no control has an
effect they are rounding errors, of any rank. The matrices that it is made of decide it. Each
coordinate is measured in `g_j = √(M̄⁻¹)_jj`, so that kinetic energy has one unit, and each row and
control by its own length in these:

    r_i = ‖A_s,i g‖,   s_j = ‖g B_j‖,   K = r (Â Ĝ B̂) s,   Â, Ĝ, B̂ of the size one

A singular value of `Â Ĝ B̂` below a tolerance is zero, in all units of the model.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ServoResponse:
    """Servo rows, motion and actuation in scaled coordinates.

    Attributes:
        rows: (k, nv) Â, rows of the length one, or zero.
        motion: (k, nv) `Â Ĝ`.
        control: (k, nu) `Â Ĝ B̂`.
        G: (nv, nv) Ĝ.
        scale: (k,) r, one for a row that is zero.
        tol: singular value that counts as zero.
    """

    rows: Array
    motion: Array
    control: Array
    G: Array
    scale: Array
    tol: float

    def rank(self, X: Array) -> int:
        """Return the rank of one of the scaled matrices."""
        return int(np.sum(np.linalg.svd(X, compute_uv=False) > self.tol))

    def range(self, X: Array) -> Array:
        """Return orthonormal columns that span the range of a scaled matrix."""
        U, sizes, _ = np.linalg.svd(X, full_matrices=False)
        return np.asarray(U[:, sizes > self.tol])

    def beyond(self, large: Array, small: Array) -> list[Array]:
        """Return orthonormal columns of range(large) that are orthogonal to range(small)."""
        large_basis, small_basis = self.range(large), self.range(small)
        remainder = large_basis - small_basis @ (small_basis.T @ large_basis)
        U, sizes, _ = np.linalg.svd(remainder, full_matrices=False)
        return [U[:, i] for i in range(sizes.size) if sizes[i] > np.sqrt(self.tol)]

    def unreachable_part(self, X: Array, b: Array, size: Array) -> Array:
        """Return the part of b (k,) outside range(X), exactly zero where it is rounding.

        Args:
            X: (k, n) `motion` or `control`.
            b: (k,) in the rows' own units; the part is the least one in these.
            size: (k,) of the terms that b is the sum of.
        """
        basis = np.linalg.qr(self.scale[:, None] * self.range(X))[0]
        remainder = b - basis @ (basis.T @ b)
        rounding = self.tol * self.scale * np.max(size / self.scale, initial=0.0)
        return remainder if np.any(np.abs(remainder) > rounding) else np.zeros_like(b)


def servo_response(A_s: Array, G: Array, B: Array, inverse: Array, tol: float) -> ServoResponse:
    """Return the scaled response.

    Args:
        A_s: (k, nv) servo rows.
        G: (nv, nv) `(P M P)⁺`.
        B: (nv, nu) actuation.
        inverse: (nv, nv) `M̄⁻¹`, G with `1/μ` across the constraints: never pure rounding.
        tol: singular value that counts as zero.
    """
    unit = np.sqrt(np.abs(inverse.diagonal()))
    rows, actuation, G_hat = A_s * unit, unit[:, None] * B, G / np.outer(unit, unit)
    scale, strength = np.linalg.norm(rows, axis=1), np.linalg.norm(actuation, axis=0)
    scale, strength = (np.where(length > 0, length, 1.0) for length in (scale, strength))
    rows = rows / scale[:, None]
    motion = rows @ G_hat
    return ServoResponse(rows, motion, motion @ (actuation / strength), G_hat, scale, tol)
