"""Progress of long work, and the log: what is being done, which share is done, how long it took.

What takes long calls the `progress` function of its caller. Without one, progress goes to the log:
the logger `mbcasadi.progress` gets a line for each step and each 5 % of it, at the level INFO. The
other loggers below `mbcasadi`, one for each module, get INFO of what took long and DEBUG of
details. The package writes the log nowhere: `logging.basicConfig(level=logging.INFO)` shows it.
"""

import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import final

Progress = Callable[[str, float], None]
"""Called with what is being done and a share from 0 to 1."""

SHARES = 20
"""Lines of the log at most while one step goes on: one for each 5 %."""

LONG = 1.0
"""s; a step that takes longer is worth a line at the level INFO."""

ROUNDING = 1e-9
"""Of a share, in parts of 5 %."""

COUNTED = re.compile(r"\d+ of \d+\b")

_log = logging.getLogger(__name__)


@final
class LoggedProgress:
    """A `Progress` function that writes to the log.

    A line is written where the text changes, and where another 5 % are done; of texts that count,
    "3 of 7: ...", only for another 5 %.
    """

    def __init__(self) -> None:
        self._step, self._part = "", -1

    def __call__(self, text: str, share: float) -> None:
        """Report what is being done, and which share is done."""
        step = "" if COUNTED.match(text) else text
        part = int(SHARES * share + ROUNDING)
        if (step, part) == (self._step, self._part):
            return
        self._step, self._part = step, part
        _log.info("%3.0f %%  %s", 100 * share, text)


@final
class ProgressReporter:
    """Calls a `Progress` function, or that of the log, and remembers the last share."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = LoggedProgress() if progress is None else progress
        self._share = 0.0

    def __call__(self, text: str, share: float) -> None:
        """Report what is being done, and which share is done."""
        self._share = share
        self._progress(text, share)

    def note(self, text: str) -> None:
        """Report what is being done at the share that was reported last."""
        self(text, self._share)


def notes_to(progress: Callable[[str], None] | None) -> Callable[[str], None]:
    """Return a function that gets one line for each step: the caller's, or that of the log."""
    return progress or (lambda text: _log.info("%s", text))


@contextmanager
def logged_time(logger: logging.Logger, text: str, *values: object) -> Iterator[None]:
    """Log how long something took: INFO where that is long, else DEBUG.

    Args:
        logger: of the module.
        text: what is done, with a `%s` for each value.
        values: formatted only where the line is written.
    """
    begin = time.perf_counter()
    yield
    seconds = time.perf_counter() - begin
    level = logging.INFO if seconds >= LONG else logging.DEBUG
    logger.log(level, f"{text}: %.2f s", *values, seconds)
