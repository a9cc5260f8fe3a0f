"""The controller of a spec against MuJoCo: one run, or a campaign."""

from collections.abc import Sequence
from pathlib import Path

from mbcasadi.argument_kinds import checked
from mbcasadi.validation.campaigns import Campaign, campaign, cases
from mbcasadi.validation.closed_loop import Progress, ScenarioOptions
from mbcasadi.validation.metrics import Criteria
from mbcasadi.validation.report import Report, ReportOptions
from mbcasadi.validation.spec.build import Experiment, build_experiment
from mbcasadi.validation.spec.schema import Spec
from mbcasadi.validation.validate import validate


@checked
def run_spec(spec: Spec, model: Path, report: ReportOptions | None = None) -> Report:
    """Build the controller of a spec, export it to C and run that C against MuJoCo.

    Args:
        spec: the controller, its motion, and the conditions of the trial.
        model: MJCF or URDF file.
        report: as in `validate`.

    Raises:
        UnknownNameError: a criterion is no metric.
        MbcasadiError: the model, the spec, the export or the plant; see `build_experiment`,
            `validate`.
    """
    report, trial = report or ReportOptions(), spec.validation
    criteria = _criteria(spec)
    experiment = _build(spec, model, report.progress)
    return validate(
        experiment.controller,
        str(model),
        trial.duration,
        reference=experiment.reference,
        q0=experiment.q0,
        rigid=trial.rigid,
        perturb=trial.perturb,
        delay=trial.delay,
        scenario=ScenarioOptions(mask=experiment.mask, timestep=trial.timestep, seed=trial.seed),
        criteria=criteria,
        report=report,
    )


@checked
def run_campaign(
    spec: Spec,
    model: Path,
    runs: int,
    *,
    delays: Sequence[int] | None = None,
    start_error: float = 0.0,
    progress: Progress | None = None,
) -> Campaign:
    """Run the generated C of a spec in many plants; each draws its own errors.

    Args:
        spec: the controller, its motion, and the conditions of the trial.
        model: MJCF or URDF file.
        runs: number of plants for each delay, with seeds 0, 1, 2, …
        delays: ticks; the spec's delay by default.
        start_error: rad or m, largest error of each coordinate at the start.
        progress: called with what is being done and a share from 0 to 1.
    """
    criteria, trial = _criteria(spec), spec.validation
    experiment = _build(spec, model, progress)
    return campaign(
        experiment.controller,
        str(model),
        trial.duration,
        cases(range(runs), [trial.perturb], delays or [trial.delay], start_errors=[start_error]),
        reference=experiment.reference,
        q0=experiment.q0,
        rigid=trial.rigid,
        scenario=ScenarioOptions(mask=experiment.mask, timestep=trial.timestep),
        criteria=criteria,
        progress=progress,
    )


def _criteria(spec: Spec) -> Criteria:
    """Return the criteria; a misspelt one raises before the controller is built."""
    return Criteria(spec.validation.criteria, spec.validation.settle)


def _build(spec: Spec, model: Path, progress: Progress | None) -> Experiment:
    if progress is not None:
        progress("building the controller", 0.0)
    return build_experiment(spec, model)
