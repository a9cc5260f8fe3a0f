"""Calls that are refused in words."""

from collections.abc import Callable

import pytest


def refused(error: type[Exception], words: str, call: Callable[[], object]) -> None:
    """Assert that a call raises this error; `words` is a pattern of its message."""
    with pytest.raises(error, match=words):
        call()
