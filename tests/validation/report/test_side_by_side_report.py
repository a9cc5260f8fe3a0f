"""Controllers side by side: their criteria in one table, their curves over each other."""

import json

import numpy as np
import pytest

from mbcasadi import models
from mbcasadi.errors import ProblemError
from mbcasadi.inline_svg import COLORS
from mbcasadi.validation import Criteria, side_by_side, validate
from mbcasadi.validation.report.overlays import overlays

FOUR_BAR = models.path("four_bar")


def servo(gain):
    return lambda _, q, v: [gain * (0.5 - q[0]) - 0.1 * v[0]]


def judged(gain, limit):
    criteria = Criteria({"torque.max": limit})
    return validate(servo(gain), FOUR_BAR, 0.05, criteria=criteria)


@pytest.fixture(scope="module")
def reports():
    return {
        "weak & <slow>": judged(0.2, 1.0),
        "strong": judged(3.0, 1.0),
        "other": judged(1.0, 2.0),
    }


def test_criteria_and_metrics_of_all_are_in_one_table(reports):
    both = side_by_side(reports)
    assert both.passed is False  # the strong one exceeds 1 N m at the start
    rows = {row[0]: row[1:] for row in both.rows()}
    weak, strong, other = (r.runs[0].metric("torque.max") for r in reports.values())
    cells = f"{weak:.3g} (≤ 1)", f"{strong:.3g} (≤ 1) FAILED", f"{other:.3g} (≤ 2)"
    assert rows["largest control"] == (*cells, "")
    assert rows["ran to its end"] == ("yes", "yes", "yes", "yes")
    assert both.headings == ("criterion", *reports, "required")
    same = side_by_side({"a": reports["strong"], "b": reports["strong"]})
    assert {row[0]: row[3] for row in same.rows()}["largest control"] == "≤ 1"
    assert "largest control" in str(both)
    metrics = {row[0]: row[1:] for row in both.metric_rows()}
    values = [report.runs[0].metric("torque.max") for report in reports.values()]
    assert metrics["largest control"] == tuple(f"{value:.3g}" for value in values)


def test_curves_are_those_of_the_runs_in_a_colour_each(reports):
    both = side_by_side(reports)
    shown, folded = overlays(both.runs)
    titles = [each.title for each in shown]
    assert titles[-1] == "Control crank, N m"
    assert "Position crank, rad" in titles
    assert {each.field for each in folded} == {"v"}
    control = shown[-1].curves
    for label, report in reports.items():
        np.testing.assert_array_equal(control[label][1], report.runs[0].recording.u[:, 0])
    html = both._repr_html_()
    assert html.count("<svg") == 1
    for color in COLORS[:3]:
        assert color in html
    assert "weak &amp; &lt;slow&gt;" in html


def test_it_is_saved_as_a_page_as_data_and_as_a_picture(reports, tmp_path):
    both = side_by_side(reports, title="Three servos")
    page = both.save(tmp_path / "both.html").read_text(encoding="utf-8")
    assert "<h1>Three servos</h1>" in page
    assert "weak &amp; &lt;slow&gt;" in page
    assert "<slow>" not in page
    assert page.count("<svg") == 7  # three joints, their rates, the motor
    assert "nan" not in page[: page.index("<svg")]
    data = json.loads(both.save(tmp_path / "both.json").read_text(encoding="utf-8"))
    assert list(data["reports"]) == list(reports)
    assert data["passed"] is False
    assert both.save(tmp_path / "both.png").read_bytes().startswith(b"\x89PNG")
    assert both.table().row_count == len(both.rows())
    with pytest.raises(ProblemError, match=r"\.json or \.html"):
        both.save(tmp_path / "both.txt")


def test_what_cannot_be_compared_is_refused(reports):
    with pytest.raises(ProblemError, match="1 labels; expected at least two"):
        side_by_side({"a": reports["strong"]})
    with pytest.raises(ProblemError, match=r"reports is .* expected a mapping"):
        side_by_side([reports["strong"]] * 2)
    many = reports["strong"]
    for _ in range(3):
        many = many + many
    with pytest.raises(ProblemError, match="16 runs; expected at most 12"):
        side_by_side({"a": many, "b": many})
    assert len(side_by_side({"a": reports["strong"] + reports["other"], "b": many}).runs) == 10
