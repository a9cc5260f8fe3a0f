"""Plans against what then happens: exact plans have no error, wrong ones the computed error."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from support.validation_problems import (
    SLIDER,
    SLIDER_LIMIT,
    SLIDER_MASS,
    SLIDER_STEP,
    planning_slider,
    signal,
)

from mbcasadi.description import Controller, Signal
from mbcasadi.errors import ProblemError
from mbcasadi.validation import Criteria, validate

EXACT = 1e-12  # rounding of a few steps of MuJoCo and of CasADi, values of order 1
HORIZON = 8
DURATION = 0.6


def plan_fun(law, change):
    """Return the law's plan, changed: (x, u, inputs) → (x, u)."""
    inputs = law.prediction.mx_in()
    outputs = change(*law.prediction(*inputs), inputs)
    same = {"allow_duplicate_io_names": True}
    return ca.Function("prediction", inputs, outputs, law.prediction.name_in(), ["x", "u"], same)


def slider_run(law, **options):
    settings: dict = {"q0": [0.3], "criteria": Criteria({})} | options
    return validate(law, SLIDER, DURATION, **settings).runs[0]


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_a_plan_of_the_plant_itself_is_what_happens(delay):
    run = slider_run(planning_slider(delay=delay, horizon=HORIZON), delay=delay)
    plans = run.predictions
    assert plans.lags == ({"start": 0} if delay else {}) | {
        "next": 1, "quarter": 2, "half": 4, "end": 8
    }  # fmt: skip
    assert [row.name for row in plans.states] == ["q.slide", "v.slide"]
    assert [row.unit for row in plans.states + plans.controls] == ["m", "m/s", "N"]
    for row in plans.states + plans.controls:
        assert np.nanmax(row.peak) < EXACT
    assert min(row.motion[-1] for row in plans.states) > 0.01  # there was something to predict
    assert run.metric("prediction.end") < 1e-10
    last = DURATION / SLIDER_STEP - delay
    assert plans.plans == last - delay - 1  # all but the first d and those without a next sample
    assert run.notes == ()


@pytest.mark.parametrize("delay", [0, 2])
def test_plans_that_are_drawn_lie_on_the_motion_at_their_own_time(delay):
    law = planning_slider(delay=delay, horizon=HORIZON)
    curves = slider_run(law, delay=delay).predictions.curves
    assert curves.path[0].tolist() == [0.0, 0.0]  # from the start
    assert curves.path[-1, 0] < -0.1
    inside = curves.t <= curves.path_t[-1]
    for i, path in enumerate(curves.path.T):
        np.testing.assert_allclose(
            curves.x[inside, i], np.interp(curves.t[inside], curves.path_t, path), atol=EXACT
        )
    acting = inside[:, :-1]
    acted = np.interp(curves.t[:, :-1][acting], curves.path_t, curves.u_path[:, 0])
    np.testing.assert_allclose(curves.u[acting, 0], acted, atol=EXACT)
    assert curves.t[0, 0] == pytest.approx(2 * delay * SLIDER_STEP)  # the first valid plan


def test_a_plan_that_does_not_know_of_the_delay_is_wrong_and_the_report_says_why():
    run = slider_run(planning_slider(horizon=HORIZON), delay=2)
    assert run.metric("prediction.next") > 0.01
    assert "accounts for a delay of 0 ticks, the plant has 2" in run.notes[0]


def test_a_wrong_mass_gives_the_error_that_the_model_computes():
    wrong = 2 * SLIDER_MASS
    run = slider_run(planning_slider(mass=wrong, horizon=HORIZON))
    u = run.recording.u[:-1, 0]
    # After one step: h u (1/m - 1/m') in v, h times that in q.
    miss = SLIDER_STEP * u * (1 / SLIDER_MASS - 1 / wrong)
    place, rate = run.predictions.states
    np.testing.assert_allclose(rate.rms[0], np.sqrt(np.mean(miss**2)), rtol=1e-9)
    np.testing.assert_allclose(rate.peak[0], np.abs(miss).max(), rtol=1e-9)
    np.testing.assert_allclose(place.rms[0], SLIDER_STEP * rate.rms[0], rtol=1e-9)
    moved = np.diff(run.recording.v[:, 0])
    np.testing.assert_allclose(rate.motion[0], np.sqrt(np.mean(moved**2)), rtol=1e-9)
    # Half of each change of v is predicted; q also moves on by v, which is known.
    np.testing.assert_allclose(run.metric("prediction.next"), 0.5, rtol=1e-9)


def test_plans_before_the_settling_time_are_left_out():
    law = planning_slider(mass=2 * SLIDER_MASS, horizon=HORIZON)
    whole, late = slider_run(law), slider_run(law, criteria=Criteria({}, settle=0.3))
    u = whole.recording.u[30:-1, 0]
    miss = SLIDER_STEP * u / (2 * SLIDER_MASS)
    assert late.predictions.plans == whole.predictions.plans - 30 == u.size
    np.testing.assert_allclose(late.predictions.states[1].rms[0], np.sqrt(np.mean(miss**2)))
    assert late.predictions.states[1].rms[0] < 0.5 * whole.predictions.states[1].rms[0]


def test_the_controls_of_a_plan_are_compared_with_those_that_came():
    law = planning_slider(horizon=HORIZON)
    more = plan_fun(law, lambda x, u, _: [x, u + 0.25])
    (row,) = slider_run(replace(law, prediction=more)).predictions.controls
    assert row.name == "u.push"
    np.testing.assert_allclose(row.rms[:3], 0.25, atol=EXACT)
    assert np.isnan(row.rms[3])  # no control is planned for the last sample


def test_plans_of_ticks_with_a_safe_output_and_plans_without_numbers_do_not_count():
    law = planning_slider(horizon=HORIZON)
    q, v, z = (ca.SX.sym(name, k) for name, k in (("q", 1), ("v", 1), ("z", 0)))
    command, z_next = law.function(q, v, z)
    status = ca.if_else(q > 0.2, 2, 0)
    outputs = [command, z_next, status]
    names = ["u", "z_next", "status"]
    failing = ca.Function("failing", [q, v, z], outputs, ["q", "v", "z"], names)
    late = replace(law, function=failing, outputs=(*law.outputs, signal("status", 1)))
    run = slider_run(late)
    failed = int((run.recording.q > 0.2).sum())
    assert 0 < failed < 40
    assert run.predictions.plans == run.recording.ticks - 1 - failed
    lost = plan_fun(law, lambda x, u, given: [ca.if_else(given[0] > 0.2, np.nan, x), u])
    assert slider_run(replace(law, prediction=lost)).predictions.plans == run.predictions.plans
    never = plan_fun(law, lambda x, u, _: [np.nan * x, u])
    assert slider_run(replace(law, prediction=never)).predictions is None


BALL = f"""
<mujoco>
  <option timestep="{SLIDER_STEP}" integrator="Euler" gravity="0 0 0"/>
  <worldbody>
    <body><joint name="spin" type="ball"/><geom type="sphere" size="0.1" mass="1"/></body>
    <body pos="1 0 0"><joint name="slide" type="slide"/><geom type="sphere" size="0.1"/></body>
  </worldbody>
  <actuator><motor joint="slide" ctrlrange="-{SLIDER_LIMIT} {SLIDER_LIMIT}"/></actuator>
</mujoco>
"""


def test_turns_are_compared_as_rotation_vectors():
    """A sphere that turns at a constant rate, and a law that expects it to stand still."""
    q, v = ca.SX.sym("q", 5), ca.SX.sym("v", 4)
    still = ca.horzcat(*[ca.vertcat(q, v)] * (HORIZON + 1))
    plan = ca.Function("plan", [q, v], [still, ca.SX(1, HORIZON)], ["q", "v"], ["x", "u"])
    turn = ("a.w", "a.x", "a.y", "a.z", "slide")
    rows = (*(f"q.{name}" for name in turn), *(f"v.{n}" for n in ("rx", "ry", "rz", "slide")))
    law = Controller(
        name="still",
        function=ca.Function("still", [q, v], [0 * v[3]], ["q", "v"], ["u"]),
        inputs=(signal("q", 5), signal("v", 4)),
        outputs=(signal("u", 1),),
        u_min=np.array([-1.0]),
        u_max=np.array([1.0]),
        z0=np.zeros(0),
        period=SLIDER_STEP,
        prediction=plan,
        prediction_rows=rows,
    )
    rate = np.array([3.0, -4.0, 12.0])  # rad/s
    run = validate(law, BALL, 0.5, v0=[*rate, 0.0], criteria=Criteria({})).runs[0]
    states = run.predictions.states
    assert [row.name for row in states[:4]] == ["q.rx", "q.ry", "q.rz", "q.slide"]
    assert [row.unit for row in states] == ["rad"] * 3 + ["m"] + ["rad/s"] * 3 + ["m/s"]
    for k, lag in enumerate(run.predictions.lags.values()):
        found = np.array([row.rms[k] for row in states[:3]])
        np.testing.assert_allclose(found, np.abs(rate) * SLIDER_STEP * lag, rtol=1e-9)
        assert run.predictions.share(k) == pytest.approx(1.0)
    curves = run.predictions.curves
    early = curves.path_t < 0.2  # less than half a turn
    np.testing.assert_allclose(
        curves.path[early, :3], np.outer(curves.path_t[early], rate), atol=1e-9
    )


def test_rows_of_the_laws_own_are_compared_with_what_it_takes_them_to_be_later():
    law = planning_slider(horizon=HORIZON, mass=2 * SLIDER_MASS)
    own = plan_fun(law, lambda x, u, _: [ca.vertcat(x, x[0, :] ** 2 + x[1, :] ** 2), u])
    rows = (*law.prediction_rows, "energy")
    run = slider_run(replace(law, prediction=own, prediction_rows=rows))
    row = run.predictions.states[2]
    assert (row.name, row.unit) == ("energy", "")
    record = run.recording
    happened = record.q[:, 0] ** 2 + record.v[:, 0] ** 2
    rate = record.v[:-1, 0] + SLIDER_STEP * record.u[:-1, 0] / (2 * SLIDER_MASS)
    predicted = (record.q[:-1, 0] + SLIDER_STEP * rate) ** 2 + rate**2
    missed = (happened[1:] - predicted)[:-1]  # the last tick has no plan to take it from
    np.testing.assert_allclose(row.rms[0], np.sqrt(np.mean(missed**2)), rtol=1e-9)


def test_the_last_control_in_a_laws_state_appears_once_with_the_controls():
    law = planning_slider(horizon=HORIZON)
    more = plan_fun(law, lambda x, u, _: [ca.vertcat(x, ca.horzcat(0, u)), u])
    run = slider_run(
        replace(law, prediction=more, prediction_rows=(*law.prediction_rows, "u_last.push"))
    )
    assert [row.name for row in run.predictions.states] == ["q.slide", "v.slide"]
    assert run.predictions.curves.x.shape[2] == 2


def test_a_law_that_plans_nothing_has_no_predictions():
    run = slider_run(replace(planning_slider(), prediction=None, prediction_rows=()))
    assert run.predictions is None
    assert np.isnan(run.metric("prediction.next"))
    assert run.to_dict()["predictions"] is None


def test_a_run_shorter_than_the_horizon_leaves_what_it_cannot_know():
    law = planning_slider(horizon=HORIZON)
    run = validate(law, SLIDER, 4 * SLIDER_STEP, q0=[0.3], criteria=Criteria({})).runs[0]
    assert np.isfinite(run.predictions.states[0].rms[:2]).all()
    assert np.isnan(run.predictions.states[0].rms[3])
    assert np.isnan(run.metric("prediction.end"))


def test_a_plan_that_cannot_be_read_is_refused_before_the_run():
    law = planning_slider(horizon=HORIZON)
    with pytest.raises(ProblemError, match=r"a name for each row"):
        slider_run(replace(law, prediction_rows=("q.slide",)))
    q, wind = ca.SX.sym("q"), ca.SX.sym("wind")
    odd = ca.Function("odd", [q, wind], [ca.SX(2, 3), ca.SX(1, 2)], ["q", "wind"], ["x", "u"])
    with pytest.raises(ProblemError, match=r"prediction has the inputs \['wind'\]"):
        slider_run(replace(law, prediction=odd))
    short = ca.Function("short", [q], [ca.SX(2, 3), ca.SX(1, 3)], ["q"], ["x", "u"])
    with pytest.raises(ProblemError, match=r"expected x \(2, N \+ 1\).* and u \(1, N\)"):
        slider_run(replace(law, prediction=short))
    nameless = ca.Function("nameless", [q], [ca.SX(2, 3)], ["q"], ["y"])
    with pytest.raises(ProblemError, match="prediction gives"):
        slider_run(replace(law, prediction=nameless))


def test_signals_of_u_name_the_rows_or_numbers_do():
    law = planning_slider(horizon=HORIZON)
    bare = replace(law, outputs=(Signal("u", (), ()), law.outputs[1]))
    assert slider_run(bare).predictions.controls[0].name == "u.0"
