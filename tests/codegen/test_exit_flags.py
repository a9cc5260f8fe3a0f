"""Each exit flag of DAQP, what our method makes of it, and what a controller is told."""

import os
import re

import casadi as ca
import numpy as np
import pytest
from codegen_problems import least_distance_controller, reference
from scipy.optimize import linprog
from support.kept_solvers import new_solvers

import mbcasadi.codegen as codegen
from mbcasadi.description.qp_stages import SolverFlag
from mbcasadi.description.status import Status
from mbcasadi.qp import dual_active_set
from mbcasadi.qp.kkt_residuals import judge
from mbcasadi.qp.plugins import DENSE_SOLVERS
from mbcasadi.qp.solver import controller_fun

N, M = 3, 5
SOLVED, INFEASIBLE, STOPPED = 0, 2, 4
EXITS = (2, 1, 0, -1, -2, -3, -4, -5, -6, -7)
STUB = """
#include <stdlib.h>
#include <daqp/daqp.h>
static int stub_ldp(DAQPWorkspace *work) {
  const char *wanted = getenv("WANTED_EXIT");
  int flag = daqp_ldp(work);
  return wanted ? atoi(wanted) : flag;
}
#define daqp_ldp stub_ldp
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Return the C, whose solver may report any exit flag."""
    folder = tmp_path_factory.mktemp("exits")
    (folder / "stub.h").write_text(STUB)
    project = codegen.export_c(least_distance_controller(N, M), folder / "c", solver="daqp")
    return project.load(flags=("-O0", "-include", str(folder / "stub.h")))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """Return the same with no step left for either method."""
    folder = tmp_path_factory.mktemp("stopped")
    (folder / "stub.h").write_text(STUB)
    controller = least_distance_controller(N, M, "stopping")
    project = codegen.export_c(controller, folder / "c", solver="daqp")
    source = project.folder / "stopping.c"
    text, changed = re.subn(r"(#define LDP_ITERATIONS) \d+", r"\1 0", source.read_text())
    assert changed == 1
    source.write_text(text)
    return project.load(flags=("-O0", "-include", str(folder / "stub.h")))


@pytest.fixture(scope="module")
def function():
    return controller_fun("law", least_distance_controller(N, M).stages, "daqp")


def feasible(rng):
    A = rng.normal(size=(M, N))
    middle = A @ (3 * rng.normal(size=N))
    return A, middle - 0.1, middle + 0.1


def contradictory(rng):
    """A positive combination of rows is zero, and of their upper bounds negative."""
    A, lower, upper = feasible(rng)
    weights = rng.uniform(0.2, 2.0, N)
    A[N] = -weights @ A[:N]
    lower[: N + 1], gap = -1e30, 10.0 ** rng.uniform(-5, 2)
    upper[N] = -weights @ upper[:N] - gap
    return A, lower, upper


def answer(law, problem, warm=None):
    outputs = law(*problem, np.zeros(M) if warm is None else warm)
    return [np.array(out).ravel() for out in outputs]


@pytest.mark.parametrize("wanted", EXITS)
def test_what_daqp_leaves_is_solved_by_our_method(wanted, program, monkeypatch):
    monkeypatch.setenv("WANTED_EXIT", str(wanted))
    assert os.environ["WANTED_EXIT"] == str(wanted)
    rng = np.random.default_rng(0)
    for _ in range(20):
        A, lower, upper = feasible(rng)
        x, active, status, lam = answer(program, (A, lower, upper))
        assert status == SOLVED
        np.testing.assert_allclose(x, reference(A, lower, upper), rtol=1e-9)
        np.testing.assert_array_equal(np.sign(lam), active)
        if wanted != 1:  # a false claim is for the controller's own check
            assert answer(program, contradictory(rng))[2] == INFEASIBLE


@pytest.mark.parametrize("wanted", set(EXITS) - {1})
def test_solvers_that_only_stopped_prove_nothing(wanted, stopped, monkeypatch):
    monkeypatch.setenv("WANTED_EXIT", str(wanted))
    x, active, status, lam = answer(stopped, feasible(np.random.default_rng(0)))
    assert status == Status.LIMIT
    assert not np.any(np.concatenate([x, active, lam]))


def test_the_lengths_of_rows_change_no_solution(function):
    rng = np.random.default_rng(2)
    for _ in range(50):
        A, lower, upper = feasible(rng)
        length = 10.0 ** rng.uniform(-6, 6, M)
        rows = length[:, None] * A
        x, _, status, lam = answer(function, (rows, length * lower, length * upper))
        assert status == SOLVED
        np.testing.assert_allclose(x, reference(A, lower, upper), rtol=1e-9)
        np.testing.assert_allclose(rows.T @ lam, -x, rtol=1e-9)


def test_problems_are_infeasible_exactly_where_linear_programming_says_so(program, function):
    rng, seen = np.random.default_rng(1), {SOLVED: 0, INFEASIBLE: 0}
    for k in range(300):
        A, lower, upper = (contradictory if k % 2 else feasible)(rng)
        rows = np.vstack([A, -A]), np.concatenate([upper, -lower])
        finite = np.abs(rows[1]) < 1e30
        second = linprog(np.zeros(N), rows[0][finite], rows[1][finite], bounds=(None, None))
        expected = SOLVED if second.status == 0 else INFEASIBLE
        warm = rng.choice([-1.0, 0.0, 1.0], size=M)
        assert answer(program, (A, lower, upper), warm)[2] == expected, k
        assert answer(function, (A, lower, upper))[2] == expected, k
        seen[expected] += 1
    assert min(seen.values()) > 100


def test_the_function_says_stopped_where_both_methods_reach_their_limit(function, monkeypatch):
    options = {"error_on_fail": False, "daqp": DENSE_SOLVERS["daqp"]["daqp"] | {"iter_limit": 2}}
    monkeypatch.setitem(DENSE_SOLVERS, "daqp", options)
    with new_solvers():
        short = controller_fun("law", least_distance_controller(N, M).stages, "daqp")
    monkeypatch.setattr(dual_active_set, "iteration_limit", lambda *_: 0)
    with new_solvers():
        shorter = controller_fun("law", least_distance_controller(N, M).stages, "daqp")
    rng = np.random.default_rng(2)
    for _ in range(10):
        problem = feasible(rng)
        assert answer(function, problem)[2] == SOLVED
        assert answer(short, problem)[2] == SOLVED  # by the second method
        assert answer(shorter, problem)[2] == STOPPED


@pytest.mark.parametrize(("flag", "violated", "status"), [
    (SolverFlag.OPTIMAL, False, Status.SOLVED), (SolverFlag.OPTIMAL, True, Status.FAILED),
    (SolverFlag.STOPPED, False, Status.SOLVED), (SolverFlag.STOPPED, True, Status.FAILED),
    (SolverFlag.INFEASIBLE, True, Status.INFEASIBLE),
])  # fmt: skip
def test_the_verdict_of_a_violated_row_depends_on_the_proof(flag, violated, status):
    residual = ca.DM([1.0 * violated, 0, 0])
    assert judge(residual, flag=ca.DM(flag), valid=ca.DM(1), tolerance=1e-6) == status
    dull = ca.DM([1.0 * violated, 1.0, 0])
    expected = status if violated else Status.SUBOPTIMAL
    assert judge(dull, flag=ca.DM(flag), valid=ca.DM(1), tolerance=1e-6) == expected
