"""A case of a campaign alone: the same motion bit by bit, whatever acts on it."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from support.validation_problems import SLIDER, crank_controller, planning_slider, swing

from mbcasadi import models
from mbcasadi.errors import ProblemError
from mbcasadi.validation import (
    CampaignOptions,
    Case,
    Criteria,
    ScenarioOptions,
    Trial,
    campaign,
    case_report,
    cases,
    margin,
    reaction,
)

FOUR_BAR = models.path("four_bar")


def test_a_case_alone_has_the_metrics_of_the_campaign_bit_by_bit():
    plan = cases([5, 6], [{"mass": 0.2}], [2], [0.02], [1.5])
    trial = Trial(
        0.2,
        reference=swing,
        disturbance=lambda t: [0.1 * np.sin(20 * t), 0.0, 0.0],
        criteria=Criteria({"tracking.max": 0.1}, settle=0.01),
    )
    given = crank_controller(), FOUR_BAR, trial, plan
    outcome = campaign(*given).outcomes[1]
    (alone,) = case_report(*given, 1).runs
    known = {metric.name: metric.value for metric in alone.metrics}
    assert {m.name: known[m.name] for m in outcome.metrics} == {
        m.name: m.value for m in outcome.metrics
    }
    assert len(outcome.metrics) > 10
    with pytest.raises(ProblemError, match="0 to 1"):
        case_report(*given, 2)


def values(outcome):
    return [f"{metric.name} {metric.value!r}" for metric in outcome.metrics]


def test_the_factor_on_the_disturbance_is_that_of_the_case():
    push = lambda t: [3.0] if t > 0.05 else [0.0]  # noqa: E731
    given, trial = (planning_slider(), SLIDER), Trial(0.5, disturbance=push, criteria=Criteria({}))
    pushed = campaign(*given, trial, [Case(0), Case(0, disturbance=-2.0)])
    turned = replace(trial, disturbance=lambda t: [-2.0 * push(t)[0]])
    other = campaign(*given, turned, [Case(0)])
    assert values(pushed.outcomes[1]) == values(other.outcomes[0])
    assert values(pushed.outcomes[0]) != values(other.outcomes[0])


def test_a_reaction_and_switches_act_in_a_campaign_as_they_do_alone():
    z, scheduled = ca.SX.sym("z"), ca.SX.sym("scheduled_ref", 2)
    function = ca.Function(
        "halves", [scheduled, z], [scheduled / 2, z + 1], ["scheduled_ref", "z"], ["ref", "z_next"]
    )
    given, plan = (crank_controller(), FOUR_BAR), cases([1])
    trial = Trial(0.1, reference=swing, criteria=Criteria({}))
    with reaction(function, [0.0]) as halved:
        options = ScenarioOptions(reaction=halved, switch=lambda t: {"pin": t < 0.05})
        changed = replace(trial, scenario=options)
        acted = campaign(*given, changed, plan).outcomes[0]
        (alone,) = case_report(*given, changed, plan, 0).runs
    plain = campaign(*given, trial, plan).outcomes[0]
    assert acted.metric("tracking.max") == alone.metric("tracking.max")
    assert acted.metric("closure.plant") == alone.metric("closure.plant")
    assert acted.metric("tracking.max") != plain.metric("tracking.max")


def weak_push(**more):
    """Return the margin of a slider on which a constant force acts: x = F / k at rest."""
    trial = Trial(2.0, disturbance=[1.0], criteria=Criteria({"torque.max": 5.0}))
    return margin(
        planning_slider(),
        SLIDER,
        trial,
        over="disturbance",
        tolerance=1e-3,
        options=CampaignOptions(jobs=1),
        **more,
    )


def test_the_margin_is_the_force_at_which_the_control_exceeds_its_limit():
    """The least u that holds F is F; from rest the largest |u| is its overshoot, linear in F."""
    found = weak_push(largest=20.0)
    free = Trial(2.0, disturbance=[1.0], criteria=Criteria({}))
    unit = campaign(planning_slider(), SLIDER, free, [Case(0)])
    exact = 5.0 / unit.outcomes[0].metric("torque.max")
    assert found.passes < exact <= found.fails
    assert found.fails - found.passes <= 1e-3
    assert found.failure is not None
    assert found.failure.failed == ("torque.max",)
    assert "first fails between disturbance" in str(found)
    none = weak_push(largest=exact / 2, steps=2)
    assert none.failure is None
    assert np.isnan(none.fails)
    assert "passes for all" in str(none)


def test_a_margin_over_delays_is_whole_ticks_and_one_that_fails_at_once_says_so():
    given = crank_controller(), FOUR_BAR

    def least(limit, **more):
        trial = Trial(0.3, reference=swing, criteria=Criteria({"tracking.max": limit}))
        return margin(*given, trial, options=CampaignOptions(jobs=1), **more)

    found = least(0.08, over="delay", largest=80, steps=2)
    assert found.fails == found.passes + 1
    assert found.fails.is_integer()
    nothing = least(0.0, over="mass", largest=0.1, steps=1)
    assert "fails without any error" in str(nothing)
    with pytest.raises(ProblemError, match="not zero"):
        least(0.08, over="mass", largest=0.0)
    with pytest.raises(ProblemError, match="not negative"):
        least(0.08, over="delay", largest=-2)
