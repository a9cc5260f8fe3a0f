"""Real-time iterations that keep their states: the same controls, C that hardly grows with N."""

import os
import platform
import subprocess

import casadi as ca
import numpy as np
import pytest
from support.mpc_mechanisms import cart_pole

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.codegen import export_c
from mbcasadi.description.status import Status
from mbcasadi.qp.rows import Bounded

SAME = 1e-6  # of the largest control: the tolerance of all solutions is 1e-6
TICKS = 15


def swing(N=15, **limits):
    """Return a cart-pole with bounds of everything: a soft row, changes, an end in a box."""
    system = cart_pole(limit=8.0)
    at = mpc.stage_symbols(system)
    parts = [
        mpc.Cost(Q=[3.0, 30.0, 0.1, 0.1], R=[1e-2], Q_end=[30.0, 300.0, 1.0, 1.0], S=[1e-2]),
        mpc.StageBounds(du=[[-5.0, 5.0]], q=limits.get("q", [[-0.6, 0.6], [-9.0, 9.0]])),
        Bounded(at.v[0], -0.5, 0.5, linear_penalty=0.5, quadratic_penalty=10.0),
        Bounded(at.q[1], 2.0, 4.0, linear_penalty=5.0, quadratic_penalty=10.0, at_end=True),
    ]
    return mpc.optimal_control_problem(system, N, 0.05, parts, symbols=at)


def four_bar(N=8):
    system = mb.read_mjcf(models.path("four_bar"))
    limits = mpc.StageBounds(u=[[-0.1, 0.1]])
    parts = [limits, mpc.Cost(Q=[5.0] * 3 + [0.1] * 3, R=[1e-2], Q_end=[50.0] * 3 + [1.0] * 3)]
    step = mpc.StepOptions(order=2)
    return mpc.optimal_control_problem(system, N, 0.02, parts, step=step)


CASES = {
    "cart-pole": (swing, {"setpoint_q": [0.3, np.pi]}, 1),
    "four-bar": (four_bar, {"setpoint_q": [1.0, 0.5, -0.5]}, 0),
}


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    """Return the problem, its two controllers, the C of the second one, and p."""
    make, slices, delay = CASES[request.param]
    ocp = make()
    condensed, kept = (
        mpc.real_time_iteration(ocp, delay=delay, solver=solver) for solver in ("daqp", "stagewise")
    )
    project = export_c(kept, tmp_path_factory.mktemp("kept") / "c")
    return ocp, condensed, kept, project.load(), ocp.parameters(**slices).ravel()


def test_controls_are_those_of_the_condensed_problem_along_a_run(case):
    ocp, condensed, kept, in_c, p = case
    rng, nq = np.random.default_rng(0), ocp.system.nq
    laws = [condensed.function, kept.function, in_c]
    z = [condensed.controller.z0, kept.controller.z0, kept.controller.z0]
    x, size, limited = ocp.rest.copy(), np.abs(ocp.u_bounds).max(), 0
    for _ in range(TICKS):
        q, v = x[:nq], x[nq : nq + ocp.system.nv]
        answers = [law(q, v, p, state) for law, state in zip(laws, z, strict=True)]
        u, z = [np.array(a[0]).ravel() for a in answers], [a[1] for a in answers]
        assert [int(a[2]) for a in answers] == [Status.SOLVED] * 3
        np.testing.assert_allclose(u[1], u[0], atol=SAME * size)
        np.testing.assert_allclose(u[2], u[0], atol=SAME * size)
        limited += np.any(np.array(kept.memory.split(ca.DM(z[2])).active) != 0)
        x = np.array(ocp.dynamics(x, u[0], ocp.parameters()[0])).ravel()
        x[nq : nq + ocp.system.nv] *= 1 + 0.02 * rng.standard_normal()
    assert limited


def test_wild_inputs_have_the_status_and_the_output_of_the_condensed_problem(case):
    ocp, condensed, kept, in_c, p = case
    q, v = ocp.rest[: ocp.system.nq], np.zeros(ocp.system.nv)
    z, other = kept.controller.z0, condensed.controller.z0
    nan, far = np.nan * z, np.full(p.size, np.inf)
    for given, known in (
        ((q * np.nan, v, p, z), (q * np.nan, v, p, other)),
        ((q, v + 1e300, p, z), (q, v + 1e300, p, other)),
        ((q, v, far, z), (q, v, far, other)),
        ((q, v, p, nan), (q, v, p, np.nan * other)),
    ):
        mine, wanted = in_c(*given), condensed.function(*known)
        assert int(mine[2]) == int(wanted[2]) == int(kept.function(*given)[2])
        np.testing.assert_allclose(np.array(mine[0]), np.array(wanted[0]), atol=SAME * 20)
    lost = np.array(z) + 1e3 * np.random.default_rng(0).standard_normal(z.size)
    answer = in_c(q, v, p, lost)
    assert np.all(np.abs(np.array(answer[0]).ravel()) <= np.abs(ocp.u_bounds).max())
    assert np.all(np.isfinite(np.array(answer[1])))


def test_a_problem_without_a_solution_is_proven_to_have_none_in_c(tmp_path):
    """The cart is asked to be within 1 mm of a place that it cannot reach in a sample."""
    kept = mpc.real_time_iteration(swing(6, q=[[0.399, 0.4], [-9.0, 9.0]]), solver="stagewise")
    p, z = kept.ocp.parameters().ravel(), kept.controller.z0
    in_c = export_c(kept, tmp_path / "c").load()
    for law, expected in (
        (kept.function, (Status.FAILED, Status.LIMIT)),
        (in_c, (Status.INFEASIBLE,)),
    ):
        u, z_next, status, _, residual = law([0.0, 0.0], [0.0, 0.0], p, z)
        assert int(status) in expected
        assert float(residual[0]) > kept.controller.stages.horizon.accuracy
        assert abs(float(u)) <= 8.0
        assert np.all(np.isfinite(np.array(z_next)))


def test_code_does_not_grow_with_the_horizon_and_memory_as_it(tmp_path):
    """The first state, one number for each of z, is written out."""
    sizes = []
    for N in (10, 40):
        project = export_c(mpc.real_time_iteration(swing(N), solver="stagewise"), tmp_path / f"{N}")
        sizes.append((project.source.stat().st_size, project.manifest["memory_bytes"]))
    assert sizes[1][0] < 1.25 * sizes[0][0]
    assert sizes[1][1] < 4.1 * sizes[0][1]


def test_hard_rows_of_the_end_that_no_cost_of_the_end_knows_are_met_from_any_guess(tmp_path):
    """Speeds are bounded and cost nothing; the cart is to go far."""
    parts = [mpc.Cost(Q=[3.0, 30.0, 0, 0], R=[1e-2], Q_end=[30.0, 300.0, 0, 0])]
    parts.append(mpc.StageBounds(v=[[-1.0, 1.0], [-2.0, 2.0]]))
    ocp = mpc.optimal_control_problem(cart_pole(limit=20.0), 8, 0.05, parts)
    condensed, kept = (
        mpc.real_time_iteration(ocp, shift=False, solver=solver) for solver in ("daqp", "stagewise")
    )
    in_c = export_c(kept, tmp_path / "c").load()
    rng, at_bounds = np.random.default_rng(0), 0
    p = ocp.parameters(setpoint_q=[3.0, 0.0]).ravel()
    for _ in range(30):
        guess = rng.standard_normal((9, 4)) * [1, 1, 5, 20], rng.standard_normal((8, 1))
        plan = np.concatenate([part.ravel() for part in guess])
        z = [np.array(law.controller.z0) for law in (condensed, kept)]
        for each in z:
            each[: plan.size] = plan
        ours = in_c([0.1, 0.2], [0, 0], p, z[1])
        wanted = condensed.function([0.1, 0.2], [0, 0], p, z[0])
        assert int(ours[2]) == int(wanted[2])
        np.testing.assert_allclose(np.array(ours[0]), np.array(wanted[0]), atol=20 * SAME)
        ends = kept.trajectory(np.array(ours[1]).ravel())[0][-1, 2:]
        at_bounds += int(wanted[2]) == 0 and np.max(np.abs(ends) - [1, 2]) > -1e-6
    assert at_bounds


@pytest.mark.long
@pytest.mark.parametrize(("size", "factor"), [(1e-3, 1e8), (1e3, 1e-8)])
@pytest.mark.every(2)
def test_neither_the_size_of_a_mechanism_nor_a_factor_of_its_cost_counts(size, factor, tmp_path):
    """A cart-pole of 1 mm or 1 km that weighs as much as water would, on the way to its wall."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    kg, T = 1e3 * size**3, np.sqrt(size / 9.81)
    bob = ca.vertcat(v[0] + size * v[1] * ca.cos(q[1]), size * v[1] * ca.sin(q[1]))
    kinetic = kg * v[0] ** 2 / 2 + 0.3 * kg * ca.sumsqr(bob) / 2
    potential, most = -0.3 * kg * 9.81 * size * ca.cos(q[1]), 0.5 * kg * 9.81
    range_of = {"ctrl_range": [[-most, most]], "name": "cart_pole"}
    system = mb.from_lagrangian(
        q, v, kinetic=kinetic, potential=potential, B=[[1], [0]], **range_of
    )
    Q = factor * np.array([10 / size**2, 10, 0.1 * T**2 / size**2, 0.1 * T**2])
    wall = mpc.StageBounds(q=[[-0.3 * size, 0.15 * size], [-9, 9]])
    parts = [mpc.Cost(Q=Q, R=[factor * 0.1 / most**2], Q_end=Q), wall]
    ocp = mpc.optimal_control_problem(system, 10, 0.15 * T, parts)
    laws = [mpc.real_time_iteration(ocp, solver=solver) for solver in ("daqp", "stagewise")]
    functions = [law.function for law in laws]
    functions.append(export_c(laws[1], tmp_path / "c").load())
    z = [laws[i].controller.z0 for i in (0, 1, 1)]
    p, x = ocp.parameters(setpoint_q=[0.2 * size, np.pi]).ravel(), np.zeros(4)
    for _ in range(TICKS):
        answers = [f(x[:2], x[2:], p, zs) for f, zs in zip(functions, z, strict=True)]
        z = [answer[1] for answer in answers]
        assert [int(answer[2]) for answer in answers] == [Status.SOLVED] * 3
        u = np.array([float(answer[0]) for answer in answers]) / most
        np.testing.assert_allclose(u, u[0], atol=10 * SAME)
        x = np.array(ocp.dynamics(x, answers[0][0], ocp.parameters()[0])).ravel()


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return the C of a short problem."""
    law = mpc.real_time_iteration(swing(3), solver="stagewise")
    return export_c(law, tmp_path_factory.mktemp("short") / "c")


@pytest.mark.parametrize("wide", [(), ("-mavx2", "-mfma"), ("-mavx512f",)])
@pytest.mark.long
def test_the_c_compiles_without_a_warning_for_vectors_of_any_width(project, wide, tmp_path):
    flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", *wide]
    command = [os.environ.get("CC", "cc"), *flags, "-c", project.source, "-o", tmp_path / "c.o"]
    if platform.machine() != "x86_64" and wide:
        pytest.skip("vectors of x86-64")
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_message_of_an_unknown_solver_names_this_form():
    with pytest.raises(mb.errors.SolverError, match="'daqp', 'qrqp', 'stagewise'"):
        mpc.real_time_iteration(swing(3), solver="riccati")


def test_a_control_without_cost_is_refused():
    system = cart_pole()
    at = mpc.stage_symbols(system)
    cost = mpc.Cost(residual=ca.vertcat(at.q, at.v))
    ocp = mpc.optimal_control_problem(system, 4, 0.05, [cost], symbols=at)
    with pytest.raises(mb.errors.ProblemError, match="leaves some control without cost"):
        mpc.real_time_iteration(ocp, solver="stagewise")
