"""A sample of the campaign of plans, and that its judge sees what is wrong."""

import numpy as np
import pytest

from campaign.plans.converged import LOWER, rows
from campaign.plans.judge import Judge
from campaign.plans.problems import PROBLEMS
from campaign.plans.run import judged
from mbcasadi.codegen import export_c

TICKS = 60


@pytest.fixture(scope="module", params=["swing_up", "growing", "four_bar"])
def case(request, tmp_path_factory):
    posed = PROBLEMS[request.param]()
    folder = tmp_path_factory.mktemp("plans")
    return request.param, posed, export_c(posed.law, folder / "c").load()


@pytest.mark.every(3)
def test_no_answer_is_wrong_and_none_is_refused(case):
    name, posed, loaded = case
    tally = judged(name, posed, loaded, TICKS)
    assert tally.wrong == []
    counts = dict.fromkeys(("right", "refused", "needless", "undecided"), 0)
    for (kind, word), count in tally.verdicts.items():
        counts[word] += count
        assert word != "undecided" or kind == "far"
    assert counts["needless"] == 0
    assert counts["right"] > 0.8 * TICKS


@pytest.mark.every(3)
def test_the_judge_sees_other_controls_and_false_claims(case):
    _, posed, loaded = case
    ocp, z = posed.law.ocp, np.array(posed.law.controller.z0)
    nq, nv = ocp.system.nq, ocp.system.nv
    given = {"q": z[:nq], "v": np.zeros(nv), "ref": posed.reference().ravel(), "z": z}
    u, z_next, status, *_ = (part.full().ravel() for part in loaded(*given.values()))
    judge = Judge(posed.law)
    assert judge.verdict(given, [u, z_next, status[0]]).word == "right"
    first = ocp.nx * (ocp.horizon + 1)
    other = z_next.copy()
    other[first] += 0.05 * np.abs(ocp.u_bounds).max()
    assert judge.verdict(given, [u, other, 0]).word == "wrong"
    assert judge.verdict(given, [u, z_next, 2]).word == "wrong"
    assert judge.verdict(given, [u, z_next, 4]).word == "needless"
    assert judge.verdict(given, [np.nan * u, z_next, 0]).word == "wrong"
    assert judge.verdict(given | {"q": np.nan * z[:nq]}, [u, z_next, 0]).word == "wrong"


@pytest.mark.long
def test_ipopt_lowers_no_converged_plan():
    settled = [row for row in rows(PROBLEMS["swing_up"](), 4) if row.ticks]
    assert len(settled) >= 3
    for row in settled:
        assert row.own - row.from_own < LOWER * row.own
        assert row.from_own < row.own * (1 + LOWER)
