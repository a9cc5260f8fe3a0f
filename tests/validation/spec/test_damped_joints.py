"""Observers of joints that damping stops within a tick: init writes one that does not run away."""

import tomllib

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.validation import ReportOptions
from mbcasadi.validation.spec import parse_spec, propose_spec, run_spec
from mbcasadi.validation.spec.damped_joints import left_by_damping

JOINT = """<mujoco><option timestep="0.001" integrator="{rule}"/><worldbody>
<body><joint name="finger" axis="0 1 0" damping="{damping}"/>
<geom type="capsule" fromto="0 0 0 0 0 -.03" size=".005" mass=".003"/></body></worldbody>
<actuator><motor joint="finger" gear="2" ctrlrange="-1 1"/></actuator></mujoco>"""


@pytest.mark.parametrize("damping", [1e-5, 0.2])
def test_a_finger_with_much_damping_comes_to_rest(tmp_path, damping):
    model = tmp_path / "model.xml"
    model.write_text(JOINT.format(damping=damping, rule="implicitfast"))
    text = propose_spec(model, task="hold")
    tables = tomllib.loads(text)
    usual = tables["observer"]["bandwidth"] > 0.1 * tables["task"][0]["kd"]
    assert usual == (damping < 1e-3)
    tables["validation"]["duration"] = 20.0
    tables["start"] = {"q": [0.01]}
    spec = parse_spec(tables).with_trial(perturb={"mass": 0.1}, delay=1, fast=True)
    run = run_spec(spec, model, ReportOptions(explain=False, timing=False)).runs[0]
    assert np.abs(run.recording.v[-2000:]).max() < 1e-3


def test_the_share_is_what_a_step_of_mujoco_leaves(tmp_path):
    system = mb.read_mjcf(JOINT.format(damping=0.2, rule="implicitfast"))
    plant = mb.plant.Plant(JOINT.format(damping=0.2, rule="implicitfast"))
    plant.reset(np.zeros(1))
    plant.step(np.array([1e-3]))
    asked = 2e-3 / float(system.mass_matrix(np.zeros(1)))
    left = left_by_damping(system, np.zeros(1), ["finger"], 1e-3)
    assert plant.v[0] / 1e-3 / asked == pytest.approx(left, rel=1e-6)
