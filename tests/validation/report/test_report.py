"""Reports: a table, JSON, and a page that needs nothing else."""

import io
import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from support.validation_problems import crank_controller, standing_controller, swing

from mbcasadi import models
from mbcasadi.description import Signal
from mbcasadi.errors import MissingExtraError, ProblemError
from mbcasadi.plant import Plant
from mbcasadi.validation import Report, ReportOptions, ScenarioOptions, validate
from mbcasadi.validation.metrics import Verdict

VOID = {"meta", "br", "img", "hr", "link", "input"}


class Balanced(HTMLParser):
    """Checks that tags close in order, and collects what refers elsewhere."""

    def __init__(self):
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        names = {"src", "href", "xlink:href", "action"}
        self.references += [value or "" for name, value in attributes if name in names]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def report():
    crank = validate(
        crank_controller(),
        models.path("four_bar"),
        0.2,
        reference=swing,
        report=ReportOptions(softness=True, render=True, name="A four-bar <&> its crank"),
    )
    path = models.path("quadruped")
    law = standing_controller(Plant(path).keyframe("stand"))
    stand = ScenarioOptions(keyframe="stand")
    return crank + validate(law, path, 0.2, scenario=stand, perturb={"mass": 0.1}, delay=1)


@pytest.fixture(scope="module")
def page(report):
    return report.to_html()


def test_reports_add_up(report):
    assert len(report.runs) == 2
    assert report.passed == all(run.passed for run in report.runs)


def test_the_json_has_settings_measurements_and_criteria(report, tmp_path):
    data = json.loads(report.save(tmp_path / "report.json").read_text())
    assert data["passed"] == report.passed
    assert data["versions"]["mujoco"]
    first, second = data["runs"]
    assert first["metrics"]["closure.plant"]["unit"] == "m"
    assert first["softness"]["rigid"] < first["softness"]["own"]
    assert second["settings"]["plant's parameter errors"] == "mass +10 %"
    assert second["settings"]["delay"] == "1 tick"
    assert {c["metric"] for c in second["criteria"]} >= {
        "finished",
        "torque.excess",
        "contact.slip_share",
    }


def test_the_page_is_well_formed_and_refers_to_nothing_outside(report, page):
    parser, text = Balanced(), page
    parser.feed(text)
    assert parser.open == []
    outside = [r for r in parser.references if not r.startswith(("#", "data:image/png;base64,"))]
    assert outside == []
    assert text.count("<script>") == text.count("<script") == 1
    assert not re.search(r"@import|url\((?!['\"]?#)", text)
    assert text.count("<svg") >= 10
    assert "A four-bar &lt;&amp;&gt; its crank" in text
    below_the_criteria = text[: text.index("<h2>")]
    assert "<em>safe output</em>: what a controller commands" in below_the_criteria
    assert "<em>self-check</em>" not in below_the_criteria  # no criterion is on it
    assert text.count("<em>self-check</em>: the controller puts") == len(report.runs)
    assert "nan" not in re.sub(r"<svg.*?</svg>|base64,[^\"]*", "", text, flags=re.DOTALL)


def test_the_page_has_pictures_or_says_why_not(report, page):
    run = report.runs[0]
    if run.frames:
        assert all(frame.startswith(b"\x89PNG") for frame in run.frames)
        assert page.count("data:image/png") == len(run.frames)
    else:
        assert any(note.startswith("No pictures: ") for note in run.notes)


def test_names_of_a_model_are_no_formulas_and_no_markup(report):
    from rich.console import Console

    odd = (r"$\frac{$", "[/bold]", "a_b^{", "<i>&")
    run = report.runs[0]
    controls = Signal("u", (odd[0],), ("N m",))
    controller = replace(
        run.controller,
        outputs=tuple(controls if s.name == "u" else s for s in run.controller.outputs),
    )
    tracking = tuple(replace(row, name=odd[0]) for row in run.tracking)
    verdicts = (*run.verdicts, Verdict(f"tracking.rms:{odd[1]}", 1.0, False, 0.5, True))
    named = replace(
        run, name=" ".join(odd), controller=controller, tracking=tracking, verdicts=verdicts
    )
    text = Report((named,)).to_html()
    assert r"$\frac{$" in text
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(Report((named,)).table())
    assert "[/bold]: tracking error, worst RMS" in console.export_text()


def test_the_table_has_every_criterion(report):
    from rich.console import Console

    console = Console(width=120, record=True, file=io.StringIO())
    console.print(report.table())
    text = console.export_text()
    assert "ran to its end" in text
    assert text.count("yes") >= 2
    assert str(report).count("torque.excess") == 2


def test_a_report_is_saved_as_html_or_json_only_and_is_the_same_page_again(report, page, tmp_path):
    with pytest.raises(ProblemError, match=r"\.json or \.html"):
        report.save(tmp_path / "report.pdf")
    saved = report.save(tmp_path / "report.html")
    assert saved.read_text(encoding="utf-8") == page
    assert saved.stat().st_size < 3_000_000


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_missing_package_is_named_with_its_extra(report, package, monkeypatch):
    for name in [n for n in sys.modules if n.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)  # type: ignore[arg-type]
    with pytest.raises(MissingExtraError, match=rf"{package}.*mbcasadi\[tools\]"):
        report.to_html()


def test_a_run_in_words_has_its_largest_control_its_statuses_and_its_time(report):
    crank, stand = report.runs
    for run in (crank, stand):
        control, record = run.controller, run.recording
        used = max(
            abs(u) / max(-low, high)
            for row in record.u
            for u, low, high in zip(row, control.u_min, control.u_max, strict=True)
        )
        assert f"controls at {100 * used:.0f} % of their limits at most" in run.in_words
        for text, ticks in run.statuses.items():
            assert f"{100 * ticks / len(record.t):.3g} % {text}" in run.in_words
        tick = 1e6 * run.metric("time.median")
        assert run.in_words.endswith(f"{tick:.3g} µs of {1e3 * control.period:g} ms a tick")
