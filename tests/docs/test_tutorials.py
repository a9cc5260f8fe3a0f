"""The tutorials run from top to bottom, and reach what their text says."""

import re
import runpy
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from support.pages import DOCS

import mbcasadi as mb

mpl.use("Agg")
TUTORIALS = DOCS / "tutorials"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs a tutorial in an empty folder, and returns its names."""
    monkeypatch.chdir(tmp_path)

    def run_by_number(number):
        import matplotlib.pyplot as plt

        (path,) = TUTORIALS.glob(f"{number}_*.py")
        names = runpy.run_path(str(path))
        plt.close("all")
        return names

    return run_by_number


@pytest.mark.long
def test_a_four_bar_becomes_c(run):
    names = run(1)
    assert names["report"].passed
    assert (Path("crank_c") / "crank.c").is_file()
    assert np.ptp(names["run"].q[:, 0]) > 0.55  # rad, of 0.6


@pytest.mark.long
def test_a_quadruped_stands_against_a_push(run):
    names = run(2)
    assert names["report"].passed
    assert np.abs(names["error"]).max() > 0.5  # mm: it was pushed
    assert np.abs(names["error"][-1]).max() < 0.5


@pytest.mark.long
def test_an_arm_with_servos_keeps_to_its_circle(run):
    names = run(3)
    assert names["report"].passed
    assert names["error"][names["recording"].t > 1.5].max() < 2.0  # mm


@pytest.mark.long
def test_linear_mpc_brings_the_cart_home(run):
    names = run(4)
    assert names["report"].passed
    x = names["recording"].q[:, 0]
    assert abs(x[0]) > 0.25  # m
    assert abs(x[-1]) < 0.02


@pytest.mark.long
def test_a_real_time_iteration_swings_up_and_stands_against_a_push(run):
    names = run(5)
    assert names["best"].solved
    lean, t = np.abs(names["lean"]), names["recording"].t
    assert lean[0] > 3.0  # rad
    assert lean[t > 2.5].max() < 0.5
    assert lean[-1] < 0.1


@pytest.mark.long
def test_the_arm_presses_with_its_force(run):
    names = run(6)
    assert names["report"].passed
    assert np.abs(names["force"][names["late"]] - 50.0).max() < 1.0  # N


@pytest.mark.long
def test_a_campaign_finds_the_mass_and_an_observer_mends_it(run):
    names = run(7)
    assert 0 < sum(outcome.passed for outcome in names["result"].outcomes) < 16
    assert names["result"].sensitivity()[0].parameter.endswith("mass")
    assert not names["report"].passed
    assert all(outcome.passed for outcome in names["again"].outcomes)


@pytest.mark.long
def test_a_quadruped_trots_by_plans_of_its_whole_body(run):
    names = run(8)
    record, full = names["run"], names["full"]
    assert abs(record.v[full, 0].mean() - 0.8) < 0.06  # m/s
    assert record.v[record.t < 3.0, 1].max() > 0.4  # it was pushed
    assert abs(record.v[full, 1].mean()) < 0.1
    assert np.mean(names["planned"] == 0) == 1.0
    assert (Path("trot_c") / "trot_law_supervised.c").is_file()


@pytest.mark.long
def test_a_quadruped_stands_by_what_it_measures(run):
    names = run(9)
    assert names["report"].passed
    assert names["measured"].density == pytest.approx(names["gyro_noise"], rel=0.03)
    record, error, bound = names["run"], names["error"], names["bound"]
    assert names["names"][names["y"]] == "velocity.y"
    assert np.abs(record.v[:, 1]).max() > 0.03  # m/s: it was pushed
    assert 1e-5 < np.abs(error).max() < 0.02
    assert np.mean(np.abs(error) <= 3 * bound) > 0.95
    assert Path("told.png").stat().st_size > 1000
    assert "Consistency of the estimate" in Path("told.html").read_text(encoding="utf-8")
    assert (Path("told_c") / "told.c").is_file()


def test_the_cheat_sheet_names_what_there_is():
    text = (DOCS / "cheat-sheet.md").read_text(encoding="utf-8")
    names = set(re.findall(r"\bmb((?:\.\w+)+)", text))
    assert len(names) >= 20
    for name in names:
        value = mb
        for part in name.split(".")[1:]:
            value = getattr(value, part)
