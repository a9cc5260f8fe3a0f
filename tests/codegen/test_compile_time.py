"""The time that a compilation will take is that of the last one, line by line."""

import pytest

from mbcasadi.codegen.compile_time import FIRST_RATES, compile_seconds, remember_rate

COMMAND = ("cc", "-std=c99", "-O3")


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MBCASADI_CACHE", str(tmp_path))


def test_the_rate_of_the_last_long_compilation_holds():
    assert compile_seconds(1000, COMMAND) == pytest.approx(1000 * FIRST_RATES["-O3"])
    remember_rate(2000, COMMAND, 0.2)  # too short to tell
    assert compile_seconds(1000, COMMAND) == pytest.approx(1000 * FIRST_RATES["-O3"])
    remember_rate(2000, COMMAND, 8.0)
    assert compile_seconds(500, COMMAND) == pytest.approx(2.0)
    assert compile_seconds(500, (*COMMAND[:2], "-O1")) == pytest.approx(500 * FIRST_RATES["-O1"])
