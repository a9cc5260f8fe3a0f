"""Solvers in C of the benchmarks are compiled without optimisation: their times are no subject."""

import pytest

from mbcasadi.benchmarks import qp_native


@pytest.fixture(autouse=True)
def quick_solvers(monkeypatch):
    monkeypatch.setattr(qp_native, "FLAGS", ("-std=gnu99", "-O0"))
