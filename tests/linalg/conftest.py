"""Scalar functions written out, and the same as loops."""

import pytest

from mbcasadi.linalg import symbols


@pytest.fixture(params=[None, 0], ids=["written out", "loops"])
def unroll_limit(request, monkeypatch):
    """Return from which size on operations are loops, its default or for all sizes."""
    if request.param is not None:
        monkeypatch.setattr(symbols, "UNROLL_LIMIT", request.param)
    return symbols.UNROLL_LIMIT
