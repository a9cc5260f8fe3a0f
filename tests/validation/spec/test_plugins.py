"""Tasks, laws and controllers of a package that is a folder on the path, found by their names."""

import sys

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.errors import ControllerError, ProblemError, UnknownNameError
from mbcasadi.validation.spec import build_experiment, parse_spec, read_spec, run_spec
from mbcasadi.validation.spec.plugins import plugin_names

FOUR_BAR = models.path("four_bar")
MODULE = """
from dataclasses import dataclass

import casadi as ca

from mbcasadi.control import InverseDynamicsQP, OutputTask, PostureTask, laws


@dataclass(frozen=True)
class SquareTask(OutputTask):
    '''The square of a joint's angle follows a position.

    Attributes:
        joint: its name.
        kp: gain, 1/s².
    '''

    joint: str
    kp: float = 100.0
    kd: float | None = None
    weight: float = 1.0
    name: str = "square"

    def components(self, system):
        return ("square",)

    def units(self, system):
        return ("rad²",)

    def output(self, system):
        place = system.limits.joint_names.index(self.joint)
        q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
        J = ca.jacobian(q[place] ** 2, q)
        return ca.Function(
            "square", [q, v], [q[place] ** 2, J, ca.jtimes(J, q, v) @ v], ["q", "v"],
            ["y", "J", "bias"],
        )


def stiff(system, task, *, factor: float, options: laws.LawOptions = laws.LawOptions()):
    return laws.impedance_control(
        system, task, stiffness=100.0 * factor, damping=5.0, options=options
    )


def posture(system, *, joint: str, kp: float = 100.0, period: float, name: str):
    if kp < 0:
        raise ArithmeticError("kp is negative")
    return InverseDynamicsQP(
        system, [PostureTask(joints=[joint], kp=kp)], period=period, name=name
    )


def start_taken(system, *, start: float = 0.0):
    return None


def function_needed(system, *, f: ca.Function):
    return None


def no_controller(system):
    return 3
"""
POINTS = """
[mbcasadi.tasks]
square = lean_robots:SquareTask
posture = lean_robots:SquareTask
no_task = lean_robots:stiff
gone = lean_robots:nothing

[mbcasadi.laws]
stiff = lean_robots:stiff

[mbcasadi.controllers]
one_posture = lean_robots:posture
start_taken = lean_robots:start_taken
function_needed = lean_robots:function_needed
no_controller = lean_robots:no_controller
lqr = lean_robots:no_controller
absent = lean_absent:make
"""
MOVE = {"crank": {"amplitude": 0.2, "frequency": 2.0, "ramp": 0.1}}
AWAY = {"start": {"q": [0.5, 0.0, 0.0]}}
PACKAGE = r"of the package lean-robots 1\.5"


def install(folder, name, points):
    """Write what `pip install` leaves of the metadata of a package."""
    info = folder / f"{name.replace('-', '_')}-1.5.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    (info / "entry_points.txt").write_text(points)


@pytest.fixture
def site(tmp_path, monkeypatch):
    (tmp_path / "lean_robots.py").write_text(MODULE, encoding="utf-8")
    install(tmp_path, "lean-robots", POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("lean_robots", None)


def qp(**task):
    return {"type": "inverse_dynamics_qp", "task": [task], **AWAY}


def test_a_task_of_a_package_is_a_table_and_its_output_follows_the_reference(site):
    move = {"square": {"amplitude": 0.1, "frequency": 1.0, "ramp": 0.2}}
    task = {"type": "square", "joint": "crank", "kp": 400.0, "reference": move}
    spec = parse_spec(qp(**task) | {"validation": {"duration": 0.6, "fast": True, "rigid": True}})
    run = run_spec(spec, FOUR_BAR).runs[0].recording
    t, square = run.t, run.q[:, 0] ** 2
    ramp = np.clip(t / 0.2, 0, 1)
    assert np.ptp(square) > 0.05
    start = square[0]
    late = t > 0.3
    np.testing.assert_allclose(ramp[late], 1.0)
    expected = start + 0.1 * np.sin(2 * np.pi * t[late])
    np.testing.assert_allclose(square[late], expected, atol=5e-3)


def test_a_law_of_a_package_has_the_tables_of_a_law(site):
    task = {"type": "posture", "joints": ["crank"], "reference": MOVE}
    tables = {"type": "stiff", "task": task, "name": "limp", "period": 0.002, **AWAY}
    made = build_experiment(parse_spec(tables | {"factor": 3.0}), FOUR_BAR)
    assert (made.controller.controller.name, made.controller.controller.period) == ("limp", 0.002)
    system = mb.read_mjcf(FOUR_BAR)
    law = mb.control.laws.impedance_control(
        system, mb.control.PostureTask(joints=["crank"]), stiffness=300.0, damping=5.0
    )
    ref, q, v = made.reference(0.1), np.array(made.q0), np.array([0.1, -0.2, 0.1])
    inputs = {"q": q, "v": v, "ref": ref}
    of_package, ours = made.controller.controller.function, law.controller.function
    np.testing.assert_array_equal(of_package(**inputs)["u"], ours(**inputs)["u"])
    with pytest.raises(ProblemError, match="factor: field required"):
        parse_spec(tables)


def test_a_controller_of_a_package_needs_no_permission_and_takes_what_its_signature_says(site):
    move = {"posture.q.crank": {"amplitude": 0.2, "frequency": 2.0}}
    tables = {"type": "one_posture", "joint": "crank", "reference": move, "period": 0.002, **AWAY}
    made = build_experiment(parse_spec(tables), FOUR_BAR)
    assert made.controller.controller.period == 0.002
    assert made.reference(0.3)[0] != made.reference(0.0)[0]
    with pytest.raises(ProblemError, match=r"unknown key 'kpp'.*did you mean 'kp'"):
        parse_spec(tables | {"kpp": 1.0})
    with pytest.raises(
        ControllerError, match=rf"'one_posture' {PACKAGE}.*ArithmeticError: kp is n"
    ):
        build_experiment(parse_spec(tables | {"kp": -1.0}), FOUR_BAR)
    with pytest.raises(UnknownNameError, match="unknown joint 'crnk'"):
        build_experiment(parse_spec(tables | {"joint": "crnk"}), FOUR_BAR)


def test_nothing_is_imported_before_a_file_has_its_name_and_no_name_of_ours_is_replaced(site):
    task = {"type": "posture", "joints": ["crank"], "reference": MOVE}
    spec = parse_spec(qp(**task))
    assert isinstance(spec.task[0].task, mb.control.PostureTask)
    parse_spec({"type": "lqr"})
    with pytest.raises(UnknownNameError, match=r"'one_posture'.*did you mean 'one_posture'"):
        parse_spec({"type": "one_postur"})
    with pytest.raises(ProblemError, match=r"unknown type 'squar'.*did you mean 'square'"):
        parse_spec(qp(type="squar"))
    assert "square" in plugin_names("mbcasadi.tasks")
    assert "lean_robots" not in sys.modules


BROKEN = [
    ({"type": "absent"}, "'absent' {}.*broken: ModuleNotFoundError: .*lean_absent.*uninstall"),
    ({"type": "start_taken"}, "'start_taken' {}.*'start' is a key of all files"),
    ({"type": "function_needed"}, "'function_needed' {}.*no file can hold its argument 'f'"),
    (qp(type="gone"), r"task 1 \('gone'\): 'gone' {}.*broken: AttributeError"),
    (qp(type="no_task"), "'no_task' {}.*found <function stiff.*expected a dataclass of the base"),
]


@pytest.mark.parametrize(("tables", "words"), BROKEN)
def test_what_is_broken_is_one_error_that_names_the_package(site, tables, words):
    with pytest.raises(ProblemError, match=words.format(PACKAGE)):
        parse_spec(tables)


def test_what_is_no_controller_and_what_two_packages_have_is_refused(site):
    with pytest.raises(ProblemError, match=f"'no_controller' {PACKAGE}.*returned int; expected a"):
        build_experiment(parse_spec({"type": "no_controller"}), FOUR_BAR)
    install(site, "other-robots", "[mbcasadi.laws]\none_posture = other:make\n")
    with pytest.raises(ProblemError, match=f"ambiguous: .*{PACKAGE}.*of the package other-robots"):
        parse_spec({"type": "one_posture"})


def test_a_file_with_a_wrong_key_of_a_task_of_a_package_is_told_with_its_line(site, tmp_path):
    file = tmp_path / "spec.toml"
    text = 'type = "inverse_dynamics_qp"\n[[task]]\ntype = "square"\njoint = "crank"\nkp = "x"\n'
    file.write_text(text)
    with pytest.raises(ProblemError, match=r"line 5, task 1 \('square'\)\.kp: expected a number"):
        read_spec(file)
    file.write_text(text.replace('kp = "x"', "kpp = 1.0"))
    with pytest.raises(ProblemError, match=r"line 5, task 1 \('square'\): unknown key 'kpp'"):
        read_spec(file)
    file.write_text(text.replace("square", "squar"))
    with pytest.raises(ProblemError, match=r"line 3, task 1 \('squar'\): unknown type"):
        read_spec(file)


def test_the_command_line_runs_a_controller_of_a_package(site, tmp_path):
    from typer.testing import CliRunner

    from mbcasadi.cli.app import app

    file = tmp_path / "spec.toml"
    file.write_text('type = "one_posture"\njoint = "crank"\n[start]\nq = [0.5, 0.0, 0.0]\n')
    command = ["validate", "four_bar", "-c", str(file), "--duration", "0.05", "--fast", "--quiet"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code in {0, 3}, result.output
    file.write_text('type = "absent"\n')
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert "lean-robots 1.5" in result.output
