"""Real-time iteration of an optimal control problem: one Gauss-Newton step at each tick.

    z = (x_0..x_N, u_0..u_{N-1}, pending, unsolved, active set)
      →  linearise there, solve one QP from the measured state, add its step, give u_0, shift.

[M. Diehl et al., J. Process Control 12, 2002]. Repeated at one state without the shift, its fixed
point satisfies the first-order conditions of the whole problem.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.safe_output.mechanism_hold import (
    Hold,
    hold_of_controls,
    hold_of_mechanism,
)
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import LeastDistanceStages
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.mpc.ocp.solution import OcpSolution, rollout
from mbcasadi.mpc.rti.description import controller_data
from mbcasadi.mpc.rti.iteration import RealTimeIteration, first_memory
from mbcasadi.mpc.rti.linearise import linearised
from mbcasadi.mpc.rti.memory import memory_of
from mbcasadi.mpc.rti.stages import RtiStages
from mbcasadi.qp.solver import controller_fun, require_solver
from mbcasadi.shapes import (
    require_identifier,
    require_positive,
    require_whole,
)

EXPLODES = 1e3
"""Growth of a deviation in one interval that shows an unstable integrator, not a mechanism."""


@checked
def real_time_iteration(
    ocp: OptimalControlProblem,
    guess: OcpSolution | None = None,
    *,
    delay: int = 0,
    pending: ArrayLike | None = None,
    shift: bool = True,
    tolerance: float = 1e-6,
    solver: str = "daqp",
    name: str = "real_time_iteration",
) -> RealTimeIteration:
    """Return the controller of a problem, with all its rows.

    Rows of path and end are linearised about the guess. Where hard ones are infeasible, the status
    is 2 and u is the planned control; soft ones are violated with slack, see `violations`. The
    first state is given, so rows without a control hold from the second sample on.

    Args:
        ocp: the problem; the tick's period is that of its intervals.
        guess: the first guess; by default the motion from rest in the initial pose, without
            control. After a failure it is used again near its first state; elsewhere the measured
            state is held. Only a guess that is given here counts as a plan: without a solution its
            controls are put out.
        delay: d, ticks from a measurement to the moment at which its control acts. The state is
            predicted over them with the pending controls; the guess, and p in `ref`,
            begin at that moment.
        pending: (d, nu) initial pending controls, newest last; at least one with S or du_bounds,
            whose changes start from it. By default the safe output at the first state of the guess,
            which holds the actuators there.
        shift: whether the guess is shifted by one interval each tick.
        tolerance: bound of each residual of the QP for its solution to be accepted.
        solver: "daqp", or "qrqp", for the Function in Python; the C has its own.
        name: a C identifier.

    Raises:
        ProblemError: an invalid number, or a control without cost.
        ShapeError: a guess of another problem, or a wrong number of pending controls.
        SolverError: the solver is not available.
    """
    require_solver(solver)
    require_positive(tolerance=tolerance)
    require_whole(0, delay=delay)
    require_identifier("name", name)
    rest = np.zeros(ocp.nx) if ocp.rest is None else ocp.rest
    first = rollout(ocp, rest, ocp.parameters()) if guess is None else guess
    at = linearised(ocp)
    memory = memory_of(ocp, at.horizon.rows.resting, int(delay), _hold_of(ocp, first))
    z0 = first_memory(memory, first, pending, is_plan=guess is not None)
    problem = RtiStages(ocp, at, memory, z0, shift, tolerance)
    stages = problem.stages()
    _require_determined(problem, stages)
    controller = controller_data(controller_fun(name, stages, solver), stages, problem)
    return RealTimeIteration(controller, _slots_of_samples(ocp), ocp, memory)


def _slots_of_samples(ocp: OptimalControlProblem) -> tuple[Slot, ...]:
    """Return the slices of p of each sample, one sample after the other."""
    samples = range(ocp.horizon + 1)
    return tuple(replace(slot, name=f"{slot.name}{k}") for k in samples for slot in ocp.slots)


def _require_determined(problem: RtiStages, stages: LeastDistanceStages) -> None:
    """Raise unless the step is stable, and the cost determines every control at the guess."""
    growth = _growth(problem.ocp, problem.z0)
    if growth > EXPLODES:
        raise ProblemError(
            f"'{problem.ocp.name}': a deviation from the guess grows {growth:.3g}-fold in one "
            f"interval of {problem.ocp.period:g} s: the step is too long for what moves fastest, "
            "often a stiff servo on a light link; expected a shorter period, more substeps, "
            "armature on the joint, or a motor in place of the servo"
        )
    assert stages.prepare is not None
    prepared = stages.prepare(problem.ocp.parameters().ravel(), problem.z0)[0]
    if not np.all(np.isfinite(prepared.full())):
        raise ProblemError(
            f"'{problem.ocp.name}' leaves some control without cost, or its dynamics are not "
            "finite at the guess; expected R, S or another cost of every control, and a guess of "
            "numbers"
        )


def _hold_of(ocp: OptimalControlProblem, guess: OcpSolution) -> Hold:
    """Return the safe output; without a mechanism its command is the last one of the guess."""
    system = ocp.system
    if system is None:
        return hold_of_controls(ocp.u_bounds, ocp.period, np.array(guess.u[-1]))
    q_0 = guess.x[0, : system.nq]
    return hold_of_mechanism(system, ocp.u_bounds, ocp.period, np.zeros(ocp.nu), q_0)


def _growth(ocp: OptimalControlProblem, z: Array) -> float:
    """Return the spectral radius of the first interval at the guess; 0 where it is not finite."""
    x, u, p = z[: ocp.nx], z[ocp.nx * (ocp.horizon + 1) :][: ocp.nu], ocp.parameters()[0]
    x_next = ocp.dynamics(x, u, p).full()
    if not np.all(np.isfinite(x_next)):
        return 0.0
    A = ocp.dynamics.jacobian()(x, u, p, x_next)[0].full()
    return float(np.abs(np.linalg.eigvals(A)).max()) if np.all(np.isfinite(A)) else np.inf
