"""`simulate`: motion of a mechanism on its constraint manifold."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.dynamics.formulations import DEFAULT
from mbcasadi.errors import MotionError, ProblemError, SimulationError
from mbcasadi.progress import LoggedProgress
from mbcasadi.shapes import column, real_array
from mbcasadi.simulation.buffered_function import Array
from mbcasadi.simulation.events import Event, Switch
from mbcasadi.simulation.initial_state import initial_mask, initial_state
from mbcasadi.simulation.integration_loop import IntegrationLoop, StepPlan
from mbcasadi.simulation.manifold import Manifold
from mbcasadi.simulation.options import EquationOptions, InitialConditions, IntegrationOptions
from mbcasadi.simulation.right_hand_side import Force, RightHandSide
from mbcasadi.simulation.sampled_law import AnyController, SampledController
from mbcasadi.simulation.stepper import MotionState, StepControl, Stepper
from mbcasadi.simulation.topology_change import TopologyChange
from mbcasadi.simulation.trajectory import Trajectory
from mbcasadi.system import System
from mbcasadi.system.parametric import at_model_values


@checked
@at_model_values
def simulate(
    system: System,
    q0: ArrayLike,
    v0: ArrayLike,
    duration: float,
    formulation: str = DEFAULT,
    controller: AnyController | None = None,
    *,
    rtol: float = 1e-9,
    atol: float = 1e-11,
    force: Force | None = None,
    times: ArrayLike | None = None,
    events: Sequence[Event | Switch] = (),
    initial: InitialConditions | None = None,
    integration: IntegrationOptions | None = None,
    equations: EquationOptions | None = None,
) -> Trajectory:
    """Return the motion from (q0, v0) over `duration` seconds.

    The integrator is of Dormand and Prince, order 8, with adaptive steps. Every state that it
    proposes is projected onto the manifold before the equations of motion are evaluated: q by
    Newton's steps `-A⁺ phi` [A05, eq. 39], v by `v - A⁺ psi`. So the motion passes singular
    poses, redundant rows do no harm, and nothing drifts.

    Args:
        system: the mechanism.
        q0, v0: (nq,), (nv,) start. It is assembled: q0 moves to the nearest pose with
            `phi = 0`, v0 to the nearest admissible velocity.
        duration: s.
        formulation: one of `dynamics.FORMULATIONS`.
        controller: evaluated once each period, its output constant until the next; with a
            reference in a `ControlLoop`. Without one, u = 0.
        rtol, atol: relative and absolute error of one step, in each coordinate. atol is in rad and
            in lengths of the model, for velocities times the rate of its own motion: sizes of
            `System.scales`.
        force: (t, q, v) → (nv,) applied force; a CasADi Function with these inputs serves too.
        times: (nt,) when samples are kept, s, sorted; every accepted step by default. The states
            before and after an event or a switch are kept too.
        events: events and switches, and what they change.
        initial: time, activations and active rows at the start; whether it is assembled.
        integration: where the projection acts, limits of steps, a report of progress.
        equations: drop rule of dependent rows, stabilisation, options of the formulation.

    Raises:
        ShapeError, UnknownNameError, ProblemError: an argument does not fit.
        AssemblyError: no pose near q0 closes the constraints.
        MotionError: the motion could not go on; `trajectory` holds what was reached.
    """
    initial, integration = initial or InitialConditions(), integration or IntegrationOptions()
    equations = equations or EquationOptions()
    report = integration.progress or LoggedProgress()
    _require_positive_tolerances(duration, rtol, atol)
    if system.mask is None and any(event.mask is not None for event in events):
        system = system.with_mask()
    start = _start(system, q0, v0, initial)
    plan = StepPlan(
        start=initial.t0,
        end=initial.t0 + duration,
        times=_sample_times(times, initial.t0, initial.t0 + duration),
        switches=sorted((e for e in events if isinstance(e, Switch)), key=lambda s: s.time),
        events=[event for event in events if isinstance(event, Event)],
        controller=None if controller is None else SampledController(controller, system),
        progress=report,
    )
    report("building the equations", 0.0)
    project = integration.project
    manifold = Manifold(system, equations, initial_mask(system, initial.mask))
    motion = RightHandSide(manifold, formulation, equations, project=project, force=force)
    start = initial_state(motion, start, assembled=initial.assemble, projected=project != "none")
    control = StepControl(rtol, atol, integration.max_step, integration.max_steps, duration)
    stepper = Stepper(motion, control, keep_last_rate=project != "step")
    loop = IntegrationLoop(motion, stepper, TopologyChange(manifold), plan)
    try:
        loop.run(start)
    except SimulationError as error:
        reached = loop.recorder.trajectory(motion, formulation, equations)
        raise MotionError(f"'{system.name}': {error}", reached) from error
    return loop.recorder.trajectory(motion, formulation, equations)


def _start(system: System, q0: ArrayLike, v0: ArrayLike, initial: InitialConditions) -> MotionState:
    act = np.zeros(system.na) if initial.act is None else initial.act
    return MotionState(
        initial.t0,
        column("q0", q0, system.nq),
        column("v0", v0, system.nv),
        column("act", act, system.na),
    )


def _sample_times(times: ArrayLike | None, start: float, end: float) -> Array | None:
    if times is None:
        return None
    sorted_times = real_array("times", times)
    sorted_times = column("times", sorted_times, sorted_times.size)
    if not sorted_times.size:
        raise ProblemError("times is empty; expected at least one time")
    outside = np.any(sorted_times < start) or np.any(sorted_times > end)
    if outside or np.any(np.diff(sorted_times) < 0):
        raise ProblemError(f"times must be sorted and lie between {start:g} and {end:g} s")
    return sorted_times


def _require_positive_tolerances(duration: float, rtol: float, atol: float) -> None:
    for name, value in (("duration", duration), ("rtol", rtol)):
        if not (value > 0 and np.isfinite(value)):
            raise ProblemError(f"{name} is {value}; expected a finite number above 0")
    if not atol > 0:
        raise ProblemError(
            f"atol is {atol}; expected a number above 0: near zero nothing else bounds an error"
        )
