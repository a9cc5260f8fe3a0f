"""The controller of a state and a disturbance (x, d), behind an estimator of both.

The disturbance is without cost and without bounds: the estimator predicts it as a constant, and
the interface gives the MPC the target at which it is cancelled. See `offset_free`.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control.regulators.innovation_gate import Gate
from mbcasadi.mpc.linear.controller import LinearMPC
from mbcasadi.mpc.linear.disturbance import Noise, augment_with_disturbance, block_diagonal, matrix
from mbcasadi.mpc.linear.interface import Interface
from mbcasadi.mpc.linear.make_controller import condensed_mpc, solver_of_form
from mbcasadi.mpc.linear.observer import ObserverInterface
from mbcasadi.mpc.linear.prediction_model import Array, Output
from mbcasadi.mpc.linear.problem import LinearProblem
from mbcasadi.shapes import weight


def disturbance_mpc(
    problem: LinearProblem,
    interface: Interface,
    *,
    C: Array,
    tracked: ArrayLike,
    disturbances: ArrayLike | None,
    noise: Noise,
    gate: Gate | None,
    innovation: Array | None = None,
    wrap: tuple[int, ...] = (),
    solver: str | None,
    tolerance: float,
    name: str,
) -> LinearMPC:
    """Return the controller of (x, d) behind an estimator of both.

    Args:
        problem: in x.
        interface: its measurement and its control.
        C: (ny, nx) measured rows.
        innovation: (ny, ny) covariance for the gate; that of the filter by default.
        wrap: measured rows that are angles known up to 2 π.
        tracked, disturbances, noise, gate, solver, tolerance, name: as in `offset_free_lti`.

    Raises:
        ProblemError, ShapeError, SolverError: as in `offset_free_lti`.
    """
    nx = problem.model.nx
    B_d = matrix("disturbances", disturbances, np.eye(nx), rows=nx)
    covariances = (
        weight("noise.state", noise.state, nx),
        weight("noise.disturbance", noise.disturbance, B_d.shape[1]),
        weight("noise.measurement", noise.measurement, C.shape[0], definite=True),
    )
    H = matrix("tracked", tracked, None, columns=nx)
    augmented = augment_with_disturbance(
        problem, B_d, C, H, covariances, gate=gate, innovation=innovation, wrap=wrap
    )
    unpriced = np.zeros((B_d.shape[1],) * 2)
    of_both = replace(
        problem,
        model=augmented.model,
        Q=block_diagonal(problem.Q, unpriced),
        P=block_diagonal(problem.P, unpriced),
        outputs=tuple(_without_disturbance(output, B_d.shape[1]) for output in problem.outputs),
    )
    return condensed_mpc(
        of_both,
        ObserverInterface(interface, augmented, nx),
        solver=solver_of_form("condensed", solver),
        tolerance=tolerance,
        name=name,
    )


def _without_disturbance(output: Output, nd: int) -> Output:
    """Return the rows over (x, d) and u."""
    return replace(output, C=np.hstack([output.C, np.zeros((output.C.shape[0], nd))]))
