"""Each public callable answers its valid call, and refuses wrong arguments in our own words.

One argument at a time is replaced by each of the wrong values. Accepted is an answer, or one of
the exceptions of `mbcasadi.errors`; an exception of Python, NumPy, CasADi or MuJoCo is a fault,
as is a call that does not come back. What a valid call returns has a `repr` of one short line.
"""

import json
import shutil
from unittest.mock import MagicMock

import numpy as np
import pytest

from fuzz.driver import answer, fault_of, faults_of
from fuzz.public_names import public_callables
from fuzz.table import CALLS_OF, arguments_of, calls_of
from mbcasadi.errors import ShapeError
from mbcasadi.short_text import LONGEST

CALLABLES = public_callables()


TOOLS = {
    "codegen.CProject.cortex_m7": "arm-none-eabi-gcc",
    "codegen.CProject.wasm": "clang",
    "codegen.CProject.web_page": "clang",
}
"""Compilers of other targets, without which a call has no answer."""


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Let calls that write do it in a folder of the test; no picture, window or process is made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mbcasadi.plant.draw._draw_in_process", drawn)
    monkeypatch.setattr("mbcasadi.plant.viewer._open", MagicMock())
    monkeypatch.setattr("mbcasadi.plant.browser.open_server", MagicMock())
    monkeypatch.setattr("mbcasadi.plant.browser.BrowserPlayer", MagicMock())
    monkeypatch.setattr("mbcasadi.validation.agreement.corpus.corpus.run_isolated", run_here)


def drawn(folder, *_):
    """Write what the process of the renderer writes."""
    np.save(folder / "frames.npy", np.zeros((1, 8, 8, 3), dtype=np.uint8))
    video = json.loads((folder / "options.json").read_text())["video"]
    (folder / (video or "none")).touch()
    return ""


def run_here(task, arguments, _jobs, _timeout):
    """Do what the processes of a corpus do."""
    return enumerate([task(*each, lambda _stage: None) for each in arguments])


def shows_itself(value: object) -> None:
    """Assert that an object of ours has a `repr` of one short line, and a table if it has any."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        for each in value[:2]:
            shows_itself(each)
    elif type(value).__module__.startswith("mbcasadi"):
        assert len(repr(value)) <= LONGEST
        assert "\n" not in repr(value)
        if hasattr(value, "_repr_html_"):
            assert value._repr_html_().startswith("<table>")


@pytest.mark.parametrize("path", sorted(CALLABLES))
@pytest.mark.every(10)
def test_a_wrong_argument_gets_an_answer_or_an_exception_of_ours(path):
    if (tool := TOOLS.get(path)) and shutil.which(tool) is None:
        pytest.skip(f"{tool} is not there: see CONTRIBUTING.md")
    arguments = arguments_of(path)
    shows_itself(answer(CALLABLES[path], arguments))
    faults = faults_of(CALLABLES[path], arguments)
    assert not faults, "\n".join(f"{path}({wrong}): {fault}" for wrong, fault in faults.items())


def test_the_table_has_a_valid_call_of_each_public_callable_and_of_nothing_else():
    listed = [path for package in CALLS_OF for path in calls_of(package)]
    assert sorted(set(listed)) == sorted(CALLABLES)


def test_the_driver_tells_faults_from_answers_and_from_exceptions_of_ours():
    def own(x):
        raise ShapeError("x is wrong")

    assert fault_of(abs, {}).startswith("TypeError")
    assert fault_of(np.linalg.inv, {"a": np.zeros((2, 2))}).startswith("LinAlgError")
    assert fault_of(own, {"x": 1}) == ""
    assert fault_of(np.zeros, {"shape": 1}) == ""
