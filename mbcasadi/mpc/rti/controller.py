"""Real-time iteration of an optimal control problem: one Gauss-Newton step at each tick.

    z = (x_0..x_N, u_0..u_{N-1}, pending, unsolved, active set)
      →  linearise there, solve one QP from the measured state, add its step, give u_0, shift.

[M. Diehl et al., J. Process Control 12, 2002]. Repeated at one state without the shift, its fixed
point satisfies the first-order conditions of the whole problem.
"""

from dataclasses import replace

import casadi as ca
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
from mbcasadi.description import Controller, LeastDistanceStages, ReportedLimits, Signal
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.lq.tick import stagewise_controller
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.mpc.ocp.solution import OcpSolution, rollout
from mbcasadi.mpc.ocp.stage_tuning import TUNING
from mbcasadi.mpc.rti.condensed_stages import CondensedStages
from mbcasadi.mpc.rti.iteration import RealTimeIteration, first_memory, require_guess
from mbcasadi.mpc.rti.learned_force import LearnedForce, learned_force
from mbcasadi.mpc.rti.linearise import linearised
from mbcasadi.mpc.rti.memory import Guess, GuessMemory, memory_of
from mbcasadi.mpc.rti.moving_plan import MovingPlan, Plan
from mbcasadi.mpc.rti.stages import RtiStages
from mbcasadi.mpc.rti.stagewise import stagewise, undetermined
from mbcasadi.mpc.rti.stagewise_stages import StagewiseStages
from mbcasadi.qp.plugins import require_solver, require_sparse_solver
from mbcasadi.qp.solver import controller_fun
from mbcasadi.shapes import require_identifier, require_positive, require_whole
from mbcasadi.system.coordinates import controls

STAGEWISE = "stagewise"

EXPLODES = 1e3
"""Growth of a deviation in one interval that shows an unstable integrator, not a mechanism."""


SAFE_OUTPUT = (
    "the control that the last plan has for this sample; without such a plan the last command "
    "while it is young, then each actuator holds"
)


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
    require_whole(0, delay=delay)
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

    tick, hold = _tick_of(ocp, period), _hold_of(ocp, first, _tick_of(ocp, period))
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
        problem = StagewiseStages(ocp, *memory, shift, tolerance, kept)
    else:
        at = linearised(ocp)
        rows = at.horizon.rows
        memory = start(rows.resting, rows.by_sample, False)
        problem = CondensedStages(ocp, *memory, shift, tolerance, at)
    stages = problem.stages()
    _require_determined(problem, stages)
    controller = _controller_data(controller_fun(name, stages, solver), stages, problem)
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


def _controller_data(
    function: ca.Function, stages: LeastDistanceStages, problem: RtiStages
) -> Controller:
    """Return the controller."""
    ocp = problem.ocp
    signals = _signals(problem)
    monitor, monitors = _setpoint_monitor(ocp)
    described = stagewise_controller(
        function,
        tuple(signals[key] for key in problem.memory.inputs()),
        Signal("u", ocp.names("u"), _units_of_controls(ocp)),
        problem.memory.hold.safe,
        problem.z0,
        {
            "law": "real-time iteration: one Gauss-Newton step of an optimal control problem",
            "horizon": _horizon_in_words(ocp),
            "delay": f"{problem.memory.delay} ticks, predicted with the pending controls",
            "safe output": SAFE_OUTPUT,
        },
        stages,
    )
    return replace(
        described,
        monitor=monitor,
        monitors=monitors,
        prediction=_prediction(problem),
        prediction_rows=ocp.names("x"),
        delay=problem.memory.delay,
        tuning=ocp.tuning,
        limits=_limits(ocp, np.flatnonzero(np.isfinite(ocp.x_bounds).any(axis=1)).tolist()),
        unreported=() if monitors else ("tracking",),  # residuals alone have no desired value
        needs_double="the QP of a real-time iteration has squares of the horizon's sensitivities, "
        "which multiply float's rounding",
    )


def _horizon_in_words(ocp: OptimalControlProblem) -> str:
    if ocp.lengths is None:
        return f"{ocp.horizon} intervals of {ocp.period:g} s"
    least, most = ocp.lengths.min(), ocp.lengths.max()
    return f"{ocp.horizon} intervals of given lengths, usually {least:g} to {most:g} s"


def _units_of_controls(ocp: OptimalControlProblem) -> tuple[str, ...]:
    """Return the unit of each control; "" where the problem has no mechanism, or others."""
    units = () if ocp.system is None else controls(ocp.system).units
    return units if len(units) == ocp.nu else ("",) * ocp.nu


def _signals(problem: RtiStages) -> dict[str, Signal]:
    """Return names and units of the inputs."""
    ocp, N, memory = problem.ocp, problem.ocp.horizon, problem.memory
    x, u, units = ocp.names("x"), ocp.names("u"), ocp.labels.get("x_units", ("",) * ocp.nx)
    slots = [
        (f"{slot.name}.{name}", unit)
        for slot in ocp.slots
        if slot.name != TUNING
        for name, unit in zip(slot.components, slot.units, strict=True)
    ]
    tuning = [(entry.name, entry.unit) for entry in ocp.tuning]
    stored = [*u, *(slots[i][0] for i in memory.read)]
    z = [f"{name}[{k}]" for k in range(N + 1) for name in x]
    z += [f"{name}[{k}]" for k in range(N) for name in u]
    z += [f"pending.{name}[{k}]" for k in range(-memory.columns, 0) for name in stored]
    z += ["unsolved"]
    z += [f"active.{name}" for name in problem.row_names]
    z += memory.force.components
    z += [f"safe.{name}" for name in memory.hold.safe.components]
    z += [] if memory.moving is None else memory.moving.components
    nq, nv = ocp.state.numel_in("q"), ocp.state.numel_in("v")
    short_names = [name.split(".", 1)[-1] for name in x]
    return {
        "q": Signal("q", tuple(short_names[:nq]), units[:nq]),
        "v": Signal("v", tuple(short_names[nq : nq + nv]), units[nq : nq + nv]),
        "ref": Signal(
            "ref",
            tuple(f"{name}[{k}]" for k in range(N + 1) for name, _ in slots),
            tuple(unit for _, unit in slots) * (N + 1),
        ),
        TUNING: Signal(TUNING, tuple(x for x, _ in tuning), tuple(unit for _, unit in tuning)),
        "z": Signal("z", tuple(z), ("",) * len(z)),
    }


def _prediction(problem: RtiStages) -> ca.Function:
    """Return (q, v, ref, z, z_next, u) → (x, u): the plan of a tick with these outputs.

    Samples are one tick apart, also where the intervals are not.
    """
    memory, moves = problem.memory, problem.shift and problem.memory.moving is None
    inputs, guess, (X, U) = _plan_of_tick(memory, problem.z0, 0 if moves else 1)
    if memory.moving is not None:
        nodes = memory.moving.nodes(guess.P)
        X, U = _at_ticks(Plan(problem.ocp, nodes, X, U), memory.moving.tick)
    plan = [ca.densify(block) for block in (X, U)]
    twice = {"allow_duplicate_io_names": True}  # u is input and output
    return ca.Function("prediction", [*inputs.values()], plan, [*inputs], ["x", "u"], twice)


def plan_at_samples(iteration: RealTimeIteration) -> ca.Function:
    """Return (q, v, ref, z, z_next, u) → (x, u, lengths): the plan of a tick at its own samples.

    Args:
        iteration: of a problem whose intervals have given lengths.
    """
    memory = iteration.memory
    assert memory.moving is not None
    inputs, guess, plan = _plan_of_tick(memory, iteration.controller.z0, 1)
    outputs = [ca.densify(block) for block in (*plan, memory.moving.lengths(guess.P))]
    names, twice = ["x", "u", "lengths"], {"allow_duplicate_io_names": True}
    return ca.Function("plan", [*inputs.values()], outputs, [*inputs], names, twice)


def _plan_of_tick(
    memory: GuessMemory, z0: Array, first_sample: int
) -> tuple[dict[str, ca.MX], Guess, tuple[ca.MX, ca.MX]]:
    """Return symbols of inputs, z_next and u; the guess of the tick; X and U that it has planned.

    Args:
        memory: the layout of z.
        z0: the first one.
        first_sample: of z_next that belongs to the second one of the tick, less one.
    """
    ocp, inputs = memory.ocp, memory.inputs()
    N, guess = ocp.horizon, memory.guess(inputs, z0)
    x0, _ = memory.start(inputs, guess)
    u, z_next = ca.MX.sym("u", ocp.nu), ca.MX.sym("z_next", sum(memory.sizes))
    contents = memory.split(z_next)
    X = ca.horzcat(x0, contents.X[:, first_sample : first_sample + N])
    U = ca.horzcat(u, contents.U[:, first_sample : first_sample + N - 1])
    return inputs | {"z_next": z_next, "u": u}, guess, (X, U)


def _at_ticks(plan: Plan, tick: float) -> tuple[ca.MX, ca.MX]:
    """Return states and controls of a plan, one tick apart over its nominal length."""
    count = max(1, int(plan.ocp.times[-1] / tick + TICK_ROUNDING))
    times = tick * np.arange(count + 1)
    return plan.states(ca.MX(times)), plan.controls(ca.MX(times[:-1] + tick / 2))


TICK_ROUNDING = 1e-6
"""Share of a tick by which the length of a plan may be short of a number of ticks."""


def _limits(ocp: OptimalControlProblem, states: list[int]) -> ReportedLimits | None:
    """Return bounded states, and rows of the path at the first sample's p; None without any.

    They are measured, so that the bounds of the given state hold.
    """
    count, soft = len(states) + len(ocp.path_bounds), _soft(ocp)
    if not count:
        return None
    names = [ocp.names("x")[i] for i in states] + list(ocp.names("path"))
    sizes = {"q": ocp.state.numel_in("q"), "v": ocp.state.numel_in("v")}
    sizes |= {"ref": ocp.n_ref * (ocp.horizon + 1)}
    sizes |= {TUNING: len(ocp.tuning)} if ocp.tuning else {}
    sizes |= {"u": ocp.nu, "u_last": ocp.nu}
    inputs = {key: ca.MX.sym(key, size) for key, size in sizes.items()}
    p = ca.vertcat(inputs["ref"][: ocp.n_ref], inputs.get(TUNING, ca.MX(0, 1)))
    x = ocp.state(*([inputs["q"], inputs["v"]] + [inputs["u_last"]] * ocp.has_rates))
    value = ca.vertcat(x[states], ocp.path(x, inputs["u"], p))
    bounds = np.vstack([ocp.x_bounds[states], ocp.first_path_bounds])
    return ReportedLimits(
        ca.Function("limits", [*inputs.values()], [ca.densify(value)], [*inputs], ["value"]),
        Signal("value", tuple(names), ("",) * count),
        bounds[:, 0],
        bounds[:, 1],
        (False,) * len(states) + tuple(bool(is_soft) for is_soft in soft),
    )


def _soft(ocp: OptimalControlProblem) -> Array:
    soft: Array = np.zeros(len(ocp.path_bounds), dtype=bool)
    if ocp.path_penalties is not None:
        soft[: len(ocp.path_penalties)] = np.isfinite(ocp.path_penalties).all(axis=1)
    return soft


def _setpoint_monitor(
    ocp: OptimalControlProblem,
) -> tuple[ca.Function | None, tuple[Signal, ...]]:
    """Return (q, ref) → (target, error), and the names of their rows.

    The target is the setpoint of the first sample, the moment at which the control acts. Nothing
    is returned where the problem has no setpoint.
    """
    if ocp.tracking is None:
        return None, ()
    q = ca.SX.sym("q", ocp.tracking.size1_in("q"))
    ref = ca.SX.sym("ref", ocp.n_ref * (ocp.horizon + 1))
    p = ca.vertcat(ref[: ocp.n_ref], ca.SX(ca.DM(ocp.tuned({}))))
    target, error = ocp.tracking(q, p)
    monitor = ca.Function("monitor", [q, ref], [target, error], ["q", "ref"], ["target", "error"])
    names, units = ocp.labels["tracked"], ocp.labels["tracked_units"]
    return monitor, tuple(Signal(name, names, units) for name in ("target", "error"))
