"""A push in a closed loop is the force of MuJoCo's own simulation, alone and in a campaign."""

import mujoco
import numpy as np
import pytest
from support.validation_problems import SLIDER, SLIDER_MASS, planning_slider

from mbcasadi.errors import ProblemError, ShapeError, UnknownNameError
from mbcasadi.validation import (
    CampaignOptions,
    Case,
    Criteria,
    Push,
    Trial,
    campaign,
    case_report,
    validate,
)

ROUNDING = 1e-12  # rad, m, m/s and N m, of 300 time steps
TICK = 0.01  # s, ten time steps
FORCE = np.array([3.0, -2.0, 1.0])  # N
LOOSE = {"criteria": Criteria({})}
MODEL = """
<mujoco model="arm and stone">
  <option timestep="0.001" integrator="Euler"/>
  <worldbody>
    <body name="upper"><joint name="shoulder" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.04" contype="0"/>
      <body name="lower" pos="0.5 0 0"><joint axis="0 1 1"/>
        <geom type="capsule" fromto="0 0 0 0.2 0.3 0" size="0.04" contype="0"/></body></body>
    <body name="stone" pos="5 0 0" gravcomp="1"><freejoint/>
      <inertial pos="0.3 0.1 -0.2" mass="4" diaginertia="0.1 0.2 0.3"/></body>
  </worldbody>
  <actuator><motor joint="shoulder"/></actuator>
</mujoco>
"""


def wave(t, q, v):
    """Return a torque, N m."""
    return [2.0 * np.cos(7.0 * t) - 0.3 * v[0]]


def idle(_t, _q, _v):
    return [0.0]


def recorded(*pushes, duration=0.3):
    return (
        validate(wave, MODEL, duration, period=TICK, disturbance=pushes, **LOOSE).runs[0].recording
    )


def test_a_free_body_gets_the_whole_impulse_whatever_the_ticks_are():
    """The pushes are: whole ticks, from within one to within another, and within one tick."""
    pushes = [(0.1, 0.2), (0.043, 0.158), (0.0512, 0.0533)]
    stone = recorded(*(Push("stone", FORCE, *ends) for ends in pushes)).v[-1, 2:]
    impulse = FORCE * sum(stop - start for start, stop in pushes)
    np.testing.assert_allclose(stone, [*impulse / 4.0, 0, 0, 0], atol=ROUNDING)


def test_a_push_that_swings_has_the_impulse_of_a_sine():
    start, stop, frequency = 0.043, 0.158, 3.0
    stone = recorded(Push("stone", FORCE, start, stop, frequency)).v[-1, 2:5]
    w = 2 * np.pi * frequency
    impulse = FORCE * (1 - np.cos(w * (stop - start))) / w
    np.testing.assert_allclose(stone, impulse / 4.0, atol=ROUNDING)
    with pytest.raises(ProblemError, match="a frequency of -1 Hz"):
        Push("stone", FORCE, start, stop, -1.0)


def test_the_pushed_arm_moves_as_in_a_separate_simulation_by_hand():
    recording = recorded(Push("lower", FORCE, 0.1, 0.2))
    model = mujoco.MjModel.from_xml_string(MODEL)
    data, link = mujoco.MjData(model), model.body("lower").id
    for k, u in enumerate(recording.u_applied):
        np.testing.assert_allclose(recording.q[k], data.qpos, atol=ROUNDING)
        for _ in range(10):
            data.ctrl[:] = u
            mujoco.mj_step1(model, data)
            data.qfrc_applied[:] = 0.0
            if 10 <= k < 20:
                place = data.xipos[link]
                mujoco.mj_applyFT(model, data, FORCE, np.zeros(3), place, link, data.qfrc_applied)
            mujoco.mj_step2(model, data)
    assert np.abs(recording.q[20, :2] - recording.q[10, :2]).min() > 0.01  # J has changed


def test_the_recorded_disturbance_is_the_jacobian_times_the_force_at_each_tick():
    recording = recorded(Push("lower", FORCE, 0.1, 0.2), Push("lower", FORCE, 0.15, 0.3))
    model = mujoco.MjModel.from_xml_string(MODEL)
    data, J = mujoco.MjData(model), np.zeros((3, model.nv))
    for k, q in enumerate(recording.q):
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        mujoco.mj_jacBodyCom(model, data, J, None, model.body("lower").id)
        times = (10 <= k < 20) + (15 <= k < 30)
        np.testing.assert_allclose(recording.disturbance[k], times * J.T @ FORCE, atol=ROUNDING)


def values(metrics):
    return {metric.name: repr(metric.value) for metric in metrics}


def pushed(cases, *pushes, jobs=1):
    trial = Trial(0.5, disturbance=pushes, **LOOSE)
    return campaign(planning_slider(), SLIDER, trial, cases, CampaignOptions(jobs=jobs))


@pytest.mark.long
def test_a_pushed_case_of_a_worker_has_the_bits_of_the_case_alone():
    pushes = [Push("cart", (3.0, 0.0, 1.0), 0.1, 0.2), Push("cart", (-1.0, 0.0, 0.0), 0.15, 0.303)]
    cases = [Case(3, {"mass": 0.2}, disturbance=factor) for factor in (1.0, 1.5, 0.0)]
    outcomes = pushed(cases, *pushes, jobs=2).outcomes
    trial = Trial(0.5, disturbance=pushes, **LOOSE)
    for outcome in outcomes[:2]:
        report = case_report(planning_slider(), SLIDER, trial, cases, outcome.number)
        alone = values(report.runs[0].metrics)
        found = values(outcome.metrics)
        assert len(found) > 5
        assert found == {name: alone[name] for name in found}
    assert len({outcome.metric("torque.max") for outcome in outcomes}) == 3


def test_the_factor_of_a_case_scales_the_force_with_its_sign():
    """The displaced start makes pushes to the left and to the right different."""
    push, larger = Push("cart", (3, 0, 0), 0.1, 0.2), Push("cart", (-6, 0, 0), 0.1, 0.2)
    plain, scaled, turned = (Case(0, start_error=0.3, disturbance=f) for f in (1.0, -2.0, 2.0))
    outcome, other = pushed([scaled, turned], push).outcomes
    assert values(outcome.metrics) == values(pushed([plain], larger).outcomes[0].metrics)
    assert values(outcome.metrics) != values(other.metrics)


def test_a_slider_without_control_gains_the_impulse_over_its_mass():
    push = Push("cart", [4.0, 9.0, 9.0], 0.1, 0.3)
    run = validate(idle, SLIDER, 0.5, disturbance=push, **LOOSE).runs[0]
    assert run.recording.v[-1, 0] == pytest.approx(4.0 * 0.2 / SLIDER_MASS, rel=1e-12)
    assert "(4, 9, 9) N on 'cart' from 0.1 s to 0.3 s" in str(run.settings["disturbance"])


def test_a_push_that_cannot_act_is_refused():
    with pytest.raises(ShapeError, match=r"'cart'.*finite"):
        Push("cart", [1.0, np.nan, 0.0], 0.0, 1.0)
    with pytest.raises(ShapeError, match=r"'cart'.*\(3,\)"):
        Push("cart", [1.0], 0.0, 1.0)
    for start, stop in ((0.2, 0.1), (0.2, 0.2), (-0.1, 0.2), (0.0, np.inf)):
        with pytest.raises(ProblemError, match="expected 0 <= start < stop"):
            Push("cart", [1.0, 0.0, 0.0], start, stop)
    with pytest.raises(ProblemError, match="start = nan; expected a number"):
        Push("cart", [1.0, 0.0, 0.0], np.nan, 0.2)
    trial = planning_slider(), SLIDER, 0.5
    with pytest.raises(UnknownNameError, match="valid: 'cart'; did you mean 'cart'"):
        validate(*trial, disturbance=Push("card", [1.0, 0.0, 0.0], 0.0, 1.0))
    late = Push("cart", [1.0, 0.0, 0.0], 0.5, 1.0)
    with pytest.raises(ProblemError, match=r"after the run, which lasts 0\.5 s"):
        campaign(*trial[:2], Trial(0.5, disturbance=late), [Case(0)])
    with pytest.raises((ProblemError, ShapeError), match="disturbance"):
        validate(*trial, disturbance=[late, 3.0])
