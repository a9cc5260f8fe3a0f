"""Observability of the modes of a linear system by a measurement or a weight.

A mode `dfdx x = s x` with `C x = 0` is unobservable in `y = C x` (Popov, Belevitch, Hautus).
"""

from dataclasses import dataclass

import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.modes import (
    STEADY,
    Mode,
    continuous_eigenvalue,
    mode_of,
    scaled_generator,
)
from mbcasadi.control.regulators.operating_point import Array
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import matrix, real_array

SEEN = 1e-7
"""Size of a mode in y, relative to the norms of dfdx and of each row of C in scaled coordinates,
below which it is unobservable. Double eigenvalues have errors of the square root of 1e-16."""

NOTHING = 1e-12
"""A row of C shorter than this share of the longest one holds rounding errors only."""


@dataclass(frozen=True)
class Observability:
    """The unobservable modes of a linear system.

    Attributes:
        name: of the mechanism.
        nx: number of states.
        unseen: unobservable modes, the fastest growing first.
    """

    name: str
    nx: int
    unseen: tuple[Mode, ...]

    @property
    def observable(self) -> bool:
        """Whether every mode is observable."""
        return not self.unseen

    @property
    def detectable(self) -> bool:
        """Whether all unobservable modes decay."""
        return all(mode.decays for mode in self.unseen)

    @property
    def in_words(self) -> str:
        """One sentence, then one for each unobservable mode."""
        if self.observable:
            return f"'{self.name}' is observable: all {self.nx} states leave a trace"
        verdict = "detectable" if self.detectable else "not detectable"
        lines = [f"'{self.name}' is {verdict} from what is measured"]
        return "; ".join([*lines, *(f"unseen: {mode.in_words}" for mode in self.unseen)])


@checked
def observability(linear: Linearization, C: Array) -> Observability:
    """Return which modes are unobservable in `y = C x`.

    Args:
        linear: the linear system, continuous or discrete.
        C: (ny, nx), for example `linear.output_matrix(output)`.
    """
    C = real_array("C", C)
    matrix("C", C, (len(C) if C.ndim else 0, linear.nx))
    A, scale = scaled_generator(linear)
    size = max(float(np.linalg.norm(A, 2)), np.finfo(float).tiny) if A.size else 1.0
    normalised = _rows_of_length_one(C * scale)
    modes: list[Mode] = []
    for s in np.linalg.eigvals(A) if A.size else []:
        stacked = np.vstack([(A - s * np.eye(linear.nx)) / size, normalised])
        _, values, Vh = np.linalg.svd(stacked)
        eigenvalues = [mode.eigenvalue for mode in modes]
        eigenvalue = continuous_eigenvalue(linear, complex(s))
        if s.imag < -STEADY * size or values[-1] > SEEN:
            continue
        if any(abs(eigenvalue - other) < STEADY * size for other in eigenvalues):
            continue
        modes.append(mode_of(linear, eigenvalue, scale * Vh[-1].conj()))
    ordered = tuple(sorted(modes, key=lambda mode: -mode.eigenvalue.real))
    return Observability(linear.system.name, linear.nx, ordered)


def _rows_of_length_one(C: Array) -> Array:
    """Return rows of the length one, so that the units of each measurement have no effect."""
    length = np.linalg.norm(C, axis=1)
    seen = length > NOTHING * length.max(initial=0.0)
    return np.asarray(C[seen] / length[seen, None])


def require_detectable(linear: Linearization, C: Array) -> Observability:
    """Return the report if a filter can estimate the state.

    Raises:
        ProblemError: it cannot; the message names the mode and the joints that move in it.
    """
    report = observability(linear, C)
    if not report.detectable:
        raise ProblemError(f"{report.in_words}. Measure one of these joints")
    return report


def require_weighted(linear: Linearization, Q: Array) -> None:
    """Raise where a mode on the border of stability has no weight: no gain would stabilise it.

    Modes that grow are stabilised whatever their weight is.

    Raises:
        ProblemError: the message names the mode and the joints that move in it.
    """
    idle = [m for m in observability(linear, Q).unseen if m.eigenvalue.real == 0]
    if idle:
        raise ProblemError(
            f"'{linear.system.name}': the weight Q does not see {idle[0].in_words}; expected a "
            "positive weight on one of them, or the regulator leaves the mode as it is"
        )
