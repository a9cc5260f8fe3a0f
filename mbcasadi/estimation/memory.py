"""What an estimator remembers: named parts of one column, which a broken one starts anew."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca

from mbcasadi.linalg import Sym

LARGEST_MEMORY = 1e15
"""Sum of the absolute entries of what is sound: a memory, or the outputs of a tick."""


def is_sound(*columns: Sym) -> Sym:
    """Return whether columns have no NaN, and entries no larger than any that are sensible."""
    return ca.sum1(ca.fabs(ca.vertcat(*columns))) <= LARGEST_MEMORY


def finite_outputs(
    outputs: Mapping[str, Sym], restart: Mapping[str, ca.DM | float]
) -> dict[str, Sym]:
    """Return outputs (·, 1) where all are sound, else those of `restart`, zero by default."""
    finite = is_sound(*outputs.values())
    return {
        key: ca.densify(ca.if_else(finite, x, ca.DM.zeros(x.shape) + restart.get(key, 0.0)))
        for key, x in outputs.items()
    }


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

    def recalled(self, z: Sym, first: Sym | ca.DM, *sound: Sym) -> tuple[dict[str, Sym], Sym]:
        """Return the parts of a memory, of the first one where it is broken, and whether it is not.

        `sound` is what else has to hold.
        """
        holds = is_sound(z)
        for condition in sound:
            holds = ca.logic_and(holds, condition)
        return self.split(ca.if_else(holds, z, first)), holds

    def join(self, parts: Mapping[str, Sym]) -> Sym:
        """Return the column of these parts, in the memory's order."""
        return ca.densify(ca.vertcat(*(parts[name] for name in self.sizes)))
