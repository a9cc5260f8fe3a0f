"""The report of a predictive law: a small example, and linear MPC of a four-bar."""

import json
import re

import casadi as ca
import numpy as np
import pytest
from support.validation_problems import SLIDER, planning_slider

from mbcasadi import models
from mbcasadi.control.regulators import equilibrium, linearize
from mbcasadi.description import ReportedLimits, Signal
from mbcasadi.mpc import LinearOptions, deviation_output, linear_mpc
from mbcasadi.system import read_mjcf
from mbcasadi.validation import (
    Criteria,
    ReportOptions,
    Trial,
    campaign,
    cases,
    validate,
)

FOUR_BAR = models.path("four_bar")
WALL = 0.2  # m, soft; the slider starts beyond it


@pytest.fixture(scope="module")
def report():
    q = ca.SX.sym("q")
    value = ca.Function("value", [q], [q], ["q"], ["value"])
    wall = Signal("value", ("<wall>",), ("m",))
    limits = ReportedLimits(value, wall, np.array([-np.inf]), np.array([WALL]), (True,))
    law = planning_slider(delay=1, limits=limits)
    options = {
        "q0": [0.3],
        "delay": 1,
        "perturb": {"mass": 0.1},
        "report": ReportOptions(what_if=True),
    }
    return validate(law, SLIDER, 0.6, criteria=Criteria({"limits.soft_least": 0.0}), **options)


def test_the_page_has_plans_limits_statuses_times_and_costs(report):
    text = report.to_html()
    words = re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL)
    for heading in (
        "Status of the control law",
        "Time of one tick",
        "Limits",
        "Plans and what happened",
        "Cost of delay and model error",
        "Plans and motion (m)",
        "Planned controls",
    ):
        assert f"<h3>{heading}</h3>" in words
    assert "&lt;wall&gt; / m (soft)" in words
    assert "model error only" in words
    assert "from 1 tick after the measurement on" in words
    assert "nan" not in words
    assert text.count("<section") == text.count("</section>") >= 6


def test_a_law_that_plans_nothing_has_no_empty_sections():
    law = planning_slider(prediction=None, prediction_rows=())
    text = validate(law, SLIDER, 0.1, q0=[0.3]).to_html()
    assert "Plans" not in text
    assert "Cost of delay" not in text
    assert "<h3>Limits</h3>" in text  # of its control


def test_the_violated_soft_row_is_named_with_its_size_and_time(report):
    (run,) = report.runs
    wall = next(row for row in run.margins if row.name == "<wall>")
    assert (wall.soft, wall.upper, wall.when) == (True, WALL, 0.0)
    assert wall.least == pytest.approx(WALL - 0.3)
    assert wall.beyond == pytest.approx((run.recording.q[:, 0] > WALL).mean())
    assert not run.passed  # a soft row is judged where a criterion requires it


def test_the_json_holds_it_all(report, tmp_path):
    run = json.loads(report.save(tmp_path / "plan.json").read_text())["runs"][0]
    assert run["predictions"]["samples ahead"] == {
        "start": 0, "next": 1, "quarter": 2, "half": 4, "end": 8
    }  # fmt: skip
    assert {row["name"] for row in run["margins"]} == {"u.push", "<wall>"}
    assert [row["name"] for row in run["what_if"]["conditions"]][-1] == "both"
    assert run["statuses"][0]["ticks"] == 60
    assert run["settings"]["delay"] == "1 tick, the law accounts for 1"


def four_bar_run(perturb):
    system = read_mjcf(FOUR_BAR)
    held = equilibrium(system)
    linear = linearize(system, held)
    crank = np.eye(2 * system.nv)[system.nv]
    slow = deviation_output(linear, "crank_speed", crank, -0.3, 0.3, linear_penalty=1e-3)
    weights = np.repeat([10.0, 0.01], system.nv), 1.0
    rates = {"du_bounds": [[-0.2, 0.2]], "outputs": [slow], "delay": 1}
    mpc = linear_mpc(linear, LinearOptions(12, *weights, u_bounds=[[-0.5, 0.5]], **rates))
    ref = mpc.reference(setpoint_q=held.q, setpoint_u=held.u)
    start = np.array(system.integrate(held.q, [0.05, 0, 0])).ravel()
    options = {"reference": ref, "q0": start, "delay": 1, "perturb": perturb}
    return validate(mpc, FOUR_BAR, 0.8, **options).runs[0]


def test_linear_mpc_predicts_a_small_motion_and_not_a_heavier_mechanism():
    exact, heavy = four_bar_run({}), four_bar_run({"mass": 0.3})
    predicted = [exact.metric(f"prediction.{when}") for when in ("start", "next", "half", "end")]
    assert max(predicted) < 0.05  # the rest is of second order in the motion
    assert heavy.metric("prediction.next") > 0.2
    rows = {row.name: row for row in exact.margins}
    speed = exact.recording.v[:, 0]
    (soft,) = (row for row in exact.margins if row.soft)
    assert "crank_speed" in soft.name
    # The row is one of deviations on the manifold: the speed up to second order.
    assert soft.least == pytest.approx(0.3 - np.abs(speed).max(), rel=0.05)
    assert soft.least < 0  # the penalty is small, so it is violated
    changes = np.diff(exact.recording.u_applied[:, 0])
    (rate,) = (row for name, row in rows.items() if name.startswith("du"))
    assert rate.least == pytest.approx(0.2 - np.abs(changes).max())


def test_a_campaign_reports_plans_and_margins_and_takes_a_disturbance():
    def push(t):
        return [2.0 * (t >= 0.3)]

    calm, pushed = (
        campaign(planning_slider(), SLIDER, Trial(0.6, q0=[0.3], disturbance=force), cases([0]))
        for force in (None, push)
    )
    assert calm.outcomes[0].metric("prediction.next") < 1e-9
    assert pushed.outcomes[0].metric("prediction.next") > 0.1
    row = next(r for r in pushed.summary() if r.metric == "limits.least")
    assert row.worst == pytest.approx(0.5 - 6.0 / 20.0)  # u is -6 N of ±10 at the start
