"""Tasks in processes of their own, so that one that crashes or hangs ends alone.

Each process does one task after the other. What a task writes to the console is kept in a file, and
its last line is the reason where the process dies.
"""

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

from mbcasadi.validation.main_module import ignore_interrupts, main_not_imported

R = TypeVar("R")
Enter: TypeAlias = Callable[[str], None]
STDOUT, STDERR = 1, 2
STARTING = "start"  # stage before the first one of a task
LONGEST_REASON = 300  # characters
GRACE = 5.0
"""s, for a process to end by itself once it has no more tasks."""


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
    pending = list(enumerate(arguments))[::-1]
    with tempfile.TemporaryDirectory() as folder:
        logs = [Path(folder) / f"{i}.log" for i in range(min(jobs, len(pending)))]
        workers: list[_Worker[R]] = [_Worker(task, log) for log in logs]
        try:
            for worker in workers:
                worker.give(*pending.pop())
            while busy := [worker for worker in workers if worker.place is not None]:
                wait(
                    [worker.connection for worker in busy], max(0.0, _next_deadline(busy, timeout))
                )
                for worker in busy:
                    for outcome in worker.outcomes(timeout):
                        yield outcome
                        if pending:
                            worker.give(*pending.pop())
        finally:
            for worker in workers:
                worker.end()


class _Worker(Generic[R]):
    """One process, which is replaced where it died or had to be ended.

    Attributes:
        connection: to it.
        place: of the arguments that it works on, or None.
        began: time of the first stage of the task, or None before it.
    """

    def __init__(self, task: Callable[..., R], log: Path) -> None:
        self._task, self._log = task, log
        self.place: int | None = None
        self.began: float | None = None
        self._stage = STARTING
        self._process: BaseProcess | None = None

    def _start(self) -> BaseProcess:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        process = context.Process(target=_serve, args=(other, self._task, self._log), daemon=True)
        with main_not_imported():
            process.start()
        other.close()  # so that the death of the process is the end of the file here
        return process

    def give(self, place: int, arguments: tuple[Any, ...]) -> None:
        """Send the arguments of a task, to a new process where there is none."""
        if self._process is None:
            self._process = self._start()
        self.place, self.began, self._stage = place, None, STARTING
        self.connection.send(arguments)

    def outcomes(self, timeout: float) -> Iterator[tuple[int, "R | BrokenOff"]]:
        """Yield the outcome of the task, if it has come, and be ready for another one."""
        result: list[R | BrokenOff] = []
        try:
            while not result and self.connection.poll():
                kind, value = self.connection.recv()
                if kind == "stage":
                    self._stage = value
                    self.began = self.began or time.monotonic()
                else:
                    result.append(value)
        except (EOFError, ConnectionError):
            code = self._finish()
            result.append(self._broken(timed_out=False, reason=self._death(code)))
        if not result and self.began and time.monotonic() > self.began + timeout:
            self._finish(kill=True)
            result.append(self._broken(timed_out=True, reason=f"not finished after {timeout:g} s"))
        for value in result:
            place, self.place = self.place, None
            assert place is not None  # only busy workers are asked
            yield place, value

    def _broken(self, *, timed_out: bool, reason: str) -> BrokenOff:
        seconds = time.monotonic() - self.began if self.began else 0.0
        return BrokenOff(self._stage, timed_out, reason, seconds)

    def _death(self, code: int) -> str:
        """Return how the process died, with the last line that it wrote."""
        how = (
            f"the process died of signal {-code}" if code < 0 else f"the process ended with {code}"
        )
        written = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return f"{how}: {written[-1][:LONGEST_REASON]}" if written else how

    def end(self) -> None:
        """End the process: at once where it has a task, else by telling it."""
        if self._process is None:
            return
        if self.place is None:
            with suppress(ConnectionError):  # it has died
                self.connection.send(None)
            self._process.join(GRACE)
        self._finish(kill=self._process.is_alive())

    def _finish(self, *, kill: bool = False) -> int:
        """Wait for the end of the process, and return its exit status."""
        process, self._process = self._process, None
        assert process is not None  # it was started
        if kill:
            process.kill()
        process.join()
        self.connection.close()
        return process.exitcode or 0


def _next_deadline(busy: Sequence[_Worker[R]], timeout: float) -> float:
    """Return s until the first task has exceeded its time; at most `timeout`."""
    now = time.monotonic()
    return min(timeout if w.began is None else w.began + timeout - now for w in busy)


def _serve(connection: "Connection[Any, Any]", task: Callable[..., Any], log: Path) -> None:
    """Do tasks until there are none; an error that nobody expects ends the process."""
    ignore_interrupts()
    file = os.open(log, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    for stream in (STDOUT, STDERR):
        os.dup2(file, stream)
    while (arguments := connection.recv()) is not None:
        os.ftruncate(file, 0)
        connection.send(
            ("result", task(*arguments, lambda stage: connection.send(("stage", stage))))
        )
