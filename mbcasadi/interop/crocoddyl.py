"""An optimal control problem as action models of Crocoddyl, in Python."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.interop.continuous_dynamics import neighbour, require_members
from mbcasadi.interop.ocp_stages import (
    Evaluation,
    Step,
    evaluations_of,
    fill,
    parameters_of,
    step_of,
)
from mbcasadi.mpc.ocp.problem import OptimalControlProblem
from mbcasadi.shapes import column

Array = NDArray[np.float64]
USED = ("ActionModelAbstract", "StateVector", "ShootingProblem")
MEMBERS = ("Lx", "Lu", "Lxx", "Lxu", "Luu", "Gx", "Gu")
"""Of Crocoddyl's data, in the order of `Evaluation.slopes`."""


@checked
def ocp_to_crocoddyl(
    ocp: OptimalControlProblem,
    x0: ArrayLike,
    p: ArrayLike | None = None,
    *,
    crocoddyl: Any = None,
) -> Any:
    """Return a `ShootingProblem` of action models: steps, cost and rows of a problem.

    Soft rows cost by their violation. Hard rows are `g`, bounds of controls `u_lb` and `u_ub`: they
    act in solvers that know them (`SolverBoxFDDP`; CSQP of mim_solvers). The state is a vector, of
    which `ocp.dynamics` keeps the length of quaternions; Hessians are those of Gauss-Newton. CasADi
    evaluates the functions in Python, so that times say nothing.

    Args:
        ocp: the problem.
        x0: (nx,) initial state.
        p: (N + 1, np) value of the parameters; nominal by default.
        crocoddyl: the module, version 3; imported by default.

    Raises:
        MissingExtraError: crocoddyl is not installed, and no module was given.
        ShapeError: x0 or p of a wrong shape, or NaN.
    """
    start, values = column("x0", x0, ocp.nx), parameters_of(ocp, p)
    croc = neighbour("crocoddyl", "pip install crocoddyl") if crocoddyl is None else crocoddyl
    require_members("crocoddyl", croc, USED, "the module crocoddyl")
    action, state, step = _action_model(croc), croc.StateVector(ocp.nx), step_of(ocp)
    *stages, end = evaluations_of(ocp, values)
    running = [action(state, ocp.nu, each, Step(step, each.p)) for each in stages]
    for model in running:
        model.u_lb, model.u_ub = ocp.u_bounds.T.copy()
    return croc.ShootingProblem(start, running, action(state, ocp.nu, end, None))


def _action_model(croc: Any) -> Any:
    """Return the class of the action models; its base is Crocoddyl's."""

    class StageAction(croc.ActionModelAbstract):  # type: ignore[misc]
        """A stage of an `OptimalControlProblem`; without a step, its end."""

        def __init__(self, state: Any, nu: int, stage: Evaluation, step: Step | None) -> None:
            rows = len(stage.stage.bounds)
            sizes = (rows, 0, 0 if step else rows, 0)  # of g, h, and of both at the end
            croc.ActionModelAbstract.__init__(self, state, nu, 1, *sizes)
            self.stage, self.step, self.none = stage, step, np.zeros(nu)
            if rows:
                self.g_lb, self.g_ub = stage.stage.bounds.T.copy()

        def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
            """Evaluate cost, rows and next state."""
            given = self.none if u is None else u
            data.cost, g = self.stage.values(x, given)
            if g.size:
                data.g[:] = g
            data.xnext[:] = self.step(x, given)[0] if self.step else x

        def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:
            """Evaluate derivatives."""
            given = self.none if u is None else u
            fill(data, MEMBERS, self.stage.slopes(x, given))
            if self.step:
                fill(data, ("Fx", "Fu"), self.step(x, given)[1:])

    return StageAction
