"""What a reader sees of a run: colours, legends, ticks, and what is left out."""

import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from mbcasadi import models
from mbcasadi.codegen import LogReplay
from mbcasadi.codegen.supervision.tick_log import TickLog
from mbcasadi.inline_svg import COLORS, styled_figure, svg_text, tick_text, write_plain_ticks
from mbcasadi.validation import Predictions, PredictionStatistics, TrackingStatistics, validate
from mbcasadi.validation.metrics.text import plan_error_text, value_text
from mbcasadi.validation.report import plots
from mbcasadi.validation.report.replay_page import replay_page

MINUS = "\N{MINUS SIGN}"


def servo(_, q, v):
    return [0.6 * (0.5 - q[0]) - 0.02 * v[0]]


@pytest.fixture(scope="module")
def run():
    return validate(servo, models.path("four_bar"), 0.1).runs[0]


def with_errors(run, count, *, judged=True):
    """Return the run with components that all move, the last one with the largest error."""
    t = run.recording.t
    error = np.outer(np.sin(20 * t), np.arange(1.0, count + 1))
    rows = [
        TrackingStatistics(f"joint_{i}", "rad", 1.0, 1.0, count - float(i), 1.0, judged=judged)
        for i in range(count)
    ]
    monitor = {"error": error, "target": 0 * error}
    return replace(run, tracking=tuple(rows), recording=replace(run.recording, monitor=monitor))


def drawn(draw, *arguments):
    axes = Figure().add_subplot()
    draw(axes, *arguments)
    return axes


def names_of(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.parametrize("count", [1, 3, 15])
def test_the_legend_has_every_coloured_line_and_the_largest_error(run, count):
    axes = drawn(plots.errors, with_errors(run, count), "rad")
    coloured = [line for line in axes.get_lines() if line.get_color() in COLORS]
    assert names_of(axes) == [line.get_label() for line in coloured]
    assert names_of(axes)[0] == f"joint_{count - 1}"
    assert len(coloured) == min(count, len(COLORS))
    assert len({line.get_color() for line in coloured}) == len(coloured)
    assert len(axes.get_lines()) == count  # the others are grey
    low, high = axes.get_ylim()
    assert max(np.abs(line.get_ydata()).max() for line in coloured) <= max(-low, high)


def test_components_that_no_criterion_judges_are_left_out_beside_those_that_one_does(run):
    free = with_errors(run, 3)
    rows = (
        replace(free.tracking[0], judged=True),
        *(replace(r, judged=False) for r in free.tracking[1:]),
    )
    axes = drawn(plots.errors, replace(free, tracking=rows), "rad")
    assert names_of(axes) == ["joint_0"]
    assert len(axes.get_lines()) == 1
    assert names_of(drawn(plots.errors, with_errors(run, 2, judged=False), "rad"))[0] == "joint_1"


def test_a_legend_makes_the_figure_higher_and_leaves_the_axes(run):
    sizes = []
    for count in (1, 12):
        axes = drawn(plots.errors, with_errors(run, count), "rad")
        sizes.append(axes.figure.get_figheight())
    assert sizes[1] - sizes[0] == pytest.approx(2 * plots.LEGEND_ROW)  # three rows and one


def test_ticks_are_written_in_full():
    with styled_figure("ticks") as figure:
        log, plain = figure.subplots(2)
        log.semilogy([1e-9, 1e-3])
        plain.plot([12345.0, 12345.002])
        for axes in (log, plain):
            write_plain_ticks(axes)
        words = re.findall(r"<text.*?>(.*?)</text>", svg_text(figure))
    assert [word for word in words if re.fullmatch(f"1e[-{MINUS}]0[3-9]", word)]
    assert "12345.001" in words
    assert not [word for word in words if "$" in word or word.startswith("+")]
    assert tick_text(-2.5e-9, largest=1e-8) == f"{MINUS}2.5e{MINUS}9"
    assert [tick_text(x, largest=0.25) for x in (0.0, 2.5e-5, 0.25)] == [
        "0",
        f"2.5e{MINUS}05",
        "0.25",
    ]
    assert tick_text(2e7, largest=2e7) == "2e7"


@pytest.mark.long
def test_the_page_of_a_function_shows_its_motion_and_no_empty_table(run):
    page = run_page(run)
    shown = page[: page.index("<details>")]
    for title in ("Positions: crank to rocker", "Velocities: crank to rocker", "Controls"):
        assert f"<h3>{title}</h3>" in shown
    assert "Status of the control law" not in page
    judged = run_page(with_errors(run, 2))
    assert "<h3>Positions" not in judged[: judged.index("<details>")]
    assert "<h3>Positions" in judged


def run_page(run):
    from mbcasadi.validation import Report

    return Report((run,)).to_html()


def test_an_error_over_a_motion_that_is_nearly_zero_is_given_as_it_is():
    def plans(motion, rms, scale=1.0):
        row = PredictionStatistics("q.knee", "rad", (rms,), (rms,), (motion,), scale)
        return Predictions({"next": 1}, 1e-3, 2, 0, (row,), (row,), 1, None)

    assert plan_error_text(plans(0.2, 0.1), "next") == "50 %"
    assert plan_error_text(plans(1e-7, 2.89e-5), "next") == "2.9e-05 rad at rest"
    assert plan_error_text(plans(1e-4, 2e-5, scale=100.0), "next") == "2e-05 rad at rest"
    assert np.isnan(plans(1e-7, 2.89e-5).share(0))
    assert plan_error_text(plans(float("nan"), float("nan")), "next") == "not measured"
    assert value_text("tracking.rms_share", 289.0) == "289 times"


def test_curves_of_a_replay_have_names_and_units():
    n = 50
    u = 1234.5 + np.outer(np.sin(np.arange(n)), [1e-3, 2e-3])
    log = TickLog(
        ticks=np.arange(n), samples=np.arange(n), inputs={"q": u, "v": u}, outputs={"u": u},
        codes=np.zeros(n, int), events=np.zeros(n, int), faults=("",) * n, period=1e-3,
        build="gcc", torn=0, damaged=0,
        columns={"u": (("hip", "N m"), ("slide", "N")), "q": (("hip", "rad"), ("", "rad"))},
    )  # fmt: skip
    page = replay_page(LogReplay(log, {"u": u}, np.ones(n, bool), 0, {}, 0.0, "gcc", (), ""), "log")
    for title in ("Control (N m)", "Control (N)", "Input q (rad)", "Input v"):
        assert f"<strong>{title}</strong>" in page
    for text in ("hip", "slide", "q[1]", "v[0]", "u / N m", "q / rad", "1234.5"):
        assert f">{text}</text>" in page
    assert not re.search(r"<text[^>]*>\+", page)
