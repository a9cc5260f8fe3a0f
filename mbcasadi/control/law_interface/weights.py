"""The norms in which a law's forces, accelerations and controls are least or nearest.

A metric W (nv, nv) measures velocities by `vᵀ W v` and forces by `fᵀ W⁻¹ f`  [A05, §7.2]; another
one measures controls by `uᵀ W u`. The default ones come from the mechanism: forces and controls
count by the torque that they are or give, lengths in `System.scales`. So no control depends on the
units of the model. Where all coordinates, or all controls, have one size, they are Euclidean.
"""

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control.law_interface.law import Array
from mbcasadi.formulation.metric import metric_root
from mbcasadi.linalg import MatrixRoot
from mbcasadi.shapes import real_array, require_shape, weight
from mbcasadi.system import System
from mbcasadi.system.sizes import control_sizes

EQUAL = 1e-12
"""Relative difference of sizes that counts as none."""

Weights = MatrixRoot[ca.DM]
"""`W^{1/2}` and `W^{-1/2}`."""


def weights_of(system: System, metric: ArrayLike | None) -> Weights | None:
    """Return `W^{1/2}` and `W^{-1/2}` of a metric of velocities  [A05, §7.2].

    Without one it is `diag(1 / size²)`, sizes of `System.scales.coordinates`; None where all are
    equal, so that the metric is Euclidean.

    Raises:
        ShapeError: not (nv, nv), not symmetric or not positive definite.
    """
    if metric is None:
        return _of_sizes(1 / system.scales.coordinates)
    root = metric_root(real_array("metric", metric))
    require_shape("metric", root.root, (system.nv, system.nv), "(nv, nv)")
    return root


def control_weights_of(system: System, control_metric: ArrayLike | None) -> Weights | None:
    """Return `W^{1/2}` and `W^{-1/2}` of a metric of controls; None for the Euclidean one.

    Without one it is `diag(size²)`, sizes of `control_sizes`.

    Args:
        system: the mechanism.
        control_metric: (nu, nu), or (nu,) for a diagonal one.

    Raises:
        ShapeError, ProblemError: another shape, not symmetric or not positive definite.
    """
    if control_metric is None:
        return _of_sizes(control_sizes(system))
    return metric_root(weight("control_metric", control_metric, system.nu, definite=True))


def _of_sizes(size: Array) -> Weights | None:
    """Return the roots of `diag(size²)`, or None where all sizes are equal."""
    if np.ptp(size) <= EQUAL * size.max(initial=0.0) if size.size else True:
        return None
    return MatrixRoot(ca.diag(ca.DM(size)), ca.diag(ca.DM(1 / size)))


class WeightedQuantities:
    """Rates, forces and controls in their metrics, and back; the same where that is Euclidean."""

    weights: Weights | None
    control_weights: Weights | None

    def control(self, weighted: ca.SX) -> ca.SX:
        """Return u of controls (nu, k) in their metric."""
        return weighted if self.control_weights is None else self.control_weights.inverse @ weighted

    def weighted_control(self, u: ca.SX) -> ca.SX:
        """Return controls (nu, k) in their metric."""
        return u if self.control_weights is None else self.control_weights.root @ u

    def weighted_force(self, force: ca.SX) -> ca.SX:
        """Return `W^{-1/2} f` of generalised forces (nv, k)."""
        return force if self.weights is None else self.weights.inverse @ force

    def weighted_rate(self, v: ca.SX) -> ca.SX:
        """Return `W^{1/2} v` of velocities or accelerations (nv, k)."""
        return v if self.weights is None else self.weights.root @ v

    def weighted_rows(self, J: ca.SX) -> ca.SX:
        """Return `J W^{-1/2}`, the rows (k, nv) that take weighted velocities."""
        return J if self.weights is None else J @ self.weights.inverse

    def joint_rate(self, rate: ca.SX) -> ca.SX:
        """Return `W^{-1/2} a_W` of weighted velocities or accelerations (nv, k)."""
        return rate if self.weights is None else self.weights.inverse @ rate

    def joint_force(self, weighted: ca.SX) -> ca.SX:
        """Return `W^{1/2} f_W` of weighted forces (nv, k)."""
        return weighted if self.weights is None else self.weights.root @ weighted
