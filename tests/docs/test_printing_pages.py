"""The code of the guides runs, and prints what stands behind it."""

from dataclasses import replace

import numpy as np
import pytest
from support.pages import (
    DOCS,
    assert_blocks_print_what_they_show,
    assert_prints_what_it_says,
    blocks_of,
)

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import FrameTask, InverseDynamicsQP
from mbcasadi.validation import ReportOptions
from mbcasadi.validation.spec import propose_spec

PAGES = {
    "guides/weights-and-units.md": 4,
    "guides/tasks.md": 4,
    "explanation/softness.md": 1,
    "guides/mpc.md": 2,
    "guides/nonlinear-mpc.md": 4,
    "guides/feedback.md": 2,
    "guides/estimation.md": 4,
    "guides/sensors.md": 4,
    "guides/callers.md": 3,
    "guides/modes.md": 1,
    "guides/supervision.md": 3,
    "coming-from/python-control.md": 4,
    "guides/motions.md": 4,
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Stand in an empty folder, as somebody who has installed the package."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


LONG = {"guides/estimation.md"}


@pytest.mark.parametrize(
    ("page", "count"),
    [
        pytest.param(page, count, marks=pytest.mark.long if page in LONG else ())
        for page, count in PAGES.items()
    ],
)
def test_the_code_of_the_page_prints_what_it_says(page, count):
    assert_prints_what_it_says(page, count)


@pytest.mark.long
def test_grasps_soles_and_adhesion_of_the_page_on_contacts_are_as_shown():
    names = {"mb": mb, "FrameTask": FrameTask, "InverseDynamicsQP": InverseDynamicsQP}
    blocks = blocks_of("guides/contacts.md", first="## Between two bodies")
    assert len(blocks) == 4
    assert_blocks_print_what_they_show(blocks, names)


def test_the_rigid_body_of_the_page_on_walking_is_the_one_shown():
    assert_prints_what_it_says("guides/walking.md", 1, last="## The robot as one rigid body")


@pytest.mark.long
def test_the_plan_of_the_page_on_whole_bodies_is_the_one_shown():
    assert_prints_what_it_says(
        "guides/whole-body-mpc.md", 1, last="## From a model to a robot that walks"
    )


@pytest.mark.long
def test_the_campaign_of_the_page_is_in_its_file():
    assert_prints_what_it_says("guides/campaigns.md", 3)
    assert len(mb.validation.open_campaign("runs.sqlite").outcomes) == 16


def test_the_pendulum_of_the_page_on_gymnasium_stands():
    pytest.importorskip("gymnasium.envs.mujoco", reason="gymnasium[mujoco] is not installed")
    names = assert_prints_what_it_says("guides/gymnasium.md", 3, last="## A policy, validated")
    for seed in range(3):
        reward, lean = names["episode"](seed)
        assert reward == 200.0  # one for each step that the pendulum stands
        assert lean < 0.01
    names["env"].close()


@pytest.mark.long
def test_the_agents_of_the_page_on_gymnasium_command_a_crank(folder):
    (folder / "crank.toml").write_text(propose_spec(models.path("four_bar")), encoding="utf-8")
    assert_prints_what_it_says("guides/gymnasium.md", 3, first="## A policy above a controller")


def test_a_program_runs_the_file_that_init_writes(folder):
    (folder / "spec.toml").write_text(propose_spec(models.path("four_bar")), encoding="utf-8")
    names = assert_prints_what_it_says("guides/spec.md", 1, first="## From Python")
    assert names["report"].runs[0].recording.t[-1] > 0.49


@pytest.mark.long
def test_the_delay_of_the_page_on_validation_costs_what_its_text_says():
    names = assert_prints_what_it_says("guides/validate.md", 12)
    costs = names["run"].what_if.rows
    assert f"the delay costs {100 * (costs[1].tracking / costs[0].tracking - 1):.0f} %" in (
        " ".join((DOCS / "guides/validate.md").read_text(encoding="utf-8").split())
    )
    mpc = names["controller"](0)
    blind = replace(mpc.controller, prediction=None, prediction_rows=())  # plans take their time
    reference = mpc.reference(setpoint_q=names["up"].q, setpoint_u=names["up"].u)
    conditions = {"delay": 1, "perturb": {"mass": 0.1}, "report": ReportOptions(explain=False)}
    push = lambda t: 0.1 * (0.5 <= t < 0.6) * np.array([0, 0, 1, 0])  # noqa: E731
    fallen = mb.validate(
        blind, names["MODEL"], 3.0, reference=reference, disturbance=push, **conditions
    ).runs[0]
    assert np.abs(fallen.recording.q[:, :3].sum(axis=1)).max() > 1.0  # "does not hold"
