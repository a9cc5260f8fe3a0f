"""Progress of a long computation: what is being done, and which share is done."""

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Called with what is being done and a share from 0 to 1."""


class ProgressReporter:
    """Calls a `Progress` function, if there is one, and remembers the last share."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._share = 0.0

    def __call__(self, text: str, share: float) -> None:
        """Report what is being done, and which share is done."""
        self._share = share
        if self._progress is not None:
            self._progress(text, share)

    def note(self, text: str) -> None:
        """Report what is being done at the share that was reported last."""
        self(text, self._share)
