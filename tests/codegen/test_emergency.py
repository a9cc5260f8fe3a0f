"""What the generated C puts out where its law cannot run, judged by MuJoCo."""

import dataclasses

import casadi as ca
import mujoco
import numpy as np
import pytest
from support.emergency_problems import ARM, Faulty, acceleration, foreign, made, pointer

import mbcasadi.codegen as codegen
from mbcasadi.description import Emergency
from mbcasadi.description.status import Flag, Status
from mbcasadi.errors import ExportError

REST = 1e-3  # rad/s²; gravity alone gives 20, and a load is carried up to 1e-6 of itself
MEASURED = np.array([0.3, -0.5])  # rad, not the initial pose
KINDS = ["qp", "law", "rti"]


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    """Return the C of a kind, compiled once."""
    compiled = {}

    def of(kind):
        if kind not in compiled:
            compiled[kind] = Faulty(kind, tmp_path_factory.mktemp(kind))
        return compiled[kind]

    return of


def solved_ticks(c, memory, count=3):
    """Return z and u after good ticks at `MEASURED`."""
    z = c.controller.z0
    for _ in range(count):
        code, out = c.call("step", memory, c.inputs(MEASURED) | {"z": z})
        assert code in (0, 1)
        z = out["z_next"]
    return z, out["u"]


def within_limits(c, u):
    low, high = c.model.actuator_ctrlrange.T
    return np.all((low <= u) & (u <= high))


def test_a_zero_command_would_not_hold_the_arm():
    model = mujoco.MjModel.from_xml_string(ARM)
    assert np.abs(acceleration(model, model.qpos0, np.zeros(2))).max() > 100
    assert np.abs(acceleration(model, MEASURED, np.zeros(2))).max() > 100


@pytest.mark.parametrize("kind", KINDS)
def test_without_valid_memory_the_arm_is_held_at_the_authored_pose(kind, faulty):
    c, rng = faulty(kind), np.random.default_rng(0)
    garbage = rng.standard_normal(c.manifest["memory_bytes"] // 8)
    small = np.zeros_like(garbage)
    for memory in (None, garbage, small, garbage.ctypes.data + 4):
        for z in (None, c.controller.z0, np.zeros(c.controller.z0.size)):
            inputs = c.inputs(MEASURED) | ({} if z is None else {"z": z})
            for phase in ("step", "feedback") if kind == "rti" else ("step",):
                code, out = c.call(phase, memory, inputs)
                assert code == -1
                assert out["status"] == Status.BAD_INPUT
                assert out["flags"] == Flag.UNINITIALISED
                assert within_limits(c, out["u"])
                assert np.abs(acceleration(c.model, c.model.qpos0, out["u"])).max() < REST
                assert np.all(out["residual"] == np.inf)
                assert np.all(np.isfinite(out["z_next"]))


@pytest.mark.parametrize("kind", KINDS)
def test_without_memory_the_state_of_the_caller_still_tells_the_last_command(kind, faulty):
    c = faulty(kind)
    z, u = solved_ticks(c, c.memory())
    _, out = c.call("step", None, c.inputs(MEASURED) | {"z": z})
    np.testing.assert_array_equal(out["u"], u)
    for _ in range(12):
        _, out = c.call("step", None, c.inputs(MEASURED) | {"z": z})
        z = out["z_next"]
    assert np.abs(acceleration(c.model, MEASURED, out["u"])).max() < REST


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e301, -1.0, 0.3])
def test_any_state_gives_a_finite_command_within_limits_where_the_law_cannot_run(kind, bad, faulty):
    c = faulty(kind)
    for memory in (None, c.memory()):
        inputs = c.inputs([100.0, 0.0]) | {"z": np.full(c.controller.z0.size, bad)}
        _, out = c.call("step", memory, inputs)
        assert within_limits(c, out["u"])
        if bad != 0.3:
            assert np.abs(acceleration(c.model, c.model.qpos0, out["u"])).max() < REST


@pytest.mark.parametrize("kind", KINDS)
def test_after_an_arithmetic_breakdown_the_last_command_acts_and_then_the_hold(kind, faulty):
    c = faulty(kind)
    memory = c.memory()
    z, u = solved_ticks(c, memory)
    ticks = round(0.01 / c.controller.period)
    for k in range(ticks + 30):
        code, out = c.call("step", memory, c.inputs([100.0, 0.0]) | {"z": z})
        z = out["z_next"]
        assert code == out["status"] == Status.FAILED
        assert np.all(np.isfinite(z))
        if k < ticks:
            np.testing.assert_array_equal(out["u"], u)
        else:
            assert np.abs(acceleration(c.model, MEASURED, out["u"])).max() < REST
    code, out = c.call("step", memory, c.inputs(MEASURED) | {"z": z})
    assert code in (0, 1)
    assert out["flags"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_that_interrupts_another_gives_the_safe_output_and_leaves_the_state(kind, faulty):
    c = faulty(kind)
    memory = c.memory()
    z, u = solved_ticks(c, memory)
    before = memory.copy()
    c.library.set_busy(pointer(memory), 1)
    ticks = round(0.01 / c.controller.period)
    for k in range(ticks + 30):
        code, out = c.call("step", memory, c.inputs(MEASURED) | {"z": z})
        assert code == out["status"] == Status.BAD_INPUT
        assert out["flags"] == Flag.INTERRUPTING
        np.testing.assert_array_equal(out["z_next"], z)
        if k < ticks:
            np.testing.assert_array_equal(out["u"], u)
        else:
            assert np.abs(acceleration(c.model, MEASURED, out["u"])).max() < REST
    c.library.set_busy(pointer(memory), 0)
    np.testing.assert_array_equal(memory.view(np.uint8), before.view(np.uint8))


def test_a_feedback_without_preparation_gives_the_safe_output(faulty):
    c = faulty("rti")
    memory = c.memory()
    inputs = c.inputs(MEASURED) | {"z": c.controller.z0}
    code, out = c.call("feedback", memory, inputs)  # before any tick: what is measured is held
    assert code == out["status"] == Status.BAD_INPUT
    assert out["flags"] == Flag.UNPREPARED
    assert np.abs(acceleration(c.model, MEASURED, out["u"])).max() < REST
    z, u = solved_ticks(c, memory)
    code, out = c.call("feedback", memory, c.inputs(MEASURED) | {"z": z})
    assert (code, out["flags"]) == (Status.BAD_INPUT, Flag.UNPREPARED)
    np.testing.assert_array_equal(out["u"], u)
    code, out = c.call("feedback", memory, c.inputs([100.0, 0.0]) | {"z": z})  # and it breaks down
    assert (code, out["flags"]) == (Status.BAD_INPUT, Flag.UNPREPARED)
    np.testing.assert_array_equal(out["u"], u)
    assert c.call("prepare", memory, {"ref": inputs["ref"], "z": z})[0] == 0
    assert c.call("feedback", memory, c.inputs(MEASURED) | {"z": z})[0] in (0, 1)


def test_a_controller_made_by_hand_keeps_its_last_command_and_then_its_constant(faulty):
    c = faulty("foreign")
    memory, constant = c.memory(), [0.7, -2.0]  # its own for NaN, within the limits
    for where in (None, memory):
        code, out = c.call("step", where, {"q": [100.0, 0.0]})
        assert code == (-1 if where is None else Status.FAILED)
        np.testing.assert_array_equal(out["u"], constant)
    _, out = c.call("step", memory, {"q": [0.2, 0.3]})
    np.testing.assert_allclose(out["u"], [1.2, 1.3])
    for expected in (*2 * ([1.2, 1.3],), constant, constant):  # two ticks of 5 ms
        code, out = c.call("step", memory, {"q": [100.0, 0.0]})
        assert code == out["status"] == Status.FAILED
        np.testing.assert_allclose(out["u"], expected)


def test_the_constant_of_every_safe_output_stands_in_the_header_and_is_no_zero(tmp_path):
    """Zero force at the initial pose is a servo's length there, 2 * 0.4; "hold" holds the load."""
    model = mujoco.MjModel.from_xml_string(ARM)
    constants = {}
    for kind in ("hold", "zero"):
        project = codegen.export_c(made(kind), tmp_path / kind)
        line = next(x for x in project.source.read_text().splitlines() if "_u_safe[2] = " in x)
        constants[kind] = [float(x) for x in line.split("{")[1].split("}")[0].split(",")]
        assert project.manifest["u_safe"] == constants[kind]
        assert f"extern const double {project.name}_u_safe[2];" in project.header.read_text()
    np.testing.assert_allclose(constants["zero"], [0.8, 0.0], atol=1e-12)
    assert np.abs(acceleration(model, model.qpos0, constants["hold"])).max() < REST


def test_an_emergency_function_that_does_not_fit_is_refused(tmp_path):
    z, k = ca.SX.sym("memory", 1), ca.SX.sym("missed")
    names = ["memory", "missed"], ["u", "memory_next"]
    short = ca.Function("short", [z, k], [z, z], *names)
    cases = {
        "expected \\(memory, missed\\)": Emergency(ca.Function("f", [z], [z], ["z"], ["u"]), 0),
        "expected missed\\[1\\], u\\[2\\]": Emergency(short, 0),
    }
    for message, emergency in cases.items():
        with pytest.raises(ExportError, match=message):
            codegen.export_c(dataclasses.replace(foreign(), emergency=emergency), tmp_path / "c")
