"""Statistics of campaigns against closed forms."""

import base64
import json
import math

import numpy as np
import pytest

from mbcasadi.errors import ProblemError
from mbcasadi.validation import Campaign, Case, Outcome, PassRate, sampled_cases
from mbcasadi.validation.campaigns.outcome import pass_rate, rank_regression
from mbcasadi.validation.metrics import Criteria, Metric, judge

LIMITS = Criteria({"tracking.max": 1.0, "cone.plant": 0.0})


def outcome(number, case, error, cone=0.5, *, done=True):
    metrics = (
        Metric("tracking.max", error, "m", "largest"),
        Metric("cone.plant", cone, "", "margin"),
    )
    events = () if done else ("the plant diverged",)
    return Outcome(number, case, metrics, judge(metrics, LIMITS, finished=done), events)


def campaign_of(errors, cases=None):
    plan = cases or [Case(k) for k in range(len(errors))]
    pairs = zip(plan, errors, strict=True)
    return Campaign(tuple(outcome(k, c, e) for k, (c, e) in enumerate(pairs)), len(plan))


def test_the_interval_of_the_pass_rate_is_wilsons():
    passed, total, z = 18, 20, 1.959963984540054  # z of 95 %
    p = passed / total
    centre = (p + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * math.sqrt(p * (1 - p) / total + z * z / (4 * total**2))
    rate = pass_rate(passed, total)
    assert rate.low == pytest.approx(centre - half, rel=1e-12)
    assert rate.high == pytest.approx(centre + half, rel=1e-12)
    assert isinstance(rate, PassRate)
    assert "18 of 20 runs passed: 90 %" in str(rate)


def test_the_worst_cases_are_those_that_stopped_then_the_largest_violations():
    case = Case(0)
    runs = (
        outcome(0, case, 0.5),
        outcome(1, case, 3.0),
        outcome(2, case, 0.1, done=False),
        outcome(3, case, 0.4, cone=-9.0),
        outcome(4, case, float("nan")),
    )
    done = Campaign(runs, 6)
    assert [each.number for each in done.worst(3)] == [2, 4, 3]
    assert done.failures() == {"tracking.max": 2, "finished": 1, "cone.plant": 1}
    assert not done.passed
    assert "1 of 6 cases are not done" in done.headline
    assert "case 2" in str(done)
    with pytest.raises(ProblemError, match="count"):
        done.worst(0)
    passing = (outcome(0, case, 0.2, cone=0.0), outcome(1, case, 0.9, cone=0.0))
    assert [each.number for each in Campaign(passing, 2).worst()] == [1, 0]


def test_sobol_indices_are_those_of_the_ishigami_function():
    """[Ishigami, Homma 1990]: indices in closed form for a = 7, b = 0.1 on (-π, π)³."""
    names = ("mass", "friction", "damping")
    plan = sampled_cases(dict.fromkeys(names, (0.0, 1.0)), 2048 * 5, design="saltelli")
    x = np.pi * (2 * np.array([[case.perturb[n] for n in names] for case in plan]) - 1)
    values = np.sin(x[:, 0]) + 7 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0])
    rows = campaign_of(values, plan).sensitivity(["tracking.max"])
    first, total = ([getattr(row, f"sobol_{n}") for row in rows] for n in ("first", "total"))
    variance = 0.1 * np.pi**4 / 5 + 0.01 * np.pi**8 / 18 + 0.5 + 49 / 8
    alone = 0.5 * (1 + 0.1 * np.pi**4 / 5) ** 2, 49 / 8, 0.0
    mixed = 0.01 * np.pi**8 * (1 / 18 - 1 / 50)
    np.testing.assert_allclose(first, np.array(alone) / variance, atol=0.02)
    expected = np.array(alone) + np.array([mixed, 0.0, mixed])
    np.testing.assert_allclose(total, expected / variance, atol=0.02)


def test_ranks_show_a_monotonic_dependence_and_no_other():
    plan = sampled_cases({"mass": (-0.2, 0.2), "start_error": (0.0, 0.1)}, 256)
    mass = np.array([case.perturb["mass"] for case in plan])
    done = campaign_of(np.exp(20 * mass), plan)
    by_name = {row.parameter: row for row in done.sensitivity()}
    assert by_name["mass"].correlation == pytest.approx(1.0)
    assert by_name["mass"].regression == pytest.approx(1.0)
    assert abs(by_name["start_error"].correlation) < 0.2
    assert by_name["start_error"].p_value > 0.01
    assert math.isnan(by_name["mass"].sobol_first)
    ends = campaign_of(np.abs(mass), plan).sensitivity()[0]
    assert abs(ends.correlation) < 0.1
    assert ends.size_correlation == pytest.approx(1.0)
    assert "the size of mass: rank correlation +1.00" in str(ends)
    assert done.sensitivity(["cone.plant"]) == []  # it does not vary


def test_rank_regression_separates_parameters_that_are_correlated():
    rng = np.random.default_rng(3)
    a, noise = rng.normal(size=(2, 2000))
    b = a + 0.5 * noise
    slopes = rank_regression(np.column_stack([a, b]), a)
    np.testing.assert_allclose(slopes, [1.0, 0.0], atol=1e-9)


def test_a_campaign_is_saved_as_json_and_as_a_page_that_refers_to_nothing(tmp_path):
    plan = sampled_cases({"mass": (-0.2, 0.2), "delay": (0, 3)}, 64)
    done = campaign_of([10 * abs(case.perturb["mass"]) for case in plan], plan)
    data = json.loads(done.save(tmp_path / "campaign.json").read_text(encoding="utf-8"))
    assert data["pass_rate"]["total"] == 64
    assert data["failures"] == {"tracking.max": 32}
    assert len(data["cases"]) == 64
    page = done.save(tmp_path / "campaign.html").read_text(encoding="utf-8")
    assert "32 of 64 runs passed" in page
    assert "Pass rate over mass" in page
    assert page.count("<svg") == 4  # two parameters, both, one metric
    assert "http://" not in page.replace("http://www.w3.org", "").replace("http://schema", "")
    with pytest.raises(ProblemError, match=r"\.json or \.html"):
        done.save(tmp_path / "campaign.txt")


def test_videos_of_cases_are_part_of_the_page(tmp_path):
    plan = sampled_cases({"mass": (-0.2, 0.2)}, 4)
    done, video = campaign_of([1.0, 2.0, 3.0, 4.0], plan), tmp_path / "case.mp4"
    video.write_bytes(b"a video")
    page = done.to_html(videos={2: video})
    assert f"base64,{base64.b64encode(b'a video').decode()}" in page
    with pytest.raises(ProblemError, match="case 4, which"):
        done.to_html(videos={4: video})
    with pytest.raises(ProblemError, match="cannot read"):
        done.save(tmp_path / "campaign.html", videos={0: tmp_path / "none.mp4"})
