"""Linear MPC of a mechanism near an equilibrium, on its constraint manifold.

Constraints are handled implicitly: the unknowns are deviations along the free directions, so
loops and redundant rows cost nothing, and no prediction leaves the manifold to first order. With
multipliers as unknowns the problem is larger and has the same solution.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control.linear.linearization import Linearization
from mbcasadi.control.linear.riccati import weight
from mbcasadi.control.mpc.linear.checks import checked
from mbcasadi.control.mpc.linear.lti import SOLVERS, LinearMPC, lti_mpc, sparse_mpc
from mbcasadi.control.mpc.linear.model import Array, LinearModel, Output
from mbcasadi.control.mpc.linear.on_manifold import on_manifold
from mbcasadi.control.mpc.linear.problem import linear_problem
from mbcasadi.control.mpc.linear.sparse_form import Multipliers, explicit_problem, multipliers_of
from mbcasadi.errors import ProblemError

EXPLICIT = "explicit"


def linear_mpc(
    linear: Linearization,
    horizon: int,
    Q: ArrayLike,
    R: ArrayLike,
    *,
    period: float = 1e-2,
    outputs: Sequence[Output] = (),
    du_bounds: ArrayLike | None = None,
    ctrl_limits: ArrayLike | None = None,
    preview: bool = False,
    form: str = "condensed",
    solver: str | None = None,
    name: str = "linear_mpc",
    **options: Any,
) -> LinearMPC:
    """Return the controller `(q, v, ref, z) → (u, z_next, status, residual)` of a mechanism.

    From a model: `system = mb.read_mjcf(...)`,
    `linear = mb.linearize(system, mb.equilibrium(system))`, `linear_mpc(linear, ...)`.

    Args:
        linear: from `linearize` at an equilibrium.
        horizon: number of samples.
        Q: (2 nv, 2 nv) or (2 nv,) weight of the deviations (δq, δv) of all coordinates.
        R: (nu, nu), (nu,) or a number: weight of the deviation of u from its setpoint.
        period: sample time, s.
        outputs: bounds on rows `C (δq, δv) + D δu`; see `deviation_output`.
        du_bounds: (nu, 2) bounds of the change of u from sample to sample.
        ctrl_limits: (nu, 2) limits of u instead of the model's.
        preview: the reference has q, v for each sample, else one setpoint.
        form: "condensed" or "sparse", as in `lti_mpc`; or "explicit", whose unknowns are all
            coordinates, accelerations and multipliers, for Python. All have the same solution.
        solver, name, options: as in `lti_mpc`; `delay=1` where a control acts one sample late.

    Raises:
        ProblemError: no equilibrium; invalid weights, bounds or horizon.
        ShapeError: a wrong shape, or NaN.
    """
    if form not in (*SOLVERS, EXPLICIT):
        names = ", ".join(map(repr, (*SOLVERS, EXPLICIT)))
        raise ProblemError(f"form = {form!r}; expected one of {names}")
    given: dict[str, Any] = {"form": form}
    if form == EXPLICIT:
        nv = linear.system.nv
        mechanism = multipliers_of(linear, period)
        rows = checked(outputs, 2 * nv, linear.nu)
        given = {"pose": (mechanism, weight("Q", Q, 2 * nv), rows)}
    return on_manifold(
        linear,
        explicit_mpc if form == EXPLICIT else lti_mpc,
        horizon,
        (Q, R),
        period=period,
        outputs=outputs,
        ctrl_limits=ctrl_limits,
        preview=preview,
        solver=solver,
        du_bounds=du_bounds,
        name=name,
        **given,
        **options,
    )


def explicit_mpc(
    model: LinearModel,
    horizon: int,
    Q: ArrayLike,
    R: ArrayLike,
    *,
    pose: tuple[Multipliers, Array, Sequence[Output]],
    tolerance: float = 1e-6,
    solver: str | None = None,
    name: str = "linear_mpc",
    **options: Any,
) -> LinearMPC:
    """Return the controller in x of a problem in all coordinates; see `explicit_problem`.

    Args:
        model: the linear model in the coordinates x of the manifold.
        horizon: number of samples.
        Q, R: (nx, nx), (nu, nu) weights, or their diagonals.
        pose: the mechanism with its multipliers, the (2 nv, 2 nv) weight of (δq, δv), and the
            outputs as rows of (δq, δv) and δu.
        tolerance: bound of each residual for a solution to be accepted.
        solver: of the sparse problem; its default is that of the form "sparse".
        name: a C identifier.
        options: as in `linear_problem`.
    """
    problem = linear_problem(model, horizon, Q, R, **options)
    chosen = solver or SOLVERS["sparse"]
    return sparse_mpc(problem, explicit_problem(problem, *pose), tolerance, chosen, name)


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
