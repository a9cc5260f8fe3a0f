"""The closed loop: MuJoCo steps the model, the generated C computes the control."""

from mbcasadi.validation.closed_loop.closed_loop import run_loop, steps_per_tick
from mbcasadi.validation.closed_loop.columns import Columns
from mbcasadi.validation.closed_loop.compiled_law import (
    KNOWN_INPUTS,
    CompiledLaw,
    FastLaw,
    compile_controller,
    controller_of,
    fast_law,
)
from mbcasadi.validation.closed_loop.controllers import (
    Controllable,
    Policy,
    SharedLibrary,
    as_runnable,
    shared_library,
)
from mbcasadi.validation.closed_loop.early_start import EarlyLaw, early_law
from mbcasadi.validation.closed_loop.outer_law import OuterLaw, Planner, outer_law
from mbcasadi.validation.closed_loop.plant_sensors import SensorErrors
from mbcasadi.validation.closed_loop.reaction import Reaction, reaction
from mbcasadi.validation.closed_loop.recording import Recording
from mbcasadi.validation.closed_loop.recording_files import load_recording, save_recording
from mbcasadi.validation.closed_loop.runnable import Runnable
from mbcasadi.validation.closed_loop.scenario import (
    Disturbance,
    Push,
    Scenario,
    ScenarioOptions,
    TimeSignal,
    generalised_force,
    pushes_of,
    remembered,
    require_pushes,
)
from mbcasadi.validation.closed_loop.sensing import (
    Sensing,
    loaded_estimator,
    model_with_sensors,
)

__all__ = [
    "KNOWN_INPUTS",
    "Columns",
    "CompiledLaw",
    "Controllable",
    "Disturbance",
    "EarlyLaw",
    "FastLaw",
    "OuterLaw",
    "Planner",
    "Policy",
    "Push",
    "Reaction",
    "Recording",
    "Runnable",
    "Scenario",
    "ScenarioOptions",
    "Sensing",
    "SensorErrors",
    "SharedLibrary",
    "TimeSignal",
    "as_runnable",
    "compile_controller",
    "controller_of",
    "early_law",
    "fast_law",
    "generalised_force",
    "load_recording",
    "loaded_estimator",
    "model_with_sensors",
    "outer_law",
    "pushes_of",
    "reaction",
    "remembered",
    "require_pushes",
    "run_loop",
    "save_recording",
    "shared_library",
    "steps_per_tick",
]
