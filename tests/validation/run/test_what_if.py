"""Cost of delay and model error: the same scenario, run without them one by one."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from support.validation_problems import SLIDER, planning_slider

from mbcasadi.description import Signal
from mbcasadi.errors import ProblemError
from mbcasadi.validation import Criteria, ReportOptions, compile_controller, validate

DURATION = 0.8
HEAVY = {"mass": 0.5}


def tracked_slider(delay=0):
    q = ca.SX.sym("q")
    monitor = ca.Function("monitor", [q], [0 * q, -q], ["q"], ["target", "error"])
    rows = tuple(Signal(name, ("place",), ("m",)) for name in ("target", "error"))
    return replace(planning_slider(delay=delay), monitor=monitor, monitors=rows)


def slider_run(law, **options):
    return validate(
        law, SLIDER, DURATION, q0=[0.3], criteria=Criteria({}, settle=0.05), **options
    ).runs[0]


@pytest.fixture(scope="module")
def runs():
    """One run with `what_if`, and each of its conditions as a run of its own."""
    both = {"delay": 3, "perturb": HEAVY}
    with compile_controller(tracked_slider()) as law:
        return {
            "all": slider_run(law, report=ReportOptions(what_if=True), **both),
            "nominal": slider_run(law),
            "delay only": slider_run(law, delay=3),
            "model error only": slider_run(law, perturb=HEAVY),
            "both": slider_run(law, **both),
        }


def test_each_condition_is_the_run_without_the_others(runs):
    table = runs["all"].what_if
    assert [row.name for row in table.rows] == ["nominal", "delay only", "model error only", "both"]
    assert table.unit == "m"
    for row in table.rows:
        alone = runs[row.name]
        assert row.tracking == alone.metric("tracking.rms")
        assert row.effort == pytest.approx(np.sqrt(np.mean(alone.recording.u**2)))
        assert row.margin == alone.metric("limits.least")
        assert (row.safe_output, row.finished) == (0.0, True)
    assert len({row.tracking for row in table.rows}) == 4
    assert runs["both"].what_if is None


def test_the_costs_are_in_a_sentence_a_table_and_the_data(runs):
    table = runs["all"].what_if
    ratio = table.rows[-1].tracking / table.rows[0].tracking
    assert f"both: {ratio:.3g} times the tracking error" in table.sentence
    assert "accounts for a delay" not in table.sentence
    text = str(table)
    assert text.count("\n") == 4
    assert len({len(line) for line in text.splitlines()}) == 1
    data = runs["all"].to_dict()["what_if"]
    assert data["conditions"][3]["tracking"] == table.rows[-1].tracking


def test_a_law_that_accounts_for_the_delay_may_be_joined_by_one_that_does_not():
    with (
        compile_controller(tracked_slider(delay=2)) as law,
        compile_controller(tracked_slider()) as prompt,
    ):
        alone = slider_run(law, delay=2, report=ReportOptions(what_if=True)).what_if
        joined = slider_run(
            law, delay=2, report=ReportOptions(what_if=True, undelayed=prompt)
        ).what_if
        nominal = slider_run(prompt)
        errs = slider_run(law)
    assert [row.name for row in alone.rows] == ["nominal", "delay only"]
    assert "accounts for a delay, and is inaccurate without one" in alone.sentence
    assert "accounts for a delay" not in joined.sentence
    assert alone.rows[0].tracking == errs.metric("tracking.rms")
    assert joined.rows[0].tracking == nominal.metric("tracking.rms")
    assert joined.rows[0].tracking != alone.rows[0].tracking
    assert joined.rows[1] == alone.rows[1]


def test_a_condition_that_ends_early_is_named():
    wild = SLIDER.replace('ctrlrange="-10.0 10.0"', "")
    assert wild != SLIDER
    law = planning_slider(u_min=np.array([-np.inf]), u_max=np.array([np.inf]))
    q, v, z = ca.SX.sym("q"), ca.SX.sym("v"), ca.SX.sym("z", 0)
    # Pulls the slider to rest in two steps; with a delay it diverges.
    deadbeat = -q * 2.0 / 0.01**2 - v * 3.0 / 0.01
    stiff = ca.Function("stiff", [q, v, z], [deadbeat, z], ["q", "v", "z"], ["u", "z_next"])
    law = replace(law, function=stiff, prediction=None)
    run = validate(
        law, wild, 2.0, q0=[0.3], delay=3, criteria=Criteria({}), report=ReportOptions(what_if=True)
    ).runs[0]
    assert [row.finished for row in run.what_if.rows] == [True, False]
    assert run.what_if.sentence.endswith("Ended early: delay only.")
    assert "tracking was not measured" in run.what_if.sentence


def test_the_law_for_no_delay_is_refused_where_no_repetition_uses_it():
    with pytest.raises(ProblemError, match="give what_if=True too"):
        ReportOptions(undelayed=tracked_slider())


def test_there_must_be_something_to_leave_out():
    with pytest.raises(ProblemError, match="what_if compares a run with delay or perturb"):
        slider_run(tracked_slider(), report=ReportOptions(what_if=True))
