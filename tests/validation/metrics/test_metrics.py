"""Metrics of recordings whose numbers are known in advance."""

import dataclasses

import mujoco
import numpy as np
import pytest
from support.validation_problems import TICKS, crank_controller, recording

from mbcasadi.description import Contact, Signal
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.validation.metrics import (
    DEFAULTS,
    METRICS,
    Criteria,
    Metric,
    judge,
    tracking_statistics,
)
from mbcasadi.validation.metrics.contact_metrics import contact_metrics
from mbcasadi.validation.metrics.control_metrics import torque_metrics
from mbcasadi.validation.metrics.tracking_metrics import (
    hold_metrics,
    hold_statistics,
    tracking_metrics,
)
from mbcasadi.validation.report import missed_notes

WORLD = mujoco.MjModel.from_xml_string("<mujoco><statistic extent='2'/></mujoco>")


def values(found):
    return {m.name: m.value for m in found}


def test_tracking_of_a_sine_that_is_missed_by_a_tenth():
    t = np.arange(TICKS) * 1e-3
    wave = np.sin(2 * np.pi * 2 * t)[:, None]
    record = recording(monitor={"target": 0.5 + 3 * wave, "error": 0.3 * wave})
    (row,) = tracking_statistics(crank_controller(), record)
    assert (row.name, row.unit) == ("crank", "rad")
    assert row.amplitude == pytest.approx(3.0, rel=1e-5)
    assert row.rms == pytest.approx(0.3 / np.sqrt(2), rel=1e-5)
    found = values(tracking_metrics([row]))
    assert found["tracking.rms_share"] == pytest.approx(0.1 / np.sqrt(2), rel=1e-4)
    assert found["tracking.max_share"] == pytest.approx(0.1, rel=1e-4)


def test_the_start_may_be_left_out_and_a_target_at_rest_has_no_amplitude():
    error = np.where(np.arange(TICKS) < 500, 1.0, 0.0)[:, None]
    record = recording(monitor={"target": np.ones((TICKS, 1)), "error": error})
    assert tracking_statistics(crank_controller(), record)[0].rms == pytest.approx(np.sqrt(0.5))
    (late,) = tracking_statistics(crank_controller(), record, settle=0.5)
    assert late.rms == 0
    assert "tracking.rms_share" not in values(tracking_metrics([late]))


ARM = mujoco.MjModel.from_xml_string("""
<mujoco><worldbody>
  <body><joint axis="0 1 0"/><geom size=".1" pos="2 0 0" mass="3"/></body>
</worldbody></mujoco>""")


def held(error, unit, model=ARM):
    """Return the share of a constant target that is missed by `error` (TICKS,)."""
    signals = tuple(Signal(name, ("x",), (unit,)) for name in ("target", "error"))
    controller = crank_controller(monitors=signals)
    rows = np.broadcast_to(error, TICKS)[:, None]
    record = recording(monitor={"target": np.full((TICKS, 1), 7.0), "error": rows})
    statistics = hold_statistics(controller, record, model)
    tracked = tracking_statistics(controller, record)
    return values(hold_metrics(statistics, tracked))["tracking.hold_share"]


def test_a_constant_target_is_judged_against_a_radian_an_extent_or_a_weight():
    late = np.where(np.arange(TICKS) < 10, 0.0, 0.5)  # no deviation at the start
    extent, weight = ARM.stat.extent, 9.81 * 3
    for unit, scale in (("rad", 1.0), ("m", extent), ("m/s", extent), ("N", weight)):
        assert held(late, unit) == pytest.approx(0.5 / scale), unit
    assert held(late, "N m") == pytest.approx(0.5 / (weight * extent))
    assert held(late, "") == pytest.approx(0.5)  # one row for one joint: its unit, rad


def test_a_deviation_at_the_start_counts_and_a_transient_does_not():
    ticks = np.arange(TICKS)
    assert held(2.0, "rad") == pytest.approx(2 / 3)  # it stays where it was
    assert held(np.where(ticks < 700, 2.0, 0.03), "rad") == pytest.approx(0.01)
    assert held(np.where(ticks < 700, 0.0, 2.0), "rad") == pytest.approx(2.0)  # it drifts away


def test_a_unit_without_a_scale_needs_a_deviation_at_the_start():
    two = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><freejoint/><geom size='1'/></body></worldbody></mujoco>"
    )
    assert np.isnan(held(np.where(np.arange(TICKS) < 10, 0.0, 0.5), "", two))
    assert held(0.5, "", two) == pytest.approx(1.0)
    verdicts = judge([Metric("tracking.hold_share", np.nan, "", "")], Criteria(), finished=True)
    assert [v.passed for v in verdicts] == [True, False]


def test_a_nan_error_of_one_component_is_not_hidden_by_another():
    target = np.linspace(-1, 1, TICKS)[:, None] * [1.0, 1.0]
    error = np.full((TICKS, 2), 0.01)
    error[5, 1] = np.nan
    controller = crank_controller(monitors=())
    rows = tracking_statistics(controller, recording(monitor={"target": target, "error": error}))
    found = values(tracking_metrics(rows))
    assert np.isnan([found[f"tracking.{name}"] for name in ("rms", "rms_share", "max")]).all()


def test_tracking_without_saturation_leaves_out_the_ticks_at_a_limit():
    controller = crank_controller()
    u = np.where(np.arange(TICKS) < 300, controller.u_max[0], 0.0)[:, None]
    error = np.where(np.arange(TICKS) < 300, 1.0, 0.01)[:, None]
    target = np.linspace(-1, 1, TICKS)[:, None]
    record = recording(u=u, monitor={"target": target, "error": error})
    (row,) = tracking_statistics(controller, record)
    assert row.rms_free == pytest.approx(0.01)
    assert row.rms > 0.5
    assert values(torque_metrics(controller, record))["torque.saturated"] == 0.3


def test_a_nan_control_is_beyond_every_limit():
    u = np.zeros((TICKS, 1))
    u[3] = np.nan
    found = values(torque_metrics(crank_controller(), recording(u=u)))
    assert found["torque.excess"] > 1e300


def contact_recording(**fields):
    contacts = (Contact("a", friction=0.7), Contact("b", friction=0.7))
    if "contact_normal" in fields:  # the friction of the plant is another
        fields = fields | {"contact_capacity": 0.5 * fields["contact_normal"]}
    controller = dataclasses.replace(crank_controller(), contacts=contacts)
    return controller, recording(contact_names=("a", "b"), **fields)


def test_cone_margins_are_one_minus_the_used_share_of_friction():
    normal, slip = np.full((TICKS, 2), 100.0), np.zeros((TICKS, 2))
    slip[10, 1] = 40.0  # of 0.5 · 100
    force = np.tile([100.0, 42.0, 56.0, 100.0, 0.0, 10.0], (TICKS, 1))
    controller, record = contact_recording(
        contact_normal=normal, contact_tangential=slip, monitor={"contact_force": force}
    )
    found = values(contact_metrics(controller, record, WORLD))
    assert found["cone.plant"] == pytest.approx(0.2)
    assert found["cone.controller"] == pytest.approx(0.0)  # 70 of 0.7 · 100
    assert found["contact.lost"] == 0


def test_a_foot_that_is_not_counted_on_is_not_judged():
    normal, slip = np.full((TICKS, 2), 100.0), np.zeros((TICKS, 2))
    slip[:, 1] = 90.0
    place = np.zeros((TICKS, 2, 3))
    place[:, 1, 0] = np.linspace(0, 1, TICKS)
    fields = {"contact_normal": normal, "contact_tangential": slip, "contact_position": place}
    up = np.tile([1.0, 0.0], (TICKS, 1))
    controller, record = contact_recording(mask=up, **fields)
    idle = values(contact_metrics(controller, record, WORLD))
    assert (idle["cone.plant"], idle["contact.slip"]) == (1.0, 0.0)
    controller, record = contact_recording(mask=np.ones((TICKS, 2)), **fields)
    counted = values(contact_metrics(controller, record, WORLD))
    assert counted["cone.plant"] == pytest.approx(-0.8)
    assert counted["contact.slip"] == pytest.approx(1.0)
    assert counted["contact.slip_share"] == pytest.approx(0.5)
    sliding = tuple(dataclasses.replace(c, slides=True) for c in controller.contacts)
    controller = dataclasses.replace(controller, contacts=sliding)
    assert values(contact_metrics(controller, record, WORLD))["contact.slip"] == 0.0


def test_slip_starts_anew_when_a_foot_lands_again():
    place, mask = np.zeros((TICKS, 2, 3)), np.ones((TICKS, 2))
    mask[400:600, 0] = 0.0
    place[500:, 0, 0] = 0.3  # moved in the air
    place[700:, 0, 1] = 0.002  # slipped on the floor
    controller, record = contact_recording(
        mask=mask, contact_position=place, contact_normal=np.ones((TICKS, 2))
    )
    found = values(contact_metrics(controller, record, WORLD))
    assert found["contact.slip"] == pytest.approx(0.002)


def test_a_lost_contact_is_counted():
    normal = np.full((TICKS, 2), 50.0)
    normal[:250, 0] = 0.0
    controller, record = contact_recording(contact_normal=normal)
    assert values(contact_metrics(controller, record, WORLD))["contact.lost"] == 0.125


def test_criteria_bound_from_above_or_below_and_nan_never_passes():
    found = [Metric("cone.plant", 0.1, "", ""), Metric("tracking.rms", float("nan"), "m", "")]
    required = Criteria({"cone.plant": 0.2, "tracking.rms": 1.0})
    verdicts = {v.metric: v for v in judge(found, required, finished=True)}
    assert verdicts["cone.plant"].at_least
    assert [v.passed for v in verdicts.values()] == [True, False, False]
    assert judge(found, Criteria({"cone.plant": 0.05}), finished=True)[1].passed
    assert not judge(found, Criteria({}), finished=False)[0].passed


def test_a_run_with_criteria_of_its_own_says_which_defaults_it_would_fail():
    found = [
        Metric("contact.slip_share", 0.17, "", ""),
        Metric("tracking.rms_share", 0.3, "", ""),
        Metric("closure.share", 0.0, "", ""),
    ]
    (note,) = missed_notes(found, Criteria({"tracking.rms:trunk": 1.0}))
    assert "displacement of an active contact on the floor" in note
    assert "17 %, required ≤ 5 %" in note
    assert "tracking" not in note
    assert "loops" not in note
    assert missed_notes(found, Criteria()) == []
    assert "tracking" in missed_notes(found, Criteria({"contact.slip_share": 0.2}))[0]


def test_loops_may_open_by_the_load_of_motion_as_their_own_softness_has_it():
    def verdict(share, static, criteria=None):
        found = [Metric("closure.share", share), Metric("closure.static_share", static)]
        rows = judge(found, criteria or Criteria(), finished=True)
        return next(v for v in rows if v.metric == "closure.share")

    assert verdict(2e-3, 1e-6).limit == 1e-3  # a stiff loop
    assert not verdict(2e-3, 1e-6).passed
    assert verdict(7e-3, 2e-3).limit == pytest.approx(8e-3)
    assert verdict(7e-3, 2e-3).passed
    assert not verdict(9e-3, 2e-3).passed
    assert not verdict(2e-3, 1.0, Criteria({"closure.share": 1e-3})).passed  # as it was asked for


def test_below_an_outer_law_its_plans_are_judged_and_not_the_targets_that_they_choose():
    found = [Metric("tracking.rms_share", 9.0, "", ""), Metric("plant.height", 0.9, "", "")]
    alone = {v.metric: v.passed for v in judge(found, Criteria(), finished=True)}
    assert alone == {"finished": True, "tracking.rms_share": False, "plant.height": True}
    for share, good in ((0.01, True), (0.2, False)):
        below = [*found, Metric("outer.safe_output", share, "", "")]
        verdicts = {v.metric: v.passed for v in judge(below, Criteria(), finished=True)}
        assert verdicts == {"finished": True, "plant.height": True, "outer.safe_output": good}
    named = Criteria({"tracking.rms_share": 1.0})
    assert not judge(below, named, finished=True)[-1].passed


def test_criteria_check_themselves():
    with pytest.raises(UnknownNameError, match=r"unknown criterion 'cone.plnt'; there are: .*cone"):
        Criteria({"cone.plnt": 0.1})
    with pytest.raises(ProblemError, match="limits is a mapping with nan for"):
        Criteria({"cone.plant": float("nan")})
    with pytest.raises(ProblemError, match="settle is -1 s"):
        Criteria(settle=-1)
    assert Criteria({"tracking.rms:b": 1.0, "tracking.max:a": 1.0, "torque.max": 1.0}).scopes == (
        "b",
        "a",
    )


def test_every_metric_of_a_run_has_a_name_in_the_table():
    assert set(DEFAULTS) <= METRICS.keys()
    assert all(kind.text for kind in METRICS.values())
