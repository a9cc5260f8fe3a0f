"""A lock between the processes of one machine, released by the system where its owner dies."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RETRY = 0.05  # s


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which is made where it does not exist."""
    with path.open("a+b") as file:
        _acquire(file.fileno())
        try:
            yield
        finally:
            _release(file.fileno())


if sys.platform == "win32":
    import msvcrt

    def _acquire(descriptor: int) -> None:
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            except OSError:
                time.sleep(RETRY)
            else:
                return

    def _release(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _acquire(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def _release(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
