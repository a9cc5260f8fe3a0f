"""Generated C against MuJoCo: the only package that uses both our equations and MuJoCo."""

from mbcasadi.validation.campaigns import (
    Campaign,
    Case,
    Outcome,
    PassRate,
    Sensitivity,
    campaign,
    case_report,
    cases,
    open_campaign,
    sampled_cases,
)
from mbcasadi.validation.closed_loop import (
    CompiledLaw,
    OuterLaw,
    Reaction,
    Recording,
    ScenarioOptions,
    compile_controller,
    outer_law,
    reaction,
)
from mbcasadi.validation.metrics import (
    DEFAULTS,
    Criteria,
    Margin,
    Metric,
    Predictions,
    PredictionStatistics,
    Softness,
    TrackingStatistics,
    Verdict,
)
from mbcasadi.validation.report import Report, ReportOptions
from mbcasadi.validation.run import Condition, Run, WhatIf
from mbcasadi.validation.validate import validate

__all__ = [
    "DEFAULTS",
    "Campaign",
    "Case",
    "CompiledLaw",
    "Condition",
    "Criteria",
    "Margin",
    "Metric",
    "OuterLaw",
    "Outcome",
    "PassRate",
    "PredictionStatistics",
    "Predictions",
    "Reaction",
    "Recording",
    "Report",
    "ReportOptions",
    "Run",
    "ScenarioOptions",
    "Sensitivity",
    "Softness",
    "TrackingStatistics",
    "Verdict",
    "WhatIf",
    "campaign",
    "case_report",
    "cases",
    "compile_controller",
    "open_campaign",
    "outer_law",
    "reaction",
    "sampled_cases",
    "validate",
]
