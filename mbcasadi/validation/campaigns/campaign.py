"""Many runs of one controller: parameter errors, delays, starts, disturbances."""

import hashlib
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.errors import ControllerError, ProblemError, SimulationError
from mbcasadi.plant import Source
from mbcasadi.platforms import usable_cores
from mbcasadi.progress import Progress, ProgressReporter
from mbcasadi.shapes import require_positive, require_whole
from mbcasadi.validation.campaigns.case import Case, hash_of_cases
from mbcasadi.validation.campaigns.kit import Kit
from mbcasadi.validation.campaigns.outcome import Outcome
from mbcasadi.validation.campaigns.preparation import Ready, prepared
from mbcasadi.validation.campaigns.result import Campaign
from mbcasadi.validation.campaigns.schedule import (
    GivenExecutor,
    Processes,
    Schedule,
    Shipment,
    Workers,
)
from mbcasadi.validation.campaigns.store import Store
from mbcasadi.validation.campaigns.trials import Trials, stopped_outcome
from mbcasadi.validation.closed_loop import Controllable, run_loop
from mbcasadi.validation.metrics import run_statistics
from mbcasadi.validation.report import Report, ReportOptions
from mbcasadi.validation.trial import Trial
from mbcasadi.validation.trial_report import run_trial

PROCESS_COST = 4.0  # s, of starting processes that import the package and load the controller

PROGRESS_CALLS = 100  # of a campaign


@dataclass(frozen=True)
class CampaignOptions:
    """Where a campaign runs, and what it keeps.

    Attributes:
        executor: anything with the interface of `concurrent.futures.Executor`, such as
            `client.get_executor()` of a Dask cluster; it is not closed.
        jobs: processes of this machine without an executor; 1 runs everything in this one. None:
            one for each core, where that is faster.
        store: SQLite file that keeps the outcomes; an interrupted campaign with the same arguments
            goes on where it was.
        time_limit: s, of a case; one that takes longer fails.
        progress: called with what is being done and a share from 0 to 1.

    Raises:
        ProblemError: jobs together with an executor, numbers that are not positive.
    """

    executor: Executor | None = None
    jobs: int | None = None
    store: str | Path | None = None
    time_limit: float | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        require_fields(self)
        if self.jobs is not None:
            require_whole(1, jobs=self.jobs)
            if self.executor is not None:
                raise ProblemError("give executor or jobs, not both: an executor has its workers")
        if self.time_limit is not None:
            require_positive(time_limit=self.time_limit)


@checked
def campaign(
    controller: Controllable,
    model: Source,
    trial: Trial,
    cases: Sequence[Case],
    options: CampaignOptions | None = None,
) -> Campaign:
    """Run one controller in many plants; the C of one of ours is generated once.

    A plant that diverges, a start that cannot be closed, or a controller of a user that raises, is
    a failed case, not an exception. Each case is reproducible alone, bit by bit, wherever it runs:
    see `case_report`.

    Args:
        controller: as in `validate`. C travels to other processes with its library, which runs
            where platform and C library are the same, a shared library of others as its bytes, a
            `ca.Function`, a callable or a policy as its pickle, of `cloudpickle` where that is
            installed; each case gets a copy as it was at the start. What has no pickle runs in this
            process, and a note of the result says so.
        model: MJCF or URDF file, XML text, `MjSpec` or `MjModel` of the plants.
        trial: duration, reference and further conditions of all runs; no errors, delay and seed,
            as each case has its own.
        cases: seed, parameter errors, delay and start error of each run; see `cases` and
            `sampled_cases`.
        options: executor or processes, a store, the longest time of a case, progress.

    Raises:
        ProblemError: no case, errors, a delay or a seed in `trial`, a controller that does not fit
            the model, a store that holds another campaign, or an executor or several `jobs` for a
            controller that cannot be sent to them.
        ModelError: the model cannot be read.
        ExportError: the C cannot be generated or compiled.
    """
    where = options or CampaignOptions()
    report = ProgressReporter(where.progress)
    with prepared(controller, model, trial, cases, report) as ready:
        return run_cases(ready, cases, where, report)


def run_cases(
    ready: Ready,
    cases: Sequence[Case],
    where: CampaignOptions,
    report: ProgressReporter,
) -> Campaign:
    """Run the cases that the store does not have.

    Raises:
        ProblemError: the controller cannot be sent to other processes, which are required.
    """
    kit = ready.kit
    if kit.controller.stays and (where.executor is not None or (where.jobs or 1) > 1):
        raise ProblemError(f"{kit.controller.stays}; expected jobs=1")
    settings = ready.settings | {"begun": datetime.now().astimezone().isoformat(" ", "minutes")}
    store = None if where.store is None else Store(Path(where.store))
    try:
        done: list[Outcome] = []
        if store is not None:
            parts = kit.fingerprint() | {"cases": hash_of_cases(cases)[:16]}
            store.begin(parts, cases, ready.notes, settings)
            settings = store.settings()
            done = store.outcomes()
        known = {outcome.number for outcome in done}
        pending = [(k, case) for k, case in enumerate(cases) if k not in known]
        report.note("compiling C")
        for batch in _outcomes(ready, pending, where) if pending else ():
            if store is not None:
                store.add(batch)
            begun = PROGRESS_CALLS * len(done) // len(cases)
            done += batch
            if PROGRESS_CALLS * len(done) // len(cases) == begun:
                continue
            report(f"{len(done)} of {len(cases)} runs are done", len(done) / len(cases))
    finally:
        if store is not None:
            store.close()
    outcomes = tuple(sorted(done, key=lambda outcome: outcome.number))
    return Campaign(outcomes, len(cases), ready.notes, settings)


def _outcomes(
    ready: Ready, pending: list[tuple[int, Case]], where: CampaignOptions
) -> Iterator[tuple[Outcome, ...]]:
    """Yield outcomes: the first ones from this process, which shows what a case takes."""
    trials = Trials(ready.kit, ready.law)
    _require_fit(trials)
    stays = where.executor is not None or ready.kit.controller.stays
    jobs = 1 if stays else where.jobs or usable_cores()
    seconds = None
    while pending and where.executor is None:
        rest = 0.0 if seconds is None else seconds * len(pending)
        worth = rest * (1 - 1 / jobs) > PROCESS_COST or where.jobs is not None
        if jobs > 1 and seconds is not None and worth:
            break
        begin = time.perf_counter()
        number, case = pending.pop(0)
        yield (trials.run(number, case, where.time_limit),)
        seconds = time.perf_counter() - begin
    if pending:
        workers: Workers = (
            Processes(jobs) if where.executor is None else GivenExecutor(where.executor)
        )
        try:
            shipment = _shipment(ready.kit, where.time_limit)
            yield from Schedule(workers, shipment, seconds).run(pending)
        finally:
            workers.close()


def _shipment(kit: Kit, time_limit: float | None) -> Shipment:
    content = kit.to_bytes()
    return Shipment(
        key=hashlib.sha256(content).hexdigest(),
        kit=content,
        time_limit=time_limit,
        give_up=lambda numbered, reason: stopped_outcome(kit, *numbered, reason),
    )


def _require_fit(trials: Trials) -> None:
    """Raise what would fail in every case: one tick of a plant without errors.

    Raises:
        MbcasadiError: controller, signals, criteria and plant do not fit together.
    """
    case = Case(0)
    period = trials.law.controller.period
    plant = trials.plant(case)
    try:
        recording = run_loop(
            trials.law, plant, replace(trials.scenario(plant, case), duration=period)
        )
    except (SimulationError, ControllerError):
        return  # of the plant or of a user's function: each case has its own
    run_statistics(trials.law.controller, recording, plant, trials.kit.trial.criteria)


@checked
def case_report(
    controller: Controllable,
    model: Source,
    trial: Trial,
    cases: Sequence[Case],
    number: int,
    report: ReportOptions | None = None,
) -> Report:
    """Run one case of a campaign again, in this process, and return the report of `validate`.

    Its motion, and all metrics that the campaign has, are those of the campaign bit by bit, on a
    machine with the same compiler and libraries.

    Args:
        controller, model, trial, cases: of the campaign.
        number: of the case.
        report: name, sweeps, repetitions and frames of the report; progress.

    Returns:
        A report with one run.

    Raises:
        ProblemError: the campaign has no such case.
        SimulationError: the case cannot start.
        MbcasadiError: as `campaign` and `validate`.
    """
    report = report or ReportOptions()
    if not 0 <= number < len(cases):
        raise ProblemError(
            f"there is no case {number}; the {len(cases)} cases have the numbers 0 to "
            f"{len(cases) - 1}"
        )
    with prepared(controller, model, trial, cases, ProgressReporter(report.progress)) as ready:
        case, trials = cases[number], Trials(ready.kit, ready.law)
        loop = trials.scenario(trials.plant(case), case)
        alone = replace(
            trial,
            reference=loop.reference,
            q0=loop.q0,
            v0=loop.v0,
            perturb=case.perturb,
            delay=case.delay,
            disturbance=loop.disturbance,
            scenario=replace(trials.options, seed=case.plant_seed),
            period=None,
            fast=False,
            sensors=trial.sensors and trial.sensors.of_case(case.seed, case.sensor_noise),
        )
        return run_trial(trials.law, model, alone, report)
