"""Formulations in a weighted metric, so that metres and radians are not added  [A05, §2.1.1, §7.2].

A metric `W` (nv, nv), symmetric positive definite, measures velocities by `vᵀ W v` and forces by
`fᵀ W⁻¹ f`; power `fᵀ v` needs none. In the coordinates

    v_W = W^{1/2} v,   f_W = W^{-1/2} f,   M_W = W^{-1/2} M W^{-1/2},   A_W = A W^{-1/2}

(§2.1.1 prints `A W^{1/2}`: corrected) all entries have one unit where `W` is chosen so, and what
depends on lengths and angles in the space of velocities no longer depends on the units that the
model is written in: the projector, the constraint inertias, `A⁺ c`, controls of minimum norm,
and the decision which rows of `A` count as repeated.

The motion itself has no metric: `M a + h - f` in range(Aᵀ) and `A a = -A A⁺ c` determine `a`,
`f_c` and the multipliers of minimum norm. So a metric changes them by rounding only, as long as
the same rows count as repeated.
"""

import functools
from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ShapeError
from mbcasadi.formulation.motion import ConstrainedMotion, Equations
from mbcasadi.linalg import RANK_TOL, MatrixRoot, Sym, matrix_root, projector
from mbcasadi.shapes import real_array, require_shape

SYMMETRY_TOL = 1e-12
"""Relative difference of opposite entries that a metric given as numbers may have."""


@checked
def in_metric(equations: Equations, metric: Sym | ca.DM | ArrayLike) -> Equations:
    """Return the formulation that computes in the coordinates of a metric  [A05, §7.2].

    The result takes the same arguments as `equations`, in the units of the model, and returns
    `a = W^{-1/2} a_W`, `f_c = W^{1/2} f_cW` and the same `lam`. The lengths in the drop rule are
    those of the rows of `A_W`, so `row_scale` is in their unit. An option `f_nonideal` is a
    force and is transformed; options that are numbers (`gamma`, `virtual_mass`) have the unit of
    `M_W`.

    Args:
        equations: a formulation, called as `equations(M, h, f, A, c, **options)`.
        metric: (nv, nv) symmetric positive definite. A diagonal one keeps the zeros of `M`.

    Raises:
        ShapeError: the metric is not square, not symmetric or not positive definite.
    """
    root = metric_root(metric)

    @functools.wraps(equations)
    def weighted(M: Sym, h: Sym, f: Sym, A: Sym, c: Sym, **options: Any) -> ConstrainedMotion[Sym]:
        """Return the motion, computed in the coordinates of the metric.

        Args:
            M: (nv, nv) inertia.
            h, f: (nv, 1) bias force and applied force.
            A, c: (nc, nv), (nc, 1) constraint rows `A a + c = 0`.
            options: of the formulation.
        """
        require_shape("metric", root.root, (M.shape[0], M.shape[1]), "(nv, nv)")
        inv = root.inverse
        if options.get("f_nonideal") is not None:
            options["f_nonideal"] = inv @ options["f_nonideal"]
        motion = equations(inv @ M @ inv, inv @ h, inv @ f, A @ inv, c, **options)
        return ConstrainedMotion(inv @ motion.a, root.root @ motion.f_c, motion.lam)

    return weighted


def metric_root(metric: Sym | ca.DM | ArrayLike) -> MatrixRoot[Any]:
    """Return `W^{1/2}` and `W^{-1/2}`; sparse where the metric is diagonal.

    Raises:
        ShapeError: the metric is not square, not symmetric or not positive definite.
    """
    W = metric if isinstance(metric, ca.SX | ca.MX) else ca.sparsify(_positive_definite(metric))
    n = W.shape[0]
    require_shape("metric", W, (n, n), "a square matrix")
    if not W.sparsity().is_diag():
        return matrix_root(W)
    root = ca.sqrt(ca.diag(W))
    return MatrixRoot(ca.diag(root), ca.diag(1 / root))


@checked
def metric_projector(
    A: Sym,
    metric: Sym | ca.DM | ArrayLike,
    *,
    row_scale: Sym | ca.DM | float = 1.0,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> Sym:
    """Return `P_W = I - A_W⁺ A_W`, `A_W = A W^{-1/2}`  [A05, §7.2].

    With a diagonal metric it is the same matrix in all units. In the model's own coordinates it
    is `W^{-1/2} P_W W^{1/2}`, which projects velocities orthogonally in the metric `W`.

    Args:
        A: (nc, nv) constraint Jacobian, of any rank.
        metric: (nv, nv) symmetric positive definite.
        row_scale, rank_tol, pivot: drop rule of `linalg.row_basis` for the rows of `A_W`.
    """
    inverse = metric_root(metric).inverse
    require_shape("A", A, (A.shape[0], inverse.shape[0]), "(nc, nv)")
    A_W: Sym = A @ inverse
    return projector(A_W, row_scale=row_scale, rank_tol=rank_tol, pivot=pivot)


@checked
def length_metric(rotational: Sequence[bool], length: float) -> ca.DM:
    """Return the metric that counts one radian as a `length`: `diag(length² or 1)`.

    It is the metric of A05, eq. 50, times `length²`; a common factor changes no direction.
    Weighted velocities are in m/s.

    Args:
        rotational: (nv,) true for angular velocities, false for linear ones.
        length: characteristic length of the mechanism, > 0, in the model's unit of length per
            radian (its unit of angle, if that is another).

    Raises:
        ShapeError: the length is not a positive number.
    """
    _require_positive("length", np.array([length]))
    return ca.diag(ca.DM([length**2 if angular else 1.0 for angular in rotational]))


@checked
def limit_metric(force_limits: ArrayLike) -> ca.DM:
    """Return `W = diag(f_max²)`: forces are measured by the share of their limits  [A05, §7.2].

    `f_W = f / f_max` has no unit, and `|f_W| <= 1` keeps every force within its limit.

    Args:
        force_limits: (nv,) largest force or torque of each velocity's direction, > 0.

    Raises:
        ShapeError: a limit is not a positive number.
    """
    limits = real_array("force_limits", force_limits).ravel()
    _require_positive("force_limits", limits)
    return ca.diag(ca.DM(limits**2))


def _positive_definite(metric: ca.DM | ArrayLike) -> ca.DM:
    """Return a metric given as numbers.

    Raises:
        ShapeError: it is not square, not symmetric or not positive definite.
    """
    W = real_array("metric", metric).copy()
    if W.ndim != 2 or W.shape[0] != W.shape[1] or not W.size:
        raise ShapeError(f"metric has shape {W.shape}, expected (nv, nv)")
    if not np.all(np.isfinite(W)) or np.any(np.abs(W - W.T) > SYMMETRY_TOL * np.abs(W).max()):
        raise ShapeError("metric is not symmetric and finite; expected W = Wᵀ")
    lowest = float(np.linalg.eigvalsh(W).min()) if W.size else 1.0
    if lowest <= 0.0:
        raise ShapeError(
            f"metric has the eigenvalue {lowest:.3g}; expected a positive definite matrix: "
            "give every velocity a positive weight"
        )
    return ca.DM(W)


def _require_positive(name: str, values: np.ndarray) -> None:
    wrong = values[~((values > 0) & np.isfinite(values))]
    if wrong.size:
        raise ShapeError(f"{name} holds {wrong[0]}; expected positive numbers")
