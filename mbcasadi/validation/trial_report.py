"""`validate`: a controller against MuJoCo, in one call."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import NamedTuple

from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.codegen import TickTimes
from mbcasadi.estimation.estimator import require_same_period
from mbcasadi.plant import Source
from mbcasadi.progress import ProgressReporter
from mbcasadi.validation.closed_loop import (
    Controllable,
    Disturbance,
    EarlyLaw,
    FastLaw,
    Runnable,
    Scenario,
    ScenarioOptions,
    Sensing,
    TimeSignal,
    compile_controller,
    early_law,
    fast_law,
    loaded_estimator,
    remembered,
    run_loop,
)
from mbcasadi.validation.closed_loop.compiled_law import MOST_TICKS
from mbcasadi.validation.closed_loop.monitor_in_c import quick_monitor
from mbcasadi.validation.metrics import (
    Criteria,
    OuterLawRun,
    OuterPlans,
    judge,
    outer_law_run,
    outer_plans,
    require_reportable,
    run_statistics,
)
from mbcasadi.validation.metrics.end_after_fall import EndAfterFall
from mbcasadi.validation.report import (
    RenderedFrames,
    Report,
    ReportOptions,
    missed_notes,
    observer_of,
    render_frames,
    render_plans,
    run_notes,
    run_settings,
    unreported_notes,
    write_video,
)
from mbcasadi.validation.run import (
    Controlled,
    FinishedRun,
    Prepared,
    Run,
    WhatIf,
    compare_conditions,
    compare_with_model,
    diagnose,
    fitted_to_plant,
    period_of,
    prepare,
    require_conditions,
    solref_gaps,
)
from mbcasadi.validation.run.c_afterwards import needs_c_first, time_ticks, with_c
from mbcasadi.validation.trial import Trial

RUN_FROM = 0.3  # share of the work before the simulation: generating and compiling C


@checked
def validate(
    controller: Controllable,
    model: Source,
    duration: float,
    *,
    period: float | None = None,
    reference: TimeSignal = None,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    rigid: bool = False,
    perturb: Mapping[str, float] | None = None,
    delay: int = 0,
    disturbance: Disturbance = None,
    fast: bool = False,
    scenario: ScenarioOptions | None = None,
    criteria: Criteria | None = None,
    sensors: Sensing | None = None,
    report: ReportOptions | None = None,
) -> Report:
    """Run a controller against MuJoCo and report how it performed.

    A controller of ours is exported to C in a temporary folder, compiled, and called at its own
    period; MuJoCo steps `model` at its time step and knows none of our equations. An
    `InverseDynamicsQP` of a model with servos gets the plant's integrator, time step and delay,
    where it was not given others. Other controllers run as they are.

    Args:
        controller: of `mbcasadi.control`, a `description.Controller`, or a law yielded by
            `compile_controller`, whose C is reused; a folder that `export_c` wrote, or its
            `CProject`; a `ca.Function` with our names of inputs, or (q, v), (t, q, v),
            (q, v, ref) by their sizes; a `validation.shared_library`; a `validation.Policy`; a
            function (t, q, v) → u. What a controller does not report, such as its tracking error,
            is left out of the report, which says so.
        model: MJCF or URDF file, XML text, `MjSpec` or `MjModel` of the plant.
        duration: s, a multiple of the controller's period.
        period: s, of a controller that has none of its own; the plant's time step by default.
        reference: (nref,), or a function of time that returns it. None holds the start where the
            controller has a `reference_at`.
        q0, v0: initial state; `qpos0` and zero by default. Moved onto the equality constraints.
        rigid: make the plant's equality constraints as stiff as MuJoCo allows.
        perturb: relative errors of the plant's parameters, e.g. `{"mass": 0.1}`.
        delay: ticks from a measurement to the moment at which its control acts. The first control
            acts at once, until the second is due.
        disturbance: (nv,) generalised force on the plant, or a function of time; a `Push` on a
            body, or several.
        fast: run the Python Function of a controller of ours, or in long runs its C compiled at
            -O1, whichever finishes first; the report says in its head that the C as shipped did
            not run, and has no times of ticks.
        scenario: mask, tuning, switched constraints, outer law, key frame, time step, seed. Where
            the model's own time step does not divide the period, the plant has a smaller one that
            does.
        criteria: limits on metrics, and the settling time; `DEFAULTS` where None. A run to which
            no default applies is not judged: `report.passed` is None.
        sensors: an estimator between the plant's sensors and the controller, which gets its q and
            v in place of the plant's. The plant's own motion is recorded and judged.
        report: name, sweeps, repetitions and frames of the report; progress.

    Returns:
        A report with one run. Reports add up.

    Raises:
        ProblemError: the controller does not fit the model, or the period the time step; `what_if`
            without delay or errors.
        ControllerError: a controller of a user raised, or gave no control.
        SimulationError: the plant diverges under the very first control.
        ModelError: the model cannot be read.
        ExportError: the C cannot be generated, compiled or loaded.
    """
    trial = Trial(
        duration, period, reference, q0, v0, rigid, dict(perturb or {}), delay, disturbance, fast,
        scenario or ScenarioOptions(), criteria or Criteria(), sensors,
    )  # fmt: skip
    return run_trial(controller, model, trial, report)


def run_trial(
    controller: Controllable, model: Source, trial: Trial, report: ReportOptions | None = None
) -> Report:
    """Run a controller against MuJoCo under the conditions of a trial, as `validate` does."""
    report = report or ReportOptions()
    if report.what_if:
        require_conditions(trial.delay, bool(trial.perturb))
    progress = ProgressReporter(report.progress)
    ready = prepare(controller, model, trial)
    if report.what_if and trial.delay and report.undelayed is None:
        report = replace(report, undelayed=fitted_to_plant(ready.given, ready.plant, 0))
    given, few = ready.controller, False
    ticks = round(trial.duration / period_of(given))
    if trial.fast:
        given, few = fast_law(given, ticks, progress.note), ticks <= MOST_TICKS
        if report.undelayed is not None:
            report = replace(report, undelayed=fast_law(report.undelayed, 0))
    early = report.early and not needs_c_first(trial.criteria)
    if trial.sensors is not None:
        require_same_period(trial.sensors.estimator, period_of(given))
    for note in ready.notes:
        progress(note, 0.0)
    progress("generating and compiling C", 0.0)
    estimator = loaded_estimator(trial.sensors, ready.plants.model, few=few)
    loop = Scenario(
        trial.duration, remembered(ready.reference), ready.start, trial.v0, trial.delay,
        trial.disturbance, trial.scenario, estimator,
    )  # fmt: skip
    setting = _Setting(ready, given, loop, trial.criteria, report, progress)
    say = progress.note
    with (
        early_law(given, ticks) if early else nullcontext(given) as begun,
        compile_controller(begun, say) as compiled,
        quick_monitor(compiled, ticks, say) as law,
    ):
        measured = _measure(setting, law)
        run = _judge(setting, measured)
        if report.judged is not None:
            report.judged(Report((run,)))
        if report.explain and run.passed is False:
            verdicts, tracking = run.verdicts, run.tracking
            diagnosis = diagnose(measured.done, trial.criteria, verdicts, tracking, progress)
            run = replace(run, diagnosis=diagnosis)
        if isinstance(law, EarlyLaw):
            run = with_c(run, law, report.timing, progress)
    return Report((run,))


class _Setting(NamedTuple):
    """What a run has beside its law."""

    ready: Prepared
    given: Controlled
    scenario: Scenario
    criteria: Criteria
    report: ReportOptions
    progress: ProgressReporter


class _Measurements(NamedTuple):
    """What is measured while the compiled law exists; `Run` has the meaning of each."""

    done: FinishedRun
    settings: dict[str, object]
    times: TickTimes | None
    outer: OuterLawRun | None
    plans: OuterPlans | None
    gaps: tuple[tuple[float, float], ...]
    what_if: WhatIf | None
    notes: tuple[str, ...]
    warning: str


def _measure(setting: _Setting, law: Runnable) -> _Measurements:
    """Run the controller, time its ticks, and repeat the run if required."""
    ready, given, scenario, criteria, report, progress = setting
    plants, plant = ready.plants, ready.plant
    require_reportable(law.controller)
    ends = EndAfterFall(law.controller, plants.make, criteria, scenario.options.outer)
    with observer_of(report, plant) as observer:
        recording = run_loop(
            law,
            plant,
            scenario,
            lambda text, done: progress(text, RUN_FROM + done / 2),
            observer,
            ends,
        )
    progress("timing ticks", 0.8)
    times, untimed = time_ticks(law, recording) if report.timing else (None, ())
    outer = scenario.options.outer
    done, settle = FinishedRun(law, given, plants, scenario, recording), criteria.settle
    return _Measurements(
        done=done,
        settings=run_settings(law, plant, plants, scenario, recording),
        times=times,
        outer=None
        if outer is None
        else outer_law_run(outer, law.controller.period, timed=report.timing),
        plans=outer_plans(outer, recording, plant),
        gaps=solref_gaps(done, progress) if report.softness else (),
        what_if=compare_conditions(done, settle, report.undelayed, progress)
        if report.what_if
        else None,
        notes=(*unreported_notes(law), *untimed, *ready.notes),
        warning=f" (fast: {law.kind})" if isinstance(law, FastLaw) else "",
    )


def _judge(setting: _Setting, measured: _Measurements) -> Run:
    """Compare the run with our dynamics, compute its metrics, and judge them."""
    ready, _, scenario, criteria, report, progress = setting
    plants, plant = ready.plants, ready.plant
    controller, recording = measured.done.law.controller, measured.done.recording
    progress("comparing with our dynamics", 0.85)
    comparison, softness, notes = compare_with_model(
        plants,
        recording,
        softness=report.softness,
        switched=scenario.options.switch is not None,
        moved=tuple(scenario.options.mocap or ()),
    )
    frames = planned = RenderedFrames()
    if report.render:
        progress("rendering frames", 0.9)
        frames = render_frames(plant, recording)
        planned = render_plans(plant, recording, measured.plans)
    if report.video is not None:
        progress("writing the video", 0.95)
        frames = frames._replace(notes=frames.notes + write_video(plant, recording, report.video))
    statistics = run_statistics(
        controller,
        recording,
        plant,
        criteria,
        comparison=comparison,
        times=measured.times,
        outer=measured.outer,
        delay=scenario.delay,
    )
    return Run(
        name=(report.name or f"{plant.name}, {controller.name}") + measured.warning,
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
        plans=measured.plans,
        plan_frames=planned.images,
        plan_times=planned.times,
        contact_forces=statistics.contact_forces,
        frames=frames.images,
        frame_times=frames.times,
        notes=(
            *recording.events,
            *measured.notes,
            *missed_notes(statistics.metrics, criteria),
            *run_notes(controller, recording, scenario, plant),
            *notes,
            *frames.notes,
        ),
        model=plant.model,
    )
