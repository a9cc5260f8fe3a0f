"""Generated C against MuJoCo: the only package that uses both our equations and MuJoCo."""

from typing import TYPE_CHECKING

from mbcasadi.lazy_imports import lazy_names

if TYPE_CHECKING:
    from mbcasadi.validation.agreement.agreement import Difference, ModelAgreement
    from mbcasadi.validation.agreement.compare import compare
    from mbcasadi.validation.campaigns import (
        Campaign,
        CampaignOptions,
        Case,
        FailureMargin,
        Outcome,
        PassRate,
        Sensitivity,
        case_report,
        open_campaign,
        sampled_cases,
    )
    from mbcasadi.validation.campaigns import cases as cases
    from mbcasadi.validation.campaigns import margin as margin
    from mbcasadi.validation.campaigns.campaign import campaign as campaign
    from mbcasadi.validation.closed_loop import (
        CompiledLaw,
        OuterLaw,
        Policy,
        Push,
        Reaction,
        Recording,
        Runnable,
        ScenarioOptions,
        Sensing,
        SensorErrors,
        SharedLibrary,
        compile_controller,
        load_recording,
        save_recording,
        shared_library,
    )
    from mbcasadi.validation.closed_loop.outer_law import outer_law
    from mbcasadi.validation.closed_loop.reaction import reaction as reaction
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
    from mbcasadi.validation.precision import Distribution, PrecisionReport
    from mbcasadi.validation.precision.compare_precision import compare_precision
    from mbcasadi.validation.report import Report, ReportOptions, SideBySide
    from mbcasadi.validation.report.side_by_side import side_by_side
    from mbcasadi.validation.run import Condition, Run, WhatIf
    from mbcasadi.validation.trial import Trial
    from mbcasadi.validation.trial_report import validate
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "DEFAULTS",
    "Campaign",
    "CampaignOptions",
    "Case",
    "CompiledLaw",
    "Condition",
    "ContactForceRow",
    "ContactForces",
    "Criteria",
    "Difference",
    "Distribution",
    "FailureMargin",
    "Margin",
    "Metric",
    "ModelAgreement",
    "Outcome",
    "OuterLaw",
    "PassRate",
    "Policy",
    "PrecisionReport",
    "PredictionStatistics",
    "Predictions",
    "Push",
    "Reaction",
    "Recording",
    "Report",
    "ReportOptions",
    "Run",
    "Runnable",
    "ScenarioOptions",
    "Sensing",
    "Sensitivity",
    "SensorErrors",
    "SharedLibrary",
    "SideBySide",
    "Softness",
    "TrackingStatistics",
    "Trial",
    "Verdict",
    "WhatIf",
    "case_report",
    "compare",
    "compare_precision",
    "compile_controller",
    "load_recording",
    "open_campaign",
    "outer_law",
    "sampled_cases",
    "save_recording",
    "shared_library",
    "side_by_side",
    "validate",
]

NOT_STARRED = ("campaign", "cases", "margin", "reaction")
"""Public names that `import *` leaves out: they are words that people have variables of."""
