"""Sizes of coordinates that are known before any pose is closed: what poses are sampled within.

In a model, rotations have the size of 1 rad and translations that of a length of the model. Given
equations have no units. Along each coordinate alone, from q = 0, their size is where the
equations change by their own size: some 1 rad for a rotation, whatever its unit, and a length of
the mechanism for a translation.
"""

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import RigidTree
from mbcasadi.system.functions import evaluate
from mbcasadi.system.mechanism import Mechanism

Array = NDArray[np.float64]

DECADES, PER_DECADE = 12, 4
"""Sizes are sought from 10⁻¹² to 10¹² units of the coordinate."""

BISECTIONS = 50
"""Of a quarter of a decade: to rounding errors."""

CHANGED = 0.5
"""Share of the entries that vary, each counted by `r² / (1 + r²)` with its relative change r, from
which the equations count as changed."""

VARIES = 0.5
"""Relative change of an entry, somewhere along the coordinate, from which on it counts."""

ZERO = 1e-12
"""An entry is zero at q = 0 below this share of its median: rounding errors have no size."""


def natural_sizes(system: Mechanism) -> Array:
    """Return (nv,) the sizes of the coordinates of a system."""
    return sizes_of_equations(system) if system.tree is None else tree_scales(system.tree)


def tree_scales(tree: RigidTree) -> Array:
    """Return 1 for rotations and `model_length` for translations."""
    size, length = np.ones(tree.nv), model_length(tree)
    for joint in tree.joints:
        count = {"slide": 1, "free": 3}.get(joint.kind, 0)
        size[joint.dof : joint.dof + count] = length
    return size


def model_length(tree: RigidTree) -> float:
    """Return a length of a model, m: the root mean square of offsets and radii of gyration."""
    squares = []
    for body in tree.bodies[1:]:
        offsets = [body.com] if body.parent == 0 else [body.com, body.pos]
        squares += [float(offset @ offset) for offset in offsets]
        if body.mass > 0:
            squares.append(float(np.trace(body.inertia)) / body.mass)
    squares = [square for square in squares if square > 0]
    return float(np.sqrt(np.mean(squares))) if squares else 1.0


def sizes_of_equations(system: Mechanism) -> Array:
    """Return (nv,) the sizes of the coordinates of given equations.

    A coordinate along which nothing changes by its own size has the kinetic energy of the others.
    Where that is so for all, as for masses and linear springs, no equation has a size, and only
    the ratios of the sizes have a meaning.
    """
    q = ca.SX.sym("q", system.nq)
    size = np.zeros(system.nv)
    for values in (_of_rows(system, q), _of_forces(system, q)):
        equations = ca.Function("equations", [q], [ca.densify(values)])
        for j in np.flatnonzero(size == 0):
            size[j] = _size_along(equations, int(j)) if values.numel() else 0.0
    return _with_equal_energy(system, size)


def _of_rows(system: Mechanism, q: ca.SX) -> ca.SX:
    """Return phi and the entries of A at rest."""
    if not system.nc:
        return ca.SX(0, 1)
    at = {"q": q, "v": ca.SX.zeros(system.nv), "t": ca.SX(0)}
    A = evaluate(system.loop_jacobian, at)
    return ca.vertcat(evaluate(system.constraint, at), ca.vec(ca.densify(A)))


def _of_forces(system: Mechanism, q: ca.SX) -> ca.SX:
    """Return the entries of M, of h at rest, and of its derivative."""
    h = system.bias_force(q, ca.SX.zeros(system.nv))
    matrices = (system.mass_matrix(q), h, ca.jacobian(h, q))
    return ca.vertcat(*(ca.vec(ca.densify(x)) for x in matrices))


def _size_along(equations: ca.Function, j: int) -> float:
    """Return how far from zero coordinate j changes the equations by their own size, or zero."""
    nq = equations.size1_in(0)

    def values(steps: Array) -> Array:
        poses = np.zeros((nq, steps.size))
        poses[j] = steps
        return np.asarray(equations(poses).full())

    steps = 10.0 ** (np.arange(-DECADES * PER_DECADE, DECADES * PER_DECADE + 1) / PER_DECADE)
    start, along = values(np.zeros(1)), values(steps)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        usual = np.median(np.nan_to_num(np.abs(along)), axis=1)[:, None]
        counts = np.isfinite(start) & (np.abs(start) > ZERO * usual)
        change = np.abs(along - start) / np.abs(start)
        varies = counts[:, 0] & (np.nan_to_num(change, nan=1.0).max(axis=1) > VARIES)
        if not varies.any():
            return 0.0

        def share(at: Array) -> Array:
            square = ((at - start) / start)[varies] ** 2
            return np.asarray(np.mean(1 - 1 / (1 + np.nan_to_num(square, nan=np.inf)), axis=0))

        changed = np.flatnonzero(share(along) >= CHANGED)
        if not changed.size or changed[0] == 0:
            return 0.0
        low, high = np.log(steps[changed[0] - 1 : changed[0] + 1])
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            far = share(values(np.exp(np.array([middle]))))[0] >= CHANGED
            low, high = (low, middle) if far else (middle, high)
    return float(np.exp(high))


def _with_equal_energy(system: Mechanism, size: Array) -> Array:
    """Return the sizes, zero ones replaced by such of the kinetic energy of the others."""
    inertia = np.diag(np.asarray(system.mass_matrix(np.zeros(system.nq))))
    root = np.sqrt(np.where(np.isfinite(inertia) & (inertia > 0), inertia, 0.0))
    measured, massive = size > 0, root > 0
    known = (root * size)[measured & massive]
    energy = float(np.median(known if known.size else root[massive])) if massive.any() else 1.0
    others = np.where(massive, energy / np.where(massive, root, 1.0), 1.0)
    return np.asarray(np.where(measured, size, others))
