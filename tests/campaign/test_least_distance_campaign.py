"""A sample of the campaign of least-distance problems, and that its judge sees what is wrong."""

import numpy as np
import pytest

from campaign.least_distance.families import FAMILIES, Size, narrow, pair_apart, plain
from campaign.least_distance.program import Judge, Solver
from campaign.least_distance.run import TOLERANCES, run
from mbcasadi.description.qp_stages import PROOF_RADIUS, SolverFlag

PROBLEMS = 300  # of each family


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("campaign")


@pytest.mark.long
def test_no_answer_is_wrong_and_none_is_refused(folder):
    tallies = run(PROBLEMS * len(FAMILIES), folder, list(FAMILIES))
    assert [t.name for t in tallies] == [family.__name__ for family in FAMILIES]
    for tally in tallies:
        assert tally.wrong == []
        assert tally.needless == 0, tally.name
        assert tally.unproven == 0, tally.name
        assert tally.solved + tally.infeasible + tally.undecided == 2 * PROBLEMS
    assert sum(t.solved for t in tallies) > PROBLEMS * len(FAMILIES)
    assert sum(t.infeasible for t in tallies) > 6 * PROBLEMS


def test_the_judge_sees_a_point_outside_a_wrong_multiplier_and_a_worse_point(folder):
    problem = plain(np.random.default_rng(0), Size(50, 12, 6))
    answer = Solver(12, 6, folder)(*problem)
    judge = Judge(folder)
    assert np.all(judge.optimum(*problem, answer.x, answer.lam) <= TOLERANCES)
    for x, lam in (
        (answer.x * (1 - 1e-9), answer.lam),
        (answer.x, answer.lam * (1 + 1e-9)),
        (answer.x, -answer.lam),
        (np.full_like(answer.x, np.nan), answer.lam),
        (answer.x * (1 - 1e-9), answer.lam * (1 - 1e-9)),
    ):
        assert np.all(np.any(judge.optimum(*problem, x, lam) > TOLERANCES, axis=1))


def test_the_judge_believes_no_false_proof(folder):
    rng, judge = np.random.default_rng(1), Judge(folder)
    problem = pair_apart(rng, Size(50, 12, 6))
    answer = Solver(12, 6, folder)(*problem)
    assert np.all(answer.flag == SolverFlag.INFEASIBLE)
    assert np.all(judge.infeasible(*problem, answer.ray, PROOF_RADIUS))
    assert not np.any(judge.infeasible(*problem, -answer.ray, PROOF_RADIUS))
    assert not np.any(judge.infeasible(*problem, answer.ray * 0, PROOF_RADIUS))
    assert not np.any(judge.infeasible(*problem, answer.ray + 1e-6, PROOF_RADIUS))
    feasible = narrow(rng, Size(50, 12, 6))
    assert not np.any(judge.infeasible(*feasible, answer.ray, PROOF_RADIUS))
