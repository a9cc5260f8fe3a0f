"""The cases of a campaign in one process: its kit loaded, its C compiled; and batches of them."""

import pickle
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.errors import MbcasadiError, SimulationError
from mbcasadi.plant import Plant
from mbcasadi.progress import Progress
from mbcasadi.validation.campaigns.case import Case
from mbcasadi.validation.campaigns.kit import Kit, scaled
from mbcasadi.validation.campaigns.outcome import Outcome
from mbcasadi.validation.closed_loop import Runnable, Scenario, loaded_estimator, run_loop
from mbcasadi.validation.closed_loop.monitor_in_c import with_monitor
from mbcasadi.validation.metrics import judge, outer_law_run, run_statistics
from mbcasadi.validation.metrics.end_after_fall import EndAfterFall
from mbcasadi.validation.run import initial_configuration
from mbcasadi.validation.run.model_bytes import model_of_bytes


class TimeLimitError(SimulationError):
    """A case took longer than it may."""


class Trials:
    """Runs cases of one campaign.

    Attributes:
        kit: what they share.
        law: the controller, compiled on this machine, and its monitor. One that may remember a run
            is loaded anew for each case.
        options: mask, tuning, switches, outer law, reaction and time step of all cases.
    """

    def __init__(self, kit: Kit, law: Runnable | None = None) -> None:
        """Load a kit; a law that runs in this process already is used as it is."""
        self.kit = kit
        self._model = model_of_bytes(kit.model)
        self.options = replace(kit.trial.scenario, keyframe=None)
        law = law or kit.controller.load(self.plant(Case(0)))
        if kit.monitor is not None:
            law = with_monitor(law, kit.monitor.install())
        self.law = law
        code = kit.estimator
        function = None if code is None else code.install().load(flags=code.flags)
        self._estimator = loaded_estimator(kit.trial.sensors, self._model, function)

    def plant(self, case: Case) -> Plant:
        """Return the plant of a case.

        Raises:
            UnknownNameError, SimulationError: errors that a plant cannot have.
        """
        return Plant(
            self._model,
            rigid=self.kit.trial.rigid,
            timestep=self.options.timestep,
            perturb=case.perturb,
            seed=case.plant_seed,
        )

    def scenario(self, plant: Plant, case: Case) -> Scenario:
        """Return what acts on a case from outside, from its displaced start on."""
        trial = self.kit.trial
        start = initial_configuration(plant, trial.q0, trial.scenario.keyframe)
        return Scenario(
            trial.duration,
            trial.reference,
            _displace(plant, start, case),
            trial.v0,
            case.delay,
            scaled(trial.disturbance, case.disturbance),
            self.options,
            self._estimator and self._estimator.of_case(case.seed, case.sensor_noise),
        )

    def run(self, number: int, case: Case, time_limit: float | None = None) -> Outcome:
        """Run a case; what stops it is part of its outcome.

        Args:
            number: place of the case in its campaign.
            case: what to run.
            time_limit: s of this machine; checked about a hundred times in a run.
        """
        kit = self.kit
        try:
            plant = self.plant(case)
            scenario = self.scenario(plant, case)
            law = kit.controller.load(plant) if kit.controller.has_state else self.law
            outer, controller = self.options.outer, law.controller
            ends = EndAfterFall(controller, partial(self.plant, case), kit.trial.criteria, outer)
            recording = run_loop(law, plant, scenario, _stop_after(time_limit), until=ends)
            above = None if outer is None else outer_law_run(outer, controller.period, timed=False)
            statistics = run_statistics(
                controller, recording, plant, kit.trial.criteria, outer=above, delay=case.delay
            )
            metrics = statistics.metrics
            verdicts = judge(metrics, kit.trial.criteria, finished=not recording.events)
        except MbcasadiError as error:
            return stopped_outcome(kit, number, case, str(error))
        except BaseException as error:  # a mistake in a program, or Ctrl-C
            error.add_note(f"This is case {number} of the campaign: {case}")
            raise
        return Outcome(number, case, metrics, verdicts, recording.events)


def stopped_outcome(kit: Kit, number: int, case: Case, reason: str) -> Outcome:
    """Return the outcome of a case that gave no recording."""
    return Outcome(number, case, (), judge((), kit.trial.criteria, finished=False), (reason,))


def _displace(plant: Plant, q0: ArrayLike | None, case: Case) -> ArrayLike | None:
    """Return q0, displaced by a random tangent step of the case's size."""
    if not case.start_error:
        return q0
    step = np.random.default_rng(case.seed).uniform(-1.0, 1.0, plant.nv) * case.start_error
    return plant.integrate(q0, step)


def _stop_after(limit: float | None) -> Progress | None:
    """Return a progress function that ends a run after a time."""
    if limit is None:
        return None
    last = time.monotonic() + limit

    def progress(_text: str, share: float) -> None:
        if time.monotonic() > last:
            raise TimeLimitError(
                f"the case was stopped: it took longer than {limit:g} s, with {100 * share:.0f} % "
                "of its run done"
            )

    return progress


KITS = 4  # of campaigns that a process keeps

Numbered = tuple[int, Case]
"""A case, and its place in the campaign."""


class _Loaded(threading.local):
    """The kits of a thread; a cluster's worker may have several threads."""

    def __init__(self) -> None:
        self.trials: OrderedDict[str, Trials] = OrderedDict()


_loaded = _Loaded()


@dataclass(frozen=True)
class BatchResult:
    """The outcomes of a batch.

    Attributes:
        outcomes: one for each case; empty where the worker has no kit.
        seconds: that the cases took, without the loading of the kit.
        lacks_kit: the worker does not have the kit of this key yet.
    """

    outcomes: tuple[Outcome, ...] = ()
    seconds: float = 0.0
    lacks_kit: bool = False


def run_batch(
    key: str,
    kit: bytes | None,
    batch: Sequence[Numbered],
    time_limit: float | None,
    attempt: int,  # noqa: ARG001 - tells one submission from another where results are cached
) -> BatchResult:
    """Run cases one after the other.

    Args:
        key: of the kit.
        kit: its bytes, or None to use the one that was sent before.
        batch: the cases.
        time_limit: s, of each case.
        attempt: number of this submission.
    """
    trials = _trials_of(key, kit)
    if trials is None:
        return BatchResult(lacks_kit=True)
    begin = time.perf_counter()
    outcomes = tuple(trials.run(number, case, time_limit) for number, case in batch)
    return BatchResult(outcomes, time.perf_counter() - begin)


def _trials_of(key: str, kit: bytes | None) -> Trials | None:
    """Return the loaded kit, or None where it was not sent yet."""
    known = _loaded.trials
    if key not in known:
        if kit is None:
            return None
        known[key] = Trials(pickle.loads(zlib.decompress(kit)))
        while len(known) > KITS:
            known.popitem(last=False)
    return known[key]
