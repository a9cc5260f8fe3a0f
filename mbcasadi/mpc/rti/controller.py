"""Real-time iteration of an optimal control problem: one Gauss-Newton step at each tick.

    z = (x_0..x_N, u_0..u_{N-1}, pending, unsolved, active set)
      →  linearise there, solve one QP from the measured state, add its step, give u_0, shift.

[M. Diehl et al., J. Process Control 12, 2002]. Repeated at one state without the shift, its fixed
point satisfies the first-order conditions of the whole problem.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.control.inverse_dynamics.parts.observer import DisturbanceObserver
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
from mbcasadi.mpc.ocp.stage_tuning import TUNING
from mbcasadi.mpc.rti.condensed_stages import CondensedStages
from mbcasadi.mpc.rti.controller_data import controller_data
from mbcasadi.mpc.rti.iteration import RealTimeIteration, first_memory, require_guess
from mbcasadi.mpc.rti.learned_force import LearnedForce, learned_force
from mbcasadi.mpc.rti.linearise import linearised
from mbcasadi.mpc.rti.memory import GuessMemory, memory_of
from mbcasadi.mpc.rti.moving_plan import MovingPlan
from mbcasadi.mpc.rti.stages import RtiStages
from mbcasadi.mpc.rti.stagewise import stagewise, undetermined
from mbcasadi.mpc.rti.stagewise_stages import StagewiseStages
from mbcasadi.qp.plugins import require_solver, require_sparse_solver
from mbcasadi.qp.solver import controller_fun
from mbcasadi.shapes import require_identifier, require_positive, require_whole

STAGEWISE = "stagewise"

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
    line_search: int = 0,
    tolerance: float = 1e-6,
    solver: str = "daqp",
    observer: DisturbanceObserver | None = None,
    period: float | None = None,
    name: str = "real_time_iteration",
) -> RealTimeIteration:
    """Return the controller of a problem, with all its rows.

    Rows of path and end are linearised about the guess. Where hard ones are infeasible, the status
    is 2 and u is the planned control; soft ones are violated with slack, see `violations`. The
    first state is given, so rows without a control hold from the second sample on.

    Args:
        ocp: the problem.
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
        shift: whether the guess of a tick is the plan of the one before, moved by one interval; by
            the time between two ticks where intervals have given lengths: states are interpolated,
            controls held.
        line_search: how often a step may be halved until a merit falls, see `line_search.py`; 0
            takes whole steps, 5 converges from afar where those do not. Each try is a motion of the
            model over the horizon, behind the measurement.
        tolerance: bound of each residual of the QP for its solution to be accepted.
        solver: "daqp", or "qrqp", for the Function in Python; the C has its own. "stagewise" keeps
            the states as unknowns: C of recursions in loops over the horizon, whose text and memory
            do not grow with the square of it, for large mechanisms and long horizons; in Python
            the sparse plugin piqp.
        observer: with its bandwidth the iteration learns the force that the model lacks, and plans
            with it: what its first step did not predict. It is added to the `disturbance` of a
            problem with the part `Disturbance`. A delay makes it no slower.
        period: time between two ticks, s; by default that of the first interval. Another one needs
            a problem whose intervals have given lengths.
        name: a C identifier.

    Raises:
        ProblemError: an invalid number, a control without cost, an observer without a disturbance.
        ShapeError: a guess of another problem, or a wrong number of pending controls.
        SolverError: the solver is not available.
    """
    require_solver(solver, STAGEWISE)
    if solver == STAGEWISE:
        require_sparse_solver("piqp")
    require_positive(tolerance=tolerance)
    require_whole(0, delay=delay, line_search=line_search)
    require_identifier("name", name)
    if ocp.system is not None and ocp.nu != ocp.system.nu:
        raise ProblemError(
            f"'{ocp.name}' has {ocp.nu} unknowns in a stage and its mechanism {ocp.system.nu} "
            "controls; expected a problem in the controls, without StageForces or collocation"
        )
    rest = np.zeros(ocp.nx) if ocp.rest is None else ocp.rest
    first = rollout(ocp, rest, ocp.parameters()) if guess is None else guess
    require_guess(ocp, first)
    _require_stable(ocp, first)

    tick = _tick_of(ocp, period)
    hold = _hold_of(ocp, first, tick)
    learned = LearnedForce()
    if observer is not None:
        learned = learned_force(ocp, observer.bandwidth, tick)

    def start(
        resting: Array, rows: NDArray[np.int_], are_multipliers: bool
    ) -> tuple[GuessMemory, Array]:
        """Return the layout of z, and the first one."""
        moving = MovingPlan(ocp, tick, rows, are_multipliers)
        given = None if ocp.lengths is None else moving
        memory = memory_of(ocp, resting, int(delay), hold, learned, given)
        return memory, first_memory(memory, first, pending, is_plan=guess is not None)

    problem: RtiStages
    if solver == STAGEWISE:
        kept = stagewise(ocp, (first.x.T, first.u.T))
        qp, N = kept.problem, ocp.horizon
        places = np.arange(N * qp.inside.count).reshape(N, qp.inside.count).T
        memory = start(np.zeros(qp.m), places, True)
        problem = StagewiseStages(ocp, *memory, shift, tolerance, line_search, kept)
    else:
        at = linearised(ocp)
        rows = at.horizon.rows
        memory = start(rows.resting, rows.by_sample, False)
        problem = CondensedStages(ocp, *memory, shift, tolerance, line_search, at)
    stages = problem.stages()
    _require_determined(problem, stages)
    controller = controller_data(controller_fun(name, stages, solver), stages, problem)
    return RealTimeIteration(controller, _slots_of_samples(ocp), ocp, problem.memory)


def _tick_of(ocp: OptimalControlProblem, period: float | None) -> float:
    """Return the time between two ticks.

    Raises:
        ProblemError: not positive, or another one than that of equal intervals.
    """
    tick = ocp.period if period is None else float(period)
    require_positive(period=tick)
    if tick != ocp.period and ocp.lengths is None:
        raise ProblemError(
            f"period = {tick:g} s, and all intervals of '{ocp.name}' are of {ocp.period:g} s; "
            f"expected the same, or a problem with given lengths: period=[{ocp.period:g}, ...]"
        )
    return tick


def _slots_of_samples(ocp: OptimalControlProblem) -> tuple[Slot, ...]:
    """Return the slices of p of each sample, one sample after the other."""
    samples = range(ocp.horizon + 1)
    slots = [slot for slot in ocp.slots if slot.name != TUNING]
    return tuple(replace(slot, name=f"{slot.name}{k}") for k in samples for slot in slots)


def _require_stable(ocp: OptimalControlProblem, guess: OcpSolution) -> None:
    """Raise unless deviations stay small over the first interval at the guess."""
    growth = _growth(ocp, guess)
    if growth > EXPLODES:
        raise ProblemError(
            f"'{ocp.name}': a deviation from the guess grows {growth:.3g}-fold in one "
            f"interval of {ocp.period:g} s: the step is too long for what moves fastest, "
            "often a stiff servo on a light link; expected step=SemiImplicitStep(), a shorter "
            "period, more substeps, armature on the joint, or a motor in place of the servo"
        )


def _require_determined(problem: RtiStages, stages: LeastDistanceStages) -> None:
    """Raise unless the cost determines every control at the guess."""
    assert stages.prepare is not None
    ocp = problem.ocp
    given = {"ref": ocp.parameters()[:, : ocp.n_ref].ravel(), "z": problem.z0}
    given |= {TUNING: ocp.tuned({})} if ocp.tuning else {}
    prepared = stages.prepare(**given)["prepared"]
    if not np.all(np.isfinite(prepared.full())):
        raise undetermined(ocp.name)


def _hold_of(ocp: OptimalControlProblem, guess: OcpSolution, tick: float) -> Hold:
    """Return the safe output; without a mechanism its command is the last one of the guess."""
    system = ocp.system
    if system is None:
        return hold_of_controls(ocp.u_bounds, tick, np.array(guess.u[-1]))
    q_0 = guess.x[0, : system.nq]
    return hold_of_mechanism(system, ocp.u_bounds, tick, np.zeros(ocp.nu), q_0)


def _growth(ocp: OptimalControlProblem, guess: OcpSolution) -> float:
    """Return the spectral radius of the first interval at the guess; 0 where it is not finite."""
    x, u, p = guess.x[0], guess.u[0], ocp.parameters()[0]
    x_next = ocp.dynamics(x, u, p).full()
    if not np.all(np.isfinite(x_next)):
        return 0.0
    A = ocp.dynamics.jacobian()(x, u, p, x_next)[0].full()
    return float(np.abs(np.linalg.eigvals(A)).max()) if np.all(np.isfinite(A)) else np.inf
