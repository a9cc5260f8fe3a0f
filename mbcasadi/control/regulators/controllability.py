"""Controllability of the modes of a linear system, as numbers and as text.

The reachable space is spanned by `B, A B, A² B, …`. No control and no Riccati equation changes the
eigenvalues of its orthogonal complement (Popov, Belevitch, Hautus: a mode with `wᴴ A = s wᴴ`,
`wᴴ B = 0`). It is computed by orthogonal steps (a staircase), each with a decision on rank, in
scaled coordinates.

This is a property of the linear model's modes. Whether the actuators reach every motion at one
pose (A05, eq. 64) is another question: see `controllability` of the control laws.
"""

from dataclasses import dataclass

import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.modes import (
    Mode,
    continuous_eigenvalue,
    generator,
    mode_of,
    scaled_generator,
)
from mbcasadi.control.regulators.operating_point import Array
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import require_share
from mbcasadi.system import evaluate
from mbcasadi.system.sizes import control_sizes

REACH_TOL = 1e-8
"""A direction that a control moves by less than this, relative to the norms of dfdx and dfdu in
scaled coordinates, counts as one that it cannot move."""

ROUNDING = 1e-12
"""Size of dfdu, relative to `M⁻¹ B` of the mechanism without constraints, that counts as zero; both
in the sizes of coordinates and controls."""


@dataclass(frozen=True, eq=False)
class Controllability:
    """Rank, uncontrollable modes and margin of a linear system.

    Attributes:
        name: of the mechanism.
        nx: number of states.
        rank: number of controllable states.
        unreached: modes that no control acts on, the fastest growing first.
        margin: smallest singular value of `[dfdx - s I, dfdu]` over all eigenvalues s, relative
            to the largest: the distance to a system with an uncontrollable mode; zero if there is
            one.
        directions: (nx, nx - rank) orthonormal: combinations of x that no control acts on.
    """

    name: str
    nx: int
    rank: int
    unreached: tuple[Mode, ...]
    margin: float
    directions: Array

    @property
    def controllable(self) -> bool:
        """Whether every mode can be placed."""
        return self.rank == self.nx

    @property
    def stabilisable(self) -> bool:
        """Whether all modes that no control acts on decay."""
        return all(mode.decays for mode in self.unreached)

    @property
    def in_words(self) -> str:
        """The verdict, then the uncontrollable modes; only those that do not decay, if any."""
        if self.controllable:
            return (
                f"'{self.name}' is controllable: all {self.nx} states can be placed "
                f"(margin {self.margin:.1e})"
            )
        verdict = "stabilisable" if self.stabilisable else "not stabilisable"
        lasting = [mode for mode in self.unreached if not mode.decays]
        count = self.nx - self.rank
        lines = [
            f"'{self.name}' is {verdict}: no control acts on {count} of its {self.nx} states",
            *dict.fromkeys(
                f"uncontrollable: {mode.in_words}" for mode in lasting or self.unreached
            ),
        ]
        return "; ".join(lines)


@checked
def controllability(linear: Linearization, *, rank_tol: float = REACH_TOL) -> Controllability:
    """Return which modes are controllable, for a continuous or a discrete system.

    Args:
        linear: the linear system.
        rank_tol: see `REACH_TOL`.
    """
    require_share(rank_tol=rank_tol)
    scaled, scale = scaled_generator(linear)
    controls = control_sizes(linear.system)
    reduced = generator(linear)[1] / scale[:, None] / controls
    size = float(np.linalg.norm(reduced, 2)) if reduced.size else 0.0
    rounding = _rounding(linear, controls) / scale.max(initial=0.0) if scale.size else 0.0
    reduced = reduced / size if size > rounding else 0 * reduced
    reachable = _reachable_basis(scaled, reduced, rank_tol)
    rank = reachable.shape[1]
    full = np.linalg.qr(np.hstack([reachable, np.eye(linear.nx)]))[0]
    unreachable, controllable_basis = full[:, rank:], full[:, :rank]
    modes = (
        [] if rank == linear.nx else _modes(linear, scaled, scale, controllable_basis, unreachable)
    )
    away, _ = np.linalg.qr(unreachable / scale[:, None])
    return Controllability(
        name=linear.system.name,
        nx=linear.nx,
        rank=rank,
        unreached=tuple(sorted(modes, key=lambda mode: -mode.eigenvalue.real)),
        margin=_margin(scaled, reduced) if rank == linear.nx else 0.0,
        directions=away[:, : linear.nx - rank],
    )


@checked
def require_stabilisable(linear: Linearization, *, rank_tol: float = REACH_TOL) -> Controllability:
    """Return the report if feedback can stabilise the system.

    Raises:
        ProblemError: it cannot; the message names the mode and the joints that move in it.
    """
    report = controllability(linear, rank_tol=rank_tol)
    if not report.stabilisable:
        raise ProblemError(
            f"{report.in_words}. Only the linear model at this point has lost the mode: the "
            "mechanism may reach it beside this point, or with other lengths or masses. Linearise "
            "there, or add an actuator, damping or a constraint"
        )
    return report


def _rounding(linear: Linearization, controls: Array) -> float:
    """Return the rounding error in dfdu of a control that only presses on constraints.

    Args:
        linear: the linear system.
        controls: (nu,) sizes of the controls.
    """
    size = linear.system.scales.coordinates
    M = np.array(linear.system.mass_matrix(linear.q)) * np.outer(size, size)
    B = (
        size[:, None]
        * np.array(evaluate(linear.system.actuation, {"q": linear.q, "v": linear.v}))
        / controls
    )
    return float(ROUNDING * np.linalg.norm(np.linalg.pinv(M) @ B))


def _reachable_basis(A: Array, B: Array, tol: float) -> Array:
    """Return (nx, rank) orthonormal columns that span `B, A B, A² B, …`."""
    scale = max(float(np.linalg.norm(A, 2)), np.finfo(float).tiny) if A.size else 1.0
    reachable = np.zeros((A.shape[0], 0))
    fresh = B
    while fresh.size:
        for _ in range(2):  # twice is enough for orthogonality
            fresh = fresh - reachable @ (reachable.T @ fresh)
        U, s, _ = np.linalg.svd(fresh, full_matrices=False)
        added = U[:, s > tol]
        reachable = np.hstack([reachable, added])
        fresh = A @ added / scale
    return reachable


def _modes(
    linear: Linearization, A: Array, scale: Array, reachable: Array, unreachable: Array
) -> list[Mode]:
    """Return the modes of the uncontrollable part, as vectors of the whole state."""
    values, vectors = np.linalg.eig(unreachable.T @ A @ unreachable)
    inside, coupling = reachable.T @ A @ reachable, reachable.T @ A @ unreachable
    modes = []
    for s, y in zip(values, vectors.T, strict=True):
        if s.imag < 0:
            continue
        shifted = inside - s * np.eye(inside.shape[0])
        z = np.linalg.lstsq(shifted, -coupling @ y, rcond=REACH_TOL)[0]
        x = scale * (reachable @ z + unreachable @ y)
        modes.append(mode_of(linear, continuous_eigenvalue(linear, complex(s)), x))
    return modes


def _margin(A: Array, B: Array) -> float:
    """Return `min σ([A - s I, B/|B| |A|]) / |A|` over the eigenvalues s."""
    size = max(float(np.linalg.norm(A, 2)), np.finfo(float).tiny) if A.size else 1.0
    smallest = [
        np.linalg.svd(np.hstack([A / size - s / size * np.eye(len(A)), B]), compute_uv=False)[-1]
        for s in (np.linalg.eigvals(A) if A.size else [])
    ]
    return float(min(smallest, default=1.0))
