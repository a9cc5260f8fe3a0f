"""`simulate`: motion of a mechanism on its constraint manifold."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.description import Baumgarte
from mbcasadi.errors import MotionError, ProblemError, SimulationError
from mbcasadi.linalg import RANK_TOL
from mbcasadi.shapes import column, require_name
from mbcasadi.simulation.call import Array
from mbcasadi.simulation.closing import Closing
from mbcasadi.simulation.events import Event, Switch
from mbcasadi.simulation.flow import PROJECTIONS, Flow, Force
from mbcasadi.simulation.functions import Rule
from mbcasadi.simulation.law import AnyController, Held, Signal
from mbcasadi.simulation.manifold import Manifold
from mbcasadi.simulation.runner import Plan, Progress, Runner
from mbcasadi.simulation.start import initial_mask, start_state
from mbcasadi.simulation.stepper import Accuracy, Now, Stepper
from mbcasadi.simulation.trajectory import Trajectory
from mbcasadi.system import System


def simulate(
    system: System,
    q0: ArrayLike,
    v0: ArrayLike,
    duration: float,
    formulation: str = "projection",
    controller: AnyController | None = None,
    *,
    rtol: float = 1e-9,
    atol: float = 1e-11,
    project: str = "stage",
    baumgarte: Baumgarte | None = None,
    force: Force | None = None,
    reference: Signal | None = None,
    controller_mask: Signal | None = None,
    mask: ArrayLike | None = None,
    events: Sequence[Event] = (),
    switches: Sequence[Switch] = (),
    t0: float = 0.0,
    times: ArrayLike | None = None,
    act0: ArrayLike | None = None,
    assemble: bool = True,
    max_step: float = np.inf,
    max_steps: int = 1_000_000,
    row_scale: float = 1.0,
    rank_tol: float = RANK_TOL,
    options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Trajectory:
    """Return the motion from (q0, v0) over `duration` seconds.

    The integrator is of Dormand and Prince, order 8, with adaptive steps. With
    `project="stage"`, every state that it proposes is led back to the manifold before the
    equations of motion are asked: q by Newton's steps `-A⁺ phi` [A05, eq. 39], v by
    `v - A⁺ psi`. So the motion passes singular poses, redundant rows do no harm, and
    nothing drifts.

    Args:
        system: the mechanism.
        q0, v0: (nq,), (nv,) start. It is assembled: q0 moves to the nearest pose with
            `phi = 0`, v0 to the nearest admissible velocity.
        duration: s.
        formulation: one of `dynamics.FORMULATIONS`.
        controller: asked once each period, its answer held; without one, u = 0.
        rtol, atol: relative and absolute error of one step, in each coordinate.
        project: "stage"; "step", after each step only [A05, section 6], which loses accuracy and
            takes tiny steps near singular poses; "none", which drifts.
        baumgarte: stabilisation; for use with `project="none"`.
        force: (t, q, v) → (nv,) applied force; a CasADi Function with these inputs serves too.
        reference: t → reference of the controller.
        controller_mask: t → mask of the controller, ones by default.
        mask: (nc,) rows that are active at the start, one or zero; the system's own by default.
        events: what is looked for, and what it changes.
        switches: changes of topology at given times.
        t0: s, start.
        times: (nt,) when samples are kept, sorted; every accepted step by default.
        act0: (na,) activations at the start, zero by default.
        assemble: whether the start is moved onto the manifold. Without it, projection refuses a
            start with a residual above 1e-8, and `project="none"` takes it as it is.
        max_step: s, longest step.
        max_steps: accepted and rejected steps.
        row_scale, rank_tol: drop rule of `linalg.row_basis`.
        options: the formulation's own options.
        progress: called with what is being done and a share from 0 to 1.

    Raises:
        ShapeError, UnknownNameError, ProblemError: what was given does not fit.
        AssemblyError: no pose near q0 closes the constraints.
        MotionError: the motion could not go on; `trajectory` holds what was reached.
    """
    require_name("project", project, PROJECTIONS)
    _require_sane(duration, rtol, atol, max_step, t0)
    if (events or switches) and system.mask is None and _switching(events, switches):
        system = system.with_mask()
    if progress:
        progress("building the equations", 0.0)
    own = {} if baumgarte is None else {"baumgarte": baumgarte}
    rule = Rule(formulation, row_scale, rank_tol, dict(options or {}) | own)
    manifold = Manifold(system, rule, initial_mask(system, mask))
    flow = Flow(system, rule, manifold, project, force)
    now = Now(
        t0,
        column("q0", np.asarray(q0), system.nq),
        column("v0", np.asarray(v0), system.nv),
        column("act0", np.zeros(system.na) if act0 is None else np.asarray(act0), system.na),
    )
    now = start_state(system, manifold, flow, now, move=assemble, tolerant=project == "none")
    accuracy = Accuracy(rtol, atol, max_step, max_steps, duration)
    plan = Plan(
        start=t0,
        end=t0 + duration,
        times=_times(times, t0, t0 + duration),
        switches=sorted(switches, key=lambda switch: switch.time),
        events=events,
        law=None if controller is None else Held(controller, system, reference, controller_mask),
        progress=progress,
    )
    stepper = Stepper(system, flow, accuracy, project)
    return _carried_out(Runner(flow, stepper, Closing(system, manifold), plan), now, stepper, rule)


def _carried_out(runner: Runner, now: Now, stepper: Stepper, rule: Rule) -> Trajectory:
    """Return what a run leaves; an error that ends it takes along what was reached."""
    flow = runner.flow
    failure: SimulationError | None = None
    try:
        runner.run(now)
    except SimulationError as error:
        failure = error
    runner.recorder.steps, runner.recorder.rejected = stepper.accepted, stepper.rejected
    trajectory = runner.recorder.finish(flow.system, rule, flow)
    if failure is not None:
        raise MotionError(f"'{flow.system.name}': {failure}", trajectory) from failure
    return trajectory


def _switching(events: Sequence[Event], switches: Sequence[Switch]) -> bool:
    return bool(switches) or any(event.mask is not None for event in events)


def _times(times: ArrayLike | None, start: float, end: float) -> Array | None:
    if times is None:
        return None
    wanted = np.asarray(times, dtype=float)
    wanted = column("times", wanted, wanted.size)
    if np.any(np.diff(wanted) < 0) or np.any(wanted < start) or np.any(wanted > end):
        raise ProblemError(f"times must be sorted and lie between {start:g} and {end:g} s")
    return wanted


def _require_sane(duration: float, rtol: float, atol: float, max_step: float, t0: float) -> None:
    for name, value in (("duration", duration), ("rtol", rtol), ("max_step", max_step)):
        if not value > 0:
            raise ProblemError(f"{name} is {value}; expected a number above 0")
    if not (np.isfinite(duration) and np.isfinite(t0)):
        raise ProblemError(f"duration {duration} s from t0 = {t0} s: expected finite numbers")
    if not atol >= 0:
        raise ProblemError(f"atol is {atol}; expected a number of at least 0")
