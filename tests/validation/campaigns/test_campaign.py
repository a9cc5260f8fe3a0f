"""Campaigns: one controller's C in many plants."""

import json
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from support.validation_problems import (
    crank_controller,
    idle_controller,
    signal,
    standing_controller,
    swing,
)

from mbcasadi import models
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant
from mbcasadi.validation import (
    CampaignOptions,
    Criteria,
    ScenarioOptions,
    Trial,
    campaign,
    cases,
    margin,
    open_campaign,
    validate,
)
from mbcasadi.validation.metrics.criteria import JUDGED

FOUR_BAR = models.path("four_bar")


def test_each_case_is_another_plant_and_the_summary_names_the_worst():
    plan = cases([1, 2], [{"mass": 0.2}], [0, 5], [0.0])
    reports: list[tuple[str, float]] = []
    done = campaign(
        crank_controller(),
        FOUR_BAR,
        Trial(0.5, reference=swing),
        plan,
        CampaignOptions(progress=lambda text, share: reports.append((text, share))),
    )
    errors = np.array([outcome.metric("tracking.rms") for outcome in done.outcomes])
    assert len(np.unique(errors)) == 4
    row = next(r for r in done.summary() if r.metric == "tracking.rms")
    assert row.worst == errors.max()
    assert row.worst_case == int(errors.argmax())
    assert row.median == pytest.approx(np.median(errors))
    assert ("3 of 4 runs are done", 0.75) in reports


def test_a_start_error_moves_the_start_and_the_loops_stay_closed():
    trial, plan = Trial(0.1, reference=swing), cases([3], start_errors=[0.0, 0.1])
    done = campaign(crank_controller(), FOUR_BAR, trial, plan)
    first, moved = done.outcomes
    assert moved.metric("tracking.max") > first.metric("tracking.max") + 0.005
    assert moved.metric("closure.plant") < 1e-3


def test_a_failed_case_fails_the_campaign_and_is_in_the_json():
    done = campaign(
        crank_controller(),
        FOUR_BAR,
        Trial(0.2, reference=swing, criteria=Criteria({"tracking.max": 0.08})),
        cases([1], delays=[0, 60]),
    )
    assert [o.passed for o in done.outcomes] == [True, False]
    assert not done.passed
    data = json.loads(done.to_json())
    assert data["cases"][1]["failed"] == ["tracking.max"]
    assert next(r for r in data["summary"] if r["metric"] == "tracking.max")["failed"] == 1


def test_a_campaign_without_criteria_fails_where_a_constant_target_is_not_held():
    done = campaign(
        crank_controller(kp=0.0, kd=0.0), FOUR_BAR, Trial(0.5, reference=[1.0, 0.0]), cases([1])
    )
    (outcome,) = done.outcomes
    assert outcome.metric("tracking.max") > 0.9  # the error was there, in rad
    assert [v.metric for v in outcome.verdicts if not v.passed] == ["tracking.hold_share"]
    assert not done.passed


def test_runs_of_which_no_criterion_says_anything_are_not_judged(tmp_path):
    store = tmp_path / "idle.sqlite"
    given = idle_controller(FOUR_BAR), FOUR_BAR, Trial(0.1)
    done = campaign(*given, cases([1, 2]), CampaignOptions(store=store))
    assert [v.metric for o in done.outcomes for v in o.verdicts if v.passed is None] == [JUDGED] * 2
    for result in (done, open_campaign(store)):
        assert result.passed is None
        assert result.pass_rate.passed == 0
        assert "2 runs are not judged" in str(result)
        assert result.to_dict()["passed"] is None
        assert ">not judged<" in result.to_html()
    with pytest.raises(ProblemError, match=r"no criterion says .* give reference= or criteria="):
        margin(*given, over="mass", largest=0.1, steps=1)


def test_an_empty_campaign_is_refused():
    with pytest.raises(ProblemError, match="at least one case"):
        campaign(crank_controller(), FOUR_BAR, Trial(0.1), [])


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ({"scenario": ScenarioOptions(seed=1)}, "each case of a campaign has a seed"),
        ({"delay": 2}, "its own errors and delay; .* delay = 2: give them to the cases"),
        ({"perturb": {"mass": 0.1}}, "perturb = {'mass': 0.1} .*: give them to the cases"),
    ],
)
def test_seed_errors_and_delay_belong_to_the_cases(conditions, words):
    with pytest.raises(ProblemError, match=words):
        campaign(crank_controller(), FOUR_BAR, Trial(0.1, **conditions), cases([0]))


def test_planned_contact_forces_are_those_whose_control_acts():
    quadruped = models.path("quadruped")
    q, stand = ca.SX.sym("q", 19), Plant(quadruped).keyframe("stand")
    planned = ca.repmat(ca.vertcat(1e3 * q[2], 0, 0), 4, 1)  # of the height, which sinks
    monitor = ca.Function("monitor", [q], [planned], ["q"], ["contact_force"])
    monitors = (signal("contact_force", 12, "N"),)
    law = replace(standing_controller(stand), monitor=monitor, monitors=monitors)
    trial, start = (law, quadruped, 0.1), {"q0": stand, "criteria": Criteria({}, settle=0.0)}
    done = campaign(
        *trial[:2], Trial(0.1, **start), cases([0], delays=[0, 10]), CampaignOptions(jobs=1)
    )
    forces = [outcome.metric("contact.force_normal") for outcome in done.outcomes]
    for delay, force in zip((0, 10), forces, strict=True):
        (run,) = validate(*trial, delay=delay, **start).runs
        assert run.metric("contact.force_normal") == force
