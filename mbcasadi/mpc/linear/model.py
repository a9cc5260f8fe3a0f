"""A linear system in discrete time, and its bounded outputs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import bounds, real_array, require_each
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]


@summarised
@dataclass(frozen=True)
class LinearModel:
    """`x_next = A x + B u + drift` from one sample to the next.

    Attributes:
        A, B, drift: (nx, nx), (nx, nu), (nx,); or with a leading axis (N, ...), one for each
            interval of the horizon, for a system that varies with time.
        period: sample time, s.
    """

    A: Array
    B: Array
    drift: Array
    period: float

    @classmethod
    @checked
    def of(
        cls, A: ArrayLike, B: ArrayLike, period: float, drift: ArrayLike | None = None
    ) -> "LinearModel":
        """Return the checked model.

        Args:
            A, B: (nx, nx), (nx, nu), or with a leading axis (N, ...).
            period: sample time, s.
            drift: (nx,), or (N, nx); zero by default.

        Raises:
            ShapeError: matrices that do not fit together, or NaN.
            ProblemError: a period that is not positive.
        """
        a, b = real_array("A", A), real_array("B", B)
        nx = a.shape[-1] if a.ndim else 0
        if a.ndim not in {2, 3} or b.ndim != a.ndim or a.shape[-2] != nx or b.shape[-2] != nx:
            raise ShapeError(
                f"A has shape {a.shape} and B {b.shape}, expected (nx, nx) and (nx, nu), both "
                "with a leading axis of intervals or both without"
            )
        d = np.zeros(a.shape[:-1]) if drift is None else real_array("drift", drift)
        if d.shape != a.shape[:-1]:
            raise ShapeError(f"drift has shape {d.shape}, expected {a.shape[:-1]}")
        if not all(np.all(np.isfinite(part)) for part in (a, b, d)):
            raise ShapeError("A, B or drift holds NaN or infinity; expected finite numbers")
        if not (np.isfinite(period) and period > 0):
            raise ProblemError(f"period = {period}; expected a finite, positive number, s")
        return cls(a, b, d, float(period))

    @property
    def nx(self) -> int:
        """Size of the state."""
        return int(self.A.shape[-1])

    @property
    def nu(self) -> int:
        """Size of the control."""
        return int(self.B.shape[-1])

    @property
    def varies(self) -> bool:
        """Whether each interval has matrices of its own."""
        return self.A.ndim == 3

    @checked
    def interval(self, k: int) -> tuple[Array, Array, Array]:
        """Return A, B and drift of the interval k."""
        if not self.varies:
            return self.A, self.B, self.drift
        if not 0 <= k < len(self.A):
            raise ProblemError(f"k = {k}; expected an interval from 0 to {len(self.A) - 1}")
        return self.A[k], self.B[k], self.drift[k]


@readable_fields
@summarised
@dataclass(frozen=True)
class Output:
    """Rows `lower <= C x_k + D u_k <= upper` at every sample.

    Rows with D = 0 hold at k = 1..N, the others at k = 0..N-1.

    Attributes:
        name: prefix of the rows' names.
        C, D: (ny, nx), (ny, nu).
        lower, upper: (ny,), infinite where there is none.
        linear_penalty, quadratic_penalty: ρ₁, ρ₂ of a soft output; both zero for a hard one. The
            least ρ₂ of a row is that of `Bounded`.
            Above the largest multiplier of the hard problem, ρ₁ is exact: the bound is violated
            only where no solution satisfies it.
    """

    name: str
    C: Array
    D: Array
    lower: Array
    upper: Array
    linear_penalty: float = 0.0
    quadratic_penalty: float = 0.0

    def __post_init__(self) -> None:
        require_fields(self)

    @property
    def soft(self) -> bool:
        """Whether the rows may be violated with slack."""
        return self.linear_penalty > 0 or self.quadratic_penalty > 0

    @property
    def rows(self) -> tuple[str, ...]:
        """One name for each row: the output's own where there is one row."""
        count = len(self.C)
        return (self.name,) if count == 1 else tuple(f"{self.name}{i}" for i in range(count))


def check_outputs(outputs: Sequence[Output], nx: int, nu: int) -> tuple[Output, ...]:
    """Return the outputs with their numbers as arrays of the right shape.

    Raises:
        ShapeError, ProblemError: they are no list, have wrong shapes, or are empty.
    """
    require_each("outputs", outputs, Output)
    return tuple(_check_output(output, nx, nu) for output in outputs)


def end_of(label: str, value: ArrayLike, count: int) -> Array:
    """Return the (count,) lower or upper ends of rows from one number, or one for each.

    Raises:
        ShapeError: another number of them.
    """
    given = real_array(label, value)
    if given.shape not in {(), (count,)}:
        raise ShapeError(f"{label} has shape {given.shape}, expected a number or ({count},)")
    return np.broadcast_to(given, (count,))


def _check_output(output: Output, nx: int, nu: int) -> Output:
    C, D = real_array("C", output.C), real_array("D", output.D)
    ny = len(C) if C.ndim else 0
    if C.shape != (ny, nx) or D.shape != (ny, nu) or not np.all(np.isfinite([*C.flat, *D.flat])):
        raise ShapeError(
            f"output '{output.name}' has C {C.shape} and D {D.shape}, expected (ny, {nx}) and "
            f"(ny, {nu}), finite numbers"
        )
    limits = np.column_stack([end_of("lower", output.lower, ny), end_of("upper", output.upper, ny)])
    limits = bounds(f"output '{output.name}'", limits, ny)
    prices = np.array([output.linear_penalty, output.quadratic_penalty], dtype=float)
    if not np.all((prices >= 0) & (prices < np.inf)):
        raise ProblemError(
            f"output '{output.name}' has a negative penalty, or none that is a number; expected "
            "none below 0"
        )
    return Output(
        output.name,
        C,
        D,
        limits[:, 0],
        limits[:, 1],
        float(output.linear_penalty),
        float(output.quadratic_penalty),
    )
