"""An optimal control problem as a problem of aligator, in Python."""

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
USED = (
    *("CostAbstract", "StageFunction", "StageModel", "TrajOptProblem", "ControlErrorResidual"),
    *("dynamics", "manifolds", "constraints"),
)
HOW = "its Python bindings come by conda: conda install -c conda-forge aligator"


@checked
def ocp_to_aligator(
    ocp: OptimalControlProblem,
    x0: ArrayLike,
    p: ArrayLike | None = None,
    *,
    aligator: Any = None,
) -> Any:
    """Return a `TrajOptProblem` with the steps, the cost and the rows of a problem.

    Soft rows cost by their violation; hard rows and bounds of controls are in boxes. The state is a
    vector, of which `ocp.dynamics` keeps the length of quaternions; Hessians are those of
    Gauss-Newton. CasADi evaluates the functions in Python, so that times say nothing.

    Args:
        ocp: the problem.
        x0: (nx,) initial state.
        p: (N + 1, np) value of the parameters; nominal by default.
        aligator: the module of its bindings; imported by default.

    Raises:
        MissingExtraError: the bindings are not installed, and no module was given.
        ShapeError: x0 or p of a wrong shape, or NaN.
    """
    start, values = column("x0", x0, ocp.nx), parameters_of(ocp, p)
    module = neighbour("aligator", HOW) if aligator is None else aligator
    require_members("aligator", module, USED, "the module aligator")
    cost, dynamics, rows = _classes(module)
    space, box = module.manifolds.VectorSpace(ocp.nx), module.constraints.BoxConstraint
    *running, end = evaluations_of(ocp, values)
    step, stages = step_of(ocp), []
    for each in running:
        stage = module.StageModel(
            cost(space, ocp.nu, each), dynamics(space, ocp.nu, Step(step, each.p))
        )
        if len(each.stage.bounds):
            stage.addConstraint(rows(ocp.nx, ocp.nu, each), box(*each.stage.bounds.T.copy()))
        if np.isfinite(ocp.u_bounds).any():
            control = module.ControlErrorResidual(ocp.nx, np.zeros(ocp.nu))
            stage.addConstraint(control, box(*ocp.u_bounds.T.copy()))
        stages.append(stage)
    problem = module.TrajOptProblem(start, stages, cost(space, ocp.nu, end))
    if len(end.stage.bounds):
        limits = box(*end.stage.bounds.T.copy())
        problem.addTerminalConstraint(rows(ocp.nx, ocp.nu, end), limits)
    return problem


def _classes(module: Any) -> tuple[Any, Any, Any]:
    """Return the classes of cost, dynamics and rows; their bases are aligator's."""

    class StageCost(module.CostAbstract):  # type: ignore[misc]
        """Cost of a stage."""

        def __init__(self, space: Any, nu: int, stage: Evaluation) -> None:
            module.CostAbstract.__init__(self, space, nu)
            self.stage = stage

        def evaluate(self, x: Array, u: Array, data: Any) -> None:
            """Evaluate the cost."""
            data.value = self.stage.values(x, u)[0]

        def computeGradients(self, x: Array, u: Array, data: Any) -> None:
            """Evaluate its gradients."""
            fill(data, ("Lx", "Lu"), self.stage.slopes(x, u)[:2])

        def computeHessians(self, x: Array, u: Array, data: Any) -> None:
            """Evaluate its Hessians."""
            l_xx, l_xu, l_uu = self.stage.slopes(x, u)[2:5]
            fill(data, ("Lxx", "Lxu", "Lux", "Luu"), [l_xx, l_xu, l_xu.T, l_uu])

    class StageStep(module.dynamics.ExplicitDynamicsModel):  # type: ignore[misc]
        """Step of a stage."""

        def __init__(self, space: Any, nu: int, step: Step) -> None:
            module.dynamics.ExplicitDynamicsModel.__init__(self, space, nu)
            self.step = step

        def forward(self, x: Array, u: Array, data: Any) -> None:
            """Evaluate the next state."""
            data.xnext[:] = self.step(x, u)[0]

        def dForward(self, x: Array, u: Array, data: Any) -> None:
            """Evaluate its derivatives."""
            fill(data, ("Jx", "Ju"), self.step(x, u)[1:])

    class StageRows(module.StageFunction):  # type: ignore[misc]
        """Rows of a stage."""

        def __init__(self, nx: int, nu: int, stage: Evaluation) -> None:
            module.StageFunction.__init__(self, nx, nu, len(stage.stage.bounds))
            self.stage = stage

        def evaluate(self, x: Array, u: Array, data: Any) -> None:
            """Evaluate the rows."""
            data.value[:] = self.stage.values(x, u)[1]

        def computeJacobians(self, x: Array, u: Array, data: Any) -> None:
            """Evaluate their derivatives."""
            fill(data, ("Jx", "Ju"), self.stage.slopes(x, u)[5:])

    return StageCost, StageStep, StageRows
