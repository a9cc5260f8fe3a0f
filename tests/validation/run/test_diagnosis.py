"""Why a run failed: each cause is the same run without it, and the words say which one it is."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from support.validation_problems import SLIDER, SLIDER_LIMIT, crank_controller

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.validation import Criteria, Push, ReportOptions, compile_controller
from mbcasadi.validation.metrics.metric import prefixed
from mbcasadi.validation.run.explanations import START_CAUSE
from mbcasadi.validation.run.reference_rates import RatePair, rate_between

DURATION = 1.0
STICKY = SLIDER.replace('type="slide"', 'type="slide" frictionloss="4"', 1)
STRONG = SLIDER.replace(f"{SLIDER_LIMIT}", f"{10 * SLIDER_LIMIT}")
STRICT = Criteria({"tracking.rms_share": 1e-3})
W = 2 * np.pi


def swing(t, amplitude=0.1):
    return [
        amplitude * (1 - np.cos(W * t)),
        amplitude * W * np.sin(W * t),
        amplitude * W**2 * np.cos(W * t),
    ]


def without_rates(t):
    return [swing(t)[0], 0.0, 0.0]


def slider_law(model=SLIDER):
    return InverseDynamicsQP(
        mb.read_mjcf(model), [PostureTask(kp=100.0)], period=0.01, name="slider"
    )


@pytest.fixture(scope="module")
def law():
    with compile_controller(slider_law()) as compiled:
        yield compiled


def run_of(law, model=SLIDER, **options):
    settings = {"reference": swing, "criteria": STRICT} | options
    return mb.validate(law, model, DURATION, **settings).runs[0]


def causes_of(run, metric="tracking.rms_share"):
    failure = next(f for f in run.diagnosis.failures if f.verdict.metric == metric)
    shares = [cause.share for cause in failure.causes]
    assert shares == sorted(shares, reverse=True)
    return {cause.name: cause for cause in failure.causes}


def test_each_cause_is_the_run_without_it(law):
    conditions = {"perturb": {"mass": 0.3}, "delay": 3, "disturbance": [2.0]}
    run = run_of(law, STICKY, **conditions)
    causes = causes_of(run)
    without = {
        "the mass error of +30 %": run_of(law, STICKY, **(conditions | {"perturb": {}})),
        "the delay of 3 ticks": run_of(law, STICKY, **(conditions | {"delay": 0})),
        "the disturbance": run_of(law, STICKY, **(conditions | {"disturbance": None})),
        "the friction loss of the joints": run_of(law, SLIDER, **conditions),
    }
    assert set(without) <= set(causes)
    for name, other in without.items():
        value = other.metric("tracking.rms_share")
        assert causes[name].value == pytest.approx(value, rel=1e-9), name
        whole = run.metric("tracking.rms_share")
        assert causes[name].share == pytest.approx(1 - value / whole, rel=1e-9)
    assert len({cause.value for cause in causes.values()}) == len(causes)


def test_pushes_are_a_cause_and_their_share_is_that_of_the_run_without_them(law):
    pushes = [Push("cart", (8.0, 0.0, 0.0), 0.2, 0.3), Push("cart", (-4.0, 0.0, 0.0), 0.5, 0.6)]
    for acting, name in ((pushes, "the pushes on 'cart'"), (pushes[:1], "the push on 'cart'")):
        run, without = run_of(law, disturbance=acting), run_of(law)
        cause = causes_of(run)[name]
        value = without.metric("tracking.rms_share")
        assert cause.value == pytest.approx(value, rel=1e-9)
        assert cause.share == pytest.approx(1 - value / run.metric("tracking.rms_share"), rel=1e-9)
        assert cause.share > 0.5


def test_a_reference_without_its_velocity_is_named_and_costs_what_the_true_one_saves(law):
    report = mb.validate(law, SLIDER, DURATION, reference=without_rates)
    run = report.runs[0]
    assert run.metric("tracking.rms_share") > 0.2  # it was there
    text = str(report)
    assert "the reference 'posture.q' moves at up to 0.628 m/s" in text
    assert "its velocity 'posture.v' is zero all the time" in text
    cause = causes_of(run)["the missing velocity 'posture.v' of the reference"]
    true = run_of(law, reference=lambda t: [*swing(t)[:2], 0.0]).metric("tracking.rms_share")
    assert cause.value == pytest.approx(true, rel=0.02)  # differences over a tick
    assert cause.share > 0.4
    assert f"({100 * cause.share:.0f} % of it goes away)" in text
    assert not [note for note in run_of(law).notes if "velocity" in note]
    step = 0.1 * np.eye(3)[0]
    for right in (lambda t: step * (t > 0.5), lambda t: swing(t) + step * (t > 0.5)):
        assert not [note for note in run_of(law, reference=right).notes if "velocity" in note]
    wrong = run_of(law, reference=lambda t: without_rates(t) + step * (t > 0.5))
    assert [note for note in wrong.notes if "moves at up to 0.628 m/s" in note]


def test_saturation_is_a_cause_where_larger_ranges_help():
    fast = {
        "reference": lambda t: swing(t, 0.4),
        "criteria": Criteria({"tracking.rms_share": 0.05}),
    }
    run = run_of(slider_law(), **fast)
    assert run.metric("torque.saturated") > 0.2
    cause = causes_of(run)["saturation (ranges of the actuators 10 times as large)"]
    free = run_of(slider_law(STRONG), STRONG, **fast).metric("tracking.rms_share")
    assert cause.value == pytest.approx(free, rel=1e-6)
    assert cause.passed
    assert cause.share > 0.5


def test_the_stop_of_a_joint_is_a_cause(law):
    stopped = SLIDER.replace('type="slide"', 'type="slide" limited="true" range="-1 0.15"', 1)
    run = run_of(law, stopped, criteria=Criteria({"tracking.rms_share": 0.05}))
    causes = causes_of(run)
    name = next(name for name in causes if name.startswith("the stops of slide"))
    assert causes[name].passed
    assert next(iter(causes)) == name
    assert "stops" not in str(causes_of(run_of(law, perturb={"mass": 0.3})))


def test_an_error_at_the_start_is_a_cause_that_ends(law):
    run = run_of(law, q0=[0.1], criteria=Criteria({"tracking.rms_share": 0.05}))
    cause = causes_of(run)[START_CAUSE]
    settled = run_of(law, q0=[0.1], criteria=Criteria({"tracking.rms_share": 0.05}, settle=0.25))
    assert cause.value == settled.metric("tracking.rms_share")
    assert cause.share > 0.5


def test_the_softness_of_loops_is_a_cause_of_their_gaps():
    soft = mujoco.MjModel.from_xml_path(str(models.path("four_bar")))
    soft.eq_solimp[:, :2] = 0.5
    run = mb.validate(
        crank_controller(),
        soft,
        0.3,
        reference=lambda t: [0.5 * (1 - np.cos(9 * t)), 4.5 * np.sin(9 * t)],
        criteria=Criteria({"closure.plant": 1e-6}),
    ).runs[0]
    cause = causes_of(run, "closure.plant")["the softness of the equality constraints"]
    assert cause.share > 0.9


def test_gains_that_a_delay_does_not_bear_are_said_to_be_too_high():
    stiff = replace(slider_law(), tasks=[PostureTask(kp=3e3)])
    strict = Criteria({"tracking.hold_share": 1e-3})
    report = mb.validate(
        stiff, SLIDER, 0.5, q0=[0.01], reference=np.zeros(3), delay=2, criteria=strict
    )
    text = str(report)
    assert "lower the gains of task 'posture' (kp = 3000 1/s², kd = 110 1/s)" in text
    assert "a period of 10 ms and a delay of 2 ticks" in text
    assert "the delay of 2 ticks" in text
    low = mb.validate(slider_law(), SLIDER, 0.5, reference=without_rates)
    assert "the gains of task 'posture' (kp = 100 1/s², kd = 20 1/s) may be raised" in str(low)


def test_only_a_failed_run_is_repeated_and_not_where_it_is_switched_off(law):
    assert run_of(law, criteria=Criteria({})).diagnosis is None
    off = run_of(law, perturb={"mass": 0.3}, report=ReportOptions(explain=False))
    assert not off.passed
    assert off.diagnosis is None
    data = run_of(law, perturb={"mass": 0.3}).to_dict()["diagnosis"]
    assert data["failures"][0]["causes"][0]["name"] == "the mass error of +30 %"


def test_repetitions_get_the_reference_of_the_run_without_another_call(law):
    times = []

    def reference(t):
        times.append(t)
        return swing(t)

    assert run_of(law, perturb={"mass": 0.3}, reference=reference).diagnosis is not None
    np.testing.assert_allclose(times, law.controller.period * np.arange(len(times)))


def test_a_criterion_that_was_not_measured_is_not_explained(law):
    run = run_of(law, perturb={"mass": 0.3}, criteria=Criteria({"cone.plant": 0.0}))
    assert run.diagnosis.failures[0].causes == ()


def test_the_rate_of_a_quaternion_is_its_angular_velocity_in_the_world():
    axis, speed, step = np.array([0.48, 0.6, 0.64]), -1.7, 1e-2
    pair = RatePair("q", "w", (0, 1, 2, 3), (0, 1, 2))
    first = np.array([0.5, -0.5, 0.5, 0.5])  # and then turned about the world's axis
    half = speed * step / 2
    w, x = np.cos(half), np.sin(half) * axis
    turned = np.concatenate(
        [[w * first[0] - x @ first[1:]], w * first[1:] + first[0] * x + np.cross(x, first[1:])]
    )
    for sign in (1, -1):  # both are the same orientation
        rate = rate_between(pair, first, sign * turned, step)
        np.testing.assert_allclose(rate, speed * axis, atol=1e-12)
    np.testing.assert_array_equal(rate_between(pair, first, first, step), 0.0)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0485, "s", "48.5 ms"),
        (48.5e-6, "s", "48.5 µs"),
        (1.25, "m", "1.25 m"),
        (0.99999, "m", "1 m"),
        (3e-13, "m", "0.0003 nm"),
        (-0.002, "m", "-2 mm"),
        (0.0, "s", "0"),
        (1234.0, "s", "1230 s"),
    ],
)
def test_a_number_has_the_unit_that_suits_it(value, unit, text):
    assert prefixed(value, unit) == text
