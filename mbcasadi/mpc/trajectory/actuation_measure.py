"""A smooth, signed measure of the distance to an actuation singularity."""

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.regulators.operating_point import numbers, place_of, rows_fun
from mbcasadi.control.regulators.tangent import TANGENT_RANK_TOL, project_state
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.trajectory.constraints import independent
from mbcasadi.shapes import require_shape
from mbcasadi.system import System, evaluate

SINGULAR = 1e-6
"""Share of the product of the rows' lengths below which the determinant counts as zero."""


@checked
def actuation_measure(system: System, q: ca.SX, near: ArrayLike) -> ca.SX:
    """Return a smooth, signed measure of the distance to an actuation singularity, one at `near`.

        measure = det [Uᵀ A; Bᵀ] / det at a given pose

    Where it is zero, there is a velocity within the loops (`A v = 0`) on which no motor does work
    (`Bᵀ v = 0`): the motors cannot hold the mechanism, and inverse dynamics requires infinite
    torques. `Uᵀ A` are independent combinations of the loops' rows, chosen at that pose. A bound on
    the measure as a row of the path keeps an optimal motion away from such poses; one on |measure|
    would not, because a step may jump over zero.

    Args:
        system: a mechanism with as many motors as freedoms.
        q: (nq, 1) symbols.
        near: (nq,) pose on the manifold, away from singularities.

    Raises:
        ProblemError: fewer or more motors than freedoms, or a singular pose.
        ShapeError: a wrong shape, or NaN.
    """
    require_shape("q", q, (system.nq, 1), "(nq, 1)")
    place = project_state(system, place_of(system, near), TANGENT_RANK_TOL)
    U = independent(numbers(rows_fun(system), place.values)["A"])
    freedoms = system.nv - U.shape[1]
    if system.nu != freedoms:
        raise ProblemError(
            f"'{system.name}' has {system.nu} motors for {freedoms} freedoms; a determinant needs "
            "as many of them"
        )
    at = {"q": q, "v": ca.SX.zeros(system.nv), "t": ca.SX(0)}
    A = evaluate(system.loop_jacobian, at) if system.nc else ca.SX(0, system.nv)
    square = ca.vertcat(U.T @ A, evaluate(system.actuation, {"q": q, "v": ca.SX(system.nv, 1)}).T)
    square_fun = ca.Function("square", [q], [square, ca.det(square)])
    rows, determinant = (np.array(out) for out in square_fun(place.q))
    size = float(np.prod(np.linalg.norm(rows, axis=1)))
    if abs(determinant.item()) <= SINGULAR * size:
        raise ProblemError(f"'{system.name}': the pose {place.q} is an actuation singularity")
    return ca.det(square) / determinant.item()
