"""Where the batches of a campaign run: in processes of this machine, or in a given executor."""

import multiprocessing
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import Any, final

from mbcasadi.errors import MissingExtraError, ProblemError
from mbcasadi.platforms import platform_of
from mbcasadi.validation.campaigns.worker import BatchResult, run_batch
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
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise MissingExtraError(
            "a Dask cluster needs dask.distributed, which is not installed: "
            "pip install 'mbcasadi[cluster]'"
        ) from error
    try:
        client = distributed.Client(address, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ProblemError(
            f"no Dask scheduler at {address!r}: {error}; expected an address such as "
            "'tcp://host:8786'"
        ) from error
    with client:
        yield client.get_executor()
