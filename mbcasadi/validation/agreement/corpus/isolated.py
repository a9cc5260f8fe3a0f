"""Tasks in processes of their own, so that one that crashes or hangs ends alone.

Each process does one task after the other. What a task writes to the console is kept in a file, and
its last line is the reason where the process dies.
"""

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from mbcasadi.validation.main_module import ignore_interrupts, main_not_imported

R = TypeVar("R")
STDOUT, STDERR = 1, 2
STARTING = "start"  # stage before the first one of a task
LONGEST_REASON = 300  # characters


@dataclass(frozen=True)
class BrokenOff:
    """What is known of a task without a result.

    Attributes:
        stage: that it was in.
        timed_out: it exceeded its time; else its process died.
        reason: why, in words.
        seconds: that it took.
    """

    stage: str
    timed_out: bool
    reason: str
    seconds: float


def run_isolated(
    task: Callable[..., R], arguments: Sequence[tuple[Any, ...]], jobs: int, timeout: float
) -> Iterator[tuple[int, "R | BrokenOff"]]:
    """Run a task with each of the arguments, and yield the results as they come.

    Args:
        task: importable; takes one of the arguments, and a function that it calls with the name of
            each stage as it begins. Its result is pickled.
        arguments: of each task.
        jobs: number of processes.
        timeout: s, of each task, from its first stage on.

    Yields:
        Place of the arguments, and the result.
    """
    jobs = max(1, min(jobs, len(arguments)))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as threads:
        workers = [_Worker(task, Path(folder) / f"{i}.log", timeout) for i in range(jobs)]
        idle: SimpleQueue[_Worker[R]] = SimpleQueue()
        for worker in workers:
            idle.put(worker)

        def run(each: tuple[Any, ...]) -> R | BrokenOff:
            worker = idle.get()
            try:
                return worker.run(each)
            finally:
                idle.put(worker)

        places = {threads.submit(run, each): place for place, each in enumerate(arguments)}
        try:
            for future in as_completed(places):
                yield places[future], future.result()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.end()


class _Worker(Generic[R]):
    """One process, which is replaced where it died or had to be ended."""

    def __init__(self, task: Callable[..., R], log: Path, timeout: float) -> None:
        self._task, self._log, self._timeout = task, log, timeout
        self._process: BaseProcess | None = None

    def _start(self) -> BaseProcess:
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        process = context.Process(target=_serve, args=(other, self._task, self._log), daemon=True)
        with main_not_imported():
            process.start()
        other.close()  # so that the death of the process is the end of the file here
        return process

    def run(self, arguments: tuple[Any, ...]) -> R | BrokenOff:
        """Return the result of a task, by a new process where there is none."""
        self._process = self._process or self._start()
        stage, began, timed_out = STARTING, None, False
        try:
            self._connection.send(arguments)
            while began is None or self._connection.poll(began + self._timeout - time.monotonic()):
                kind, value = self._connection.recv()
                if kind == "result":
                    result: R = value
                    return result
                stage, began = value, began or time.monotonic()
            timed_out, reason = True, f"not finished after {self._timeout:g} s"
        except (EOFError, ConnectionError):
            self._process.join()
            reason = self._death(self._process.exitcode or 0)
        self.end()
        seconds = time.monotonic() - began if began else 0.0
        return BrokenOff(stage, timed_out, reason, seconds)

    def _death(self, code: int) -> str:
        """Return how the process died, with the last line that it wrote."""
        how = f"the process {f'died of signal {-code}' if code < 0 else f'ended with {code}'}"
        written = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return f"{how}: {written[-1][:LONGEST_REASON]}" if written else how

    def end(self) -> None:
        """End the process, whatever it does."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.join()
            with suppress(OSError):
                self._connection.close()


def _serve(connection: "Connection[Any, Any]", task: Callable[..., Any], log: Path) -> None:
    """Do tasks until there are none; an error that nobody expects ends the process."""
    ignore_interrupts()
    file = os.open(log, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    for stream in (STDOUT, STDERR):
        os.dup2(file, stream)
    while True:
        arguments = connection.recv()
        os.ftruncate(file, 0)
        connection.send(
            ("result", task(*arguments, lambda stage: connection.send(("stage", stage))))
        )
