"""Repetitions of a failed run end: where a robot has fallen, and where they took long enough."""

import mujoco
import numpy as np
import pytest
from support.tripod import MODEL, START, standing

import mbcasadi as mb
from mbcasadi.errors import ProblemError
from mbcasadi.validation import Case, Criteria, Push, Trial, campaign
from mbcasadi.validation.metrics.end_after_fall import AFTER
from mbcasadi.validation.run.repetitions import LONGER, MOST_RUNS

TOWER = """<mujoco><option timestep=".005"/><worldbody><geom type="plane" size="5 5 .1"/>
<body name="trunk" pos="0 0 .8"><freejoint/><geom type="box" size=".1 .1 .2" mass="4"/>
<body name="leg" pos="0 0 -.2"><joint name="hip" axis="0 1 0" range="-60 60"/>
<geom type="box" size=".1 .1 .3" pos="0 0 -.3" mass="2"/></body></body></worldbody>
<actuator><motor joint="hip" ctrlrange="-200 200"/></actuator></mujoco>"""
PERIOD, DURATION = 0.01, 2.0
PUSH = Push("trunk", (60.0, 0.0, 0.0), 0.1, 0.4)
LIMITS = Criteria({"plant.height": 0.6, "plant.tilt": 0.7, "torque.saturated": 0.0})


def hold_hip(t, q, v):
    """Hold the hip."""
    return np.array([-150.0 * q[7] - 6.0 * v[6]])


class Hip:
    """A law that holds the hip, and remembers when it was called."""

    def __init__(self):
        self.runs = []

    def __call__(self, t, q, v):
        if t == 0.0:
            self.runs.append(0)
        self.runs[-1] += 1
        return hold_hip(t, q, v)


@pytest.fixture(scope="module")
def fallen():
    law = Hip()
    report = mb.validate(
        law,
        TOWER,
        DURATION,
        period=PERIOD,
        delay=1,
        perturb={"mass": 0.1},
        disturbance=PUSH,
        criteria=LIMITS,
    )
    return law, report


def tick_of_fall(run):
    """Return the first tick at which the trunk leans too far or is too low, by MuJoCo."""
    data, first = mujoco.MjData(run.model), None
    for tick, q in enumerate(run.recording.q):
        data.qpos = q
        mujoco.mj_kinematics(run.model, data)
        mujoco.mj_comPos(run.model, data)
        height, lean = data.subtree_com[1][2], np.arccos(data.xmat[1].reshape(3, 3)[2, 2])
        first = height if first is None else first
        if height < 0.6 * first or lean > 0.7:
            return tick
    raise AssertionError("it stands")


def test_repetitions_end_where_the_robot_has_fallen_or_a_share_after_the_run_had(fallen):
    law, report = fallen
    run = report.runs[0]
    fall, tick = run.diagnosis.fall, tick_of_fall(run)
    assert 0 < tick < DURATION / PERIOD / 2
    assert fall.time == pytest.approx(tick * PERIOD)
    assert fall.end == pytest.approx(np.ceil(LONGER * tick) * PERIOD)
    whole, *again = law.runs
    assert whole == tick + AFTER / PERIOD + 1
    assert len(again) >= 3
    assert max(again) == round(fall.end / PERIOD)
    stood = {cause.name: cause for cause in fall.causes}
    assert stood["the push on 'trunk'"].passed
    assert stood["the push on 'trunk'"].share == pytest.approx(1.0)
    assert not stood["the delay of 1 tick"].passed
    assert sorted(round(c.value / PERIOD) for c in fall.causes) == pytest.approx(
        sorted(again), abs=1
    )


def test_a_run_ends_a_second_after_a_fall_that_its_criteria_forbid_and_says_so(fallen):
    run = fallen[1].runs[0]
    recording, tick = run.recording, tick_of_fall(run)
    assert recording.ticks == tick + AFTER / PERIOD + 1 < DURATION / PERIOD
    (event,) = recording.events
    assert event.startswith(f"the robot has fallen at {tick * PERIOD:.3g} s, and the run ended 1 s")
    verdicts = {verdict.metric: verdict for verdict in run.verdicts}
    assert verdicts["finished"].passed is False
    assert verdicts["plant.height"].passed is False


@pytest.mark.parametrize("limits", [{"torque.max": 1e3}, {"plant.tilt": 4.0}])
def test_a_run_goes_on_behind_a_fall_that_its_criteria_allow(limits):
    given = {"period": PERIOD, "disturbance": PUSH, "criteria": Criteria(limits)}
    run = mb.validate(Hip(), TOWER, DURATION, **given).runs[0]
    assert tick_of_fall(run) + AFTER / PERIOD < DURATION / PERIOD
    assert run.recording.ticks == DURATION / PERIOD
    assert run.recording.events == ()
    assert run.passed


def test_a_case_of_a_campaign_ends_a_second_after_its_fall():
    criteria = Criteria({"plant.tilt": 0.7})
    trial = Trial(DURATION, period=PERIOD, disturbance=PUSH, criteria=criteria)
    (outcome,) = campaign(hold_hip, TOWER, trial, [Case(0)]).outcomes
    assert not outcome.passed
    assert "has fallen" in outcome.events[0]


def test_what_fails_after_the_fall_follows_from_it(fallen):
    _, report = fallen
    run = report.runs[0]
    text = "\n".join(run.diagnosis.sentences)
    assert f"the robot falls: at {run.diagnosis.fall.time:.3g} s it no longer stands" in text
    assert "due to the push on 'trunk': without it it still stands at" in text
    tilt = next(f for f in run.diagnosis.failures if f.verdict.metric == "plant.tilt")
    assert tilt.causes == ()
    assert tilt.before <= 0.7 < tilt.verdict.value
    assert text.count("which follows from the fall") == 3  # finished, height and tilt
    assert run.diagnosis.fall.time < DURATION
    saturated = next(f for f in run.diagnosis.failures if f.verdict.metric == "torque.saturated")
    before = np.abs(run.recording.u[: tick_of_fall(run)]) >= 200.0
    assert saturated.before == pytest.approx(before.any(axis=1).mean())
    assert saturated.causes[0].name == "the push on 'trunk'"
    assert f"; {100 * saturated.before:.3g} % before the fall" in text


def test_a_law_with_contacts_is_repeated_for_so_many_ticks_and_the_rest_is_named():
    law, _ = standing()
    conditions = {
        "q0": START,
        "perturb": {"mass": 0.1, "friction": 0.1},
        "delay": 1,
        "disturbance": Push("trunk", (5.0, 0.0, 0.0), 0.05, 0.1),
        "fast": True,
    }
    strict = Criteria({"torque.max": 1.0})
    run = mb.validate(law, MODEL, 0.2, criteria=strict, **conditions).runs[0]
    (failure,) = run.diagnosis.failures
    repeated = [cause.name for cause in failure.causes if "the start" not in cause.name]
    assert repeated == ["the push on 'trunk'", "the delay of 1 tick"][:MOST_RUNS]
    assert run.diagnosis.fall is None
    assert run.diagnosis.not_repeated == ("the mass error of +10 %", "the friction error of +10 %")
    assert (
        "not repeated without the mass error of +10 %, the friction error of +10 %: the "
        "repetitions before have as many ticks as 2 runs"
    ) in run.diagnosis.sentences


def test_the_ticks_before_one_are_those_of_a_shorter_run(fallen):
    recording = fallen[1].runs[0].recording
    part = recording.before(30)
    shorter = (
        mb.validate(
            Hip(),
            TOWER,
            30 * PERIOD,
            period=PERIOD,
            delay=1,
            perturb={"mass": 0.1},
            disturbance=PUSH,
        )
        .runs[0]
        .recording
    )
    for name in ("t", "q", "v", "u", "u_applied", "energy"):
        np.testing.assert_array_equal(getattr(part, name), getattr(shorter, name), err_msg=name)
    assert recording.before(recording.ticks).ticks == recording.ticks
    for end in (0, recording.ticks + 1):
        with pytest.raises(ProblemError, match="expected a number of ticks from 1"):
            recording.before(end)
