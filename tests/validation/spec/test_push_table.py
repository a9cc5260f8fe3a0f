"""The `[[validation.push]]` tables act in `validate`, `campaign` and `margin` as `Push` does."""

import tomllib

import pytest

from mbcasadi import models
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.validation import Case, Push, validate
from mbcasadi.validation.spec import (
    build_experiment,
    json_schema,
    parse_spec,
    propose_spec,
    run_campaign,
    run_margin,
    run_spec,
)

FOUR_BAR = models.path("four_bar")
CRANK = """
type = "inverse_dynamics_qp"
[[task]]
type = "posture"
joints = ["crank"]
kp = 400.0
[validation]
duration = 0.3
[validation.criteria]
"torque.max" = {limit}
[[validation.push]]
body = "{body}"
force = [20.0, 0.0, -10]
start = 0.05
stop = {stop}
"""
PUSH = Push("rocker", (20.0, 0.0, -10.0), 0.05, 0.15)


def crank(*, body="rocker", stop="0.15", limit="1e3"):
    return parse_spec(tomllib.loads(CRANK.format(body=body, stop=stop, limit=limit)))


def test_a_table_is_the_push_of_python_and_options_replace_it():
    spec = crank()
    assert spec.trial.pushes == (PUSH,)
    other = Push("crank", (1.0, 0.0, 0.0), 0.0, 0.1)
    assert spec.with_trial(disturbance=(other, PUSH)).trial.pushes == (other, PUSH)
    assert spec.with_trial(delay=1).trial.pushes == (PUSH,)
    bare = {"type": "inverse_dynamics_qp", "task": [{"type": "posture", "kp": 1.0}]}
    assert parse_spec(bare).trial.disturbance is None


@pytest.mark.long
def test_the_pushed_run_campaign_and_margin_are_those_of_python():
    spec, experiment = crank(), build_experiment(crank(), FOUR_BAR)
    largest = {}
    for pushes in ((), (PUSH,)):
        report = validate(
            experiment.controller, FOUR_BAR, 0.3,
            reference=experiment.reference, q0=experiment.q0, disturbance=pushes or None,
        )  # fmt: skip
        largest[len(pushes)] = report.runs[0].metric("torque.max")
    assert largest[1] > 1.1 * largest[0]
    assert run_spec(spec, FOUR_BAR).runs[0].metric("torque.max") == largest[1]
    plan = [Case(0), Case(0, disturbance=0.0)]
    pushed, free = run_campaign(spec, FOUR_BAR, plan, jobs=1).outcomes
    assert pushed.metric("torque.max") == largest[1]
    assert free.metric("torque.max") == largest[0]
    limited = crank(limit=str((largest[0] + largest[1]) / 2))
    found = run_margin(limited, FOUR_BAR, "disturbance", 1.0, steps=2, tolerance=0.1, jobs=1)
    assert 0.0 < found.passes < found.fails <= 1.0


def test_a_wrong_push_is_refused_with_what_is_valid():
    with pytest.raises(ProblemError, match=r"push 1: the push on 'rocker' is from 0\.05 s to 0"):
        crank(stop="0.01")
    with pytest.raises(ProblemError, match=r"push 1: stop = nan; expected a number"):
        crank(stop="nan")
    with pytest.raises(UnknownNameError, match="valid: 'crank', 'coupler', 'rocker'; did you mean"):
        run_spec(crank(body="roker"), FOUR_BAR)


def test_the_schema_and_the_proposed_file_show_pushes():
    schema = json_schema()["$defs"]
    fields = {"body", "force", "start", "stop", "frequency"}
    assert set(schema["Push"]["properties"]) == fields
    lines = propose_spec(FOUR_BAR).splitlines()
    place = next(k for k, line in enumerate(lines) if line.startswith("# [[validation.push]]"))
    lines[place : place + 5] = [line.removeprefix("# ") for line in lines[place : place + 5]]
    (push,) = parse_spec(tomllib.loads("\n".join(lines))).trial.pushes
    assert push == Push("rocker", (0.0, 50.0, 0.0), 0.5, 0.7)
