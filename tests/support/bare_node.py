"""A node of a cluster that has no compiler."""

from concurrent.futures import Executor, Future

import pytest


def remove_compiler(patch: pytest.MonkeyPatch) -> None:
    """Leave the environment no compiler."""
    patch.setenv("PATH", "")
    patch.delenv("CC", raising=False)


class BareNode(Executor):
    """Calls functions at once, in this process, without a compiler."""

    calls = 0

    def submit(self, function, /, *args, **kwargs):
        future: Future = Future()
        with pytest.MonkeyPatch.context() as patch:
            remove_compiler(patch)
            future.set_result(function(*args, **kwargs))
        self.calls += 1
        return future
