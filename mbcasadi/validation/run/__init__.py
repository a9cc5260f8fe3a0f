"""One judged run, its comparison with our dynamics, and its repetitions under other conditions."""

from mbcasadi.validation.run.conditions import (
    Condition,
    FinishedRun,
    WhatIf,
    compare_conditions,
    require_conditions,
    solref_gaps,
)
from mbcasadi.validation.run.explanations import Diagnosis, diagnose
from mbcasadi.validation.run.model_comparison import compare_with_model
from mbcasadi.validation.run.preparation import (
    Controlled,
    PlantFactory,
    Prepared,
    delay_ticks,
    fitted_to_plant,
    fitted_to_trial,
    initial_configuration,
    period_of,
    prepare,
    servo_notes,
)
from mbcasadi.validation.run.reference_rates import wrong_rates
from mbcasadi.validation.run.run import Run

__all__ = [
    "Condition",
    "Controlled",
    "Diagnosis",
    "FinishedRun",
    "PlantFactory",
    "Prepared",
    "Run",
    "WhatIf",
    "compare_conditions",
    "compare_with_model",
    "delay_ticks",
    "diagnose",
    "fitted_to_plant",
    "fitted_to_trial",
    "initial_configuration",
    "period_of",
    "prepare",
    "require_conditions",
    "servo_notes",
    "solref_gaps",
    "wrong_rates",
]
