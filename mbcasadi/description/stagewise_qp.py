"""A quadratic program over the intervals of a horizon: sizes, patterns, the places of its data.

    min  Σ_k ½ yᵀ H y + gᵀ z  +  ½ xᵀ H_N x + g_Nᵀ x,    z = (u, a, b),   x = (a, b),   x_0 given
    s.t. b⁺ = w_b + d_b,   a⁺ = Φ a + Γ b⁺ + d_a,   lower <= G y <= upper,   of x_N likewise
    y = (z, w),    w = F z

The first entries of w are w_b; the others are what else costs and rows depend on, such as
multipliers of constraints. F may be full; H and G are sparse where each cost and row depends on few
entries of y.
`a` are positions along the tangent, which follow from the rates b⁺ at the end of the interval (a
semi-implicit step); Φ is one and Γ the length of the interval but for rotations, blocks of three. A
problem without this structure has no `a`. A row may be violated by e at the price t₁ e + ½ t₂ e².
"""

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.short_text import summarised


@dataclass(frozen=True)
class StagewiseRows:
    """Rows over y of an interval, or over x at the end.

    Attributes:
        G: (rows, ny) or (rows, nx) pattern.
        prices: (rows, 2) of t₁ and t₂ for each row, infinite where it is hard.
        stiffness: (rows,) scale of the multiplier over the violation of each row, positive: the
            curvature of the cost along it.
        sides: (rows, 2) whether a row has a lower and an upper bound. The data say ±1e30 where it
            has none, or at the first interval.
        free_at_first: rows without bounds at the first interval, whose state is given.
    """

    G: ca.Sparsity
    prices: NDArray[np.float64]
    stiffness: NDArray[np.float64]
    sides: NDArray[np.bool_]
    free_at_first: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.G.size1())


@summarised
@dataclass(frozen=True)
class StagewiseQP:
    """Sizes and patterns, equal in all intervals. Its data are one column (`size`,).

    Attributes:
        horizon: number of intervals N.
        nu, na, nb: sizes of u, a and b; na is 0, or b begins with the rates of a.
        F: (nf, nz) pattern, nf >= nb.
        H, H_end: (ny, ny), (nx, nx) patterns of upper triangles.
        inside, at_end: rows of an interval and of the end.
        rotations: first coordinates in a of the rotations, three each.
        step: length of an interval, in Γ, s; None where each has its own in its column.
        units: (nz,) sizes of z, positive: steps along its coordinates that cost about one.
        accuracy: largest violation at the end of the solver, relative to values and multipliers of
            the rows.
    """

    horizon: int
    nu: int
    na: int
    nb: int
    F: ca.Sparsity
    H: ca.Sparsity
    H_end: ca.Sparsity
    inside: StagewiseRows
    at_end: StagewiseRows
    rotations: tuple[int, ...]
    step: float | None
    units: NDArray[np.float64]
    accuracy: float = 1e-10

    def _summary(self) -> dict[str, object]:
        return {"horizon": self.horizon, "nx": self.nx, "nu": self.nu, "rows": self.inside.count}

    @property
    def nx(self) -> int:
        """Size of the state (a, b)."""
        return self.na + self.nb

    @property
    def nz(self) -> int:
        """Size of z."""
        return self.nu + self.nx

    @property
    def nf(self) -> int:
        """Size of w."""
        return int(self.F.size1())

    @property
    def ny(self) -> int:
        """Size of y."""
        return self.nz + self.nf

    @property
    def n(self) -> int:
        """Unknowns: z of all intervals."""
        return self.horizon * self.nz

    @property
    def m(self) -> int:
        """Rows of all intervals, then of the end."""
        return self.horizon * self.inside.count + self.at_end.count

    @cached_property
    def column(self) -> dict[str, slice]:
        """Places in the column of an interval: nonzeros of matrices, Gᵀ row by row of G."""
        sizes = {
            "F": self.F.nnz(),
            "Phi": 9 * len(self.rotations),
            "Gamma": 9 * len(self.rotations),
            "d_a": self.na,
            "d_b": self.nb,
            "H": self.H.nnz(),
            "g": self.nz,
            **_sizes_of(self.inside),
            **({"step": 1} if self.step is None else {}),
        }
        return _places(sizes)

    @cached_property
    def end(self) -> dict[str, slice]:
        """Places in what is behind all columns."""
        return _places({"H": self.H_end.nnz(), "g": self.nx, **_sizes_of(self.at_end)})

    @property
    def column_size(self) -> int:
        """Entries of the column of an interval."""
        return int(max(place.stop for place in self.column.values()))

    @property
    def end_size(self) -> int:
        """Entries behind all columns."""
        return int(self.end["upper"].stop)

    @property
    def size(self) -> int:
        """Entries of the data."""
        return self.horizon * self.column_size + self.end_size


def _sizes_of(rows: StagewiseRows) -> dict[str, int]:
    return {"G": rows.G.nnz(), "lower": rows.count, "upper": rows.count}


def _places(sizes: dict[str, int]) -> dict[str, slice]:
    ends = np.cumsum([0, *sizes.values()]).tolist()
    return {name: slice(ends[i], ends[i + 1]) for i, name in enumerate(sizes)}
