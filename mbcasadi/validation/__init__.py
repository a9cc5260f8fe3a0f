"""Where both worlds meet: our equations and generated C against MuJoCo."""

from mbcasadi.validation.campaigns import Campaign, Case, campaign, cases
from mbcasadi.validation.closed_loop import validate
from mbcasadi.validation.conditions import Condition, WhatIf
from mbcasadi.validation.criteria import DEFAULTS, Verdict
from mbcasadi.validation.law import CompiledLaw, compiled
from mbcasadi.validation.margins import Margin
from mbcasadi.validation.metrics import Metric, Tracked
from mbcasadi.validation.outer import OuterLaw, outer_law
from mbcasadi.validation.predictions import Predicted, Predictions
from mbcasadi.validation.recording import Recording
from mbcasadi.validation.report import Report
from mbcasadi.validation.run import Run
from mbcasadi.validation.softness import Softness

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
