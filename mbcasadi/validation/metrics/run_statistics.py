"""All statistics and metrics of one recorded run."""

from dataclasses import dataclass

from mbcasadi.codegen import TickTimes
from mbcasadi.description import Controller
from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics.command_metrics import command_metrics
from mbcasadi.validation.metrics.comparison import Comparison, closure_metrics
from mbcasadi.validation.metrics.contact_metrics import (
    ContactForces,
    contact_force_metrics,
    contact_forces,
    contact_metrics,
)
from mbcasadi.validation.metrics.control_metrics import time_metrics, torque_metrics
from mbcasadi.validation.metrics.criteria import Criteria
from mbcasadi.validation.metrics.estimate_metrics import estimate_metrics
from mbcasadi.validation.metrics.margins import Margin, margin_metrics, margins
from mbcasadi.validation.metrics.metric import Metric
from mbcasadi.validation.metrics.plant_metrics import plant_metrics
from mbcasadi.validation.metrics.predictions import Predictions, prediction_metrics, predictions
from mbcasadi.validation.metrics.status_metrics import (
    OuterLawRun,
    outer_law_metrics,
    status_metrics,
)
from mbcasadi.validation.metrics.tracking_metrics import (
    TrackingStatistics,
    hold_metrics,
    hold_statistics,
    tracking_metrics,
    tracking_statistics,
)


@dataclass(frozen=True)
class RunStatistics:
    """Statistics of a run, and the metrics computed from them.

    Attributes:
        tracking: each component of the tasks.
        margins: each bounded row.
        predictions: plans against what happened, or None.
        metrics: of all of it.
    """

    tracking: tuple[TrackingStatistics, ...]
    margins: tuple[Margin, ...]
    predictions: Predictions | None
    metrics: tuple[Metric, ...]
    contact_forces: ContactForces | None = None


def run_statistics(
    controller: Controller,
    recording: Recording,
    plant: Plant,
    criteria: Criteria,
    *,
    comparison: Comparison | None = None,
    times: TickTimes | None = None,
    outer: OuterLawRun | None = None,
    delay: int = 0,
) -> RunStatistics:
    """Return all statistics of a run.

    Args:
        controller, recording, plant: of the run.
        criteria: their scopes and `settle` are used.
        comparison: with our dynamics, or None.
        times: of the ticks in C, or None.
        outer: run of the outer law, or None.
        delay: ticks from a measurement to the moment at which its control acts.

    Raises:
        UnknownNameError: a criterion names a task or component that the controller does not have.
    """
    tracking = tracking_statistics(controller, recording, criteria.settle, plant.model)
    held = hold_statistics(controller, recording, plant.model, criteria.settle)
    bounded_rows = margins(controller, recording)
    plans = predictions(controller, recording, plant, criteria.settle)
    forces = contact_forces(controller, recording, plant, delay, criteria.settle)
    return RunStatistics(
        contact_forces=forces,
        tracking=tracking,
        margins=bounded_rows,
        predictions=plans,
        metrics=(
            *tracking_metrics(tracking, criteria.scopes),
            *hold_metrics(held, tracking, criteria.scopes),
            *plant_metrics(recording, plant.model, tracking if outer is None else ()),
            *closure_metrics(recording, comparison, plant.model),
            *torque_metrics(controller, recording),
            *margin_metrics(bounded_rows),
            *contact_metrics(controller, recording, plant.model),
            *contact_force_metrics(forces),
            *status_metrics(controller, recording),
            *prediction_metrics(plans),
            *estimate_metrics(recording, plant.model, criteria.settle),
            *time_metrics(times, controller.period),
            *outer_law_metrics(outer),
            *command_metrics(recording, plant.model, None if outer is None else outer.speeds),
        ),
    )
