"""TOML of every type of controller: what it makes moves a four-bar in MuJoCo as the file says."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from mbcasadi import models
from mbcasadi.errors import ControllerError, ProblemError, UnknownNameError
from mbcasadi.validation import ReportOptions
from mbcasadi.validation.spec import (
    build_experiment,
    example_inputs,
    parse_spec,
    read_spec,
    run_spec,
)
from mbcasadi.validation.spec.kinds import TYPES

FOUR_BAR = models.path("four_bar")
MOVE = {"crank": {"amplitude": 0.2, "frequency": 2.0, "ramp": 0.1}}
TASK = {"type": "posture", "joints": ["crank"], "kp": 2500.0, "reference": MOVE}
SPRING = {"task": TASK, "stiffness": 500.0, "damping": 5.0}
TRACKING = [
    {"type": "computed_torque", "task": TASK},
    {"type": "qr_inverse_dynamics", "task": TASK},
    {"type": "impedance_control", **SPRING},
    {"type": "passive_joint_control", "joints": ["crank"], "kp": 2500.0, "reference": MOVE},
    {"type": "passive_joint_control", "joints": ["crank"], "within_limits": {}, "reference": MOVE},
    {"type": "quasi_velocity_tracking", "joints": ["crank"], "reference": MOVE},
    {"type": "servo_control", "joints": ["crank"], "reference": MOVE},
]
AWAY = {"start": {"q": [0.2, 0.0, 0.0]}, "validation": {"duration": 1.0, "rigid": True}}
REST = {"equilibrium": {"q": [0.0, 0.0, 0.0]}}
HOLDING = [
    REST | {"type": "lqr", "Q": {"position": 100.0}},
    REST | {"type": "lqr", "integral": {"crank": 50.0}, "delay": 1},
    REST | {"type": "lqg", "measured": ["crank"], "Q": {"position": {"crank": 100.0}}},
    REST | {"type": "pole_placement", "poles": [[-8.0, 2.0]]},
    REST
    | {"type": "linear_mpc", "Q": {"position": 100.0}, "limits": {"change": {"crank": [-1, 1]}}},
    REST | {"type": "linear_mpc", "Q": {"position": 100.0}, "tracked": ["crank"]},
    {
        "type": "real_time_iteration",
        "horizon": 10,
        "Q": {"position": 100.0},
        "joints": {"crank": 0.0},
    },
]


def run(tables):
    options = ReportOptions(explain=False)
    return run_spec(parse_spec(tables).with_trial(fast=True), FOUR_BAR, options).runs[0].recording


def label(tables):
    return tables["type"]


@pytest.mark.parametrize("tables", TRACKING, ids=label)
@pytest.mark.every(2)
def test_a_law_moves_the_crank_as_the_file_says(tables):
    record = run(tables | {"validation": {"duration": 0.3, "rigid": True}})
    x = np.clip(record.t / 0.1, 0, 1)
    wanted = 0.2 * x**3 * (10 - 15 * x + 6 * x**2) * np.sin(4 * np.pi * record.t)
    np.testing.assert_allclose(record.q[:, 0], wanted, atol=0.02)


@pytest.mark.parametrize("tables", HOLDING, ids=label)
@pytest.mark.every(3)
def test_a_regulator_brings_the_crank_back_to_its_equilibrium(tables):
    crank = run(AWAY | tables).q[:, 0]
    assert crank[0] > 0.1
    assert abs(crank[-1]) < 0.5 * crank[0]


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"type": "lqr", "Q": {"position": {"crnk": 1.0}}}, "coordinate 'crnk'.*did you mean 'cra"),
        ({"type": "passive_joint_control", "reference": {"crnk": 1.0}}, "entry of the reference"),
        ({"type": "linear_mpc", "limits": {"change": {"a": [0, 1]}}}, "unknown actuator 'a'"),
    ],
)
def test_an_unknown_name_is_refused_with_the_valid_ones(tables, words):
    with pytest.raises(UnknownNameError, match=words):
        build_experiment(parse_spec(tables), FOUR_BAR)


WALKING = {
    "type": "walking",
    "period": 0.002,
    "start": {"keyframe": "stand"},
    "command": [0.3, 0.0, 0.0],
    "task": [
        {"type": "frame", "frame": "trunk", "kind": "body"}
        | {"kp": [0, 0, 200, 200, 200, 20], "kd": [5, 5, 28, 28, 28, 10]}
    ],
    "contact": [{"frame": foot, "friction": 0.6, "sides": 4} for foot in ("FL", "FR", "RL", "RR")],
    "gait": {"period": 0.48, "offsets": [0.0, 0.5, 0.5, 0.0]},
    "validation": {"duration": 0.72, "delay": 1},
}


def test_a_quadruped_walks_as_the_file_commands():
    options = ReportOptions(explain=False)
    spec = parse_spec(WALKING).with_trial(fast=True)
    record = run_spec(spec, models.path("quadruped"), options).runs[0]
    x, height = record.recording.q[:, 0], record.recording.q[:, 2]
    last_stride = record.recording.t >= 0.24
    speed = np.ptp(x[last_stride]) / np.ptp(record.recording.t[last_stride])
    assert speed == pytest.approx(0.3, abs=0.1)
    assert np.ptp(height) < 0.03


def test_the_inputs_at_the_start_are_those_that_each_law_can_run_on():
    experiment = build_experiment(parse_spec(WALKING), models.path("quadruped"))
    examples = example_inputs(experiment)
    for suffix in ("", "_mpc"):
        law = experiment.all_laws[suffix].controller
        assert int(law.function(**examples[suffix], z=law.z0)["status"]) == 0
        assert examples[suffix]["mask"].any()
    assert list(examples["_planner"]["command"]) == WALKING["command"]


OWN = """
from mbcasadi.control import PostureTask, laws
def make(system, joint):
    if joint == "none":
        raise ValueError("no joint")
    return laws.computed_torque(system, PostureTask(joints=[joint]))
"""


def test_code_runs_only_where_it_is_allowed(tmp_path):
    (tmp_path / "own_law.py").write_text(OWN)
    file = tmp_path / "own.toml"
    text = 'type = "own"\nmake = "own_law:make"\n[arguments]\njoint = "crank"\n'
    file.write_text(text)
    with pytest.raises(ProblemError, match=r"runs Python code, 'own_law:make'.*--allow-code"):
        read_spec(file)
    made = build_experiment(read_spec(file, allow_code=True), FOUR_BAR)
    assert made.controller.controller.name == "computed_torque"
    file.write_text(text.replace("crank", "none"))
    with pytest.raises(ControllerError, match="own_law:make raised ValueError: no joint"):
        build_experiment(read_spec(file, allow_code=True), FOUR_BAR)
    file.write_text(text.replace(":make", ":mak"))
    with pytest.raises(ProblemError, match=r"make = 'own_law:mak'.*a function in it"):
        build_experiment(read_spec(file, allow_code=True), FOUR_BAR)


GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "spec.md"


def test_the_files_of_the_guide_are_valid_and_it_names_every_type():
    page = GUIDE.read_text(encoding="utf-8")
    files = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    types = [parse_spec(tomllib.loads(file), allow_code=True).type for file in files]
    assert types == [
        "inverse_dynamics_qp", "linear_mpc", "walking", "whole_body_mpc", "own",
    ]  # fmt: skip
    assert [name for name in TYPES if f'`"{name}"`' not in page] == []
