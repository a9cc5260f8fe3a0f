"""Linear MPC of a plain linear model."""

from collections.abc import Sequence

from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.linear.controller import LinearMPC
from mbcasadi.mpc.linear.interface import StateInterface
from mbcasadi.mpc.linear.make_controller import condensed_mpc, solver_of_form, sparse_mpc
from mbcasadi.mpc.linear.prediction_model import LinearModel, Output
from mbcasadi.mpc.linear.problem import linear_problem
from mbcasadi.mpc.linear.sparse_form import sparse_problem


@checked
def lti_mpc(
    model: LinearModel,
    horizon: int,
    Q: ArrayLike,
    R: ArrayLike,
    *,
    P: ArrayLike | None = None,
    S: ArrayLike | None = None,
    u_bounds: ArrayLike | None = None,
    du_bounds: ArrayLike | None = None,
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
    """Return the controller of a plain linear model, constant or varying along the horizon.

    Args:
        model, horizon, Q, R, P, S: as in `linear_problem`.
        u_bounds, du_bounds, outputs, blocks: as in `linear_problem`.
        preview, delay, terminal_set: as in `linear_problem`.
        tolerance: bound of each residual for a solution to be accepted.
        form: "condensed", whose unknowns are the controls, for C; "sparse", whose unknowns include
            the states, for Python.
        solver: of the Function in Python: "daqp" or "qrqp" for the condensed form, "proxqp",
            "piqp" or "qrqp" for the sparse one; the C of the condensed form has its own.
        name: a C identifier.

    Raises:
        ProblemError, ShapeError: as in `linear_problem`; an unknown form.
        SolverError: the solver is not available.
    """
    solver_name = solver_of_form(form, solver)
    if form == "multipliers":
        raise ProblemError(
            'form = "multipliers" needs the constraints of a mechanism; expected "condensed" or '
            '"sparse", or linear_mpc'
        )
    problem = linear_problem(
        model,
        horizon,
        Q,
        R,
        P=P,
        S=S,
        u_bounds=u_bounds,
        du_bounds=du_bounds,
        outputs=outputs,
        blocks=blocks,
        preview=preview,
        delay=delay,
        terminal_set=terminal_set,
    )
    interface = StateInterface(problem, "x0", tuple(f"x{i}" for i in range(model.nx)))
    if form == "condensed":
        return condensed_mpc(problem, interface, solver=solver_name, tolerance=tolerance, name=name)
    sparse = sparse_problem(problem)
    return sparse_mpc(
        problem, sparse, interface, solver=solver_name, tolerance=tolerance, name=name
    )
