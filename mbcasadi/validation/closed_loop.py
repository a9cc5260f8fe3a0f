"""`validate`: a controller's generated C against MuJoCo, in one call."""

import io
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.codegen import TickTimes
from mbcasadi.description import Controller
from mbcasadi.errors import MissingExtraError, ProblemError, UnsupportedFeatureError
from mbcasadi.plant import Plant, Source, draw_frames
from mbcasadi.system import System, read_mjcf
from mbcasadi.validation import metrics as measures
from mbcasadi.validation.compare import Comparison, compare_run
from mbcasadi.validation.criteria import judge, scopes
from mbcasadi.validation.extras import require
from mbcasadi.validation.law import CompiledLaw, HasController, compiled
from mbcasadi.validation.loop import (
    Progress,
    Scenario,
    Signal,
    Switch,
    Teller,
    run_loop,
    steps_per_tick,
)
from mbcasadi.validation.recording import Recording
from mbcasadi.validation.report import Report
from mbcasadi.validation.run import Run
from mbcasadi.validation.softness import Softness, softness_sweep, solref_sweep

Array = NDArray[np.float64]

RUN_FROM = 0.3  # share of the work before the simulation: generating and compiling C
FRAMES = 6  # pictures of one run
SOFT_RANK_TOL = 1e-3  # gaps of soft loops, as a share of the links' lengths
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
    settle: float = 0.0,
    criteria: Mapping[str, float] | None = None,
    softness: bool = False,
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
        delay: ticks from a measurement to the moment when its control acts.
        disturbance: (nv,) generalised force on the plant, or a function of time.
        switch: time → {name: whether this equality constraint of the plant holds}. What the
            controller believes is its `mask`, which may come late.
        settle: s at the start that tracking metrics leave out.
        criteria: metric → limit (see `criteria.NAMES`); `criteria.DEFAULTS` where None.
        softness: sweep `solimp` and say which part of the disagreement it explains; repeat the
            run with other `solref` and say how far the loops open.
        render: draw pictures, where a renderer is present.
        name: heading of the run; the model's and the controller's name by default.
        progress: called with what is being done and a share from 0 to 1.

    Returns:
        A report with one run. Reports add up.

    Raises:
        ProblemError: the controller does not fit the model, or the period the time step.
        ModelError: the model cannot be read.
        ExportError: the C cannot be generated or compiled.
    """
    tell = Teller(progress)

    def make_plant() -> Plant:
        return Plant(model, rigid=rigid, timestep=timestep, perturb=perturb, seed=seed)

    plant = make_plant()
    if keyframe is not None:
        if q0 is not None:
            raise ProblemError("give q0 or keyframe, not both")
        q0 = plant.keyframe(keyframe)
    scenario = Scenario(duration, reference, mask, q0, v0, delay, disturbance, switch)
    tell("generating and compiling C", 0.0)
    with compiled(controller, tell.note) as law:
        recording = run_loop(
            law, plant, scenario, lambda text, done: tell(text, RUN_FROM + done / 2)
        )
        tell("timing ticks", 0.8)
        times = time_ticks(law, recording)
        gaps: tuple[tuple[float, float], ...] = ()
        if softness and plant.model.neq:
            tell("repeating the run with other solref", 0.82)
            gaps = solref_sweep(make_plant, lambda other: run_loop(law, other, scenario))
        facts = {"operations in a tick": law.project.operations, "lines of C": law.project.lines}
    steps = steps_per_tick(law.controller, plant)
    notes = list(recording.events)
    tell("comparing with our dynamics", 0.85)
    comparison, sweep = None, None
    if switch is None:
        comparison, sweep = _compare(model, make_plant, recording, softness, notes)
    else:
        notes.append("Our dynamics were not compared: the plant's constraints were switched.")
    sweep = None if sweep is None else replace(sweep, gaps=gaps)
    run = Run(
        name=name or f"{plant.name}, {law.controller.name}",
        controller=law.controller,
        settings=_settings(plant, scenario, law.controller, steps, rigid, perturb, seed) | facts,
        recording=recording,
        comparison=comparison,
        times=times,
        softness=sweep,
        **_numbers(law.controller, recording, comparison, times, settle, criteria),
        **_pictures(plant, recording, render, notes, tell),
        notes=tuple(notes),
    )
    return Report((run,))


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
    recording: Recording,
    comparison: Comparison | None,
    times: TickTimes | None,
    settle: float,
    criteria: Mapping[str, float] | None,
) -> dict[str, Any]:
    tracked = measures.tracked(controller, recording, settle)
    found = (
        *measures.tracking_metrics(tracked, scopes(criteria)),
        *measures.closure_metrics(recording, comparison),
        *measures.torque_metrics(controller, recording),
        *measures.contact_metrics(controller, recording),
        *measures.status_metrics(controller, recording),
        *measures.time_metrics(times),
    )
    verdicts = judge(found, criteria, finished=not recording.events)
    return {"tracked": tuple(tracked), "metrics": found, "verdicts": verdicts}


def _compare(
    model: Source,
    make_plant: Any,
    recording: Recording,
    softness: bool,
    notes: list[str],
) -> tuple[Comparison | None, Softness | None]:
    """Compare with our dynamics where the model has equality constraints."""
    try:
        system = read_mjcf(model)
        if not system.nc:
            return None, None
        dynamics = dynamics_of(system)
    except UnsupportedFeatureError as error:
        notes.append(f"Our dynamics were not compared: {error}")
        return None, None
    comparison = compare_run(system, dynamics, recording)
    sweep = softness_sweep(make_plant, dynamics, recording) if softness else None
    return comparison, sweep


def dynamics_of(system: System) -> ca.Function:
    """Return the forward dynamics (q, v, f) → (a, f_c, lam) that MuJoCo is compared with.

    Soft loops stand open by a little, and rows that repeat each other on the manifold are only
    nearly dependent there. What differs by less than `SOFT_RANK_TOL` counts as the same row: with
    a finer rule, Bennett's linkage would be locked by the micrometres that its loop is open.
    """
    from mbcasadi.dynamics import forward_dynamics

    return forward_dynamics(system, formulation="projection", rank_tol=SOFT_RANK_TOL)


def _settings(
    plant: Plant,
    scenario: Scenario,
    controller: Controller,
    steps: int,
    rigid: bool,
    perturb: Mapping[str, float] | None,
    seed: int | None,
) -> dict[str, Any]:
    errors = ", ".join(f"{name} {100 * error:+.3g} %" for name, error in (perturb or {}).items())
    drawn = f" (drawn for each, seed {seed})" if errors and seed is not None else ""
    return {
        "model": plant.name,
        "degrees of freedom": plant.nv,
        "motors": plant.nu,
        "controller": controller.name,
        "control period": f"{1e3 * controller.period:g} ms",
        "plant's time step": f"{1e3 * plant.timestep:g} ms ({steps} in a period)",
        "duration": f"{scenario.duration:g} s",
        "delay": f"{scenario.delay} tick{'s' if scenario.delay != 1 else ''}",
        "plant's parameter errors": errors + drawn if errors else "none",
        "disturbance": "none" if scenario.disturbance is None else "a force from outside",
        "plant's equality constraints": _softness_words(plant, rigid),
    }


def _softness_words(plant: Plant, rigid: bool) -> str:
    if not plant.model.neq:
        return "none"
    return "rigid recipe" if rigid else "the model's own softness"


def _pictures(
    plant: Plant, recording: Recording, render: bool, notes: list[str], tell: Progress
) -> dict[str, Any]:
    """Draw frames at equal times, where that is asked for and possible."""
    if not render:
        return {}
    tell("drawing", 0.9)
    chosen = np.linspace(0, recording.ticks - 1, min(FRAMES, recording.ticks)).astype(int)
    frames = draw_frames(plant.model, recording.q[chosen])
    if frames.images is None:
        notes.append(f"No pictures: {frames.reason}")
        return {}
    try:
        encoded = tuple(_png(image) for image in frames.images)
    except MissingExtraError as error:
        notes.append(f"No pictures: {error}")
        return {}
    return {"frames": encoded, "frame_times": tuple(float(t) for t in recording.t[chosen])}


def _png(image: NDArray[np.uint8]) -> bytes:
    buffer = io.BytesIO()
    require("matplotlib.image", "a picture").imsave(buffer, image, format="png")
    return buffer.getvalue()
