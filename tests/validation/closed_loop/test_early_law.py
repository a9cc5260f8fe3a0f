"""A run by the Function while the C is compiled: the same anywhere, and the C has to agree."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.codegen.background_build import can_build_in_background
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.errors import CompilerError
from mbcasadi.validation import Criteria, ReportOptions
from mbcasadi.validation.closed_loop import early_law
from mbcasadi.validation.closed_loop.early_start import MOST_TICKS, BackgroundBuild, EarlyLaw

pytestmark = pytest.mark.skipif(
    not can_build_in_background(), reason="processes cannot be copied here"
)
MODEL = mb.models.path("four_bar")
START = 0.1 * np.ones(3)


@pytest.fixture(scope="module")
def law():
    system = mb.read_mjcf(MODEL)
    return InverseDynamicsQP(system, [PostureTask(kp=100.0)], period=0.002, name="early_posture")


@pytest.fixture(scope="module")
def reports(law):
    """The report at its verdict, and at its end."""
    shown = []
    options = ReportOptions(early=True, judged=shown.append)
    last = mb.validate(law, MODEL, 0.2, v0=START, report=options)
    return (*shown, last)


def test_the_verdict_comes_first_and_the_c_then_computes_the_same_ticks(reports):
    early, whole = (report.runs[0] for report in reports)
    assert early.times is None
    assert "same_in_c" not in {v.metric for v in early.verdicts}
    assert whole.verdicts[-1].metric == "same_in_c"
    assert whole.verdicts[-1].passed
    assert whole.times is not None
    assert whole.metric("time.median") > 0
    assert "gives the Function's controls at the inputs of all 100 ticks" in whole.notes[-1]
    assert whole.settings["operations in a tick"] > 0
    assert "Python Function" in whole.settings["what ran"]


def test_the_motion_is_that_of_the_function_whatever_the_cache_has(reports, law):
    fast = mb.validate(law, MODEL, 0.2, v0=START, fast=True).runs[0].recording
    assert np.ptp(fast.q) > 1e-3
    assert np.array_equal(reports[-1].runs[0].recording.q, fast.q)


def test_a_run_fails_where_its_c_computes_something_else(law, monkeypatch):
    spec = mujoco.MjSpec.from_file(str(MODEL))
    spec.option.gravity[2] *= 1.01
    heavier = replace(law, system=mb.read_mjcf(spec.to_xml())).controller
    monkeypatch.setattr(
        "mbcasadi.validation.closed_loop.early_start.BackgroundBuild",
        lambda _controller, folder: BackgroundBuild(heavier, folder),
    )
    run = mb.validate(law, MODEL, 0.1, v0=START, report=ReportOptions(early=True)).runs[0]
    assert [v.metric for v in run.verdicts if not v.passed] == ["same_in_c"]
    assert "differ from the Function's" in run.notes[-1]


def test_other_numbers_and_safe_outputs_of_the_c_are_counted(law):
    with early_law(law, 10) as early:
        caller = early.start(None)
        zeros = {name: np.zeros(caller.size(name)) for name in caller.names_in}
        caller(zeros)
        compiled, kept = early.compiled(), caller.calls[0][1]
        assert early.difference(compiled) == pytest.approx((0.0, 0, 0), abs=1e-9)
        right = dict(kept)
        for wrong in (right["u"] + 1e-3, np.full_like(right["u"], np.nan)):
            kept["u"] = wrong
            assert early.difference(compiled).share > 1e-4
        safe = {float(status) for status in law.controller.safe_statuses}
        for status in {0.0, 1.0, *safe}:
            kept["status"] = np.array([status])
            other = status != right["status"][0]
            unsafe = other and right["status"][0] in safe and status not in safe
            assert early.difference(compiled)[1:] == (other, unsafe)


def test_what_runs_already_is_long_or_judged_by_times_waits_for_the_c(law, monkeypatch):
    with early_law(law, 10) as early:
        assert isinstance(early, EarlyLaw)
        with early_law(early, 10) as again:
            assert again is early
    with early_law(law, MOST_TICKS + 1) as late:
        assert late is law
    monkeypatch.setattr("mbcasadi.validation.closed_loop.early_start.MOST_OPERATIONS", 10.0)
    with early_law(law, 10) as slow:
        assert slow is law.controller
    monkeypatch.undo()
    timed = mb.validate(
        law, MODEL, 0.1, v0=START, criteria=Criteria({"time.p99": 1.0}),
        report=ReportOptions(early=True),
    )  # fmt: skip
    assert timed.passed
    assert timed.runs[0].settings["what ran"] == "the generated C"


def test_a_missing_compiler_is_said_before_the_run(law, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(CompilerError, match="no-such-compiler"), early_law(law, 10):
        pass


def test_the_process_ends_with_a_run_that_fails(law, monkeypatch):
    builds = []

    def watched(controller, folder):
        builds.append((BackgroundBuild(controller, folder), folder))
        return builds[-1][0]

    monkeypatch.setattr("mbcasadi.validation.closed_loop.early_start.BackgroundBuild", watched)

    def stopped(_model, _data):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mb.validate(law, MODEL, 0.1, report=ReportOptions(early=True, observer=stopped))
    ((build, folder),) = builds
    assert build.is_done
    assert not folder.exists()
