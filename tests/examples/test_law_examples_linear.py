"""The examples of regulators and filters run, and show what their first lines promise."""

import re
from pathlib import Path

import numpy as np
import pytest
from support.examples import shown
from support.pages import assert_shows

ROOT = Path(__file__).resolve().parents[2]
DOCS = (ROOT / "docs" / "guides/linearisation.md").read_text(encoding="utf-8")
LARGEST_PICTURE = 150_000  # bytes


@pytest.mark.parametrize("number", ["20", "21", "22"])
def test_an_example_says_what_one_will_see_and_stands_in_the_docs(number):
    (path,) = (ROOT / "examples").glob(f"{number}_*.py")
    assert "You will see" in path.read_text(encoding="utf-8").partition('"""\n\n')[0]
    shown = re.search(
        rf"mbcasadi example {path.stem[3:]} .*?\(\.\./(images/\w+\.png)\)", DOCS, re.S
    )
    assert (ROOT / "docs" / shown[1]).stat().st_size < LARGEST_PICTURE


@pytest.mark.long
def test_the_pendulum_leans_little_and_falls_without_feedback(tmp_path, capsys):
    _, found = shown(20, tmp_path)
    said = capsys.readouterr().out
    assert_shows(DOCS, "\n".join(said.splitlines()[:2]))
    kept, fallen = found["LQR"], found["no feedback"]
    assert 0.01 < np.abs(kept["lean"]).max() < 0.05
    assert np.abs(kept["lean"][-100:]).max() < 1e-3
    assert np.abs(kept["u"]).max() < 1.0  # of 4 N m
    assert np.abs(fallen["lean"]).max() > 1.0


@pytest.mark.long
def test_the_biped_stands_on_pins_and_on_contacts(tmp_path, capsys):
    _, found = shown(21, tmp_path)
    said = capsys.readouterr().out
    assert_shows(DOCS, "\n".join(said.splitlines()[:2]))
    for name in ("on pins", "on contacts"):
        away = np.abs(found[name].q - found[name].q[0])[:, :3]
        assert away[:, 0].max() > 5e-3  # the push was felt
        assert away.max() < 0.025
        assert away[-1].max() < 0.01
    assert np.abs(found["no feedback"].q[-1, :3]).max() > 0.3


@pytest.mark.long
def test_the_filter_keeps_the_torque_smooth_and_falls_when_it_is_off(tmp_path):
    _, found = shown(22, tmp_path)
    rattle = {
        name: np.std(run["u"][run["t"] > 2]) for name, run in found.items() if name[-1] != "f"
    }
    assert rattle["filter"] < rattle["differences"] / 10
    assert np.abs(found["filter"]["lean"]).max() < 0.06
    assert np.abs(found["filter off"]["lean"]).max() > 1.0
