"""Robots with references near and far, limits on: right answers, no needless failure.

Near ones are up to 1 m and 1 rad away in each task. Far ones ask for far more than actuators and
gravity can give: the judge shortens them as the controller says it does.

Robots of other makers are read from the folder beside the project, and skipped without it.
"""

import dataclasses

import numpy as np
import pytest

from campaign.condensed_form import judge_least_distance
from campaign.judge import NEEDLESS, WRONG, judge
from campaign.robots import robot_case
from campaign.run import SEED
from campaign.states import draw_inputs
from mbcasadi.description.status import Flag

NAMES = (
    "robot_quadruped", "robot_quadruped_base_first", "robot_humanoid", "robot_biped",
    "robot_cassie", "robot_cassie_pelvis_only",
    "robot_cassie_on_four_points",
    "robot_go2", "robot_g1", "robot_aloha",
)  # fmt: skip
STATES = 30
FAR = ("robot_quadruped", "robot_cassie_on_four_points", "robot_go2", "robot_aloha_hands_only")
IN_FULL = 6  # of them are judged in all unknowns too


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.every(3)
def test_no_answer_is_wrong_and_no_failure_is_needless(name):
    each = robot_case(name)
    solved, findings = 0, []
    for number in range(STATES):
        inputs = draw_inputs(each, number, SEED)
        assert inputs is not None, f"{name} {number}: no closed pose"
        solution = each.controller.solve(
            inputs.q, inputs.v, inputs.ref, mask=inputs.mask, z=inputs.z
        )
        solved += solution.status == 0
        finding = judge_least_distance(each, inputs, solution.status)
        if number < IN_FULL and not finding:
            verdict = judge(each, inputs, solution)
            finding = verdict.finding * (verdict.finding in (*WRONG, *NEEDLESS))
        if finding:
            findings.append((number, solution.status, finding, np.array(solution.residual)))
    assert not findings, f"{name}: {len(findings)} of {STATES}: {findings}"
    assert solved >= STATES / 4


@pytest.mark.parametrize("name", FAR)
@pytest.mark.parametrize("reach", [300.0, 1e5])
def test_references_out_of_reach_are_shortened_and_solved(name, reach):
    each = dataclasses.replace(robot_case(name), reach=reach)
    findings = []
    for number in range(STATES):
        inputs = draw_inputs(each, number, SEED)
        solution = each.controller.solve(
            inputs.q, inputs.v, inputs.ref, mask=inputs.mask, z=inputs.z
        )
        finding = judge_least_distance(each, inputs, solution.status)
        if number < IN_FULL and not finding and reach < 1000:
            finding = judge(each, inputs, solution).finding
        if solution.status == 0 and Flag.CLIPPED not in solution.flags:
            finding = "not clipped"
        if finding:
            findings.append((number, solution.status, finding))
    assert not findings, f"{name}: {len(findings)} of {STATES}: {findings}"
