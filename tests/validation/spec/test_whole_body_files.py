"""Whole-body MPC as TOML: the plan above the law runs and is exported; what is wrong is refused."""

import json
import tomllib

import numpy as np
import pytest
from support.two_feet import LEGS, on_floor
from typer.testing import CliRunner

import mbcasadi as mb
from mbcasadi.cli.app import app
from mbcasadi.codegen import open_two_rates
from mbcasadi.errors import ProblemError
from mbcasadi.validation import ReportOptions
from mbcasadi.validation.run import wrong_rates
from mbcasadi.validation.spec import build_experiment, parse_spec, run_campaign, run_spec
from mbcasadi.validation.spec.run import cases_of_spec

SPEED, PERIOD, HORIZON = 0.1, 0.02, 4
STAND = f"""
type = "whole_body_mpc"
name = "stand"
period = {PERIOD}
horizon = {HORIZON}
command = [0.0, {{ by = {SPEED}, duration = 0.1 }}, 0.0]
[validation]
duration = 0.3
delay = 1
[validation.perturb]
mass = 0.1
[[validation.push]]
body = "base"
force = [0.0, 0.0, 20.0]
start = 0.1
stop = 0.2
""" + "".join(f'[[contact]]\nframe = "foot_{leg}"\nfriction = 0.8\nsides = 4\n' for leg in LEGS)
GAIT = {"gait": {"period": 0.4, "duty": 0.55, "offsets": [0.0, 0.5], "start": 0.1}}
TABLES = tomllib.loads(STAND)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    file = tmp_path_factory.mktemp("model") / "two_feet.xml"
    file.write_text(on_floor())
    return file


@pytest.fixture(scope="module")
def report(model):
    spec = parse_spec(TABLES).with_trial(fast=True)
    return run_spec(spec, model, ReportOptions(explain=False))


@pytest.mark.long
def test_a_robot_moves_as_the_file_commands_under_its_plan(report):
    record = report.runs[0].recording
    half = record.t >= 0.15
    y = record.q[half, 1]
    assert np.ptp(y) / np.ptp(record.t[half]) == pytest.approx(SPEED, abs=0.03)
    assert np.ptp(record.q[:, 2]) < 0.01
    assert record.v[half, 2].max() > 0.005, "it is pushed"


def test_the_rates_of_a_plan_that_is_laid_anew_are_not_called_wrong(report):
    assert wrong_rates(report.runs[0].controller, report.runs[0].recording)
    assert not [note for note in report.runs[0].notes if "its velocity" in note]


def test_plans_are_drawn_over_what_happened(report):
    run = report.runs[0]
    curves, period = run.plans.curves, PERIOD
    np.testing.assert_allclose(np.diff(curves.t), period, atol=1e-12)
    place = run.plans.names.index(
        "q.base_y" if "q.base_y" in run.plans.names else run.plans.names[1]
    )
    happened = np.interp(curves.t[:, 0], curves.path_t, curves.path[:, place])
    np.testing.assert_allclose(curves.x[:, 0, place], happened, atol=2e-3)
    moved = np.interp(curves.t[-2, -1], curves.path_t, curves.path[:, place])
    assert moved > 0.005
    assert curves.x[-2, -1, place] == pytest.approx(moved, abs=3e-3)
    assert run.plans.q.shape == (len(curves.t), HORIZON + 1, 13)
    assert "Plans and motion (m)" in report.to_html()


@pytest.mark.long
def test_the_arguments_of_the_file_are_those_of_the_function(model):
    made = build_experiment(parse_spec(TABLES | GAIT), model).two_rates
    feet = [mb.Contact(f"foot_{leg}", friction=0.8, sides=4) for leg in LEGS]
    gait = mb.mpc.Gait(0.4, 0.55, (0.0, 0.5), start=0.1)
    system = mb.read_mjcf(model)
    whole = mb.mpc.whole_body_mpc(system, HORIZON, PERIOD, feet, gait=gait, name="stand")
    rng = np.random.default_rng(0)
    for name in ("references", "follow"):
        ours, theirs = getattr(made, name), getattr(whole, name)
        given = [rng.normal(size=ours.size_in(i)) for i in range(ours.n_in())]
        for a, b in zip(ours.call(given), theirs.call(given), strict=True):
            np.testing.assert_array_equal(a, b)


def test_parts_tasks_and_a_law_of_the_file_replace_the_defaults(model):
    own = {
        "part": [
            {"type": "cost", "Q": [1.0] * 24, "R": [1e-3] * 6},
            {"type": "joint_limits", "joints": ["left_pitch"], "velocity": 20.0},
        ],
        "task": [{"type": "frame", "frame": "base", "kind": "body", "kp": 1.0, "kd": 0.0}],
        "law": {
            "period": 0.005,
            "task": [{"type": "posture", "kp": 300.0}],
            "options": {"force_weight": 1e-3, "contact_damping": 20.0},
        },
    }
    made = build_experiment(parse_spec(TABLES | own), model)
    assert made.controller.period == 0.005
    assert made.two_rates.every == 4
    names = {slot.name for slot in made.two_rates.plan.ocp.slots}
    assert "base.position" in names
    assert "feet" not in names, "the default cost has the places of feet"
    assert list(made.two_rates.plan.ocp.x_bounds[14 + 6]) == [-20.0, 20.0], "left_pitch"


def test_one_export_has_plan_and_tick_and_runs_at_the_start_of_the_file(
    model, tmp_path, is_thorough
):
    """It is compiled, for seconds, with `--all`."""
    file, out = tmp_path / "trot.toml", tmp_path / "c"
    file.write_text(STAND)
    result = CliRunner().invoke(
        app, ["export", str(model), "-c", str(file), "--out", str(out), "--json"]
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    project = open_two_rates(out)
    assert found["operations"] == project.operations > 0
    assert found["lines"] == project.lines
    assert not is_thorough or "0 without a plan" in project.run_example()


@pytest.mark.long
def test_plan_and_tick_are_no_co_simulation_unit(model, tmp_path):
    file, out = tmp_path / "trot.toml", tmp_path / "c"
    file.write_text(STAND)
    result = CliRunner().invoke(
        app, ["export", str(model), "-c", str(file), "--out", str(out), "--fmu"]
    )
    assert "no co-simulation unit" in result.output


@pytest.mark.long
def test_a_campaign_runs_plans_above_the_law(model):
    spec = parse_spec(TABLES).with_trial(duration=0.15, fast=True)
    found = run_campaign(spec, model, cases_of_spec(spec, runs=2), jobs=1)
    assert len(found.outcomes) == 2


@pytest.mark.parametrize(
    ("tables", "error", "words"),
    [
        ({"horizn": 3}, ProblemError, "did you mean 'horizon'"),
        ({"command": [0.0, 0.0]}, ProblemError, "command"),
        ({"command": [0.0, 0.0, 0.0, 0.1]}, ProblemError, "command has 4 entries; expected 3"),
        ({"gait": {"period": 0.4, "duty": 0.5, "offsets": [0.0]}}, ProblemError, "1 offsets"),
        ({"contact": [{"frame": "foot_left", "friction": 0.6, "force": [1.0, 0.0, 0.0]}]},
         ProblemError, "as the plan has the forces"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(model, tables, error, words):
    with pytest.raises(error, match=words):
        build_experiment(parse_spec(TABLES | tables), model)
