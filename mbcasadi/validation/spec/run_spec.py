"""The controller of a spec against MuJoCo."""

from pathlib import Path

from mbcasadi.argument_kinds import checked
from mbcasadi.validation.closed_loop import Progress
from mbcasadi.validation.metrics import Criteria
from mbcasadi.validation.report import Report, ReportOptions
from mbcasadi.validation.spec.build import build_experiment
from mbcasadi.validation.spec.common import Spec
from mbcasadi.validation.spec.experiment import Experiment
from mbcasadi.validation.validate import validate


@checked
def run_spec(
    spec: Spec, model: str | Path, report: ReportOptions | None = None, *, fast: bool = False
) -> Report:
    """Build the controller of a spec, export it to C and run that C against MuJoCo.

    Args:
        spec: the controller, its motion, and the conditions of the trial.
        model: MJCF or URDF file.
        report, fast: as in `validate`.

    Raises:
        UnknownNameError: a criterion is no metric.
        MbcasadiError: the model, the spec, the export or the plant; see `build_experiment`,
            `validate`.
    """
    report, trial = report or ReportOptions(), spec.validation
    criteria = criteria_of_spec(spec)
    experiment = build_reported(spec, model, report.progress)
    with experiment.scenario(trial, seeded=True) as scenario:
        return validate(
            experiment.controller,
            str(model),
            trial.duration,
            reference=experiment.reference,
            q0=experiment.q0,
            rigid=trial.rigid,
            perturb=trial.perturb,
            delay=trial.delay,
            disturbance=trial.pushes,
            fast=fast,
            scenario=scenario,
            criteria=criteria,
            report=report,
        )


def criteria_of_spec(spec: Spec) -> Criteria:
    """Return the criteria; a misspelt one raises before the controller is built."""
    return Criteria(spec.validation.criteria, spec.validation.settle)


def build_reported(spec: Spec, model: str | Path, progress: Progress | None) -> Experiment:
    """Build the controller of a spec, and report that."""
    if progress is not None:
        progress("building the controller", 0.0)
    return build_experiment(spec, model)
