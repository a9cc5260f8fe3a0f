"""The page of a campaign says what ran, and its plots have units and their limits in view."""

import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from mbcasadi import models
from mbcasadi.validation import (
    Campaign,
    CampaignOptions,
    Case,
    Criteria,
    Metric,
    Outcome,
    Trial,
    campaign,
    open_campaign,
    sampled_cases,
)
from mbcasadi.validation.campaigns.page import (
    default_title,
    filled_columns,
    sensitivity_table,
)
from mbcasadi.validation.campaigns.plots import campaign_plots
from mbcasadi.validation.metrics import judge

LIMITS = Criteria({"tracking.max": 1.0, "closure.share": 0.05})


def done(errors, cases):
    runs = []
    for number, (case, error) in enumerate(zip(cases, errors, strict=True)):
        metrics = (Metric("tracking.max", error, "rad"), Metric("closure.share", 1e-5 * error))
        runs.append(Outcome(number, case, metrics, judge(metrics, LIMITS, finished=True), ()))
    settings = {"controller": "servo <1>", "model": "arm", "command": "mbcasadi campaign 'my arm'"}
    return Campaign(tuple(runs), len(runs), (), settings)


@pytest.fixture(scope="module")
def example():
    plan = sampled_cases({"mass": (0.0, 0.2), "delay": (0, 3)}, 16)
    return done([0.2 + 5 * case.perturb["mass"] for case in plan], plan)


def test_the_head_names_controller_model_and_command(example):
    page = example.to_html()
    assert page.count("Campaign: servo &lt;1&gt; on arm") == 2  # title and heading
    assert "<code>mbcasadi campaign &#39;my arm&#39;</code>" in page
    assert "<th>Why</th>" in page
    good = done([0.1, 0.2], [Case(0), Case(1)])
    assert "<h1>Mine" in (page := good.to_html("Mine"))
    assert "<th>Why</th>" not in page
    assert default_title({}) == "Campaign"


def test_a_campaign_knows_what_ran_and_its_file_keeps_it(tmp_path):
    def idle(t, q, v):
        return [0.0]

    options = CampaignOptions(store=tmp_path / "runs.sqlite")
    given = idle, models.path("four_bar"), Trial(0.01), [Case(0)], options
    first, again = campaign(*given), campaign(*given)
    assert first.settings["model"] == "four_bar"
    assert first.settings["controller"] == "idle"
    assert first.settings["duration"] == "0.01 s"
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d", first.settings["begun"])
    assert again.settings == first.settings == open_campaign(options.store).settings


def axes_of(example):
    result = {}
    for title, _, draw in campaign_plots(example.outcomes, example.judged_metrics()):
        result[title] = Figure().add_subplot()
        draw(result[title])
    return result


def test_axes_have_units_and_histograms_show_data_and_limit(example):
    axes = axes_of(example)
    labels = {title: (each.get_xlabel(), each.get_ylabel()) for title, each in axes.items()}
    assert labels["Pass rate over mass"] == ("error of mass / %", "runs that passed / %")
    assert labels["Pass rate over delay"][0] == "delay / ticks"
    errors, gap = axes["tracking error, largest"], list(axes.values())[-1]
    assert errors.get_xlabel() == "tracking error, largest / rad"
    assert gap.get_xlabel().endswith(" / %")
    assert gap.get_xscale() == "log"  # 1e-3 % beside a limit of 5 %
    for each, limit in ((errors, 1.0), (gap, 5.0)):
        low, high = each.get_xlim()
        assert low <= limit <= high
        bars = [bar for bar in each.patches if bar.get_height() > 0]
        assert sum(bar.get_height() for bar in bars) == len(example.outcomes)
        assert min(bar.get_x() for bar in bars) >= low
    (line,) = axes["Passes and failures over mass and delay"].get_lines()[:1]
    assert np.max(line.get_xdata()) > 1.0  # %


def test_tables_have_no_column_without_content(example):
    table = sensitivity_table(example.sensitivity())
    assert "Sobol, total" not in table.headings
    assert "With size" not in table.headings  # no parameter has both signs
    assert {len(row) for row in table.rows} == {len(table.headings)}
    signed = sampled_cases({"mass": (-0.2, 0.2)}, 16)
    both = done([1 + case.perturb["mass"] ** 2 for case in signed], signed)
    assert "With size" in sensitivity_table(both.sensitivity()).headings
    assert filled_columns(("a", "b", "c"), [("x", "", "–"), ("y", "", "1")], 1) == (
        ["a", "c"], [False, True], [["x", "–"], ["y", "1"]],
    )  # fmt: skip
