"""Named parts of one column: how an estimator's memory is laid out."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.linalg import Sym

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Memory:
    """Sizes of the parts of a memory, by name, in their order."""

    sizes: Mapping[str, int]

    @property
    def size(self) -> int:
        """Number of all entries."""
        return sum(self.sizes.values())

    @property
    def components(self) -> tuple[str, ...]:
        """A name for each entry."""
        return tuple(f"{name}{k}" for name, n in self.sizes.items() for k in range(n))

    def split(self, z: Sym) -> dict[str, Sym]:
        """Return the parts of a column, by name."""
        parts, at = {}, 0
        for name, n in self.sizes.items():
            parts[name] = z[at : at + n, 0]
            at += n
        return parts

    def join(self, parts: Mapping[str, Sym]) -> Sym:
        """Return the column of these parts, in the memory's order."""
        return ca.densify(ca.vertcat(*(parts[name] for name in self.sizes)))
