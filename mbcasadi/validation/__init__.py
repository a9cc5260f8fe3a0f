"""Where both worlds meet: our equations and generated C against MuJoCo."""

from mbcasadi.validation.campaign import campaign
from mbcasadi.validation.closed_loop.compiled_law import CompiledLaw, compiled
from mbcasadi.validation.closed_loop.outer_law import OuterLaw, outer_law
from mbcasadi.validation.closed_loop.recording import Recording
from mbcasadi.validation.metrics.criteria import DEFAULTS, Verdict
from mbcasadi.validation.metrics.margins import Margin
from mbcasadi.validation.metrics.metrics import Metric, Tracked
from mbcasadi.validation.metrics.predictions import Predicted, Predictions
from mbcasadi.validation.metrics.softness import Softness
from mbcasadi.validation.report.campaign_report import Campaign, Case, cases
from mbcasadi.validation.report.report import Report
from mbcasadi.validation.run.conditions import Condition, WhatIf
from mbcasadi.validation.run.run import Run
from mbcasadi.validation.validate import validate

__all__ = [
    "DEFAULTS",
    "Campaign",
    "Case",
    "CompiledLaw",
    "Condition",
    "Margin",
    "Metric",
    "OuterLaw",
    "Predicted",
    "Predictions",
    "Recording",
    "Report",
    "Run",
    "Softness",
    "Tracked",
    "Verdict",
    "WhatIf",
    "campaign",
    "cases",
    "compiled",
    "outer_law",
    "validate",
]
