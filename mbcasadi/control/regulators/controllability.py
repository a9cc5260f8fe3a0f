"""Controllability and observability of the modes of a linear system, as numbers and as text.

The reachable space is spanned by `B, A B, A² B, …`. No control and no Riccati equation changes the
eigenvalues of its orthogonal complement (Popov, Belevitch, Hautus: a mode with `wᴴ A = s wᴴ`,
`wᴴ B = 0`). It is computed by orthogonal steps (a staircase), each with a decision on rank, in
scaled coordinates. Observability in `y = C x` is the dual: the modes with `A x = s x`, `C x = 0`
fill the complement of the reachable space of `(Aᵀ, Cᵀ)`.

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
from mbcasadi.shapes import matrix, real_array, require_share
from mbcasadi.system import evaluate
from mbcasadi.system.sizes import control_sizes

REACH_TOL = 1e-8
"""A direction that a control moves by less than this, relative to the norms of dfdx and dfdu in
scaled coordinates, counts as one that it cannot move."""

ROUNDING = 1e-12
"""Size of dfdu, relative to `M⁻¹ B` of the mechanism without constraints, that counts as zero; both
in the sizes of coordinates and controls."""

NOTHING = 1e-12
"""A row of C shorter than this share of the longest one holds rounding errors only."""


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
    reachable, unreachable = split_reachable(scaled, reduced, rank_tol)
    rank = reachable.shape[1]
    away, _ = np.linalg.qr(unreachable / scale[:, None])
    return Controllability(
        name=linear.system.name,
        nx=linear.nx,
        rank=rank,
        unreached=_modes(linear, scaled, scale, reachable, unreachable),
        margin=_margin(scaled, reduced) if rank == linear.nx else 0.0,
        directions=away,
    )


@checked
def observability(linear: Linearization, C: Array) -> Observability:
    """Return which modes are unobservable in `y = C x`, for a continuous or a discrete system.

    Args:
        linear: the linear system.
        C: (ny, nx), for example `linear.output_matrix(output)`.
    """
    C = real_array("C", C)
    matrix("C", C, (len(C) if C.ndim else 0, linear.nx))
    A, scale = scaled_generator(linear)
    length = np.linalg.norm(C * scale, axis=1)
    seen = length > NOTHING * length.max(initial=0.0)
    rows = (C * scale)[seen] / length[seen, None]  # the units of a measurement have no effect
    observable, unobservable = split_reachable(A.T, rows.T, REACH_TOL)
    return Observability(
        linear.system.name, linear.nx, _modes(linear, A, scale, observable, unobservable)
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


def split_reachable(A: Array, B: Array, tol: float) -> tuple[Array, Array]:
    """Return orthonormal columns that span `B, A B, A² B, …`, and those of the complement."""
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
    full = np.linalg.qr(np.hstack([reachable, np.eye(len(A))]))[0]
    return full[:, : reachable.shape[1]], full[:, reachable.shape[1] :]


def _modes(
    linear: Linearization, A: Array, scale: Array, inside: Array, outside: Array
) -> tuple[Mode, ...]:
    """Return the modes of `outside`, a part with eigenvalues of its own, the fastest growing first.

    As vectors of the whole state; `inside` is the rest.
    """
    if not outside.size:
        return ()
    values, vectors = np.linalg.eig(outside.T @ A @ outside)
    moved, coupling = inside.T @ A @ inside, inside.T @ A @ outside
    modes = []
    for s, y in zip(values, vectors.T, strict=True):
        if s.imag < 0:
            continue
        shifted = moved - s * np.eye(moved.shape[0])
        z = np.linalg.lstsq(shifted, -coupling @ y, rcond=REACH_TOL)[0]
        x = scale * (inside @ z + outside @ y)
        modes.append(mode_of(linear, continuous_eigenvalue(linear, complex(s)), x))
    return tuple(sorted(modes, key=lambda mode: -mode.eigenvalue.real))


def _margin(A: Array, B: Array) -> float:
    """Return `min σ([A - s I, B/|B| |A|]) / |A|` over the eigenvalues s."""
    size = max(float(np.linalg.norm(A, 2)), np.finfo(float).tiny) if A.size else 1.0
    smallest = [
        np.linalg.svd(np.hstack([A / size - s / size * np.eye(len(A)), B]), compute_uv=False)[-1]
        for s in (np.linalg.eigvals(A) if A.size else [])
    ]
    return float(min(smallest, default=1.0))
