"""The benchmark of MPC times solutions that its peers confirm, with bounds that hold."""

import subprocess
import sys
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.benchmarks import mpc, mpc_acados, mpc_solvers

CHEAP = ("-O0",)
ACADOS = """
import pathlib
DIR = TEMPLATE_DIR = LIB_DIR = str(pathlib.Path(__file__).parent)
"""  # the module, without its libraries
TEMPLATE = """
from types import SimpleNamespace as Space
import casadi as ca
import numpy as np
def AcadosModel():
    return Space()
def AcadosOcp():
    return Space(cost=Space(), constraints=Space(), solver_options=Space(), dims=Space())
class AcadosOcpSolver:
    '''One step of Gauss-Newton with a fixed end would do; the first control is the guess's.'''
    def __init__(self, ocp, json_file):
        model = ocp.model
        self.F = ca.Function("F", [model.x, model.u, model.p], [model.disc_dyn_expr])
        assert ocp.cost.W.shape == (model.cost_y_expr.numel(),) * 2
        assert np.isfinite(ocp.constraints.lbu).all() and ocp.dims.N > 1
        self.fails = "rti" in model.name
        self.values = {}
    def reset(self):
        self.values = {}
    def set(self, k, name, value):
        self.values[k, name] = value
    def solve(self):
        assert np.isfinite(np.array(self.F(self.values[0, "x"], self.values[0, "u"], 0))).all()
        return 4 if self.fails else 0
    def get_stats(self, name):
        return 1e-3
    def get(self, k, name):
        return self.values[k, name]
"""
EXACT = 1e-9  # of active-set peers


def test_every_row_names_its_peer_and_the_exact_ones_agree(monkeypatch):
    monkeypatch.setattr(mpc, "FLAGS", CHEAP)
    monkeypatch.setattr(mpc, "HORIZONS", (6,))
    for name in ("TICKS", "PASSES", "STATES", "REPEATS"):
        monkeypatch.setattr(mpc, name, getattr(mpc, f"QUICK_{name}"))
    monkeypatch.setitem(mpc_solvers.COMPILED, "jit_options", {"flags": ["-O0"]})
    results = mpc.run()
    assert set(results["unsolved"].values()) == {0}
    assert len(results["unsolved"]) == 5
    assert min(results["active"].values()) > 0.05
    assert all(results["active"][model] < 0.9 for model in results["active"] if "double" in model)
    compared = 0
    for row in results["rows"]:
        assert row["ours"] > 0.0
        if row["peer_time"] is None:
            assert row["peer"] == "-" or "absent" in row["peer"]
            continue
        assert row["ratio"] == pytest.approx(row["ours"] / row["peer_time"])
        if "quadprog" in row["peer"] or "DAQP" in row["peer"]:
            assert row["miss"] < EXACT
            compared += 1
    assert compared >= 3 * 4  # problems; cold and warm, all ticks and those with an active bound
    whole = [row for row in results["rows"] if "whole problem" in row["quantity"]]
    assert all(row["unsolved"] == 0 for row in whole)
    solved = [row for row in whole if row["peer_time"] and "iteration" not in row["peer"]]
    assert {row["peer"] for row in solved} >= set(mpc_solvers.NAMES.values())
    assert max(row["miss"] for row in solved) < 1e-4  # of 12 N: one optimum
    named = {row["quantity"] for row in results["rows"] if "cart-pole" in row["model"]}
    assert {"whole tick", "preparation", "preparation, p99", "feedback", "feedback, p99"} <= named
    assert mpc.table(results).count("\n") == 2 + len(results["rows"])


def test_bounds_of_control_and_speed_hold_somewhere_in_the_closed_loop():
    law = mpc.double_integrator(6, box=True)
    record, u, z = mpc.closed_loop(law, law.function, mpc.QUICK_TICKS)
    assert np.abs(u).max() == pytest.approx(1.0, abs=1e-9)
    assert np.abs(record["x0"][:, 1]).max() == pytest.approx(0.8, abs=1e-6)
    active = mpc.active_sets(law.controller, z)
    assert active.shape == (mpc.QUICK_TICKS, law.controller.stages.m)
    assert 0.05 < np.mean(np.any(active != 0, axis=1)) < 0.9


def test_acados_runs_in_an_environment_of_its_own_and_a_failure_is_a_row(monkeypatch, tmp_path):
    package = tmp_path / "acados"
    (package / "acados_template").mkdir(parents=True)
    (package / "__init__.py").write_text(ACADOS)
    (package / "acados_template" / "__init__.py").write_text(TEMPLATE)
    for name in ("libblasfeo", "libhpipm", "libqpOASES_e", "libacados"):
        source = tmp_path / f"{name}.c"
        source.write_text("int nothing(void) { return 0; }\n")
        subprocess.run(["cc", "-shared", "-fPIC", source, "-o", package / f"{name}.so"], check=True)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv(mpc_acados.PYTHON, str(python))
    x, u, p = ca.SX.sym("x", 2), ca.SX.sym("u"), ca.SX.sym("p")
    ocp = SimpleNamespace(
        name="pair", nx=2, nu=1, np_=1, horizon=3, period=0.1, u_bounds=np.array([[-np.inf, 2]]),
        dynamics=ca.Function("F", [x, u, p], [x + 0.1 * ca.vertcat(x[1], u)]),
        residual=ca.Function("r", [x, u, p], [ca.vertcat(x, u)]),
        terminal=ca.Function("e", [x, p], [x]),
    )  # fmt: skip
    guess = SimpleNamespace(x=np.zeros((4, 2)), u=np.full((3, 1), 0.5))
    tasks = [(np.ones(2), np.zeros((4, 1)), guess)] * 2
    seconds, controls = mpc_acados.solve_tasks(ocp, "SQP", tasks)
    np.testing.assert_array_equal(seconds, 1e-3)
    np.testing.assert_array_equal(controls, 0.5)
    assert np.isnan(mpc_acados.solve_tasks(ocp, "SQP_RTI", tasks)[0]).all()
    python.write_text("#!/bin/sh\necho 'no such library' >&2; exit 1\n")
    with pytest.raises(mb.errors.SolverError, match="no such library"):
        mpc_acados.solve_tasks(ocp, "SQP", tasks)
    monkeypatch.setenv(mpc_acados.PYTHON, str(tmp_path / "nothing"))
    with pytest.raises(mb.errors.SolverError, match="expected the path of a Python"):
        mpc_acados.solve_tasks(ocp, "SQP", tasks)
