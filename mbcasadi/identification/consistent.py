"""The physical parameters that fit equations best: those of real bodies, near given ones.

    min |(R θ - r)|² + Σ |D_b (θ_b - θ_b0)|² / spread²

over bodies whose pseudo-inertia is positive definite, armature and damping that are not negative.
R and r are the triangular factor of the equations over their noise, so the size of the problem does
not grow with the samples. The problem is convex in θ; in the numbers φ of `pseudo_inertia`, which
cover its interior one to one, it has the same single minimum, and Gauss-Newton steps need no
solver of semidefinite programs.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from mbcasadi.description.parameters import Parameters
from mbcasadi.errors import ProblemError
from mbcasadi.identification.pseudo_inertia import (
    body_parameters,
    free_numbers,
    parameters_of,
    pseudo_inertia,
    relative_change,
    spread_out,
)

Array = NDArray[np.float64]

OF_BODY = 10
EVALUATIONS = 300
TOL = 1e-10
"""Relative change of the cost or of φ at which the search ends."""


@dataclass(frozen=True)
class _Body:
    """Ten entries of θ from `first` on, with the pseudo-inertia of the model's values."""

    first: int
    J0: Array
    extent: float

    @property
    def sizes(self) -> Array:
        """(10,) what the free numbers are measured in: m, d have none, s and t are lengths."""
        return np.array([1.0] * 4 + [self.extent] * 6)


def consistent_parameters(
    theta: Parameters, sizes: Array, R: Array, r: Array, spread: float
) -> Array:
    """Return θ (nθ,).

    Args:
        theta: names and the model's values; each body with all its ten.
        sizes: (nθ,) natural sizes.
        R, r: (k, nθ), (k,) equations of unit noise.
        spread: standard deviation of the model's values, as a share.
    """
    bodies = _bodies(theta)
    of_joints = np.array([i for i, x in enumerate(_kinds(theta)) if x == "joint"], dtype=int)
    start = [free_numbers(body.J0) / body.sizes for body in bodies]
    x0 = np.concatenate([*start, theta.values[of_joints] / sizes[of_joints]])
    lower = np.full(x0.size, -np.inf)
    lower[OF_BODY * len(bodies) :] = 0.0
    prior, target = _prior(theta, bodies, of_joints, sizes, spread)
    A, b = np.vstack([R, prior]), np.concatenate([r, target])

    def values(x: Array) -> tuple[Array, Array]:
        return _values(x, bodies, of_joints, sizes)

    solution = scipy.optimize.least_squares(
        lambda x: A @ values(x)[0] - b,
        np.maximum(x0, lower + np.finfo(float).tiny),
        jac=lambda x: A @ values(x)[1],
        bounds=(lower, np.inf),
        max_nfev=EVALUATIONS,
        ftol=TOL,
        xtol=TOL,
        gtol=None,
    )
    return values(solution.x)[0]


def _kinds(theta: Parameters) -> list[str]:
    return [item.kind for item in theta.items for _ in item.value]


def _bodies(theta: Parameters) -> list[_Body]:
    """Return the bodies of θ.

    Raises:
        ProblemError: a body with some of its ten parameters only.
    """
    bodies, first = [], 0
    by_body: dict[int, list[str]] = {}
    for item in theta.items:
        if item.kind == "body":
            by_body.setdefault(item.index, []).append(item.name)
    for names in by_body.values():
        count = sum(len(item.value) for item in theta.items if item.name in names)
        if count != OF_BODY:
            body = names[0].rpartition(":")[0]
            raise ProblemError(
                f"parameters {', '.join(names)}: whether a body is physical depends on all "
                f"its ten; choose '{body}:*'"
            )
        J0 = spread_out(pseudo_inertia(theta.values[first : first + OF_BODY]))
        extent = float(np.sqrt(np.trace(J0[:3, :3]) / J0[3, 3]))
        bodies.append(_Body(first, J0, extent))
        first += OF_BODY
    return bodies


def _prior(
    theta: Parameters, bodies: list[_Body], of_joints: Array, sizes: Array, spread: float
) -> tuple[Array, Array]:
    """Return the rows and the right side of the distance to the model's values."""
    count = len(theta)
    rows, target = [], []
    for body in bodies:
        D = np.zeros((16, count))
        D[:, body.first : body.first + OF_BODY] = relative_change(body.J0) / spread
        rows.append(D)
        target.append(D[:, body.first : body.first + OF_BODY] @ parameters_of(body.J0))
    for i in of_joints:
        row = np.zeros((1, count))
        row[0, i] = 1 / (spread * max(theta.values[i], sizes[i]))
        rows.append(row)
        target.append(row[:, i] * theta.values[i])
    return np.vstack(rows), np.concatenate(target)


def _values(x: Array, bodies: list[_Body], of_joints: Array, sizes: Array) -> tuple[Array, Array]:
    """Return θ (nθ,) and dθ/dx."""
    theta, slopes = np.zeros(x.size), np.zeros((x.size, x.size))
    for k, body in enumerate(bodies):
        own = slice(body.first, body.first + OF_BODY)
        free = slice(OF_BODY * k, OF_BODY * (k + 1))
        theta[own], slope = body_parameters(x[free] * body.sizes)
        slopes[own, free] = slope * body.sizes
    rest = np.arange(OF_BODY * len(bodies), x.size)
    theta[of_joints] = x[rest] * sizes[of_joints]
    slopes[of_joints, rest] = sizes[of_joints]
    return theta, slopes
