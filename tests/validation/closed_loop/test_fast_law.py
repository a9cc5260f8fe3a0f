"""`validate(fast=True)` computes what the C computes, and says that it was not the C."""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.validation import ReportOptions
from mbcasadi.validation.closed_loop import compile_controller, fast_law

MODEL = mb.models.path("four_bar")
DURATION = 0.2


@pytest.fixture(scope="module")
def law():
    system = mb.read_mjcf(MODEL)
    return InverseDynamicsQP(system, [PostureTask(kp=100.0)], period=0.002, name="posture")


def run_of(law, *, fast, **options):
    start = 0.1 * np.ones(3)
    return mb.validate(law, MODEL, DURATION, v0=start, fast=fast, **options).runs[0]


def test_the_function_of_a_law_moves_the_plant_as_its_c_does(law):
    slow, fast = run_of(law, fast=False), run_of(law, fast=True)
    assert np.ptp(slow.recording.q) > 1e-3
    assert np.allclose(fast.recording.q, slow.recording.q, rtol=0, atol=1e-9)
    assert np.array_equal(fast.recording.status, slow.recording.status)


def test_the_head_of_a_fast_report_says_that_the_c_did_not_run(law):
    slow, fast = run_of(law, fast=False), run_of(law, fast=True, report=ReportOptions(name="mine"))
    assert fast.name == "mine (fast: the law's Python Function, not its C)"
    assert fast.settings["what ran"] == "the law's Python Function, not its C"
    assert fast.times is None
    assert "fast" not in slow.name
    assert slow.times is not None


def test_long_runs_take_c_that_is_compiled_in_short_time(law):
    quick = fast_law(law, 10**6)
    assert quick.kind == "the generated C at -O1, not as shipped"
    sizes = [law.controller.function.numel_in(name) for name in quick.function.name_in()]
    inputs = [np.full(size, 0.1) for size in sizes]
    for own, short in zip(law.controller.function(*inputs), quick.function(*inputs), strict=True):
        assert np.allclose(np.array(own), np.array(short), rtol=0, atol=1e-9)


def test_what_runs_already_stays(law):
    with compile_controller(law) as compiled:
        assert fast_law(compiled, 10) is compiled
