"""What a notebook shows: a table and one plot, and the table alone without matplotlib."""

import sys
from dataclasses import replace

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.regulators.poles_table import poles_html
from mbcasadi.errors import ProblemError
from mbcasadi.validation import Campaign, Report, Trial, campaign, cases, validate

FOUR_BAR = models.path("four_bar")


def idle(t, q, v):
    return [0.0]


@pytest.fixture(scope="module")
def shown():
    """Return what a notebook shows of each kind."""
    report = validate(idle, FOUR_BAR, 0.02)
    done = campaign(idle, FOUR_BAR, Trial(0.02), cases([0, 1, 2], [{"mass": 0.1}], [0, 2]))
    system = mb.read_mjcf(FOUR_BAR)
    return report, done, mb.linearize(system, mb.equilibrium(system))


def test_a_table_and_a_plot_are_shown(shown, monkeypatch):
    words = (
        ("ran to its end", "four_bar, idle"),
        ("In case", "Campaign: idle on four_bar", "Pass rate over delay"),
        ("frequency, rad/s", "border of stability"),
    )
    for each, texts in zip(shown, words, strict=True):
        html = each._repr_html_()
        assert html.startswith("<table>")
        assert html.count("<svg") == 1
        for text in texts:
            assert text in html
    for name in [n for n in sys.modules if n.split(".")[0] in {"matplotlib", "jinja2", "rich"}]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("matplotlib", "jinja2", "rich"):
        monkeypatch.setitem(sys.modules, name, None)
    for each, texts in zip(shown, words, strict=True):
        html = each._repr_html_()
        assert "<svg" not in html
        assert texts[0] in html


def test_a_run_without_ticks_and_an_empty_campaign_are_shown_too(shown):
    (run,) = shown[0].runs
    nothing = replace(run, recording=run.recording.later(run.recording.ticks - 1), verdicts=())
    for each in (Report((nothing,)), Campaign((), 3)):
        assert each._repr_html_().startswith("<table>")


def test_poles_are_those_of_the_model_with_frequency_and_damping():
    w, d = 3.0, 0.2
    dfdx = np.array([[0.0, 1.0], [-(w**2), -2 * d * w]])
    html = poles_html("oscillator", dfdx, None)
    assert f">{-d * w:.4g} ± {w * np.sqrt(1 - d**2):.4g}j<" in html
    assert f">{w:.4g}<" in html
    assert f">{d:.3g}<" in html
    assert "unstable" not in html
    h = 0.05
    growth, turn = np.exp(-d * w * h), w * np.sqrt(1 - d**2) * h
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    sampled = poles_html("oscillator", growth * rotation, h)
    assert f">{w:.4g}<" in sampled
    assert f">{d:.3g}<" in sampled
    assert "unstable" in poles_html("oscillator", 1.1 * rotation, h)
    assert "unstable" in poles_html("oscillator", -dfdx, None)
    assert poles_html("broken", np.full((2, 2), np.nan), None).count("<tr>") == 1


def test_a_report_checks_what_it_is_given(shown):
    report, *_ = shown
    with pytest.raises(ProblemError, match="runs is empty"):
        Report(())
    with pytest.raises(ProblemError, match=r"runs is .*expected a list of Run"):
        Report((report,))
    with pytest.raises(ProblemError, match="title"):
        Report(report.runs, 3)
    with pytest.raises(ProblemError, match="other"):
        report + report.runs[0]
    assert len((report + report).runs) == 2
