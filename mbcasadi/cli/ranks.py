"""Ranks of the constraint Jacobian, at the authored pose and on the manifold."""

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi import model
from mbcasadi.system import Redundancy, System, redundancy

Array = NDArray[np.float64]

RANK_TOL = 1e-6  # singular values below this fraction of the largest count as zero
CLOSED = 1e-9  # residual of phi, m or rad, below which a pose counts as on the manifold
NEWTON_STEPS = 60
LONGEST_STEP = 1.0  # rad or m, of one Newton step


@dataclass(frozen=True)
class Ranks:
    """Ranks of A.

    Attributes:
        rows: number of rows.
        authored: how the rows depend on each other at the authored pose.
        random: ranks at random poses on the manifold.
        tried: random poses tried; those that Newton's method did not close are left out.
    """

    rows: int
    authored: Redundancy
    random: tuple[int, ...]
    tried: int

    @property
    def in_words(self) -> str:
        """`7 rows, rank 5: rows 3 and 6 repeat others here (authored pose); rank 5 at ...`."""
        if self.rows == 0:
            return "no constraints"
        gap = self.authored.residual
        open_by = "" if gap < CLOSED else f", open by {gap:.1e}"
        words = f"{self.authored.in_words} (authored pose{open_by})"
        if not self.random:
            return f"{words}; none of {self.tried} random poses could be closed"
        found = " or ".join(str(rank) for rank in sorted(set(self.random)))
        return f"{words}; rank {found} at {len(self.random)} random closed poses"


def ranks_of(system: System, poses: int = 5, seed: int = 0) -> Ranks:
    """Return the ranks of a system that was read from a model."""
    assert system.tree is not None  # `read_mjcf` always gives one
    rng = np.random.default_rng(seed)
    tried = [close(system, model.random_state(system.tree, rng)[0]) for _ in range(poses)]
    return Ranks(
        rows=system.nc,
        authored=redundancy(system, system.tree.q0),
        random=tuple(jacobian_rank(system, q) for q in tried if residual(system, q) < CLOSED),
        tried=poses,
    )


def residual(system: System, q: Array) -> float:
    """Return the largest entry of |phi(q)|."""
    return float(np.max(np.abs(_column(system.constraint(q))), initial=0.0))


def close(system: System, q: Array) -> Array:
    """Return `q ⊕ Σ dv` with `A dv = -phi`, in the least-squares sense at each step.

    A pose that does not close is returned where the steps ended.
    """
    for _ in range(NEWTON_STEPS if system.nc else 0):
        phi = _column(system.constraint(q))
        if np.max(np.abs(phi)) < 0.01 * CLOSED:
            break
        A = np.asarray(system.constraint_jacobian(q))
        dv = np.linalg.lstsq(A, -phi, rcond=RANK_TOL)[0]
        q = _column(system.integrate(q, dv / max(1.0, float(np.linalg.norm(dv)) / LONGEST_STEP)))
    return q


def jacobian_rank(system: System, q: Array) -> int:
    """Return the rank of A(q); rows are scaled to length 1 first, vanishing rows apart."""
    if system.nc == 0:
        return 0
    A = np.asarray(system.constraint_jacobian(q))
    length = np.linalg.norm(A, axis=1, keepdims=True)
    scaled = A / np.where(length > RANK_TOL, length, 1.0)
    return int(np.linalg.matrix_rank(scaled, tol=RANK_TOL * np.sqrt(system.nc)))


def _column(value: ca.DM) -> Array:
    return np.asarray(value, dtype=float).ravel()
