"""Solvers in Python are kept by size: a test that changes one forgets them before and after."""

from collections.abc import Iterator
from contextlib import contextmanager

from mbcasadi.qp import dual_active_set, solver


def _forget() -> None:
    solver._problem_fun.cache_clear()
    dual_active_set.dual_active_set_fun.cache_clear()


@contextmanager
def new_solvers() -> Iterator[None]:
    """Build each solver anew inside this context."""
    _forget()
    try:
        yield
    finally:
        _forget()
