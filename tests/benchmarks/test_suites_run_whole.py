"""Every suite of `python -m bench` runs whole, on small mechanisms: peers absent, and stubs.

No time is judged. `SMALL` shortens the suites' own numbers; every kind of row is printed.
"""

import json
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import mbcasadi as mb
from bench import (
    batch,
    derivatives,
    dynamics,
    estimation,
    formulation_cases,
    formulations,
    kernels,
    laws,
    mpc,
    mpc_rigid_body,
    mpc_rti,
    mpc_solvers,
    qp,
    qp_cases,
    qp_same_problem,
    robots,
    suites,
    tick,
    tick_cases,
    tick_cones,
    tick_robots,
    tick_tsid,
    whole_body,
    whole_body_acados,
    whole_body_beside,
    whole_body_cases,
    whole_body_programs,
    whole_body_residual,
)
from bench import formulation_accuracy as accuracy
from bench.__main__ import bench
from bench.dynamics_cases import Standing
from mbcasadi.codegen import cache
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask

BIPED = Path(__file__).with_name("biped.xml")
SIDES = ("left", "right")
FOOT = (0.0, 0.0, -0.3)
STANCE = tick_cases.TickCase(
    "biped", BIPED, "trunk", tuple(tick_cases.Foot(f"{s}_shank", FOOT) for s in SIDES)
)
CASES = (
    Standing("biped on two feet", BIPED.name, {f"{s}_shank": (FOOT,) for s in SIDES}),
    Standing("four-bar, its loop", "four_bar", own=True),
)
CHEAP = ("-O0",)
VARIANTS = {name: formulation_cases.VARIANTS[name] for name in ("lagrange", "null_space")}
SMALL = {
    batch: {"PACKAGE_MODELS": (), "ROBOTS": (BIPED.name,), "LOOPS": ("slider_crank",)}
    | {"STATES": 16, "ROUNDS": 1, "STEPS": 10, "RUNS": 16},
    derivatives: {"CASES": CASES, "FLAGS": CHEAP},
    dynamics: {"CASES": CASES, "FLAGS": CHEAP, "TURNS": 1},
    estimation: {"FLAGS": {"plain": CHEAP}, "TICKS": 20, "QUICK_REPEATS": 1},
    formulations: {"MODELS": ("four_bar",), "SIZES": ((3, 2),), "VARIANTS": VARIANTS}
    | {"FLAGS": CHEAP},
    kernels: {"STATES": 4, "ROUNDS": (2, 1, 1), "FLAGS": CHEAP}
    | {"default_cases": lambda: (kernels.Case(BIPED, ("left_toe",)), kernels.Case(BIPED))},
    laws: {"CASES": laws.CASES[:1], "FLAGS": CHEAP, "REPEATS": 2},
    mpc: {"FLAGS": CHEAP, "HORIZONS": (6,), "PASSES": 2, "REPEATS": 2, "STATES": 2, "TICKS": 120},
    mpc_rigid_body: {"HORIZON": 2},
    mpc_rti: {"CART_POLE": 8, "FOUR_BAR": 4},
    mpc_solvers: {"COMPILED": {}},
    qp: {"FLAGS": CHEAP, "TICKS": 20, "PASSES": 2},
    qp_cases: {"QUADRUPED": STANCE, "humanoid_controller": lambda: on_soles()},
    qp_same_problem: {"MOST_PROBLEMS": 20},
    tick: {"QUADRUPED": STANCE, "NATIVE": CHEAP, "TICKS": 20, "TURNS": 1, "REPEATS": 1},
    tick_cones: {"NATIVE": CHEAP},
    tick_robots: {"NATIVE": CHEAP, "EVICTED": 2, "COMPARED": 2},
    whole_body: {"FLAGS": CHEAP, "QUADRUPED": STANCE, "TICKS": 2, "REPEATS": 1, "EVERY": 2}
    | {"SHORT": 2, "LONG": 2},
    whole_body_beside: {"FLAGS": CHEAP, "ITERATIONS": 2, "SAME_COST": np.inf, "RESIDUAL": 1e9},
    whole_body_acados: {"INTERVALS": 2, "EVERY": 1, "BLOCKS": 1},
    whole_body_cases: {"INTERVALS": 2, "STILL": 1},
    whole_body_residual: {"FLAGS": CHEAP},
}
COLUMNS = {"model", "quantity", "ours", "peer", "peer_time", "ratio"}
EXACT = 1e-9  # of active-set peers, relative
ONE_OPTIMUM = 1e-4  # N or N m, of solvers of whole problems
PEERS = {
    "kernels": {"Pinocchio C++"},
    "dynamics": {"Pinocchio C++"},
    "derivatives": {"Pinocchio C++"},
    "qp": {"eiquadprog, C++", "OSQP", "osqp", "proxsuite", "quadprog"},
    "tick": {"TSID", "eiquadprog, C++", "ProxQP, Python", "quadprog, Python"},
    "whole_body": {"Crocoddyl", "aligator", whole_body_acados.NAME},
    "mpc": {
        "OSQP",
        "eiquadprog, C++",
        mpc_solvers.CROCODDYL,
        *mpc.mpc_solvers.mpc_acados.KINDS.values(),
    },
}
"""The optional peers of each suite; those of the others come with the package."""


def on_soles() -> InverseDynamicsQP:
    """Return a law of the biped on heel and toe of one foot, which share its load."""
    points = [mb.Contact(f"left_{end}", sides=4) for end in ("heel", "toe")]
    tasks = [FrameTask("trunk", kind="body", weight=10.0, name="base"), PostureTask(kp=50.0)]
    return InverseDynamicsQP(mb.read_mjcf(BIPED), tasks, points)


pytestmark = pytest.mark.long


@pytest.fixture
def small(monkeypatch):
    """Shorten the suites; what one run generates and compiles serves the other."""
    monkeypatch.setattr(cache, "disabled", nullcontext)
    monkeypatch.setenv(robots.FOLDER, str(BIPED.parent))
    for module, values in SMALL.items():
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)


@pytest.fixture
def agreeing(monkeypatch, stub_peers):
    """Leave the numbers that stubs cannot compute where they find them: ours."""
    of_case, of_problem, gaps = kernels.Problem.of, dynamics._problem, tick_tsid.differences

    def kernels_expected(case, work):
        problem = of_case(case, work)
        lines = [f"{k} {' '.join(map(repr, x.tolist()))}" for k, x in problem.numbers.items()]
        problem.states.with_name("expected.txt").write_text("\n".join(lines))
        return problem

    def dynamics_expected(case, folder):
        problem = of_problem(case, folder)
        problem.states.with_name("expected.txt").write_text(repr(problem.sum))
        return problem

    def inertia_expected(case, system, work, peer):
        states, tree = np.loadtxt(work / "states.txt"), system.tree
        dofs = [joint.dof for joint in tree.joints if joint.kind in ("slide", "hinge")]
        M = system.mass_matrix(states[0, : tree.nq]).full()
        (work / "expected.txt").write_text(repr(float(M[dofs, dofs].sum())))
        return derivatives_command(case, system, work, peer)

    def tick_expected(stance, program):
        ref = stance.controller.reference_at(stance.q[0])
        ours = [stance.controller.solve(q, v, ref) for q, v in zip(stance.q, stance.v, strict=True)]
        torques = np.array([stance.of_joints @ solution.u for solution in ours])
        accelerations = np.array([solution.a[6:] for solution in ours])
        where = program.with_name("expected.npz")
        np.savez(where, torques=torques, accelerations=accelerations)
        return gaps(stance, program)

    def trot_expected(program, trot, record, rows, iterations, repeats):
        x, u = whole_body_programs.guesses(trot, record)
        p = np.array([trot.parameters(int(tick))[:-1] for tick in record.tick])
        size = x.shape[0] * u.shape[1]
        motion = trot.ocp.dynamics.map(size)(
            *(part.reshape(size, -1).T for part in (x[:, :-1], u, p))
        )
        np.save(program.path.with_name("expected.npy"), np.array(motion).T)
        return run_program(program, trot, record, rows, iterations, repeats)

    run_program, derivatives_command = whole_body_programs.run_program, derivatives._peer_command
    monkeypatch.setattr(whole_body_programs, "run_program", trot_expected)
    monkeypatch.setattr(kernels.Problem, "of", staticmethod(kernels_expected))
    monkeypatch.setattr(dynamics, "_problem", dynamics_expected)
    monkeypatch.setattr(derivatives, "_peer_command", inertia_expected)
    monkeypatch.setattr(tick_tsid, "differences", tick_expected)


def run(suite):
    """Return the rows and the settings that the command prints."""
    app = typer.Typer()
    app.command()(bench)
    result = CliRunner().invoke(app, [suite, "--json", "--quiet"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["rows"]
    for row in found["rows"]:
        assert set(row) >= COLUMNS
        assert row["ours"] > 0
        if row["peer_time"] is not None:
            assert row["ratio"] == pytest.approx(row["ours"] / row["peer_time"])
    return found["rows"], found["settings"][suite]


def absent_peers(rows):
    return {row["peer"].split(" (absent")[0] for row in rows if "absent" in row["peer"]}


@pytest.mark.parametrize("suite", suites.SUITES)
def test_without_peers_each_is_named_as_absent_and_the_rest_is_printed(suite, small, no_peers):
    rows, settings = run(suite)
    assert absent_peers(rows) == PEERS.get(suite, set())
    assert all(row["peer_time"] is None for row in rows if "absent" in row["peer"])
    CHECKS[suite](rows, settings)


@pytest.mark.parametrize("suite", PEERS)
def test_beside_its_peers_each_has_a_time_and_wrong_torques_are_not_compared(
    suite, small, agreeing
):
    rows, settings = run(suite)
    assert absent_peers(rows) == set()
    untimed = {row["peer"] for row in rows if row["peer_time"] is None}
    assert {name.split(" differ")[0] for name in untimed} == UNTIMED[suite]
    CHECKS[suite](rows, settings)


UNTIMED = {
    "kernels": set(),
    "dynamics": {"-"},
    "derivatives": {"- (Pinocchio's reader has no loops)"},
    "qp": set(),
    "tick": {"ProxQP, Python (not compared: its torques"},
    "whole_body": {"-", whole_body_acados.NAME},
    "mpc": {"-", mpc_solvers.mpc_acados.KINDS["SQP_RTI"]},
}
"""Rows without a peer's time: nothing to compare, other torques, or failures."""


def quantities(rows):
    return {row["quantity"] for row in rows}


def _kernels(rows, settings):
    assert len(rows) == 2 * 2 * 3  # models, peers, caches
    assert all(row["peer_time"] for row in rows if row["peer"].startswith("MuJoCo"))
    assert settings["operations"]["biped"] > 1000


def _dynamics(rows, settings):
    assert [row["model"].split(", nv")[0] for row in rows] == [case.name for case in CASES]
    for row in rows:
        assert settings["lines"][row["model"]] > settings["operations"][row["model"]] > 300


def _derivatives(rows, settings):
    assert [(row["model"].split(", nv")[0], row["quantity"]) for row in rows] == [
        ("biped, free", "derivatives of inverse dynamics"),
        ("biped, free", "derivatives of forward dynamics"),
        ("biped on two feet", "derivatives of forward dynamics"),
        ("four-bar, its loop", "derivatives of inverse dynamics"),
        ("four-bar, its loop", "derivatives of forward dynamics"),
    ]
    for row in rows:
        key = f"{row['model']}: {row['quantity']}"
        assert settings["operations"][key] > 100
        assert settings["compiler"][key].endswith("MB")


def test_formulations_in_short_are_a_part_of_all(monkeypatch):
    taken = []
    monkeypatch.setattr(formulations, "_mechanism", lambda name, *_: taken.append(name))
    monkeypatch.setattr(formulations, "_matrices", lambda n, m, *_: taken.append((n, m)))
    monkeypatch.setattr(formulations, "_add", lambda *_: None)
    formulations.run(quick=True)
    short = set(taken)
    formulations.run()
    assert short < set(taken) == {*formulations.MODELS, *formulations.SIZES}


@pytest.mark.parametrize("name", ["lagrange", "projection, M_c"])
def test_a_formulation_keeps_all_digits_where_inertias_are_alike(name):
    function = formulation_cases.on_matrices(name, accuracy.JOINTS, accuracy.ROWS)
    alike = accuracy.samples(accuracy.heavy_and_light, 0)
    assert 0 < accuracy.worst_error(function, alike) < 1e-14


def _formulations(rows, settings):
    assert len(rows) == len(settings["operations"]) == 2 * len(VARIANTS) + 2


def _qp(rows, settings):
    assert settings["flags"] == "-O0"
    _exact(rows)
    for name in ("biped", "quadruped", "humanoid"):
        whole = [r for r in rows if r["model"] == name and r["quantity"].startswith("whole")]
        assert len(whole) == (0 if name == "biped" else 4)
        daqp = next((row for row in whole if row["peer"].startswith("daqp")), None)
        assert daqp is None or daqp["wrong"] == 0
        for row in whole:
            if row["peer"].startswith("proxsuite, called"):
                assert row["wrong"] == row["states"]


def _exact(rows):
    exact = [row for row in rows if row["peer"] in ("DAQP, C", "eiquadprog, C++")]
    timed = [row for row in exact if row["quantity"].startswith("QP alone") and row["peer_time"]]
    assert max(row["miss"] for row in timed) < EXACT


def _tick(rows, settings):
    named = quantities(rows)
    for words in ("evicted, p99", "quadratic cones, median", "QP alone, condensed", "in (a, f)"):
        assert any(words in quantity for quantity in named)
    assert "the same as straight-line text" in {row["peer"] for row in rows}
    assert "quadruped as straight-line text" in settings


def _laws(rows, settings):
    text = laws.table({"rows": rows, "settings": {"laws": settings}})
    assert text.splitlines()[-1].startswith(f"| `{laws.CASES[0].law}` | {rows[0]['model']} |")
    assert min(settings["operations"].values()) > 100


def _estimation(rows, settings):
    assert [row["model"] for row in rows] == list(settings["operations"])
    assert {"scara", "four_bar"} <= {row["model"].split(",")[0] for row in rows}
    assert min(settings["operations"].values()) > 100


def _mpc(rows, settings):
    assert set(settings["unsolved"].values()) == {0}
    assert len(settings["unsolved"]) == 5
    assert min(settings["active"].values()) > 0.05
    _exact(rows)
    whole = [row for row in rows if "whole problem" in row["quantity"]]
    solved = [row for row in whole if row["peer"] in mpc_solvers.NAMES.values()]
    assert len(solved) == 2 * len(mpc_solvers.NAMES)
    assert all(row["unsolved"] == 0 for row in solved)
    assert max(row["miss"] for row in solved) < ONE_OPTIMUM
    named = quantities(row for row in rows if "cart-pole" in row["model"])
    assert {"whole tick", "preparation", "preparation, p99", "feedback", "feedback, p99"} <= named
    assert mpc.table({"rows": rows}).count("\n") == 2 + len(rows)


def _whole_body(rows, settings):
    named = quantities(rows)
    assert {"whole tick", "preparation", "feedback, p99", "one iteration"} <= named
    assert {row["model"].split(",")[0] for row in rows} == {STANCE.name, "quadrotor"}
    assert all(size["operations"] > 1000 for size in settings["sizes"].values())
    gaps = [gap for name, gap in settings["checks"].items() if "next states differ" in name]
    assert all(gap < whole_body_beside.SAME_MOTION for gap in gaps)


def _batch(rows, settings):
    peers = {row["peer"] for row in rows}
    assert peers >= {"casadi map, 1 thread", "casadi map, compiled, 1 thread"}
    assert peers >= {"mujoco.rollout, 1 thread", "mujoco.rollout, RK4", "mujoco.rollout, EULER"}
    assert set(settings["lanes"]) == {f"biped, nv 12: {real}" for real in ("double", "float")}


CHECKS = {name: globals()[f"_{name}"] for name in suites.SUITES}
