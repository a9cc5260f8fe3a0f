"""The C names the rows that exclude each other: minimal sets, judged by linear programs."""

import numpy as np
import pytest
from codegen_problems import least_distance_controller
from scipy.optimize import linprog
from test_c_program import run_program

from mbcasadi import codegen

N, M, CASES = 4, 9, 80
INFEASIBLE = 1e-7

PROGRAM = """
#include <stdio.h>
#include "qp.h"
static double memory[QP_MEMORY_DOUBLES];
static const double A[][QP_A_SIZE] = {%s};
static const double lower[][QP_LOWER_SIZE] = {%s}, upper[][QP_UPPER_SIZE] = {%s};
int main(void) {
  unsigned char bounds[QP_ROWS];
  double z[QP_Z_SIZE] = {0}, u[QP_U_SIZE], status;
  unsigned k;
  int i;
  if (qp_excluding_rows(memory, bounds) != QP_BAD_MEMORY) return 1;
  if (qp_init(memory, sizeof memory) || qp_excluding_rows(memory, bounds) != 0) return 2;
  for (k = 0; k < sizeof A / sizeof *A; ++k) {
    qp_step(memory, A[k], lower[k], upper[k], z, u, z, &status, 0);
    printf("%%d %%d", (int)status, qp_excluding_rows(memory, bounds));
    for (i = 0; i < QP_ROWS; ++i) printf(" %%d", bounds[i]);
    printf("\\n");
  }
  return 0;
}
"""


def problems(rng):
    """Random rows of which some contradict each other; the last ones alone or in pairs."""
    for k in range(CASES):
        A = rng.standard_normal((M, N))
        low = rng.standard_normal(M) + (0.5 if k % 2 else 0.0)
        high = low + rng.uniform(0.1, 2.0, M)
        low[rng.random(M) < 0.3] = -1e30
        if k % 10 == 1:
            A[3] = -2 * A[5]
        if k % 10 == 3:
            A[4] = 0.0
            low[4], high[4] = [(1.0, 2.0), (-2.0, -1.0)][k % 20 > 10]
        if k % 10 == 5:
            low[2], high[2] = 1.0, 0.5
        yield A, low, high


def least_violation(A, low, high, bits):
    """Return the least largest violation of these bounds, over x."""
    rows = [A[i] for i in np.flatnonzero(bits & 2)] + [-A[i] for i in np.flatnonzero(bits & 1)]
    ends = [*high[(bits & 2) > 0], *-low[(bits & 1) > 0]]
    if not rows:
        return 0.0
    A_ub, ends_of = np.hstack([rows, -np.ones((len(rows), 1))]), [(None, None)] * N + [(0, None)]
    answer = linprog(np.append(np.zeros(N), 1.0), A_ub, ends, bounds=ends_of, method="highs")
    assert answer.success
    return answer.x[-1]


def c_array(values):
    return ", ".join("{" + ", ".join(f"{x:.17g}" for x in row) + "}" for row in values)


@pytest.mark.parametrize("solver", ["mbcasadi", "daqp"])
@pytest.mark.every(2)
def test_rows_of_the_proof_exclude_each_other_and_all_but_any_one_of_them_do_not(tmp_path, solver):
    project = codegen.export_c(least_distance_controller(N, M), tmp_path / "c", solver=solver)
    cases = list(problems(np.random.default_rng(5)))
    columns = [A.T.ravel() for A, *_ in cases], [c[1] for c in cases], [c[2] for c in cases]
    arrays = tuple(c_array(values) for values in columns)
    lines = run_program(tmp_path, PROGRAM % arrays, project).split("\n")[:-1]
    sizes = []
    for (A, low, high), line in zip(cases, lines, strict=True):
        status, count, *bits = (int(x) for x in line.split())
        bits = np.array(bits)
        everything = np.where(low > -1e29, 3, 2)
        is_infeasible = least_violation(A, low, high, everything) > INFEASIBLE
        assert (status == 2) == is_infeasible
        assert count == np.count_nonzero(bits)
        sizes.append(count)
        if not is_infeasible:
            assert count == 0
            continue
        assert least_violation(A, low, high, bits) > INFEASIBLE
        for row in np.flatnonzero(bits):
            assert (
                least_violation(A, low, high, np.where(np.arange(M) == row, 0, bits)) < INFEASIBLE
            )
    assert np.count_nonzero(sizes) > CASES / 4
    assert {0, 1, 2, 5} <= set(sizes)
