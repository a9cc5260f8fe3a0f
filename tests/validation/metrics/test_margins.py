"""Margins to bounds, computed by hand; and the statuses that a law reported."""

import re
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from support.validation_problems import SLIDER, SLIDER_STEP, planning_slider, recording, signal

from mbcasadi.codegen import TickTimes
from mbcasadi.description import ReportedLimits, Signal
from mbcasadi.errors import ProblemError
from mbcasadi.validation import Criteria, Report, validate
from mbcasadi.validation.metrics.control_metrics import time_metrics
from mbcasadi.validation.metrics.margins import margin_metrics, margins
from mbcasadi.validation.metrics.status_metrics import longest_run, status_metrics, status_rows
from mbcasadi.validation.metrics.text import tick_phases
from mbcasadi.validation.report import findings

T = np.arange(1000) * 1e-3
FAILS = {10: 2, 11: 2, 12: 4, 30: 4}  # tick → status


def limited(soft=False, **more):
    """Bound the place from above, and the change of u."""
    names = ("q", "u", "u_last")
    q, u, u_last = (ca.SX.sym(name) for name in names)
    value = ca.Function("value", [q, u, u_last], [ca.vertcat(q, u - u_last)], names, ["value"])
    fields = {
        "value": value,
        "signal": Signal("value", ("wall", "du"), ("m", "N")),
        "lower": np.array([-np.inf, -2.0]),
        "upper": np.array([0.5, 2.0]),
        "soft": (soft, False),
    }
    return planning_slider(limits=ReportedLimits(**(fields | more)))


def slider_recording(place, u):
    fields = {"q": place[:, None], "u": u[:, None], "u_applied": u[:, None]}
    return recording(v=np.zeros((1000, 1)), **fields)


def test_margins_of_a_motion_that_is_known():
    place = 0.6 * np.sin(2 * np.pi * T)  # over the wall at 0.5 around a quarter of the second
    u = np.where(T < 0.1, 0.0, 3.0)
    u[500:600] = 10.0  # at the limit
    force, wall, change = margins(limited(), slider_recording(place, u))
    assert (force.name, force.unit, force.lower, force.upper) == ("u.push", "N", -10.0, 10.0)
    assert (force.least, force.when, force.near, force.beyond) == (0.0, 0.5, 0.1, 0.0)
    assert (wall.name, wall.unit, wall.soft) == ("wall", "m", False)
    assert wall.least == pytest.approx(-0.1)
    assert wall.when == pytest.approx(0.25)
    over = (place > 0.5).mean()
    assert 0.1 < over < 0.3
    assert wall.beyond == pytest.approx(over)
    assert wall.scale == pytest.approx(1.1)  # from -0.6 to the wall; nothing bounds it below
    assert wall.near == pytest.approx((place >= 0.5 - 0.01 * 1.1).mean())
    assert wall.share == pytest.approx(-0.1 / 1.1)
    # The first change is not known; 0 → 3 is one over its bound, 3 → 10 five, 10 → 3 as well.
    assert change.least == pytest.approx(2.0 - 7.0)
    assert change.when == pytest.approx(0.5)
    assert change.beyond == pytest.approx(3 / 999)


def test_what_acted_counts_for_limits_and_what_was_computed_for_controls():
    u = np.zeros((1000, 1))
    u[200:] = 1.5
    late = np.vstack([u[:1], u[:-1]])
    record = recording(q=np.zeros((1000, 1)), v=np.zeros((1000, 1)), u=u, u_applied=late)
    _, _, change = margins(limited(), record)
    assert change.least == pytest.approx(0.5)
    assert change.when == pytest.approx(0.201)


def test_metrics_distinguish_hard_rows_from_soft_ones():
    place = 0.6 * np.sin(2 * np.pi * T)
    record = slider_recording(place, np.zeros(1000))
    hard = {m.name: m for m in margin_metrics(margins(limited(), record))}
    assert hard["limits.least"].value == pytest.approx(-0.1 / 1.1)
    assert hard["limits.least"].note == "wall at 0.25 s"
    assert hard["limits.beyond"].value == pytest.approx((place > 0.5).mean())
    assert "limits.soft_least" not in hard
    soft = {m.name: m.value for m in margin_metrics(margins(limited(soft=True), record))}
    assert soft["limits.soft_least"] == pytest.approx(-0.1 / 1.1)
    assert soft["limits.least"] == pytest.approx(0.5)  # of the range of u and du: both rest at 0
    assert soft["limits.beyond"] == 0


def test_a_control_that_is_no_number_is_beyond_its_limit():
    u = np.zeros(1000)
    u[7] = np.nan
    force = margins(planning_slider(), slider_recording(np.zeros(1000), u))[0]
    assert force.least == -np.inf
    assert force.when == pytest.approx(0.007)
    assert force.beyond == 1e-3


def test_what_nothing_bounds_has_no_margin():
    free = {"u_min": np.array([-np.inf]), "u_max": np.array([np.inf])}
    assert margins(planning_slider(**free), slider_recording(np.zeros(1000), np.zeros(1000))) == ()
    assert list(margin_metrics(())) == []


def test_limits_that_do_not_fit_are_refused():
    with pytest.raises(ProblemError, match=r"of sizes \[1, 2, 2, 2\]; expected value \(2, 1\)"):
        validate(limited(lower=np.zeros(1)), SLIDER, 0.1)
    q, wind = ca.SX.sym("q"), ca.SX.sym("wind")
    odd = ca.Function("odd", [q, wind], [ca.vertcat(q, wind)], ["q", "wind"], ["value"])
    with pytest.raises(ProblemError, match=r"limits has the inputs \['wind'\]"):
        validate(limited(value=odd), SLIDER, 0.1)


def failing():
    """Return a law that counts its ticks in z and reports a failure at those of `FAILS`."""
    q, v, z = ca.SX.sym("q"), ca.SX.sym("v"), ca.SX.sym("z")
    status = sum(ca.if_else(z == tick, code, 0) for tick, code in FAILS.items())
    names = ["q", "v", "z"], ["u", "z_next", "status"]
    function = ca.Function("failing", [q, v, z], [-q - v, z + 1, status], *names)
    outputs = (signal("u", 1), signal("z_next", 1), signal("status", 1))
    fields = {"function": function, "outputs": outputs, "prediction": None, "z0": np.zeros(1)}
    return replace(planning_slider(), **fields)


@pytest.fixture(scope="module")
def failed_run():
    return validate(failing(), SLIDER, 0.5, q0=[0.3]).runs[0]


def test_failures_are_counted_dated_and_measured(failed_run):
    solved, infeasible, stopped = failed_run.status_rows
    assert (solved.text, solved.ticks, solved.safe) == ("solved", 46, False)
    assert (solved.first, solved.longest) == (0.0, 19)
    assert (infeasible.text, infeasible.ticks) == ("infeasible, safe output", 2)
    assert infeasible.first == pytest.approx(10 * SLIDER_STEP)
    assert (infeasible.share, infeasible.longest, infeasible.safe) == (0.04, 2, True)
    assert stopped.first == pytest.approx(12 * SLIDER_STEP)
    assert (stopped.ticks, stopped.longest) == (2, 1)
    assert failed_run.metric("status.safe_output") == pytest.approx(0.08)
    assert failed_run.metric("status.longest_failure") == 3  # of one kind after the other
    meaning = next(m.note for m in failed_run.metrics if m.name == "status.longest_failure")
    assert meaning.endswith("from 0.1 s")
    assert not failed_run.passed


def test_what_a_reader_should_know_is_written_in_sentences(failed_run):
    sentences = findings(failed_run)
    assert "infeasible, safe output: 2 ticks, the first at 0.1 s, at most 2 in a row" in sentences
    assert all(sentence in str(Report((failed_run,))) for sentence in sentences)
    run = validate(limited(soft=True), SLIDER, 0.3, q0=[0.6], criteria=Criteria({})).runs[0]
    assert any(
        re.fullmatch(r"wall \(soft\) .* in [0-9.]+ % of the ticks, most by 0.1 m at 0 s", sentence)
        for sentence in findings(run)
    )
    assert any(
        sentence.startswith("error of the plans, of the motion: ") for sentence in findings(run)
    )


def test_a_run_without_failures_says_so():
    record = recording()
    law = planning_slider()
    assert [row.ticks for row in status_rows(law, record.status, record.t)] == [1000]
    found = {m.name: m.value for m in status_metrics(law, record)}
    assert found["status.longest_failure"] == 0
    assert found["status.solved"] == 1


def test_the_longest_run_of_a_pattern():
    def longest(text):
        return longest_run(np.array([sign == "x" for sign in text]))

    assert longest("....") == (0, 0)
    assert longest("") == (0, 0)
    assert longest("xx.xxx.x") == (3, 3)
    assert longest("xxx") == (3, 0)
    assert longest(".xx") == (2, 1)


def test_time_is_reported_over_the_period(failed_run):
    times = failed_run.times
    assert failed_run.metric("time.share") == pytest.approx(times.p99 / SLIDER_STEP)
    late = (times.seconds > SLIDER_STEP).mean()
    assert failed_run.metric("time.late") == pytest.approx(late)


def test_two_phases_of_a_tick_are_distinguished():
    one = TickTimes(np.array([3e-6, 5e-6]), np.zeros(2, dtype=int), False)
    parts = (replace(one, seconds=one.seconds * share) for share in (0.75, 0.25))
    both = replace(one, **dict(zip(("preparation", "feedback"), parts, strict=True)))
    found = {m.name: m.value for m in time_metrics(both, 4e-6)}
    assert found["time.preparation"] == pytest.approx(0.75 * found["time.p99"])
    assert found["time.feedback"] == pytest.approx(0.25 * found["time.p99"])
    assert found["time.late"] == 0.5
    assert [name for name, _ in tick_phases(both)] == ["whole tick", "preparation", "feedback"]
    assert [name for name, _ in tick_phases(one)] == ["whole tick"]
    assert "time.feedback" not in {m.name for m in time_metrics(one, 4e-6)}
