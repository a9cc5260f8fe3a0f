"""Progress goes to its caller, or to the log: a line for each step and each 5 %."""

import logging

import pytest

import mbcasadi as mb
from mbcasadi.progress import LoggedProgress, ProgressReporter, logged_time, notes_to

BODY = (
    "<mujoco model='ball'><worldbody><body><freejoint/><geom size='1'/></body></worldbody></mujoco>"
)


@pytest.fixture
def lines(caplog):
    """Return a function that gives the lines of the log at a level and above."""
    caplog.set_level(logging.DEBUG, "mbcasadi")
    return lambda level: [r.getMessage() for r in caplog.records if r.levelno >= level]


def test_a_thousand_calls_of_one_step_are_twenty_one_lines(lines):
    report = LoggedProgress()
    for k in range(1001):
        report("simulating", k / 1000)
    shown = lines(logging.INFO)
    assert shown[:2] == ["  0 %  simulating", "  5 %  simulating"]
    assert shown[-1] == "100 %  simulating"
    assert len(shown) == 21


def test_a_count_in_the_text_is_no_other_step(lines):
    report = ProgressReporter(None)
    for k in range(101):
        report(f"{k} of 100 runs are done", k / 100)
    report.note("writing the report")
    assert len(lines(logging.INFO)) == 22
    report.note("mass = 0.1")
    report.note("mass = 0.2")
    assert len(lines(logging.INFO)) == 24
    assert lines(logging.INFO)[-3:] == [
        f"100 %  {text}" for text in ("writing the report", "mass = 0.1", "mass = 0.2")
    ]


def test_what_a_caller_gets_is_not_in_the_log(lines):
    calls = []
    report = ProgressReporter(lambda text, share: calls.append((text, share)))
    report("compiling", 0.5)
    report.note("linking")
    notes_to(lambda text: calls.append(text))("done")
    assert calls == [("compiling", 0.5), ("linking", 0.5), "done"]
    assert not lines(logging.DEBUG)
    notes_to(None)("of the log")
    assert lines(logging.INFO) == ["of the log"]


def test_long_steps_are_information_and_short_ones_details(lines, monkeypatch):
    times = iter([0.0, 0.25, 10.0, 12.5])
    monkeypatch.setattr("mbcasadi.progress.time.perf_counter", lambda: next(times))
    log = logging.getLogger("mbcasadi.test")
    with logged_time(log, "reading %s", "short"):
        pass
    with logged_time(log, "reading %s", "long"):
        pass
    assert lines(logging.INFO) == ["reading long: 2.50 s"]
    assert "reading short: 0.25 s" in lines(logging.DEBUG)


def test_a_model_that_is_read_and_its_members_are_in_the_log_and_on_no_stream(lines, capfd):
    mb.read_mjcf(BODY).mass_matrix  # noqa: B018
    assert any(line.startswith("reading the XML text: ") for line in lines(logging.DEBUG))
    assert any(line.startswith("building mass_matrix of 'ball': ") for line in lines(logging.DEBUG))
    assert capfd.readouterr() == ("", "")
    (handler,) = logging.getLogger("mbcasadi").handlers
    assert isinstance(handler, logging.NullHandler)
