"""Robots with references up to 1 m and 1 rad away, limits on: right answers, no needless failure.

Robots of other makers are read from the folder beside the project, and skipped without it.
"""

import numpy as np
import pytest

from campaign.judge import NEEDLESS, WRONG, judge
from campaign.least_distance import judge_least_distance
from campaign.robots import robot_case
from campaign.run import SEED
from campaign.states import draw_inputs

NAMES = (
    "robot_quadruped", "robot_humanoid", "robot_biped", "robot_cassie", "robot_cassie_pelvis_only",
    "robot_go2", "robot_g1", "robot_aloha",
)  # fmt: skip
STATES = 30
IN_FULL = 6  # of them are judged in all unknowns too


@pytest.mark.parametrize("name", NAMES)
def test_no_answer_is_wrong_and_no_failure_is_needless(name):
    each = robot_case(name)
    solved, findings = 0, []
    for number in range(STATES):
        inputs = draw_inputs(each, number, SEED)
        assert inputs is not None, f"{name} {number}: no closed pose"
        solution = each.controller.solve(inputs.q, inputs.v, inputs.ref, inputs.mask, inputs.z)
        solved += solution.status == 0
        finding = judge_least_distance(each, inputs, solution.status)
        if number < IN_FULL and not finding:
            verdict = judge(each, inputs, solution)
            finding = verdict.finding * (verdict.finding in (*WRONG, *NEEDLESS))
        if finding:
            findings.append((number, solution.status, finding, np.array(solution.residual)))
    assert not findings, f"{name}: {len(findings)} of {STATES}: {findings}"
    assert solved >= STATES / 4
