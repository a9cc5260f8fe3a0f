"""Campaigns in a file: interrupted and continued, read back, refused where they differ."""

import sqlite3

import numpy as np
import pytest
from support.validation_problems import all_digits, crank_controller, swing

from mbcasadi import models
from mbcasadi.errors import ProblemError
from mbcasadi.validation import CampaignOptions, Criteria, Trial, campaign, cases, open_campaign
from mbcasadi.validation.campaigns.outcome import Outcome
from mbcasadi.validation.campaigns.store import Store

FOUR_BAR = models.path("four_bar")
PLAN = cases(range(5), [{"mass": 0.2}], start_errors=[0.01])
CRITERIA = Criteria({"tracking.max": 0.1, "prediction.end": 0.5})  # one that is NaN here


def run(store, *, duration=0.1, plan=PLAN, criteria=CRITERIA, kp=60.0, **more):
    law = crank_controller(kp=kp)
    options = {name: more.pop(name) for name in ("progress",) if name in more}
    trial = Trial(duration, reference=swing, criteria=criteria, **more)
    return campaign(law, FOUR_BAR, trial, plan, CampaignOptions(jobs=1, store=store, **options))


def stop_after(count):
    def progress(text, _share):
        if text.startswith(f"{count} of"):
            raise KeyboardInterrupt

    return progress


def test_an_interrupted_campaign_goes_on_and_is_read_back_as_it_was(tmp_path):
    store = tmp_path / "runs.sqlite"
    with pytest.raises(KeyboardInterrupt):
        run(store, progress=stop_after(2))
    part = open_campaign(store)
    assert [outcome.number for outcome in part.outcomes] == [0, 1]
    assert part.planned == 5
    assert part.headline.endswith("; 3 of 5 cases are not done")
    assert not part.passed
    texts = []
    done = run(store, progress=lambda text, _share: texts.append(text))
    assert [text for text in texts if "are done" in text] == [
        f"{k} of 5 runs are done" for k in (3, 4, 5)
    ]
    assert all_digits(done) == all_digits(run(None))
    assert all_digits(open_campaign(store)) == all_digits(done)
    assert all_digits(run(store)) == all_digits(done)  # nothing is left to run


def test_the_file_can_be_asked_by_other_programs(tmp_path):
    store = tmp_path / "runs.sqlite"
    done = run(store, fast=True)
    assert ["Python Function" in note for note in done.notes] == [True]
    assert open_campaign(store).notes == done.notes
    connection = sqlite3.connect(store)
    query = "SELECT number, value FROM results WHERE name = 'tracking.max' ORDER BY number"
    values = dict(connection.execute(query).fetchall())
    connection.close()
    expected = {o.number: o.metric("tracking.max") for o in done.outcomes}
    assert values == expected
    assert len(np.unique(list(values.values()))) == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"duration": 0.2}, r"duration \(0.1 s there, 0.2 s here\)"),
        ({"criteria": Criteria({"tracking.max": 0.2})}, "criteria"),
        ({"plan": cases(range(5))}, "cases"),
        ({"kp": 50.0}, "controller"),
        ({"q0": [0.1, 0.0, 0.0]}, "conditions"),
        ({"disturbance": [0.1, 0.0, 0.0]}, "conditions"),
    ],
)
def test_a_file_of_another_campaign_is_refused_with_what_differs(tmp_path, change, message):
    store = tmp_path / "runs.sqlite"
    run(store, plan=PLAN[:5])
    with pytest.raises(ProblemError, match=f"another campaign: it differs in .*{message}"):
        run(store, **change)


def test_a_file_that_is_no_campaign_is_refused(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database, by far not long enough to be one" * 40)
    with pytest.raises(ProblemError, match="cannot open"):
        run(text)
    other = tmp_path / "other.sqlite"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE things (x)")
    connection.commit()
    connection.close()
    with pytest.raises(ProblemError, match="not of a campaign"):
        run(other)
    with pytest.raises(ProblemError, match="no such file"):
        open_campaign(tmp_path / "missing.sqlite")


def filled(path, plan=PLAN):
    store = Store(path)
    store.begin({"model": "one"}, plan, ["a note"], {})
    return store


def test_of_two_processes_on_one_file_the_second_one_is_told(tmp_path):
    path = tmp_path / "runs.sqlite"
    first, second = filled(path), filled(path)
    first.add([Outcome(0, PLAN[0], (), (), ())])
    later = [Outcome(1, PLAN[1], (), (), ()), Outcome(0, PLAN[0], (), (), ())]
    with pytest.raises(ProblemError, match="one process at a time writes a campaign"):
        second.add(later)
    assert [outcome.number for outcome in first.outcomes()] == [0]  # nothing of its batch
    first.close()
    second.close()


def test_a_file_that_cannot_be_written_keeps_what_it_holds(tmp_path):
    """A limit of the file's size stands for a full disk, a second connection for a lock."""
    path = tmp_path / "runs.sqlite"
    store = filled(path)
    store._connection.execute("PRAGMA max_page_count = 1")
    many = tuple(f"an event of the run {k}" * 100 for k in range(100))
    with pytest.raises(ProblemError, match=r"cannot write .*full; what it holds stays"):
        store.add([Outcome(0, PLAN[0], (), (), many)])
    assert store.outcomes() == []
    assert store.notes() == ["a note"]
    store._connection.execute("PRAGMA query_only = 1")
    with pytest.raises(ProblemError, match=r"cannot write .*readonly"):
        store.add([Outcome(0, PLAN[0], (), (), ())])
    store.close()
    missing = tmp_path / "none" / "runs.sqlite"
    with pytest.raises(ProblemError, match="in a folder that can be written"):
        Store(missing)


@pytest.mark.parametrize(
    ("change", "message"),
    [("UPDATE cases SET content = '{'", "a case that is none"),
     ("UPDATE cases SET content = '{\"seed\": 1, \"colour\": 2}'", "a case that is none"),
     ("UPDATE outcomes SET events = '['", "events that are none"),
     ("DROP TABLE verdicts", "cannot read .*no such table")],
)  # fmt: skip
def test_a_damaged_file_is_refused(change, message, tmp_path):
    store = filled(tmp_path / "runs.sqlite")
    store.add([Outcome(0, PLAN[0], (), (), ())])
    store._connection.execute(change)
    with pytest.raises(ProblemError, match=message):
        store.outcomes()
    store.close()
