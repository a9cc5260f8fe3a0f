"""Linear MPC of a mechanism near an equilibrium, on its constraint manifold.

The unknowns are deviations along the free directions of the manifold, so loops and redundant rows
add no cost, and predictions satisfy them to first order. With multipliers as unknowns the
solution is the same and the problem larger.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.mpc.linear.checks import check_outputs
from mbcasadi.mpc.linear.controller import LinearMPC
from mbcasadi.mpc.linear.deviation_model import deviation_model
from mbcasadi.mpc.linear.make_controller import condensed_mpc, solver_of_form, sparse_mpc
from mbcasadi.mpc.linear.mechanism import MechanismInterface
from mbcasadi.mpc.linear.prediction_model import Output
from mbcasadi.mpc.linear.problem import linear_problem
from mbcasadi.mpc.linear.sparse_form import multiplier_problem, multipliers_of, sparse_problem
from mbcasadi.shapes import weight


@checked
def linear_mpc(
    linear: Linearization,
    horizon: int,
    Q: ArrayLike,
    R: ArrayLike,
    *,
    period: float = 1e-2,
    P: ArrayLike | None = None,
    S: ArrayLike | None = None,
    du_bounds: ArrayLike | None = None,
    ctrl_limits: ArrayLike | None = None,
    outputs: Sequence[Output] = (),
    blocks: Sequence[int] | None = None,
    preview: bool = False,
    delay: int = 0,
    terminal_set: bool = False,
    tolerance: float = 1e-6,
    form: str = "condensed",
    solver: str | None = None,
    name: str = "linear_mpc",
) -> LinearMPC:
    """Return the controller `(q, v, ref, z) → (u, z_next, status, flags, residual)` of a mechanism.

    From a model: `system = mb.read_mjcf(...)`,
    `linear = mb.linearize(system, mb.equilibrium(system))`, `linear_mpc(linear, ...)`.

    Args:
        linear: from `linearize` at an equilibrium.
        horizon: number of samples.
        Q: (2 nv, 2 nv) or (2 nv,) weight of the deviations (δq, δv) of all coordinates.
        R: (nu, nu), (nu,) or a number: weight of the deviation of u from its setpoint.
        period: sample time, s.
        P: (nx, nx) or (nx,) weight of the state at the end, in free coordinates; the cost to go of
            the regulator without bounds by default.
        S: (nu, nu) or (nu,) weight of the change of u from sample to sample.
        du_bounds: (nu, 2) bounds of the change of u from sample to sample.
        ctrl_limits: (nu, 2) limits of u instead of the model's.
        outputs: bounds on rows `C (δq, δv) + D δu`; see `deviation_output`.
        blocks, terminal_set: as in `linear_problem`.
        preview: the reference has q, v for each sample, else one setpoint.
        delay: samples from a measurement to the moment when its control acts.
        tolerance: bound of each residual for a solution to be accepted.
        form: "condensed" or "sparse", as in `lti_mpc`; or "multipliers", whose unknowns are all
            coordinates, accelerations and multipliers, for Python. All have the same solution.
        solver, name: as in `lti_mpc`.

    Raises:
        ProblemError: no equilibrium; invalid weights, bounds or horizon.
        ShapeError: a wrong shape, or NaN.
        SolverError: the solver is not available.
    """
    solver_name = solver_of_form(form, solver)
    deviations = deviation_model(
        linear,
        (Q, R),
        period=period,
        outputs=outputs,
        ctrl_limits=ctrl_limits,
        terminal_weight=P,
    )
    problem = linear_problem(
        deviations.model,
        horizon,
        deviations.Q,
        deviations.R,
        P=P,
        S=S,
        u_bounds=deviations.u_bounds,
        du_bounds=du_bounds,
        outputs=deviations.outputs,
        blocks=blocks,
        preview=preview,
        delay=delay,
        terminal_set=terminal_set,
    )
    interface = MechanismInterface(linear, problem, deviations.u_limits)
    if form == "condensed":
        return condensed_mpc(problem, interface, solver=solver_name, tolerance=tolerance, name=name)
    if form == "sparse":
        sparse = sparse_problem(problem)
    else:
        size = 2 * linear.system.nv
        rows = check_outputs(outputs, size, linear.nu)
        mechanism = multipliers_of(linear, period)
        sparse = multiplier_problem(problem, mechanism, weight("Q", Q, size), rows)
    return sparse_mpc(
        problem, sparse, interface, solver=solver_name, tolerance=tolerance, name=name
    )


@checked
def deviation_output(
    linear: Linearization,
    name: str,
    row: ArrayLike,
    lower: float = -np.inf,
    upper: float = np.inf,
    *,
    linear_penalty: float = 0.0,
    quadratic_penalty: float = 0.0,
) -> Output:
    """Return `lower <= row (δq, δv) <= upper`, soft where it has a penalty.

    Args:
        linear: the linear system.
        name: of the row.
        row: (2 nv,) coefficients of δq, then δv.
        lower, upper: bounds of the deviation.
        linear_penalty, quadratic_penalty: ρ₁, ρ₂ of a violation.
    """
    C = np.asarray(row, dtype=float).reshape(1, -1)
    ends = np.array([lower], dtype=float), np.array([upper], dtype=float)
    D = np.zeros((1, linear.nu))
    return Output(name, C, D, *ends, linear_penalty, quadratic_penalty)
