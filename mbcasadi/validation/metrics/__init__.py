"""Statistics, metrics and criteria of a recorded closed loop."""

from mbcasadi.validation.metrics.comparison import Comparison, compare_run
from mbcasadi.validation.metrics.contact_metrics import (
    ContactForceRow,
    ContactForces,
    active_contacts,
    plant_margin,
    predicted_margin,
)
from mbcasadi.validation.metrics.criteria import (
    DEFAULTS,
    NO_METRICS,
    SAME_IN_C,
    Criteria,
    Verdict,
    judge,
    passed,
)
from mbcasadi.validation.metrics.margins import Margin, margins
from mbcasadi.validation.metrics.metric import METRICS, Metric, base_name
from mbcasadi.validation.metrics.outer_plans import OuterPlans, outer_plans
from mbcasadi.validation.metrics.predictions import PlanCurves, Predictions, PredictionStatistics
from mbcasadi.validation.metrics.recorded_signals import require_reportable
from mbcasadi.validation.metrics.run_statistics import run_statistics
from mbcasadi.validation.metrics.softness import Softness, softness_sweep, solref_sweep
from mbcasadi.validation.metrics.status_metrics import (
    OuterLawRun,
    StatusRow,
    outer_law_run,
    safe_outputs,
    status_rows,
)
from mbcasadi.validation.metrics.tracking_metrics import (
    TrackingStatistics,
    tracking_statistics,
)

__all__ = [
    "DEFAULTS",
    "METRICS",
    "NO_METRICS",
    "SAME_IN_C",
    "Comparison",
    "ContactForceRow",
    "ContactForces",
    "Criteria",
    "Margin",
    "Metric",
    "OuterLawRun",
    "OuterPlans",
    "PlanCurves",
    "PredictionStatistics",
    "Predictions",
    "Softness",
    "StatusRow",
    "TrackingStatistics",
    "Verdict",
    "active_contacts",
    "base_name",
    "compare_run",
    "judge",
    "margins",
    "outer_law_run",
    "outer_plans",
    "passed",
    "plant_margin",
    "predicted_margin",
    "require_reportable",
    "run_statistics",
    "safe_outputs",
    "softness_sweep",
    "solref_sweep",
    "status_rows",
    "tracking_statistics",
]
