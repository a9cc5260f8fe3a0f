"""One judged run, its comparison with our dynamics, and its repetitions under other conditions."""

from mbcasadi.validation.run.conditions import Condition, Repetitions, WhatIf, require_conditions
from mbcasadi.validation.run.experiments import FailedRun
from mbcasadi.validation.run.explanations import Diagnosis, diagnose
from mbcasadi.validation.run.model_comparison import compare_with_model
from mbcasadi.validation.run.preparation import (
    PlantFactory,
    Prepared,
    delay_ticks,
    fitted_to_plant,
    initial_configuration,
    period_of,
    prepare,
    servo_notes,
)
from mbcasadi.validation.run.reference_rates import wrong_rates
from mbcasadi.validation.run.run import Run

__all__ = [
    "Condition",
    "Diagnosis",
    "FailedRun",
    "PlantFactory",
    "Prepared",
    "Repetitions",
    "Run",
    "WhatIf",
    "compare_with_model",
    "delay_ticks",
    "diagnose",
    "fitted_to_plant",
    "initial_configuration",
    "period_of",
    "prepare",
    "require_conditions",
    "servo_notes",
    "wrong_rates",
]
