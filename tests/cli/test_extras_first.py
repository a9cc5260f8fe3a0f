"""Commands ask for extras before their long work, and for none that they do not use."""

import json
import sys
from html import unescape

import pytest
from typer.testing import CliRunner

from mbcasadi.cli.app import app
from mbcasadi.validation import spec

LAW = """
type = "inverse_dynamics_qp"
[[task]]
type = "posture"
joints = ["crank"]
"""
CAMPAIGN = ["campaign", "four_bar", "--fast", "--duration", "0.05", "--runs", "2", "--jobs", "1"]


@pytest.fixture
def law(tmp_path, monkeypatch):
    for name in ("imageio", "imageio_ffmpeg"):
        monkeypatch.setitem(sys.modules, name, None)
    path = tmp_path / "law.toml"
    path.write_text(LAW)
    return path


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_page_of_a_campaign_without_videos_needs_no_extra_for_them(law, tmp_path):
    page = tmp_path / "runs.html"
    result = invoke(*CAMPAIGN, "-c", law, "--report", page, "--json")
    assert result.exit_code in (0, 1), result.output
    settings = json.loads(result.stdout)["settings"]
    assert settings["model"] == "four_bar"
    text = unescape(page.read_text(encoding="utf-8"))
    for name, value in settings.items():
        assert f"{name}: {value}" in text or f"{name}: <code>{value}</code>" in text
    assert "command" in settings


@pytest.mark.parametrize(
    "words",
    [
        [*CAMPAIGN, "--report", "OUT/runs.html", "--videos", "1"],
        [*CAMPAIGN, "--case", "1", "--video", "OUT/run.mp4"],
        ["validate", "four_bar", "--fast", "--duration", "0.05", "--video", "OUT/run.mp4"],
    ],
)
def test_videos_ask_for_their_extra_before_anything_is_built(law, tmp_path, monkeypatch, words):
    def work(*_arguments, **_options):
        raise AssertionError("the work has begun")

    for name in ("run_campaign", "run_case", "run_spec"):
        monkeypatch.setattr(spec, name, work)
    monkeypatch.setattr(spec.run, "build_experiment", work)
    result = invoke(*(word.replace("OUT", str(tmp_path)) for word in words), "-c", law)
    assert result.exit_code == 2, result.output
    assert 'pip install "mbcasadi[video]"' in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["law.toml"]
