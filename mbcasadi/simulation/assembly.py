"""Assembly: the pose on the constraint manifold that is nearest to a given one.

    min ½ |q ⊖ q0|²_W   subject to   phi(q, t) = 0

First a damped Gauss-Newton descent on `|phi|²` (Levenberg and Marquardt) reaches the manifold
from afar; then steps `-A⁺ phi - P d`, with `d = q ⊖ q0`, walk on it towards q0. Residuals are
measured in their sizes and, unless a metric is given, distances in those of the coordinates
(`System.scales`), so no result depends on the units of the model.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import AssemblyError, ShapeError
from mbcasadi.shapes import column, real_array
from mbcasadi.simulation.active_rows import holonomic_rows
from mbcasadi.system import System, evaluate
from mbcasadi.system.parametric import at_model_values
from mbcasadi.system.row_lengths import typical_row_lengths
from mbcasadi.system.sizes import residual_sizes

Array = NDArray[np.float64]

ASSEMBLED_GAP = 3e-13
"""Residual of an assembled pose, over its size."""

NEAREST_STEP = 1e-9
"""Rad, or share of a length. A step towards q0 along the manifold as small as this ends the
search."""

ASSEMBLY_RANK_TOL = 1e-9
"""Singular values of A count as zero below this share of the largest one, or of the longest row's
usual length. Larger than `linalg.RANK_TOL`: during the search a pose is on the manifold to
`ASSEMBLED_GAP` only."""

ITERATIONS = 200  # of the descent, and of the steps along the manifold
HALVINGS = 30  # of one step

RESTART_DISTANCES = (0.0, 1e-3, 1e-2, 0.1, 0.3, 1.0)
"""Rad, or shares of a length. A search that is stuck starts again from poses this far away, chosen
at random."""

RESTARTS = 4
"""Random poses at each distance."""

FIRST_DAMPING = 1e-3
"""Of the descent, relative to the square of the largest singular value."""


@checked
@at_model_values
def assemble(
    system: System,
    q0: ArrayLike,
    *,
    t: float = 0.0,
    mask: ArrayLike | None = None,
    metric: ArrayLike | None = None,
) -> Array:
    """Return q (nq,), the pose nearest to q0 with `phi(q, t) = 0`.

    Nearest within the reach of a descent: a loop may have several assembled poses, and the result
    is the one on the side of q0. Unit quaternions stay unit.

    Args:
        system: the mechanism.
        q0: (nq,) pose to start from.
        t: s, for constraints that depend on time.
        mask: (nc,) rows that are active, one or zero; the system's own by default.
        metric: (nv, nv) positive definite weight W of `|q ⊖ q0|² = dᵀ W d`; by default
            `diag(1 / size²)`, the identity where all joints are hinges.
            `system.mass_matrix(q0)` moves light bodies rather than heavy ones.

    Raises:
        AssemblyError: the search ended without such a pose; the message names the open rows.
        ShapeError: a wrong shape, NaN, or a metric that is not positive definite.
    """
    start = column("q0", q0, system.nq)
    on = column("mask", np.ones(system.nc) if mask is None else mask, system.nc)
    if mask is None and system.mask is not None:
        on = np.array(system.mask, dtype=float)
    rows = _Rows(system, t, on * holonomic_rows(system).full().ravel(), _root(metric, system))
    best, least = start, np.inf  # of residuals over their sizes
    for guess in _guesses(system, start):
        q = _nearest_pose(rows, start, _descend(rows, guess))
        gap = float(np.abs(rows.phi(q)).max(initial=0.0))
        if gap <= ASSEMBLED_GAP:
            return q
        if gap < least:
            best, least = q, gap
    raise AssemblyError(_open_rows(system, rows, best, least))


class _Rows:
    """Residual over its sizes, and its Jacobian in weighted coordinates `dq = root · x`."""

    def __init__(self, system: System, t: float, on: Array, root: Array) -> None:
        self.system, self._t, self._on, self.root = system, t, on, root
        self.sizes = residual_sizes(system)
        usual = typical_row_lengths(system, system.scales.states, root) / self.sizes
        self.longest = float(usual.max(initial=0.0))

    def phi(self, q: Array) -> Array:
        values: dict[str, ArrayLike] = {"q": q, "t": self._t}
        phi = evaluate(self.system.constraint, values).full().ravel()
        return np.asarray(self._on * phi / self.sizes)

    def A(self, q: Array) -> Array:
        values: dict[str, ArrayLike] = {"q": q, "t": self._t, "v": np.zeros(self.system.nv)}
        J = evaluate(self.system.constraint_jacobian, values).full()
        return np.asarray((self._on / self.sizes)[:, None] * J @ self.root)

    def is_closed(self, q: Array) -> bool:
        return bool(np.abs(self.phi(q)).max(initial=0.0) <= ASSEMBLED_GAP)

    def integrate(self, q: Array, x: Array) -> Array:
        return np.asarray(self.system.integrate(q, self.root @ x).full().ravel())

    def difference(self, q0: Array, q: Array) -> Array:
        dq = self.system.difference(q0, q).full().ravel()
        return np.asarray(np.linalg.solve(self.root, dq)) if dq.size else dq


def _descend(rows: _Rows, q: Array) -> Array:
    """Return the pose where a damped descent on `|phi|²` ends."""
    damping = FIRST_DAMPING
    phi = rows.phi(q)
    for _ in range(ITERATIONS):
        if np.abs(phi).max(initial=0.0) <= ASSEMBLED_GAP:
            break
        U, s, Vt = np.linalg.svd(rows.A(q), full_matrices=False)
        if s.size == 0 or s[0] == 0:
            break
        gradient = U.T @ phi
        for _ in range(HALVINGS):
            x = -Vt.T @ (s * gradient / (s**2 + damping * s[0] ** 2))
            trial = rows.integrate(q, x)
            phi_trial = rows.phi(trial)
            if phi_trial @ phi_trial < phi @ phi:
                q, phi, damping = trial, phi_trial, damping / 10
                break
            damping *= 4
        else:
            break
    return q


def _nearest_pose(rows: _Rows, q0: Array, q: Array) -> Array:
    """Return the pose nearest to q0, reached from q along the manifold."""
    best, size = q, rows.system.scales.coordinates
    for _ in range(ITERATIONS):
        if not rows.is_closed(q):
            return best
        best = q
        d = rows.difference(q0, q)
        step = -_null_projector(rows.A(q), rows.longest) @ d
        if np.abs(rows.root @ step / size).max(initial=0.0) <= NEAREST_STEP:
            break
        nearer = _nearer_pose(rows, q0, q, step, float(d @ d))
        if nearer is None:
            break
        q = nearer
    return best


def _nearer_pose(rows: _Rows, q0: Array, q: Array, step: Array, distance2: float) -> Array | None:
    """Return a closed pose along the step that is nearer to q0, or None."""
    for _ in range(HALVINGS):
        trial = _descend(rows, rows.integrate(q, step))
        d = rows.difference(q0, trial)
        if d @ d < distance2 and rows.is_closed(trial):
            return trial
        step = step / 2
    return None


def _null_projector(A: Array, longest: float) -> Array:
    _, s, Vt = np.linalg.svd(A, full_matrices=False)
    row_space = Vt[: int(np.sum(s > ASSEMBLY_RANK_TOL * max(longest, s.max(initial=0.0))))]
    return np.asarray(np.eye(A.shape[1]) - row_space.T @ row_space)


def _guesses(system: System, q0: Array) -> Iterator[Array]:
    rng = np.random.default_rng(0)
    for distance in RESTART_DISTANCES:
        for _ in range(RESTARTS if distance else 1):
            step = distance * system.scales.coordinates * rng.standard_normal(system.nv)
            yield np.asarray(system.integrate(q0, step).full().ravel())


def _root(metric: ArrayLike | None, system: System) -> Array:
    """Return `W^{-1/2}` as a triangular factor: `|W^{1/2} dq| = |x|` for `dq = root x`."""
    nv = system.nv
    if metric is None:
        return np.diag(system.scales.coordinates)
    W = real_array("metric", metric)
    if W.shape != (nv, nv):
        raise ShapeError(f"metric has shape {W.shape}, expected ({nv}, {nv}) = (nv, nv)")
    try:
        return np.asarray(np.linalg.inv(np.linalg.cholesky(W)).T)
    except np.linalg.LinAlgError as error:
        raise ShapeError("metric is not positive definite") from error


def _open_rows(system: System, rows: _Rows, q: Array, gap: float) -> str:
    names, sized = system.constraint_names, rows.phi(q)
    phi = sized * rows.sizes
    worst = [i for i in np.argsort(-np.abs(sized)) if abs(sized[i]) > max(ASSEMBLED_GAP, gap / 10)]
    open_rows = ", ".join(f"row {i} ({names[i]}) {phi[i]:.3g}" for i in worst[:6])
    least = np.abs(phi).max(initial=0.0)
    return (
        f"'{system.name}' cannot be assembled from q0: the least residual found is {least:.3g}; "
        f"open: {open_rows}. Start nearer to a closed pose, or check the dimensions"
    )
