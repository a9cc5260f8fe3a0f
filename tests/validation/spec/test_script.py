"""`init --python` writes a script with the same controller as the TOML file."""

import runpy
import subprocess
import sys

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.errors import ProblemError
from mbcasadi.validation.spec import build_experiment, parse_spec, propose_spec, read_spec, run_spec
from mbcasadi.validation.spec.contact_text import contact_lines
from mbcasadi.validation.spec.motion_text import command_lines
from mbcasadi.validation.spec.script import script_of_spec
from mbcasadi.validation.spec.signals import command_of

MOST = 60
"""Lines of a script that a person would keep."""

SAME = 1e-9
"""Of controls, as a share of the largest one."""

DURATION = 0.05  # s
FORMAT = ("--isolated", "--line-length", "100")


def written(tmp_path, name, task=None):
    """Return the model, the spec of the file, and the script's own file."""
    model = mb.models.path(name)
    file, script = tmp_path / "spec.toml", tmp_path / "controller.py"
    text = propose_spec(model, task=task)
    file.write_text(text)
    script.write_text(script_of_spec(text, model, name))
    return model, read_spec(file), script


@pytest.mark.parametrize(
    ("name", "task"), [("scara", None), ("quadruped", "squat"), ("quadrotor", None)]
)
def test_a_script_has_the_controls_of_the_file(tmp_path, monkeypatch, name, task):
    monkeypatch.chdir(tmp_path)
    model, spec, script = written(tmp_path, name, task)
    require_short_and_formatted(script)
    made = runpy.run_path(str(script), run_name="script")
    law, experiment = made["law"], build_experiment(spec, model)
    assert np.asarray(made["q0"]) == pytest.approx(experiment.q0, abs=0)
    assert law.mask_names == experiment.controller.mask_names
    moved = made.get("reference", lambda _: law.reference_at(made["q0"]))
    for t in (0.0, 2.3):
        expected = experiment.reference(t)
        assert np.array(moved(t)).ravel() == pytest.approx(expected, abs=SAME)
        start = experiment.q0, np.zeros(law.system.nv), expected
        u = experiment.controller.solve(*start).u
        same = law.solve(made["q0"], start[1], np.array(moved(t)).ravel()).u
        assert same == pytest.approx(u, abs=SAME * np.abs(u).max())


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("scara", None),
        ("quadruped", "squat"),
        ("quadrotor", None),
    ],
)
@pytest.mark.long
def test_a_script_moves_the_plant_as_the_file_does(tmp_path, monkeypatch, name, task):
    monkeypatch.chdir(tmp_path)
    model, spec, script = written(tmp_path, name, task)
    made = runpy.run_path(str(script), run_name="script")
    found = run_spec(spec.with_trial(duration=DURATION, fast=True), model).runs[0].recording
    own = {"q0": made["q0"], "reference": made.get("reference")}
    ran = mb.validate(made["law"], model, DURATION, delay=1, fast=True, **own)
    largest = np.abs(found.u).max()
    assert ran.runs[0].recording.u == pytest.approx(found.u, abs=SAME * largest)


def require_short_and_formatted(script):
    """Raise unless a script has few lines, as ruff would write them."""
    assert len(script.read_text().splitlines()) <= MOST
    for command in (["format", "--check"], ["check", "--select", "I,E,F,W"]):
        call = [sys.executable, "-m", "ruff", *command, *FORMAT, str(script)]
        done = subprocess.run(call, cwd=script.parent, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_script_runs_and_exports(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "controller.py"
    text = propose_spec(mb.models.path("four_bar"), python=True)
    assert "four_bar: of no known kind" in text
    assert "MODEL, 2," in text
    script.write_text(text.replace("MODEL, 2,", f"MODEL, {DURATION},"))
    require_short_and_formatted(script)
    made = runpy.run_path(str(script), run_name="__main__")
    assert made["report"].passed
    assert (tmp_path / "controller_c" / "controller.c").is_file()


def test_a_command_is_that_of_the_file():
    steps = [{"by": 0.3, "duration": 1.5, "start": 0.5}, 0.1]
    wave = {"amplitude": 0.2, "frequency": 0.4, "phase": -30.0, "ramp": 1.0, "start": 0.2}
    terms = [steps, 0.0, wave]
    spec = parse_spec(
        {"type": "whole_body_mpc", "period": 0.02, "horizon": 2, "command": terms}
        | {"contact": [{"frame": "foot"}]}
    )
    t = ca.SX.sym("t")

    def rise(start, duration):
        x = ca.fmin(ca.fmax((t - start) / duration, 0), 1)
        return x**3 * (10 - 15 * x + 6 * x**2)

    names = {"t": t, "ca": ca, "np": np, "rise": rise}
    exec("\n".join(command_lines(terms)), names)
    expected = command_of(spec.command)
    for now in (0.1, 0.9, 1.9, 4.0):
        assert np.array(names["command"](now)).ravel() == pytest.approx(expected(now), abs=1e-12)


FOOT = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
<body name="foot" pos="0 0 .02"><freejoint/><geom name="sole" type="capsule" size=".02 .08"
euler="0 90 0"/></body></worldbody></mujoco>"""


def test_a_script_has_some_of_the_points_of_a_shape():
    system = mb.read_mjcf(FOOT)
    q = np.array(system.tree.q0)
    touch = {"frame": "sole on floor, end -", "kind": "contact"}
    (line,) = contact_lines([touch], system, q, lambda _, values: repr(list(values)))
    names = {"mb": mb, "system": system, "q0": q}
    exec(line, names)
    assert [contact.frame for contact in names["contacts"]] == ["sole on floor, end -"]
    with pytest.raises(ProblemError, match=r"contacts sole on floor, rim \+0: they are no points"):
        contact_lines([touch | {"frame": "sole on floor, rim +0"}], system, q, lambda _, v: repr(v))


def test_what_no_script_can_hold_is_named():
    model = mb.models.path("scara")
    text = propose_spec(model)
    estimated = text + "\n[estimation]\ntype = 'base'\n"
    with pytest.raises(ProblemError, match="file with 'estimation'; write the TOML"):
        script_of_spec(estimated, model, "scara")
    turned = text.replace('orientation = ""', 'orientation = "z"').replace("x = {", "rz = {", 1)
    with pytest.raises(ProblemError, match="turns 'tool': found rz"):
        script_of_spec(turned, model, "scara")
