"""The size of an error at which the controller of a spec first fails."""

from pathlib import Path

from mbcasadi.argument_kinds import checked
from mbcasadi.validation.campaigns import Case, FailureMargin, margin
from mbcasadi.validation.closed_loop import Progress
from mbcasadi.validation.spec.common import Spec
from mbcasadi.validation.spec.run_spec import build_reported, criteria_of_spec


@checked
def run_margin(
    spec: Spec,
    model: Path,
    over: str,
    largest: float,
    *,
    steps: int = 8,
    tolerance: float | None = None,
    fast: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> FailureMargin:
    """Return the margin of a spec's generated C to failure; the trial's errors act in all runs.

    Args:
        spec: the controller, its motion, and the conditions of the trial.
        model: MJCF or URDF file.
        over, largest, steps, tolerance, fast, jobs: as in `margin`.
        progress: called with what is being done and a share from 0 to 1.

    Raises:
        MbcasadiError: as `margin` and `build_experiment`.
    """
    criteria, trial = criteria_of_spec(spec), spec.validation
    experiment = build_reported(spec, model, progress)
    usual = Case(trial.seed or 0, perturb=trial.perturb, delay=trial.delay, each_body=False)
    with experiment.scenario(trial) as scenario:
        return margin(
            experiment.controller,
            str(model),
            trial.duration,
            over=over,
            largest=largest,
            steps=steps,
            tolerance=tolerance,
            fast=fast,
            case=usual,
            reference=experiment.reference,
            q0=experiment.q0,
            rigid=trial.rigid,
            disturbance=trial.pushes,
            scenario=scenario,
            criteria=criteria,
            jobs=jobs,
            progress=progress,
        )
