"""`validate`: a controller's generated C against MuJoCo, in one call."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.codegen import TickTimes
from mbcasadi.description import Controller
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant, Source
from mbcasadi.validation.closed_loop.closed_loop import (
    Progress,
    Scenario,
    Signal,
    Switch,
    Teller,
    run_loop,
)
from mbcasadi.validation.closed_loop.compiled_law import CompiledLaw, HasController, compiled
from mbcasadi.validation.closed_loop.outer_law import OuterLaw
from mbcasadi.validation.closed_loop.recording import Recording
from mbcasadi.validation.metrics import metrics as measures
from mbcasadi.validation.metrics.comparison import Comparison
from mbcasadi.validation.metrics.contact_metrics import contact_metrics
from mbcasadi.validation.metrics.criteria import judge, scopes
from mbcasadi.validation.metrics.margins import margin_metrics, margins
from mbcasadi.validation.metrics.outer_law_metrics import OuterRun, outer_metrics, outer_run
from mbcasadi.validation.metrics.predictions import prediction_metrics, predictions
from mbcasadi.validation.metrics.recorded_signals import require_reportable
from mbcasadi.validation.metrics.status_metrics import status_metrics
from mbcasadi.validation.report.frames import pictures
from mbcasadi.validation.report.report import Report
from mbcasadi.validation.report.settings import settings_of
from mbcasadi.validation.report.text import ticks
from mbcasadi.validation.run.conditions import require_conditions
from mbcasadi.validation.run.model_comparison import beside_ours
from mbcasadi.validation.run.repetitions import Plants, Repetitions
from mbcasadi.validation.run.run import Run

Array = NDArray[np.float64]

RUN_FROM = 0.3  # share of the work before the simulation: generating and compiling C
TIMED_TICKS = 2000  # ticks that are timed in C; a longer run is thinned


def validate(
    controller: Controller | HasController,
    model: Source,
    duration: float,
    *,
    reference: Signal = None,
    mask: Signal = None,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    keyframe: str | None = None,
    rigid: bool = False,
    timestep: float | None = None,
    perturb: Mapping[str, float] | None = None,
    seed: int | None = None,
    delay: int = 0,
    disturbance: Signal = None,
    switch: Switch | None = None,
    outer: OuterLaw | None = None,
    settle: float = 0.0,
    criteria: Mapping[str, float] | None = None,
    softness: bool = False,
    what_if: bool = False,
    undelayed: Controller | HasController | None = None,
    render: bool = False,
    name: str = "",
    progress: Progress | None = None,
) -> Report:
    """Run the generated C of a controller against MuJoCo and say how it went.

    The controller is exported to C in a temporary folder, compiled, and called at its own
    period; MuJoCo steps `model` at its time step and knows none of our equations.

    Args:
        controller: of `mbcasadi.control`, a `description.Controller`, or a law that `compiled`
            hands out, whose C is used again.
        model: MJCF or URDF file, XML text, `MjSpec` or `MjModel` of the plant.
        duration: s.
        reference: (nref,), or a function of time that returns it.
        mask: (nmask,) of active contacts or rows, or a function of time; all ones by default.
        q0, v0: start; `qpos0` and rest by default. Moved onto the equality constraints.
        keyframe: name of a key frame to start from, in place of `q0`.
        rigid: use the rigid recipe for the plant's equality constraints.
        timestep: s, of the plant, in place of the model's.
        perturb: relative errors of the plant's parameters, e.g. `{"mass": 0.1}`.
        seed: None gives every body the same error; a number draws one for each.
        delay: ticks from a measurement to the moment when its control acts. The first control acts
            at once, until the second is due.
        disturbance: (nv,) generalised force on the plant, or a function of time.
        switch: time → {name: whether this equality constraint of the plant holds}. What the
            controller believes is its `mask`, which may come late.
        outer: a slower law, from `outer_law`, that gives reference and mask.
        settle: s at the start that metrics of tracking and of plans leave out.
        criteria: metric → limit (see `criteria.NAMES`); `criteria.DEFAULTS` where None.
        softness: sweep `solimp` and say which part of the disagreement it explains; repeat the
            run with other `solref` and say how far the loops open.
        what_if: repeat the run without its delay, without its errors and without both, and say what
            they cost.
        undelayed: the same law made for no delay, for those repetitions that have none; the law
            itself by default.
        render: draw pictures, where a renderer is present.
        name: heading of the run; the model's and the controller's name by default.
        progress: called with what is being done and a share from 0 to 1.

    Returns:
        A report with one run. Reports add up.

    Raises:
        ProblemError: the controller does not fit the model, or the period the time step; `what_if`
            without delay or errors.
        ModelError: the model cannot be read.
        ExportError: the C cannot be generated or compiled.
    """
    tell = Teller(progress)
    plants = Plants(model, {"rigid": rigid, "timestep": timestep}, perturb, seed)
    plant = plants.make()
    if outer is not None and not (reference is None and mask is None):
        raise ProblemError("give reference and mask, or an outer law that gives them, not both")
    start = _start(plant, q0, keyframe)
    scenario = Scenario(duration, reference, mask, start, v0, delay, disturbance, switch, outer)
    if what_if:
        require_conditions(delay, bool(perturb))
    tell("generating and compiling C", 0.0)
    with compiled(controller, tell.note) as law:
        require_reportable(law.controller)
        recording = run_loop(
            law, plant, scenario, lambda text, done: tell(text, RUN_FROM + done / 2)
        )
        tell("timing ticks", 0.8)
        times = time_ticks(law, recording)
        above = None if outer is None else outer_run(outer, law.controller.period)
        again = Repetitions(law, plants, scenario, tell)
        gaps = again.gaps() if softness else ()
        costs = again.costs(recording, settle, undelayed) if what_if else None
        facts = {"operations in a tick": law.project.operations, "lines of C": law.project.lines}
    asked = settings_of(plant, scenario, law.controller, rigid, perturb, seed)
    notes = [*recording.events, *_doubts(law.controller, delay)]
    tell("comparing with our dynamics", 0.85)
    comparison, sweep = beside_ours(
        model, plants.make, recording, notes, softness=softness, switched=switch is not None
    )
    run = Run(
        name=name or f"{plant.name}, {law.controller.name}",
        controller=law.controller,
        settings=asked | facts,
        recording=recording,
        comparison=comparison,
        times=times,
        softness=None if sweep is None else replace(sweep, gaps=gaps),
        what_if=costs,
        outer=above,
        **_numbers(law.controller, plant, recording, (comparison, times, above), settle, criteria),
        **pictures(plant, recording, render, notes, tell),
        notes=tuple(notes),
    )
    return Report((run,))


def _start(plant: Plant, q0: ArrayLike | None, keyframe: str | None) -> ArrayLike | None:
    if keyframe is None:
        return q0
    if q0 is not None:
        raise ProblemError("give q0 or keyframe, not both")
    return plant.keyframe(keyframe)


def _doubts(controller: Controller, delay: int) -> list[str]:
    """Return what the reader should know about law and plant."""
    if controller.prediction is None or controller.delay == delay:
        return []
    return [
        f"The law counts on a delay of {ticks(controller.delay)}, the plant has {delay}: its plans "
        "begin at another moment than they act."
    ]


def time_ticks(law: CompiledLaw, recording: Recording) -> TickTimes:
    """Return the time of each tick of the C, called in C with the inputs of the run."""
    kept = slice(0, TIMED_TICKS)
    inputs = {n: getattr(recording, n)[kept] for n in ("q", "v", "act", "ref", "mask")}
    inputs["t"] = recording.t[kept, None]
    inputs["f_c"] = recording.equality_force[kept]
    known = law.controller.function.name_in()
    return law.project.time({n: rows for n, rows in inputs.items() if n in known}, repeats=1)


def _numbers(
    controller: Controller,
    plant: Plant,
    recording: Recording,
    measured: tuple[Comparison | None, TickTimes | None, OuterRun | None],
    settle: float,
    criteria: Mapping[str, float] | None,
) -> dict[str, Any]:
    comparison, times, above = measured
    tracked = measures.tracked(controller, recording, settle)
    bounded = margins(controller, recording)
    plans = predictions(controller, recording, plant, settle)
    found = (
        *measures.tracking_metrics(tracked, scopes(criteria)),
        *measures.closure_metrics(recording, comparison),
        *measures.torque_metrics(controller, recording),
        *margin_metrics(bounded),
        *contact_metrics(controller, recording),
        *status_metrics(controller, recording),
        *prediction_metrics(plans),
        *measures.time_metrics(times, controller.period),
        *outer_metrics(above),
    )
    return {
        "tracked": tuple(tracked),
        "margins": bounded,
        "predictions": plans,
        "metrics": found,
        "verdicts": judge(found, criteria, finished=not recording.events),
    }
