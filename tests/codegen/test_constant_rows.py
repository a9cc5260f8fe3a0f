"""Rows that are constants are scaled when the C is written: the law is that of rows of a tick."""

import dataclasses

import casadi as ca
import numpy as np
import pytest
from codegen_problems import Array, least_distance_controller
from two_phase_problems import two_phase_controller

import mbcasadi.codegen as codegen
from mbcasadi.description import Controller, LeastDistanceStages
from mbcasadi.mpc import LinearModel, LinearOptions, Output, lti_mpc
from mbcasadi.qp.solver import controller_fun

N, M = 8, 20
PROBLEMS = 1000
NAMES = ["lower", "upper", "z"]
TOLERANCE = 1e-12  # the same solver with the same settings: only the rows' lengths are rounded
SOLVED = 0


def constant(A: Array, kind: type) -> Controller:
    """Return (lower, upper, z) → (u, z_next, status, residual): the rows A of one problem."""
    m, n = A.shape
    general = least_distance_controller(n, m)
    stages = general.stages

    def fix_rows(function: ca.Function, kind: type) -> ca.Function:
        values = [kind.sym(f"i{k}", function.sparsity_in(k)) for k in range(1, function.n_in())]
        rows = kind(ca.DM(A))
        actual = function.call([rows, *values], True, False)
        actual = [
            rows if k == "A_qp" else o for k, o in zip(function.name_out(), actual, strict=True)
        ]
        return ca.Function(
            function.name(), values, actual, function.name_in()[1:], function.name_out()
        )

    build, finish = fix_rows(stages.build, kind), fix_rows(stages.finish, kind)
    parts = {"inputs": general.inputs[1:], "stages": LeastDistanceStages(build, finish)}
    return dataclasses.replace(general, function=fix_rows(general.function, ca.MX), **parts)


def awkward(rng) -> Array:
    """Return rows of lengths from 1e-4 to 1e4, dependent ones, a zero row, and one that counts."""
    A = rng.normal(size=(M, N)) * (rng.random((M, N)) < 0.7)
    A[M // 2 + 2 :] = A[2 : M // 2] * rng.choice([-1.0, 1.0], size=(M // 2 - 2, 1))
    A *= 10.0 ** rng.uniform(-4, 4, size=(M, 1))
    A[0], A[1] = 0.0, 1e-16 * A[1]
    return A


def bounds(rng, A: Array) -> dict[str, Array]:
    """Return bounds and warm starts (PROBLEMS, M), a tenth of them of problems without solution."""
    points = 3 * rng.normal(size=(PROBLEMS, N)) @ A.T
    distances = rng.exponential(size=(2, PROBLEMS, M)) * np.linalg.norm(A, axis=1)
    lower = np.where(rng.random((PROBLEMS, M)) < 0.7, points - distances[0], -1e30)
    upper = np.where(rng.random((PROBLEMS, M)) < 0.7, points + distances[1], 1e30)
    lower[::30, 0], upper[::30, 0] = 0.1, 1.0  # a zero row requires what it cannot
    upper[10::30, 5] = lower[10::30, 5] - 1.0
    lower[20::30, 3] = np.nan
    z = rng.choice([-1.0, 0.0, 1.0], size=(PROBLEMS, M))
    return {"lower": lower, "upper": upper, "z": z}


def outputs_of(law: ca.Function, *values: Array) -> list[Array]:
    """Return each output, one row for each problem."""
    return [np.array(out).T for out in law.map(PROBLEMS)(*(x.T for x in values))]


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_constant_rows_give_the_solution_of_the_same_rows_of_a_tick(kind, tmp_path):
    rng = np.random.default_rng(20)
    A = awkward(rng)
    values = bounds(rng, A)
    project = codegen.export_c(constant(A, kind), tmp_path / "constant")
    x, active, status, lam = outputs_of(project.load(), *(values[name] for name in NAMES))
    other = codegen.export_c(least_distance_controller(N, M), tmp_path / "general").load()
    tiled = np.tile(A, (1, PROBLEMS))  # as `map` takes matrices
    expected = outputs_of(other, tiled.T, *(values[name] for name in NAMES))
    assert np.array_equal(status, expected[2])
    assert 0.85 < np.mean(status == SOLVED) < 0.95
    size = 1 + np.linalg.norm(x, axis=1, keepdims=True)
    assert np.max(np.abs(x - expected[0]) / size) < TOLERANCE
    assert np.array_equal(active, expected[1])
    scaled = np.linalg.norm(A, axis=1) / size  # a multiplier's share in x
    assert np.max(np.abs(lam - expected[3]) * scaled) < TOLERANCE


def test_multipliers_are_those_of_the_rows_as_they_were_given(tmp_path):
    """Stationarity `x + Aᵀ lam = 0` and `u` against the multiplier of one row by hand."""
    A = np.array([[1e3, 0.0], [0.0, 0.0], [0.0, 0.25]])
    law = codegen.export_c(constant(A, ca.SX), tmp_path / "c").load()
    lower, upper = np.array([2e3, -1.0, -1.0]), np.array([1e30, 1.0, -0.5])
    x, active, status, lam = (np.array(out).ravel() for out in law(lower, upper, np.zeros(3)))
    assert int(status[0]) == SOLVED
    np.testing.assert_allclose(x, [2.0, -2.0], rtol=TOLERANCE)
    np.testing.assert_allclose(lam, [-2e-3, 0.0, 8.0], rtol=TOLERANCE)
    np.testing.assert_array_equal(active, [-1, 0, 1])


def test_constant_rows_are_neither_stored_nor_measured_on_a_tick(tmp_path):
    A = awkward(np.random.default_rng(21))
    project = codegen.export_c(constant(A, ca.SX), tmp_path / "constant")
    text = (project.folder / "qp.c").read_text()
    assert "ldp_measure" not in text
    assert "static const ldp_real ldp_A[" in text
    assert "static const ldp_real ldp_length2[" in text
    general = codegen.export_c(least_distance_controller(N, M), tmp_path / "general")
    saved = general.manifest["memory_bytes"] - project.manifest["memory_bytes"]
    assert saved >= 8 * (M * N + M)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_constant_rows_that_are_not_finite_are_never_solved(bad, tmp_path):
    A = np.ones((3, 2))
    A[1, 0] = bad
    law = codegen.export_c(constant(A, ca.MX), tmp_path / "c").load()
    assert float(law(-np.ones(3), np.ones(3), np.zeros(3))[2]) != SOLVED


def test_rows_that_only_step_with_an_input_are_no_constants(tmp_path):
    """A step has no derivative: the rows must still be those of the tick."""
    general = least_distance_controller(1, 1)
    A, lower, upper, z = general.stages.build.sx_in()
    stepped = general.stages.build.call([ca.sign(A), lower, upper, z])
    names = general.stages.build.name_in(), general.stages.build.name_out()
    build = ca.Function("build", [A, lower, upper, z], stepped, *names)
    stages = dataclasses.replace(general.stages, build=build)
    law = codegen.export_c(dataclasses.replace(general, stages=stages), tmp_path / "c").load()
    for A_now in (-7.0, 7.0):
        assert float(law(A_now, 1.0, 1e30, 0.0)[0]) == pytest.approx(np.sign(A_now))


def test_constant_rows_of_a_preparation_give_the_solution_of_python(tmp_path):
    """A preparation may give constant rows too: nothing of them is left to prepare."""
    general = two_phase_controller()
    prepare = general.stages.prepare
    rows = np.array([[1.0, 0.3, 0.0], [0.9, -1.0, 20.0], [0.0, 1.0, 2.0], [0.2, 1.0, -1.0]])
    values = prepare.sx_in()
    outputs = [prepare.call(values)[0], ca.SX(ca.DM(rows))]
    prepare_fixed = ca.Function("prepare", values, outputs, prepare.name_in(), prepare.name_out())
    stages = dataclasses.replace(general.stages, prepare=prepare_fixed)
    function = controller_fun("phased", stages, "daqp")
    controller = dataclasses.replace(general, function=function, stages=stages)
    project = codegen.export_c(controller, tmp_path / "c")
    rng = np.random.default_rng(22)
    sets = [rng.normal(size=(PROBLEMS, size)) for size in (2, 3)] + [np.zeros((PROBLEMS, 4))]
    actual, expected = outputs_of(project.load(), *sets), outputs_of(function, *sets)
    assert np.array_equal(actual[2], expected[2])
    assert np.mean(actual[2] == SOLVED) > 0.5
    np.testing.assert_allclose(actual[0], expected[0], rtol=0, atol=1e-9)  # and DAQP in Python
    memory, tick = project.memory(), {"q": sets[0][0], "ref": sets[1][0], "z": sets[2][0]}
    project.prepare(memory, {"ref": tick["ref"], "z": tick["z"]})
    outputs = project.feedback(memory, tick)
    np.testing.assert_array_equal(outputs["u"], actual[0][0])


def test_linear_mpc_as_c_is_the_law_in_python(tmp_path):
    """A double integrator with bounds on control, place and speed; a tenth without solution."""
    model = LinearModel.of([[1, 0.1], [0, 1]], [[0.005], [0.1]], 0.1)
    box_limits = np.array([5.0, 0.8])
    box = Output("x", np.eye(2), np.zeros((2, 1)), -box_limits, box_limits)
    mpc = lti_mpc(model, LinearOptions(12, [1.0, 0.1], 0.1, u_bounds=[[-1.0, 1.0]], outputs=[box]))
    program = codegen.export_c(mpc, tmp_path / "c").load()
    rng = np.random.default_rng(23)
    x0 = rng.normal(size=(PROBLEMS, 2)) * [3.0, 0.5]
    ref = np.hstack([rng.uniform(-4, 4, (PROBLEMS, 1)), np.zeros((PROBLEMS, 2))])
    x0[::50, 0] = np.nan
    z = np.tile(mpc.controller.z0, (PROBLEMS, 1))
    actual, expected = (outputs_of(law, x0, ref, z) for law in (program, mpc.function))
    assert np.array_equal(actual[2], expected[2])
    assert set(np.unique(actual[2])) == {0, 2, 3}
    rows = mpc.controller.stages.m
    assert np.mean(np.any(actual[1][:, :rows] != 0, axis=1)) > 0.3
    np.testing.assert_array_equal(actual[1][:, :rows], expected[1][:, :rows])  # the active set
    np.testing.assert_allclose(actual[1], expected[1], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(actual[0], expected[0], rtol=0, atol=TOLERANCE)
