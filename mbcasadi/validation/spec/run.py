"""A spec against MuJoCo."""

from collections.abc import Callable, Sequence
from pathlib import Path

from mbcasadi.validation.campaign import campaign
from mbcasadi.validation.metrics.criteria import judge
from mbcasadi.validation.report.campaign_report import Campaign, cases
from mbcasadi.validation.report.report import Report
from mbcasadi.validation.spec.build import Experiment, experiment
from mbcasadi.validation.spec.schema import Spec, Trial
from mbcasadi.validation.validate import validate


def run_spec(
    spec: Spec,
    model: Path,
    *,
    softness: bool = False,
    what_if: bool = False,
    render: bool = False,
    name: str = "",
    progress: Callable[[str, float], None] | None = None,
) -> Report:
    """Build the controller of a spec, export it to C and run that C against MuJoCo.

    Args:
        spec: the controller, its motion, and the conditions of the trial.
        model: MJCF or URDF file.
        softness, what_if, render, name, progress: as in `validate`.

    Raises:
        UnknownNameError: a criterion is no metric.
        MbcasadiError: the model, the spec, the export or the plant; see `experiment`, `validate`.
    """
    made, trial = _made(spec, model, progress)
    return validate(
        made.controller,
        str(model),
        trial.duration,
        reference=made.reference,
        mask=made.mask,
        q0=made.q0,
        rigid=trial.rigid,
        timestep=trial.timestep,
        perturb=trial.perturb,
        seed=trial.seed,
        delay=trial.delay,
        settle=trial.settle,
        criteria=trial.criteria,
        softness=softness,
        what_if=what_if,
        render=render,
        name=name,
        progress=progress,
    )


def run_campaign(
    spec: Spec,
    model: Path,
    runs: int,
    *,
    delays: Sequence[int] | None = None,
    start_error: float = 0.0,
    progress: Callable[[str, float], None] | None = None,
) -> Campaign:
    """Run the generated C of a spec in many plants; each draws its own errors.

    Args:
        spec: the controller, its motion, and the conditions of the trial.
        model: MJCF or URDF file.
        runs: plants for each delay, with seeds 0, 1, 2, …
        delays: ticks; the spec's delay by default.
        start_error: rad or m, largest error of each coordinate at the start.
        progress: as in `validate`.
    """
    made, trial = _made(spec, model, progress)
    plan = cases(range(runs), [trial.perturb], delays or [trial.delay], start_errors=[start_error])
    return campaign(
        made.controller,
        str(model),
        trial.duration,
        plan,
        reference=made.reference,
        mask=made.mask,
        q0=made.q0,
        rigid=trial.rigid,
        timestep=trial.timestep,
        settle=trial.settle,
        criteria=trial.criteria,
        progress=progress,
    )


def _made(
    spec: Spec, model: Path, progress: Callable[[str, float], None] | None
) -> tuple[Experiment, Trial]:
    """Return the controller and its trial; a misspelt criterion is found before a long run."""
    judge((), spec.validation.criteria or {}, finished=True)
    if progress:
        progress("building the controller", 0.0)
    return experiment(spec, model), spec.validation
