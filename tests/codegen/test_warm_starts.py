"""The solver in C from any active set, at any limit of iterations, in double and single."""

import numpy as np
import pytest
from campaign.least_distance.families import Size, plain
from campaign.least_distance.program import Solver
from codegen_problems import least_distance_controller, reference
from test_c_program import run_program

import mbcasadi.codegen as codegen
from mbcasadi.codegen.calls import new_memory, pointer
from mbcasadi.description.qp_stages import SolverFlag

M, N = 24, 9
LIMBS = np.repeat(np.arange(4), 6)  # of each row
SAME = 1e-10  # relative to the largest number of a solution
PROBLEMS = 200


@pytest.fixture(scope="module")
def solve(tmp_path_factory):
    return Solver(M, N, tmp_path_factory.mktemp("double"))


def switching(rng, count):
    """Yield a sequence of problems whose contacts come and go, some rows repeated."""
    A = rng.normal(size=(M, N))
    for _ in range(count):
        A = A + 0.05 * rng.normal(size=A.shape)
        on = (rng.random(4) < 0.7)[LIMBS]
        rows = A * on[:, None]
        rows[1] = 2 * rows[0]
        rows[7] = -rows[6]
        point = 3 * rng.normal(size=N)
        low_now = rows @ point - np.where(on, 0.1 + rng.exponential(size=M), 1e6)
        tight = on & (rng.random(M) < 0.2) & ~np.isin(np.arange(M), [1, 7])
        low_now[tight] = (rows @ point)[tight]
        high_now = np.where(rng.random(M) < 0.3, low_now, rows @ point + rng.exponential(size=M))
        high_now = np.maximum(high_now, rows @ point)
        yield rows[None], low_now[None], np.where(on, high_now, 0.0)[None]


def starts(rng, own):
    """Return active sets: the last solution's, all of one side, random ones, and nonsense."""
    yield own
    yield np.ones(M)
    yield -np.ones(M)
    for _ in range(3):
        yield rng.choice([-1.0, 0.0, 1.0], size=M)
    yield np.where(rng.random(M) < 0.5, np.nan, 1e300)


def test_every_start_gives_the_cold_answer_after_every_switch(solve):
    rng, own, switches = np.random.default_rng(31), np.zeros(M), 0
    for k, problem in enumerate(switching(rng, PROBLEMS)):
        cold = solve(*problem)
        assert cold.flag[0] == SolverFlag.OPTIMAL, k
        size = max(1.0, np.abs(cold.x).max())
        switches += not np.array_equal(cold.active[0], own)
        for start in starts(rng, own):
            warm = solve(*problem, start[None])
            assert warm.flag[0] == SolverFlag.OPTIMAL, k
            assert np.abs(warm.x - cold.x).max() < SAME * size, k
        own = cold.active[0]
    assert switches > PROBLEMS // 2


def test_the_answer_is_that_of_non_negative_least_squares(solve):
    rng = np.random.default_rng(32)
    for A, low, high in switching(rng, 40):
        x = solve(A, low, high, rng.choice([-1.0, 0.0, 1.0], size=(1, M))).x[0]
        expected = reference(A[0], low[0], high[0])
        assert np.abs(x - expected).max() < 1e-8 * max(1.0, np.abs(expected).max())


def test_the_right_start_needs_no_iteration(solve):
    A, low, high = plain(np.random.default_rng(33), Size(PROBLEMS, M, N))
    cold = solve(A, low, high)
    assert np.mean(cold.iterations) > 5
    warm = solve(A, low, high, cold.active)
    assert np.all(warm.iterations == 0)
    np.testing.assert_array_equal(warm.active, cold.active)


def test_daqp_starts_from_the_right_rows_too(tmp_path):
    project = codegen.export_c(least_distance_controller(N, M), tmp_path / "c", solver="daqp")
    memory = new_memory(project.manifest, project.build(flags=("-O0",)).path)
    spent = []
    for A, low, high in zip(*plain(np.random.default_rng(36), Size(20, M, N)), strict=True):
        problem = {"A": A.T.ravel(), "lower": low, "upper": high}
        z = project.step(memory, problem | {"z": np.zeros(M)})["z_next"]
        assert np.count_nonzero(z) > 1
        project.step(memory, problem | {"z": z})
        spent.append(memory.library.qp_iterations(pointer(memory.block)))
    assert spent == [1] * len(spent)  # it looks whether a row is violated


def test_a_limit_bounds_the_iterations_and_is_no_verdict(solve):
    rng = np.random.default_rng(34)
    A, low, high = plain(rng, Size(PROBLEMS, M, N))
    needed = solve(A, low, high).iterations
    start = rng.choice([-1.0, 0.0, 1.0], size=low.shape)
    for limit in (0, 1, 4, 8):
        found = solve(A, low, high, limit=limit)
        np.testing.assert_array_equal(found.flag == SolverFlag.OPTIMAL, needed <= limit)
        assert np.all(found.flag >= SolverFlag.STOPPED)
        assert not np.any(found.x[found.flag == SolverFlag.STOPPED])
        assert np.all(solve(A, low, high, start, limit).iterations <= limit)


def test_single_precision_solves_what_is_well_scaled(solve, tmp_path):
    single = Solver(M, N, tmp_path, "float")
    rng = np.random.default_rng(35)
    A, low, high = (v.astype(np.float32).astype(float) for v in plain(rng, Size(PROBLEMS, M, N)))
    expected = solve(A, low, high)
    for start in (None, rng.choice([-1.0, 0.0, 1.0], size=low.shape)):
        found = single(A, low, high, start)
        assert np.all(found.flag == SolverFlag.OPTIMAL)
        size = np.abs(expected.x).max(axis=1)
        miss = np.abs(found.x - expected.x).max(axis=1) / size
        assert np.median(miss) < 1e-6
        assert miss.max() < 1e-3  # the worst of 200 random bases
    low[:, 0], A[:, 1], low[:, 1] = high[:, 0] - 1, -A[:, 0], 1 - high[:, 0] + 0.1
    high[:, 0], high[:, 1] = high[:, 0] + 1, 1e30
    low[:, 0] = high[:, 0]
    low[:, 1] = -high[:, 0] + 0.5
    assert np.all(single(A, low, high).flag == SolverFlag.INFEASIBLE)


def test_a_program_sets_the_limit_while_it_runs(tmp_path):
    project = codegen.export_c(least_distance_controller(2, 3), tmp_path / "c")
    text = """
#include "qp.h"
static double memory[QP_MEMORY_DOUBLES];
int main(void) {
  const double A[6] = {1, 0, 1, 0, 1, 1}, lower[3] = {1, 2, -9}, upper[3] = {9, 9, 9};
  double z[3] = {0}, w[3], u[2], status;
  if (qp_limit_iterations(memory, 5) != QP_BAD_MEMORY) return 1;
  if (qp_init(memory, sizeof memory) || qp_limit_iterations(memory, 1)) return 2;
  if (qp_step(memory, A, lower, upper, z, u, w, &status, 0) != 5) return 3;
  if (qp_exit_flag(memory) != 0 || status != 5) return 4;
  if (qp_limit_iterations(memory, 100)) return 5;
  if (qp_step(memory, A, lower, upper, z, u, z, &status, 0) != 0) return 6;
  if (qp_limit_iterations(memory, 0)) return 7;
  if (qp_step(memory, A, lower, upper, z, u, z, &status, 0) != 0) return 8; /* it starts there */
  return qp_exit_flag(memory) != 1 || qp_iterations(memory) != 0 || u[0] != 1 || u[1] != 2;
}
"""
    run_program(tmp_path, text, project)
