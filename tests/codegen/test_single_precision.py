"""Exports in float: nothing in double, double's control within rounding, honest statuses."""

import re
import subprocess
from functools import cache, partial

import casadi as ca
import numpy as np
import pytest
from codegen_problems import saturated_controller
from two_phase_problems import N, two_phase_controller

import mbcasadi as mb
from bench import mpc_rti
from mbcasadi import codegen, models, mpc
from mbcasadi.codegen.compiler import find_compiler
from mbcasadi.description.status import Flag
from mbcasadi.description.tolerance import Tolerance, marked, single_value, tolerance
from mbcasadi.errors import ExportError, ProblemError
from mbcasadi.validation import compare_precision
from mbcasadi.validation.precision.compare_precision import Distribution, _distribution

EPS = float(np.finfo(np.float32).eps)
TOLERANCE = 1e-3  # of a float's residuals, where double has 1e-6
NO_DOUBLE = ("-Wdouble-promotion", "-Wfloat-conversion", "-Werror", "-fsyntax-only")
STATES = 100


@cache
def four_bar():
    return mb.read_mjcf(models.path("four_bar"))


@cache
def quadruped():
    return mb.read_mjcf(models.path("quadruped"))


def computed_torque():
    return mb.control.laws.computed_torque(four_bar(), mb.control.PostureTask(("crank",))), {}


def crank():
    return mb.control.InverseDynamicsQP(
        four_bar(), [mb.control.PostureTask(("crank",))], torque_weight=1e-4
    ), {}


def standing(torque_weight=1e-4, cone="inner", tunable=()):
    """Return the quadruped's law; the weight is the least one that float takes."""
    system, feet = quadruped(), ("FL", "FR", "RL", "RR")
    contacts = [mb.Contact(name, friction=0.6, cone=cone, min_force=5.0) for name in feet]
    tasks = [mb.control.FrameTask("trunk", kp=100.0), mb.control.PostureTask(kp=20.0, weight=0.01)]
    law = mb.control.InverseDynamicsQP(
        system, tasks, contacts, torque_weight=torque_weight, name="quadruped", tunable=tunable
    )
    rng, stand = np.random.default_rng(0), system.tree.keyframes["stand"]
    steps = 0.05 * rng.standard_normal((STATES, system.nv))
    q = [np.array(system.integrate(stand, step)).ravel() for step in steps]
    v = 0.2 * rng.standard_normal((STATES, system.nv))
    return law, {"q": q, "v": v, "ref": law.reference_at(stand)}


def horizon():
    held = mb.equilibrium(four_bar())
    weights = np.repeat([10.0, 0.01], four_bar().nv), 1.0
    predictive = mpc.linear_mpc(
        mb.linearize(four_bar(), held),
        mpc.LinearOptions(20, *weights, period=0.01, u_bounds=[[-0.5, 0.5]]),
    )
    q = mb.control.laws.sampled_poses(four_bar(), STATES, q0=held.q, spread=0.2)
    return predictive, {"q": q, "ref": predictive.reference(setpoint_q=held.q, setpoint_u=held.u)}


def iteration():
    return mpc_rti.four_bar().rti, {}


def phased():
    rng = np.random.default_rng(1)
    sets = {"q": rng.normal(size=(STATES, 2)), "ref": 1.5 * rng.normal(size=(STATES, N))}
    return two_phase_controller(), sets


# Bounds of the error of u: float's epsilon times |u|, the problem's condition and ten.
CASES = {
    "law": (computed_torque, 100 * EPS),
    "inverse dynamics": (crank, 100 * EPS),
    "quadruped, condition 1e4": (standing, 10 * 1e4 * EPS * 40),
    "linear MPC": (horizon, 100 * EPS),
    "two phases": (phased, 1000 * EPS),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.every(2)
def test_float_gives_the_control_of_double_within_its_rounding(name):
    build, bound = CASES[name]
    controller, inputs = build()
    report = compare_precision(controller, inputs, states=STATES, flags=("-O0",))
    assert report.ticks == STATES or report.ticks > STATES // 2
    assert report.differing == 0
    assert report.solved > 0.9 * report.ticks
    assert 0 < report.u_error.max < bound
    # a law without a solver has pointers and integers alone, as large in float
    share = 1.0 if name == "law" else 0.65
    assert report.memory_float < share * report.memory_double
    if name != "two phases":  # its residual is another quantity
        assert report.residual_double.max < 1e-9
        assert EPS / 10 < report.residual_float.max < TOLERANCE


@pytest.mark.long
def test_default_forces_and_limits_are_inputs_that_float_takes():
    """`max_force` means none at its default, 1e9 N, in each of many entries."""
    law, inputs = standing(tunable=("forces", "limits"))
    report = compare_precision(law, inputs, states=STATES, flags=("-O0",))
    assert report.statuses == {(0, 0): STATES}


def test_controllers_for_which_float_does_not_suffice_are_refused(tmp_path):
    tasks = [mb.control.FrameTask("trunk"), mb.control.PostureTask()]
    levels = mb.control.InverseDynamicsQP(quadruped(), tasks, levels=[["trunk"], ["posture"]])
    for controller, reason in ((levels, "strict levels"), (iteration()[0], "real-time iteration")):
        with pytest.raises(ExportError, match=rf"exported in float, and .*{reason}.*real=.double"):
            codegen.export_c(controller, tmp_path / "c", real="float")
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("build", [computed_torque, partial(standing, cone="quadratic"), phased])
def test_the_c_computes_nothing_in_double(build, tmp_path):
    controller, _ = build()
    project = codegen.export_c(controller, tmp_path / "c", real="float")
    command = [*find_compiler(), "-std=c99", *NO_DOUBLE, f"-I{project.folder}", "-c"]
    built = subprocess.run(
        [*command, project.source, "-o", tmp_path / "law.o"], capture_output=True, check=False
    )
    assert built.returncode == 0, built.stderr.decode()
    text = re.sub(r"/\*.*?\*/", "", project.source.read_text(), flags=re.DOTALL)
    assert "double" not in text.replace("sizeof(double)", "")  # the alignment of the memory
    assert not re.search(r"\d\.\d*(e[-+]?\d+)?(?![\w.])", text)  # a literal without f


def test_headers_manifest_and_example_are_of_floats(tmp_path):
    project = codegen.export_c(saturated_controller(), tmp_path / "c", real="float")
    header = project.header.read_text()
    assert "#define PD_REAL float" in header
    assert "const float *q" in header
    assert "double *" not in header
    assert project.manifest["real"] == "float"
    assert codegen.open_project(project.folder).manifest == project.manifest
    assert "u equals the record" in project.run_example()
    times = project.time({"q": np.ones((5, 2)), "v": np.ones((5, 2))})
    assert times.seconds.shape == (25,)


def test_the_library_takes_and_gives_doubles(tmp_path):
    x = ca.SX.sym("x", 3)
    f = ca.Function("f", [x], [ca.sin(x), x[0] / 3, 1e-9 * x[1]], ["x"], ["s", "third", "small"])
    law = codegen.export_c(f, tmp_path / "f", real="float").load()
    found, expected = law([0.1, 2.0, -3.0]), f([0.1, 2.0, -3.0])
    for a, b in zip(found, expected, strict=True):
        a, b = a.full(), b.full()
        np.testing.assert_allclose(a, b, rtol=4 * EPS)
        assert np.any(a != b)  # it did go through float


def test_sines_are_those_of_double_to_the_last_bits_of_float(tmp_path):
    x = ca.SX.sym("x", 500)
    f = ca.Function("waves", [x], [ca.sin(x), ca.cos(x)], ["x"], ["s", "c"])
    law = codegen.export_c(f, tmp_path / "waves", real="float").load()
    angles = np.float32(np.concatenate([np.linspace(-9, 9, 300), np.geomspace(1e-6, 4e3, 200)]))
    s, c = (np.array(out).ravel() for out in law(angles.astype(float)))
    assert np.abs(s - np.sin(angles.astype(float))).max() < 2 * EPS
    assert np.abs(c - np.cos(angles.astype(float))).max() < 2 * EPS


def test_both_phases_are_the_whole_tick_in_float_too(tmp_path):
    controller, sets = phased()
    project = codegen.export_c(controller, tmp_path / "c", real="float")
    whole, apart = project.memory(), project.memory()
    for k in range(20):
        tick = {name: values[k] for name, values in sets.items()}
        project.prepare(apart, {"ref": tick["ref"]})
        first, second = project.feedback(apart, tick), project.step(whole, tick)
        assert all(first[name].tobytes() == second[name].tobytes() for name in first)


def test_bad_input_is_bad_in_float_and_the_output_stays_safe(tmp_path):
    law, _ = crank()
    project = codegen.export_c(law, tmp_path / "c", real="float")
    for bad in (np.nan, np.inf, 1e30, 1e300):
        outputs = project.step(project.memory(), {"q": np.full(3, bad), "v": np.zeros(3)})
        assert outputs["status"][0] == 3
        assert np.all(np.isfinite(outputs["u"]))
    memory = codegen.Memory(np.zeros_like(project.memory().block), project.memory().library)
    with pytest.raises(ExportError, match="-1 is memory"):
        project.step(memory, {})
    assert Flag.UNINITIALISED == 64


def test_what_float_cannot_have_is_refused(tmp_path):
    law, _ = crank()
    with pytest.raises(ExportError, match="DAQP's library computes in double"):
        codegen.export_c(law, tmp_path / "c", real="float", solver="daqp")
    with pytest.raises(ProblemError, match="'half'"):
        codegen.export_c(law, tmp_path / "c", real="half")
    with pytest.raises(ExportError, match="no system to sample"):
        compare_precision(saturated_controller())
    assert not (tmp_path / "c").exists()


def test_a_distribution_has_the_hundredth_part_above_its_percentile():
    assert _distribution(np.arange(101.0)) == Distribution(50.0, 99.0, 100.0)


@pytest.mark.parametrize("value", [1e-3, 1e-6, 1e-10, 1e-14])
def test_a_tolerance_is_the_same_power_of_floats_epsilon(value):
    t = tolerance(value)
    assert t == pytest.approx(value, rel=2e-6)
    assert 0.9 * value <= t.single <= 1.5e-3
    assert (t**2).single == pytest.approx(t.single**2, rel=0.5)
    assert single_value(float(t)) == t.single
    assert single_value(value) == value
    assert isinstance(2.0 * t, Tolerance)
    assert marked(1e20, 1e9).single == pytest.approx(1e9, rel=0.5)
    assert tolerance(0.0).single == 0.0


def test_marks_survive_in_the_c_of_a_function_and_plain_numbers_stay(tmp_path):
    x = ca.SX.sym("x")
    f = ca.Function("f", [x], [x <= tolerance(1e-10), x <= 1e-10, tolerance(1e-10) ** 2 * x])
    again = ca.Function.deserialize(f.serialize())
    law = codegen.export_c(again, tmp_path / "f", real="float").load()
    near = [np.array(out).item() for out in law(1e-6)]
    assert near[:2] == [1.0, 0.0]
    assert near[2] == pytest.approx(1e-6 * tolerance(1e-10).single ** 2, rel=0.5)
