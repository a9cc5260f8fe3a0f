"""A case of a campaign alone: the same motion bit by bit, whatever acts on it."""

import casadi as ca
import numpy as np
import pytest
from support.validation_problems import SLIDER, crank_controller, planning_slider, swing

from mbcasadi import models
from mbcasadi.errors import ProblemError
from mbcasadi.validation import (
    Case,
    Criteria,
    Outcome,
    ScenarioOptions,
    campaign,
    case_report,
    cases,
    margin,
    reaction,
)

FOUR_BAR = models.path("four_bar")


def test_a_case_alone_has_the_metrics_of_the_campaign_bit_by_bit() -> None:
    plan = cases([5, 6], [{"mass": 0.2}], [2], [0.02], [1.5])
    more = {
        "reference": swing,
        "disturbance": lambda t: [0.1 * np.sin(20 * t), 0.0, 0.0],
        "criteria": Criteria({"tracking.max": 0.1}, settle=0.01),
    }
    trial = crank_controller(), FOUR_BAR, 0.2, plan
    outcome = campaign(*trial, **more).outcomes[1]
    (alone,) = case_report(*trial, 1, **more).runs
    known = {metric.name: metric.value for metric in alone.metrics}
    assert {m.name: known[m.name] for m in outcome.metrics} == {
        m.name: m.value for m in outcome.metrics
    }
    assert len(outcome.metrics) > 10
    with pytest.raises(ProblemError, match="0 to 1"):
        case_report(*trial, 2, **more)


def values(outcome: Outcome) -> list[str]:
    return [f"{metric.name} {metric.value!r}" for metric in outcome.metrics]


def test_the_factor_on_the_disturbance_is_that_of_the_case() -> None:
    push = lambda t: [3.0] if t > 0.05 else [0.0]  # noqa: E731
    trial = planning_slider(), SLIDER, 0.5
    loose = {"criteria": Criteria({})}
    pushed = campaign(*trial, [Case(0), Case(0, disturbance=-2.0)], disturbance=push, **loose)
    other = campaign(*trial, [Case(0)], disturbance=lambda t: [-2.0 * push(t)[0]], **loose)
    assert values(pushed.outcomes[1]) == values(other.outcomes[0])
    assert values(pushed.outcomes[0]) != values(other.outcomes[0])


def test_a_reaction_and_switches_act_in_a_campaign_as_they_do_alone() -> None:
    z, scheduled = ca.SX.sym("z"), ca.SX.sym("scheduled_ref", 2)
    function = ca.Function(
        "halves", [scheduled, z], [scheduled / 2, z + 1], ["scheduled_ref", "z"], ["ref", "z_next"]
    )
    trial = crank_controller(), FOUR_BAR, 0.1, cases([1])
    loose = {"reference": swing, "criteria": Criteria({})}
    with reaction(function, [0.0]) as halved:
        options = ScenarioOptions(reaction=halved, switch=lambda t: {"pin": t < 0.05})
        acted = campaign(*trial, scenario=options, **loose).outcomes[0]
        (alone,) = case_report(*trial, 0, scenario=options, **loose).runs
    plain = campaign(*trial, **loose).outcomes[0]
    assert acted.metric("tracking.max") == alone.metric("tracking.max")
    assert acted.metric("closure.plant") == alone.metric("closure.plant")
    assert acted.metric("tracking.max") != plain.metric("tracking.max")


def weak_push(**more):
    """Return the margin of a slider on which a constant force acts: x = F / k at rest."""
    slider = planning_slider()
    return margin(
        slider, SLIDER, 2.0, over="disturbance", disturbance=[1.0],
        criteria=Criteria({"torque.max": 5.0}), tolerance=1e-3, jobs=1, **more,
    )  # fmt: skip


def test_the_margin_is_the_force_at_which_the_control_exceeds_its_limit() -> None:
    """The least u that holds F is F; from rest the largest |u| is its overshoot, linear in F."""
    found = weak_push(largest=20.0)
    unit = campaign(
        planning_slider(), SLIDER, 2.0, [Case(0)], disturbance=[1.0], criteria=Criteria({})
    )
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


def test_a_margin_over_delays_is_whole_ticks_and_one_that_fails_at_once_says_so() -> None:
    more = {"reference": swing, "jobs": 1}
    trial = crank_controller(), FOUR_BAR, 0.3
    found = margin(
        *trial, over="delay", largest=80, steps=2, criteria=Criteria({"tracking.max": 0.08}), **more
    )
    assert found.fails == found.passes + 1
    assert found.fails.is_integer()
    nothing = margin(
        *trial, over="mass", largest=0.1, steps=1, criteria=Criteria({"tracking.max": 0.0}), **more
    )
    assert "fails without any error" in str(nothing)
    with pytest.raises(ProblemError, match="not zero"):
        margin(*trial, over="mass", largest=0.0, **more)
    with pytest.raises(ProblemError, match="not negative"):
        margin(*trial, over="delay", largest=-2, **more)
