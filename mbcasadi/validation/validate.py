"""`validate`: a controller's generated C against MuJoCo, in one call."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.codegen import TickTimes
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.plant import Plant, Source
from mbcasadi.validation.closed_loop import (
    CompiledLaw,
    ProgressReporter,
    Recording,
    Scenario,
    ScenarioOptions,
    TimeSignal,
    compile_controller,
    run_loop,
)
from mbcasadi.validation.metrics import (
    Criteria,
    OuterLawRun,
    judge,
    outer_law_run,
    require_reportable,
    run_statistics,
)
from mbcasadi.validation.report import (
    RenderedFrames,
    Report,
    ReportOptions,
    render_frames,
    run_settings,
    tick_count,
)
from mbcasadi.validation.run import (
    PlantFactory,
    Repetitions,
    Run,
    WhatIf,
    compare_with_model,
    fitted_to_plant,
    initial_configuration,
    require_conditions,
    servo_notes,
)

RUN_FROM = 0.3  # share of the work before the simulation: generating and compiling C
TIMED_TICKS = 2000  # ticks that are timed in C, from the start of the run


@checked
def validate(
    controller: Controller | HasController,
    model: Source,
    duration: float,
    *,
    reference: TimeSignal = None,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    rigid: bool = False,
    perturb: Mapping[str, float] | None = None,
    delay: int = 0,
    disturbance: TimeSignal = None,
    scenario: ScenarioOptions | None = None,
    criteria: Criteria | None = None,
    report: ReportOptions | None = None,
) -> Report:
    """Run the generated C of a controller against MuJoCo and report how it performed.

    The controller is exported to C in a temporary folder, compiled, and called at its own
    period; MuJoCo steps `model` at its time step and knows none of our equations. An
    `InverseDynamicsQP` of a model with servos gets the plant's integrator, time step and delay,
    where it was not given others.

    Args:
        controller: of `mbcasadi.control`, a `description.Controller`, or a law yielded by
            `compile_controller`, whose C is reused.
        model: MJCF or URDF file, XML text, `MjSpec` or `MjModel` of the plant.
        duration: s, a multiple of the controller's period.
        reference: (nref,), or a function of time that returns it.
        q0, v0: initial state; `qpos0` and zero by default. Moved onto the equality constraints.
        rigid: use the rigid recipe for the plant's equality constraints.
        perturb: relative errors of the plant's parameters, e.g. `{"mass": 0.1}`.
        delay: ticks from a measurement to the moment at which its control acts. The first control
            acts at once, until the second is due.
        disturbance: (nv,) generalised force on the plant, or a function of time.
        scenario: mask, tuning, switched constraints, outer law, key frame, time step, seed.
        criteria: limits on metrics, and the settling time; `DEFAULTS` where None.
        report: name, sweeps, repetitions and frames of the report; progress.

    Returns:
        A report with one run. Reports add up.

    Raises:
        ProblemError: the controller does not fit the model, or the period the time step; `what_if`
            without delay or errors.
        ModelError: the model cannot be read.
        ExportError: the C cannot be generated or compiled.
    """
    options, report = scenario or ScenarioOptions(), report or ReportOptions()
    criteria, perturb = criteria or Criteria(), dict(perturb or {})
    if report.what_if:
        require_conditions(delay, bool(perturb))
    plants = PlantFactory(model, rigid, options.timestep, perturb, options.seed)
    plant = plants.make()
    start = initial_configuration(plant, q0, options.keyframe)
    if report.what_if and delay and report.undelayed is None:
        report = replace(report, undelayed=fitted_to_plant(controller, plant, 0))
    controller = fitted_to_plant(controller, plant, delay)
    loop = Scenario(duration, reference, start, v0, delay, disturbance, options)
    trial = _Trial(plants, plant, loop, criteria, report, ProgressReporter(report.progress))
    return Report((_judge(trial, _measure(trial, controller)),))


class _Trial(NamedTuple):
    """The conditions of a run."""

    plants: PlantFactory
    plant: Plant
    scenario: Scenario
    criteria: Criteria
    report: ReportOptions
    progress: ProgressReporter


class _Measurements(NamedTuple):
    """What is measured while the compiled law exists; `Run` has the meaning of each."""

    controller: Controller
    settings: dict[str, object]
    recording: Recording
    times: TickTimes
    outer: OuterLawRun | None
    gaps: tuple[tuple[float, float], ...]
    what_if: WhatIf | None


def _measure(trial: _Trial, controller: Controller | HasController) -> _Measurements:
    """Compile the controller, run the loop, time its ticks, and repeat the run if required."""
    plants, plant, scenario, criteria, report, progress = trial
    progress("generating and compiling C", 0.0)
    with compile_controller(controller, progress.note) as law:
        require_reportable(law.controller)
        recording = run_loop(
            law, plant, scenario, lambda text, done: progress(text, RUN_FROM + done / 2)
        )
        progress("timing ticks", 0.8)
        times = time_ticks(law, recording)
        outer = scenario.options.outer
        outer_run = None if outer is None else outer_law_run(outer, law.controller.period)
        again = Repetitions(law, plants, scenario, progress)
        return _Measurements(
            controller=law.controller,
            settings=run_settings(law, plant, plants, scenario),
            recording=recording,
            times=times,
            outer=outer_run,
            gaps=again.solref_gaps() if report.softness else (),
            what_if=again.conditions(recording, criteria.settle, report.undelayed)
            if report.what_if
            else None,
        )


def _judge(trial: _Trial, measured: _Measurements) -> Run:
    """Compare the run with our dynamics, compute its metrics, and judge them."""
    plants, plant, scenario, criteria, report, progress = trial
    controller, recording = measured.controller, measured.recording
    progress("comparing with our dynamics", 0.85)
    comparison, softness, notes = compare_with_model(
        plants, recording, softness=report.softness, switched=scenario.options.switch is not None
    )
    frames = RenderedFrames()
    if report.render:
        progress("rendering frames", 0.9)
        frames = render_frames(plant, recording)
    statistics = run_statistics(
        controller,
        recording,
        plant,
        criteria,
        comparison=comparison,
        times=measured.times,
        outer=measured.outer,
    )
    return Run(
        name=report.name or f"{plant.name}, {controller.name}",
        controller=controller,
        settings=measured.settings,
        recording=recording,
        metrics=statistics.metrics,
        verdicts=judge(statistics.metrics, criteria, finished=not recording.events),
        tracking=statistics.tracking,
        comparison=comparison,
        times=measured.times,
        margins=statistics.margins,
        predictions=statistics.predictions,
        softness=None if softness is None else replace(softness, gaps=measured.gaps),
        what_if=measured.what_if,
        outer=measured.outer,
        frames=frames.images,
        frame_times=frames.times,
        notes=(
            *recording.events,
            *_delay_notes(controller, scenario),
            *servo_notes(controller, plant, scenario.delay),
            *notes,
            *frames.notes,
        ),
    )


def _delay_notes(controller: Controller, scenario: Scenario) -> list[str]:
    """Return a note where a controller with plans accounts for another delay than the plant's."""
    if controller.prediction is None or controller.delay == scenario.delay:
        return []
    return [
        f"The law accounts for a delay of {tick_count(controller.delay)}, the plant has "
        f"{scenario.delay}: its plans begin at another moment than they act."
    ]


def time_ticks(law: CompiledLaw, recording: Recording) -> TickTimes:
    """Return the time of each tick of the C, called in C with the inputs of the run."""
    timed = slice(0, TIMED_TICKS)
    inputs = {n: getattr(recording, n)[timed] for n in ("q", "v", "act", "ref", "tuning", "mask")}
    inputs["t"] = recording.t[timed, None]
    inputs["f_c"] = recording.equality_force[timed]
    inputs["f_measured"] = recording.f_measured[timed]
    known = law.controller.function.name_in()
    return law.project.time({n: rows for n, rows in inputs.items() if n in known}, repeats=1)
