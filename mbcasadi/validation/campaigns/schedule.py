"""The cases of a campaign, handed batch by batch to processes of this machine or an executor."""

import multiprocessing
import sys
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

from mbcasadi.errors import ProblemError
from mbcasadi.extras import optional_module
from mbcasadi.platforms import platform_of
from mbcasadi.validation.campaigns.outcome import Outcome
from mbcasadi.validation.campaigns.trials import BatchResult, Numbered, run_batch
from mbcasadi.validation.main_module import ignore_interrupts, main_not_imported

BROKEN = (
    "the executor is broken: one of its processes died; give a new one, or jobs= in its place, "
    "whose processes are started again. With store= the outcomes so far are kept"
)
GIVEN_IN_FLIGHT = 64  # batches that are submitted to a given executor at once


class Workers(ABC):
    """An executor, and what to do when one of its processes dies.

    Attributes:
        in_flight: batches that are submitted at once.
        deaths_of_error: worker deaths that one error of a lonely batch stands for.
        names_the_batch: an error means that this batch ran where workers died; else only that it
            was in flight.
    """

    in_flight: int
    deaths_of_error: int
    names_the_batch: bool

    @property
    @abstractmethod
    def death_errors(self) -> tuple[type[BaseException], ...]:
        """What a future raises where its worker died."""

    @abstractmethod
    def submit(self, *batch: Any) -> "Future[BatchResult]":
        """Submit the arguments of `run_batch`.

        Raises:
            BrokenExecutor: a worker has died.
        """

    @abstractmethod
    def rebuild(self) -> None:
        """Make the executor usable after a death."""

    @abstractmethod
    def close(self) -> None:
        """End what was started here; batches that have not begun are not run."""


@final
class Processes(Workers):
    """A pool of processes on this machine; it is built anew where one of them dies."""

    deaths_of_error = 1
    names_the_batch = False
    death_errors = (BrokenExecutor,)

    def __init__(self, jobs: int) -> None:
        self.in_flight = 2 * jobs
        self._jobs = jobs
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        jobs = min(self._jobs, platform_of().most_processes or self._jobs)
        return ProcessPoolExecutor(jobs, context, initializer=ignore_interrupts)

    def submit(self, *batch: Any) -> "Future[BatchResult]":
        """Submit the arguments of `run_batch`; a process that is missing is started."""
        with main_not_imported():
            return self._pool.submit(run_batch, *batch)

    def rebuild(self) -> None:
        """Replace the pool."""
        self.close()
        self._pool = self._new_pool()

    def close(self) -> None:
        """Wait for the batches that run, and end the processes."""
        self._pool.shutdown(wait=True, cancel_futures=True)


@final
class GivenExecutor(Workers):
    """An executor of the caller, who closes it; of a Dask cluster, for example."""

    deaths_of_error = sys.maxsize  # a cluster has tried again itself
    names_the_batch = True

    def __init__(self, executor: Executor) -> None:
        self.in_flight = GIVEN_IN_FLIGHT
        self._executor = executor

    @property
    def death_errors(self) -> tuple[type[BaseException], ...]:
        """Those of Dask, where it is in use."""
        scheduler: Any = sys.modules.get("distributed.scheduler")
        return () if scheduler is None else (scheduler.KilledWorker,)

    def submit(self, *batch: Any) -> "Future[BatchResult]":
        """Submit the arguments of `run_batch`.

        Raises:
            ProblemError: the executor is broken.
        """
        try:
            return self._executor.submit(run_batch, *batch)
        except BrokenExecutor as error:
            raise ProblemError(BROKEN) from error

    def rebuild(self) -> None:
        """Do nothing: a cluster starts workers again itself."""

    def close(self) -> None:
        """Do nothing: the executor is the caller's."""


@contextmanager
def dask_executor(address: str) -> Iterator[Executor]:
    """Connect to the scheduler of a Dask cluster, and yield its executor.

    Raises:
        MissingExtraError: Dask is not installed.
        ProblemError: no scheduler answers at this address.
    """
    distributed = optional_module("distributed", "cluster", "a Dask cluster")
    try:
        client = distributed.Client(address, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ProblemError(
            f"no Dask scheduler at {address!r}: {error}; expected an address such as "
            "'tcp://host:8786'"
        ) from error
    with client:
        yield client.get_executor()


BATCH_SECONDS = 2.0  # of work in a batch: milliseconds of overhead count little then
LARGEST_BATCH = 200
MOST_DEATHS = 3  # of workers, by one case
MOST_LOST = 3  # cases in a row that are given up
SHARE_OF_REST = 8  # the last batches are small, so that no worker waits long for another


@dataclass(frozen=True)
class Shipment:
    """What is sent with each batch.

    Attributes:
        key: of the kit.
        kit: its bytes, sent to workers that lack it.
        time_limit: s, of each case.
        give_up: number and reason → the outcome of a case that was given up.
    """

    key: str
    kit: bytes
    time_limit: float | None
    give_up: Callable[[Numbered, str], Outcome]


@dataclass
class _Batch:
    cases: tuple[Numbered, ...]
    with_kit: bool = False


class Schedule:
    """Hands cases to workers and collects their outcomes.

    A worker that dies takes the batches of its pool with it. Their cases are then run one by one
    with nothing beside them, so that a further death has one cause; a case that has
    killed `MOST_DEATHS` workers is given up.
    """

    def __init__(self, workers: Workers, shipment: Shipment, seconds: float | None) -> None:
        """Start with an estimate of the time of one case, s."""
        self._workers, self._shipment = workers, shipment
        self._seconds = seconds
        self._pending: deque[Numbered] = deque()
        self._suspects: deque[Numbered] = deque()
        self._again: deque[_Batch] = deque()  # for a worker that lacked the kit
        self._in_flight: dict[Future[BatchResult], _Batch] = {}
        self._deaths: Counter[int] = Counter()
        self._attempts = self._lost = 0

    def run(self, cases: Sequence[Numbered]) -> Iterator[tuple[Outcome, ...]]:
        """Yield the outcomes of each batch as it is done."""
        self._pending.extend(cases)
        while self._pending or self._suspects or self._again or self._in_flight:
            self._fill()
            done, _ = wait(self._in_flight, return_when=FIRST_COMPLETED)
            for future in done:
                outcomes = self._collect(future)
                if outcomes:
                    yield outcomes

    def _fill(self) -> None:
        """Submit batches; a suspect runs alone, when all others are done."""
        if self._suspects:
            if not self._in_flight:
                self._submit(_Batch((self._suspects.popleft(),), with_kit=True))
            return
        while len(self._in_flight) < self._workers.in_flight and (self._again or self._pending):
            if not self._submit(self._again.popleft() if self._again else self._next_batch()):
                return

    def _next_batch(self) -> _Batch:
        count = 1
        if self._seconds is not None:
            count = round(BATCH_SECONDS / max(self._seconds, BATCH_SECONDS / LARGEST_BATCH))
            count = min(count, len(self._pending) // SHARE_OF_REST)
        count = max(1, min(count, len(self._pending)))
        return _Batch(tuple(self._pending.popleft() for _ in range(count)))

    def _submit(self, batch: _Batch) -> bool:
        """Submit a batch; False where a worker has died meanwhile."""
        sent, self._attempts = self._shipment, self._attempts + 1
        kit = sent.kit if batch.with_kit else None
        try:
            future = self._workers.submit(
                sent.key, kit, batch.cases, sent.time_limit, self._attempts
            )
        except BrokenExecutor:
            self._again.appendleft(batch)
            if not self._in_flight:
                self._workers.rebuild()
            return False
        self._in_flight[future] = batch
        return True

    def _collect(self, future: "Future[BatchResult]") -> tuple[Outcome, ...]:
        """Return the outcomes of a batch, none where it has to be submitted again."""
        alone = len(self._in_flight) == 1
        batch = self._in_flight.pop(future)
        try:
            result = future.result()
        except self._workers.death_errors:
            return self._after_death(batch, alone and len(batch.cases) == 1)
        except BrokenExecutor as error:
            raise ProblemError(BROKEN) from error
        if result.lacks_kit:
            batch.with_kit = True
            self._again.append(batch)
            return ()
        self._seconds, self._lost = result.seconds / len(result.outcomes), 0
        return result.outcomes

    def _after_death(self, batch: _Batch, was_alone: bool) -> tuple[Outcome, ...]:
        """Put the cases of a batch back; give one up that has killed too many workers."""
        if not self._in_flight:
            self._workers.rebuild()
        if len(batch.cases) > 1 and self._workers.names_the_batch:
            self._again.extend(_Batch((case,)) for case in batch.cases)
            return ()
        if not was_alone:
            self._suspects.extend(batch.cases)
            return ()
        (numbered,) = batch.cases
        self._deaths[numbered[0]] += min(self._workers.deaths_of_error, MOST_DEATHS)
        if self._deaths[numbered[0]] < MOST_DEATHS:
            self._suspects.appendleft(numbered)
            return ()
        self._lost += 1
        if self._lost == MOST_LOST:
            raise ProblemError(
                f"{MOST_LOST} cases in a row, the last with the number {numbered[0]}, killed all "
                "workers that ran them alone; run one of them with jobs=1 to see why (often memory)"
            )
        reason = f"given up: {MOST_DEATHS} workers died while they ran this case alone"
        return (self._shipment.give_up(numbered, reason),)
