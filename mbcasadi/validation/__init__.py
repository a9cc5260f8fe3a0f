"""Generated C against MuJoCo: the only package that uses both our equations and MuJoCo."""

from mbcasadi.validation.agreement.compare_models import compare
from mbcasadi.validation.agreement.model_agreement import Difference, ModelAgreement
from mbcasadi.validation.campaign import campaign
from mbcasadi.validation.closed_loop import (
    CompiledLaw,
    OuterLaw,
    Policy,
    Reaction,
    Recording,
    Runnable,
    ScenarioOptions,
    SharedLibrary,
    compile_controller,
    outer_law,
    reaction,
    shared_library,
)
from mbcasadi.validation.metrics import (
    DEFAULTS,
    ContactForceRow,
    ContactForces,
    Criteria,
    Margin,
    Metric,
    Predictions,
    PredictionStatistics,
    Softness,
    TrackingStatistics,
    Verdict,
)
from mbcasadi.validation.report import Campaign, Case, Report, ReportOptions, cases
from mbcasadi.validation.run import Condition, Run, WhatIf
from mbcasadi.validation.validate import validate

__all__ = [
    "DEFAULTS",
    "Campaign",
    "Case",
    "CompiledLaw",
    "Condition",
    "ContactForceRow",
    "ContactForces",
    "Criteria",
    "Difference",
    "Margin",
    "Metric",
    "ModelAgreement",
    "OuterLaw",
    "Policy",
    "PredictionStatistics",
    "Predictions",
    "Reaction",
    "Recording",
    "Report",
    "ReportOptions",
    "Run",
    "Runnable",
    "ScenarioOptions",
    "SharedLibrary",
    "Softness",
    "TrackingStatistics",
    "Verdict",
    "WhatIf",
    "campaign",
    "cases",
    "compare",
    "compile_controller",
    "outer_law",
    "reaction",
    "shared_library",
    "validate",
]
