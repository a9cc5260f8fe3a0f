"""Two rates under supervision: old plans are left, inputs that are not plausible reach nobody."""

import threading

import numpy as np
import pytest
from support.two_rates_problems import (
    BAD_INPUT,
    COMMAND,
    EVERY,
    FAST,
    HELD,
    NO_PLAN,
    SOLVED,
    two_rates,
)

import mbcasadi as mb
from mbcasadi.codegen import InputLimits, Supervision, TickEvent
from mbcasadi.errors import ExportError, ProblemError, UnknownNameError

Q = V = np.zeros(2)
LATEST = 0.03  # s
STALE_AFTER, TRIP, RECOVER, FADE = 2, 3, 4, 5  # ticks
SUPERVISION = Supervision(
    inputs={"q": InputLimits(-1.0, 1.0, jump=0.1), "command": InputLimits(-5.0, 5.0, jump=0.1)},
    stale_after=STALE_AFTER,
    trip_after=TRIP,
    recover_after=RECOVER,
    fade_time=FADE * FAST,
)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("c") / "out"
    return mb.export_two_rates(
        two_rates(), folder, latest=LATEST, supervision=SUPERVISION, mujoco_plugin=True
    )


@pytest.fixture
def run(project):
    return project.load(flags=("-O0",), log_ticks=200)


def ticks(run, first, last, q=Q, plans=True):
    """Run ticks, with a plan in each that begins a period; returns outputs and events of each."""
    found = []
    for k in range(first, last):
        if plans and k % EVERY == 0:
            run.plan(Q, V, [1.0], k * FAST)
        found.append((run.tick(q, V, k * FAST), run.supervised.events))
    return found


def test_an_old_plan_is_followed_up_to_its_age_then_left_by_the_safe_output(run):
    ticks(run, 0, 2 * EVERY)
    acting = 2 * EVERY  # the moment of the last plan
    old = ticks(run, acting, 4 * EVERY, plans=False)
    ages = [out["age"][0] for out, _ in old]
    left = next(k for k, age in enumerate(ages) if np.isnan(age))
    assert ages[left - 1] <= LATEST < ages[left - 1] + FAST * 1.001
    assert {int(out["code"]) for out, _ in old[:left]} == {SOLVED}
    assert {int(out["code"]) for out, _ in old[left:]} == {NO_PLAN}
    assert all(out["status"] == BAD_INPUT for out, _ in old[left:])
    assert all(TickEvent.FAILED_TICK in events for _, events in old[left : left + TRIP])
    assert TickEvent.TRIPPED in old[left + TRIP - 1][1]
    assert TickEvent.SAFE in old[left + TRIP][1]
    assert run.supervised.fault.startswith("ref[")
    fades = [out["u"][COMMAND] for out, _ in old[left + TRIP :]]
    assert fades[-1] == HELD
    back = ticks(run, 4 * EVERY, 7 * EVERY)
    assert TickEvent.RECOVERED in [e for e in (events for _, events in back) if e][-FADE - 1]
    assert back[-1][0]["u"][COMMAND] == 1.0
    assert back[-1][1] == TickEvent(0)


@pytest.mark.parametrize(
    ("q", "event"),
    [
        ([np.nan, 0.0], TickEvent.NOT_FINITE),
        ([0.0, 2.0], TickEvent.OUT_OF_RANGE),
        ([0.5, 0.0], TickEvent.JUMP),
    ],
)
def test_a_measurement_that_is_not_plausible_reaches_neither_tick_nor_plan(run, q, event):
    ticks(run, 0, EVERY)
    out = run.tick(q, V, EVERY * FAST)
    assert event in run.supervised.events
    assert (out["code"], out["status"]) == (BAD_INPUT, BAD_INPUT)
    assert run.supervised.fault in ("q[0] q0", "q[1] q1")
    planned = run.plan(q, V, [1.0], EVERY * FAST)
    assert (planned["code"] == BAD_INPUT) == (event != TickEvent.JUMP), "of 10 ticks: 1"
    assert run.plan(Q, V, [2.5], EVERY * FAST)["code"] == BAD_INPUT
    assert run.plan_events == TickEvent.JUMP
    assert run.plan_fault == "command[0]"
    assert run.plan(Q, V, [1.5], EVERY * FAST)["code"] == SOLVED
    assert run.plan_events == TickEvent(0)
    assert run.plan_fault == ""


def test_samples_that_stay_the_same_are_stale(run):
    events = []
    for k in range(STALE_AFTER + 2):
        run.tick(Q, V, k * FAST, sample=7)
        events.append(TickEvent.STALE in run.supervised.events)
    assert events == [False] * (STALE_AFTER + 1) + [True]


def test_the_log_of_the_ticks_is_replayed_bit_for_bit(project, tmp_path):
    run = project.load(log_ticks=100)
    ticks(run, 0, 2 * EVERY)
    ticks(run, 2 * EVERY, 4 * EVERY, plans=False)
    run.supervised.save_log(tmp_path / "ticks.log")
    result = project.replay(tmp_path / "ticks.log")
    assert result.passed
    assert result.log.ticks.size == 4 * EVERY


def test_two_threads_plan_and_tick_under_supervision(project, tmp_path):
    run, now, done = project.load(log_ticks=300), [0.0], threading.Event()

    def plan():
        while not done.is_set():
            run.plan(Q, V, [1.0], now[0])

    thread = threading.Thread(target=plan)
    thread.start()
    codes = []
    for k in range(3000):
        now[0] = k * FAST
        out = run.tick(Q, V, now[0])
        codes.append(int(out["code"]))
        assert np.all(np.isfinite(out["u"]))
    done.set()
    thread.join()
    assert {SOLVED} <= {*codes} <= {SOLVED, BAD_INPUT, NO_PLAN}
    run.supervised.save_log(tmp_path / "ticks.log")
    assert project.replay(tmp_path / "ticks.log").passed


def test_memory_that_is_not_ready_has_a_safe_output(run):
    run.block[:] = 0
    out = run.tick(Q, V, 0.0)
    assert out["code"] == -1
    assert np.all(np.isfinite(out["u"]))
    with pytest.raises(ExportError, match="not ready"):
        _ = run.supervised


def test_the_example_and_the_class_of_c_plus_plus_take_log_and_sample(project):
    assert "0 without a plan" in project.run_example(flags=("-O0", "-Wall", "-Wextra", "-Werror"))
    text = (project.folder / "hand.hpp").read_text()
    assert "int tick(void *log, std::uint32_t sample, const double *q" in text


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"qq": InputLimits()}, "unknown input 'qq'.*'command'"),
        ({"command": InputLimits(1.0, {"speed": 2.0})}, "unknown component of command 'speed'"),
    ],
)
def test_limits_of_what_is_no_input_are_refused(inputs, message, tmp_path):
    supervision = Supervision(inputs=inputs)
    with pytest.raises(UnknownNameError, match=message):
        mb.export_two_rates(two_rates(), tmp_path / "out", supervision=supervision)


def test_an_export_without_supervision_has_no_events_and_no_log(project, tmp_path):
    plain = mb.export_two_rates(two_rates(), tmp_path / "plain")
    run = plain.load(flags=("-O0",))
    with pytest.raises(ExportError, match="supervis"):
        _ = run.supervised
    with pytest.raises(ExportError, match="supervis"):
        plain.load(flags=("-O0",), log_ticks=3)
    with pytest.raises(ProblemError, match="log_ticks is -1"):
        project.load(flags=("-O0",), log_ticks=-1)
