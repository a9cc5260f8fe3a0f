"""The free motions of a mechanism at measured states: what its actuators determine.

`M a + h = f + f_passive + Aᵀ lam` holds an unknown lam. Along the columns of Z, a basis of null(A),
`Zᵀ (Y θ + y_0) = Zᵀ f` does not. Z is orthonormal in the sizes of the coordinates, so that no unit
of a joint changes the weight of a row.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.system import System, evaluate
from mbcasadi.system.sizes import residual_sizes

Array = NDArray[np.float64]

RANK_TOL = 1e-6
"""Singular values of A, in sizes, that count as zero: those of redundant rows in a closed pose."""

CLOSING_STEPS = 10
"""Newton's steps; measured poses are near closed ones."""

CLOSED = 1e-12
"""Residual over its size at which a pose is closed."""


class FreeMotion:
    """The constraints of one system, with its initial mask, in sizes."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.size = np.asarray(system.scales.coordinates)
        self._rows = residual_sizes(system)
        self._on = np.ones(system.nc) if system.mask is None else np.asarray(system.mask)

    def basis(self, q: Array, v: Array) -> Array:
        """Return Z (nv, k): `A Z = 0`, columns orthonormal over the sizes of the coordinates."""
        if not self.system.nc:
            return np.asarray(np.diag(self.size))
        _, values, right = np.linalg.svd(self._sized_rows(q, v))
        rank = int(np.sum(values > RANK_TOL * values.max(initial=0.0)))
        return np.asarray(self.size[:, None] * right[rank:].T)

    def closed(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        """Return the nearest q, v, a that obey the constraints."""
        if not self.system.nc:
            return q, v, a
        still = np.zeros(self.system.nv)
        for _ in range(CLOSING_STEPS):
            phi = self._member("constraint", q, still)
            if np.abs(phi).max() <= CLOSED:
                break
            q = self.system.integrate(q, self._correction(q, still, phi)).full().ravel()
        v = v + self._correction(q, v, self._member("loop_rate", q, v))
        A, size = self._sized_rows(q, v), self.size
        c = self._member("loop_bias", q, v)
        a = a - size * (np.linalg.pinv(A, rcond=RANK_TOL) @ (A @ (a / size) + c))
        return q, v, a

    def _correction(self, q: Array, v: Array, residual: Array) -> Array:
        """Return the least step (nv,) that removes a residual."""
        inverse = np.linalg.pinv(self._sized_rows(q, v), rcond=RANK_TOL)
        return np.asarray(-self.size * (inverse @ residual))

    def _sized_rows(self, q: Array, v: Array) -> Array:
        values: dict[str, ArrayLike] = {"q": q, "v": v, "t": 0.0}
        A = evaluate(self.system.loop_jacobian, values).full()
        return np.asarray((self._on / self._rows)[:, None] * A * self.size)

    def _member(self, name: str, q: Array, v: Array) -> Array:
        values: dict[str, ArrayLike] = {"q": q, "v": v, "t": 0.0}
        return np.asarray(
            evaluate(self.system.member(name), values).full().ravel() * self._on / self._rows
        )
