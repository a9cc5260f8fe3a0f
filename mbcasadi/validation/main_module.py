"""Processes that are started by "spawn", and the caller's main module."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

MAIN_NAMES = ("__spec__", "__file__")

_main_lock = threading.Lock()


@contextmanager
def main_not_imported() -> Iterator[None]:
    """Keep processes that are started here from importing the caller's main module.

    They need nothing of it; a script without `if __name__ == "__main__":` would start its work
    again in each of them.
    """
    main = sys.modules["__main__"]
    with _main_lock:
        kept = {name: getattr(main, name) for name in MAIN_NAMES if name in vars(main)}
        try:
            for name in kept:
                setattr(main, name, None)
            yield
        finally:
            for name, value in kept.items():
                setattr(main, name, value)


def ignore_interrupts() -> None:
    """Leave Ctrl-C to the parent process, which ends its children."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
