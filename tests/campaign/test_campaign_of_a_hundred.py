"""A hundred problems of the campaign and ten in 50 digits; the judges see what is wrong."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from campaign.cases import case
from campaign.fifty_digits import SEED as EXACT_SEED
from campaign.fifty_digits import bound, judge_exactly, judged_exactly
from campaign.judge import NEEDLESS, WRONG, judge
from campaign.run import SEED, judged
from campaign.states import draw_inputs

CASES = (
    "four_bar_mm", "massless_four_bar", "parallelogram", "five_bar_km", "six_bar", "slider_crank",
    "held_body", "held_body_km", "particles_km", "tree_1", "tree_2", "tree_3", "tree_5", "tree_8",
    "bennett", "bricard", "planar_3rrr", "planar_biped", "walker_5", "quadruped_pressed",
)  # fmt: skip
EACH = 5
EXACTLY = ("four_bar", "parallelogram", "massless_four_bar_km", "slider_crank", "held_body_km")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.every(8)
def test_no_answer_is_wrong_and_no_failure_is_needless(name):
    findings = Counter()
    for number in range(EACH):
        verdict, note = judged(name, number)
        assert verdict is not None, f"{name} {number}: no closed pose"
        findings[verdict.finding in ("", *WRONG, *NEEDLESS)] += 1
        assert verdict.finding not in (*WRONG, *NEEDLESS), f"{number}: {verdict.finding} {note}"
    assert findings[True] >= EACH - 1, f"undecided: {findings[False]} of {EACH}"


@pytest.mark.parametrize("name", EXACTLY)
@pytest.mark.every(3)
def test_answers_are_right_in_fifty_digits(name):
    for number in range(2):
        verdict, inputs = judged_exactly(name, number)
        assert verdict is not None, "another assembly"
        assert verdict.status == 0
        assert verdict.worst <= bound(name, inputs), verdict


def answered(name, number=0, seed=SEED):
    each = case(name)
    inputs = draw_inputs(each, number, seed)
    solution = each.controller.solve(inputs.q, inputs.v, inputs.ref, mask=inputs.mask, z=inputs.z)
    assert solution.status == 0
    return each, inputs, solution


def test_the_judge_sees_an_acceleration_that_breaks_the_equations():
    for name in ("bennett", "held_body", "walker_1"):
        each, inputs, solution = answered(name)
        a = solution.a + 1e-4 * np.abs(solution.a).max() * each.size
        assert judge(each, inputs, replace(solution, a=a)).wrong


def test_the_judge_sees_a_motion_across_the_constraints():
    """The motion without the loop obeys `M a = f + B p`, not the rows."""
    each, inputs, solution = answered("bennett")
    at = inputs.numbers
    free = np.linalg.solve(at.M, at.f + at.B @ solution.p)
    assert judge(each, inputs, replace(solution, a=free)).finding == "constraint"


def test_the_judge_sees_a_feasible_answer_that_is_not_optimal():
    for name in ("five_bar_km", "quadruped", "tree_1"):
        each, inputs, _ = answered(name)
        aside = inputs.ref + 1e-2 * np.abs(inputs.ref).max()
        other = each.controller.solve(inputs.q, inputs.v, aside, mask=inputs.mask)
        assert other.status == 0
        assert judge(each, inputs, other).finding == "not optimal", name


def test_the_judge_sees_a_foot_that_pulls():
    each, inputs, solution = answered("quadruped", 1)
    on = np.flatnonzero(inputs.mask[:4] > 0.5)
    assert on.size >= 2
    forces = solution.contact_forces.copy()
    forces[on[0], 0] = -1.0
    assert judge(each, inputs, replace(solution, contact_forces=forces)).wrong


def test_the_judge_sees_controls_outside_limits_and_other_than_their_forces():
    each, inputs, solution = answered("four_bar_model")
    assert judge(each, inputs, replace(solution, u=each.limits[:, 1] + 1)).finding == (
        "outside limits"
    )
    assert judge(each, inputs, replace(solution, u=0.5 * solution.u)).finding == "another control"


@pytest.mark.parametrize(
    ("status", "finding"),
    [(1, "needless suboptimal"), (2, "false infeasible"), (3, "refused"), (4, "needless failure")],
)
def test_the_judge_sees_a_failure_on_a_problem_that_has_an_answer(status, finding):
    each, inputs, solution = answered("quadruped")
    assert judge(each, inputs, replace(solution, status=status)).finding == finding


def test_the_judge_in_fifty_digits_sees_another_acceleration_and_another_control():
    each, inputs, _ = answered("held_body", 3, EXACT_SEED)
    solution = each.controller.solve(inputs.q, inputs.v, inputs.ref, mask=inputs.mask)
    right = judge_exactly("held_body", each, inputs, solution)
    assert right.worst <= bound("held_body", inputs)
    moved = replace(solution, a=solution.a * (1 + 1e-4))
    assert judge_exactly("held_body", each, inputs, moved).acceleration > 1e-5
    aside = inputs.ref + 1e-2 * np.abs(inputs.ref).max()
    other = each.controller.solve(inputs.q, inputs.v, aside, mask=inputs.mask)
    assert judge_exactly("held_body", each, inputs, other).stationarity > 1e-5
