"""A stub of OSQP: its Python module, and C with its names for problems of least distance."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
from solved_problems import solution

HEADER = """
typedef int OSQPInt;
typedef struct { double *x; } OSQPSolution;
typedef struct { int status_val; } OSQPInfo;
typedef struct { OSQPSolution *solution; OSQPInfo *info; } OSQPSolver;
#define OSQP_SOLVED 1
extern OSQPSolver solver;
void osqp_get_dimensions(OSQPSolver *s, OSQPInt *m, OSQPInt *n);
int osqp_update_data_vec(OSQPSolver *s, const double *q, const double *low, const double *high);
int osqp_solve(OSQPSolver *s);
"""
SOURCE = """
#include "osqp.h"
static const double A[M][N] = {ROWS};
static double x[N], lam[M], low[M], high[M];
static OSQPSolution solution = {x};
static OSQPInfo info;
OSQPSolver solver = {&solution, &info};
void osqp_get_dimensions(OSQPSolver *s, OSQPInt *m, OSQPInt *n) { (void)s; *m = M; *n = N; }
int osqp_update_data_vec(OSQPSolver *s, const double *q, const double *l, const double *u) {
  int i;
  for (i = 0; i < M; ++i) low[i] = l[i], high[i] = u[i];
  return s == &solver && q ? 1 : 0;
}
int osqp_solve(OSQPSolver *s) { /* Hildreth's method: x = A' lam, one multiplier after the other */
  int sweep, i, j;
  for (j = 0; j < N; ++j) x[j] = 0;
  for (i = 0; i < M; ++i) lam[i] = 0;
  for (sweep = 0; sweep < 1000; ++sweep)
    for (i = 0; i < M; ++i) {
      double value = 0, size = 0, change, next;
      for (j = 0; j < N; ++j) value += A[i][j] * x[j], size += A[i][j] * A[i][j];
      value -= lam[i] * size;
      next = value < low[i] ? low[i] - value : value > high[i] ? high[i] - value : 0;
      next /= size;
      change = next - lam[i];
      lam[i] = next;
      for (j = 0; j < N; ++j) x[j] += change * A[i][j];
    }
  s->info->status_val = OSQP_SOLVED;
  return 0;
}
"""


class OSQP:
    """One problem."""

    def setup(self, P, q, A, lower, upper, **settings):
        assert settings["verbose"] is False
        P = np.array(P.todense())
        H = np.triu(P) + np.triu(P, 1).T
        self.problem = H, q, A.toarray(), lower, upper

    def solve(self):
        H, g, A, lower, upper = self.problem
        same = lower == upper
        return SimpleNamespace(
            x=solution(H, g, A[same], lower[same], A[~same], lower[~same], upper[~same])
        )

    def codegen(self, folder, *, parameters, force_rewrite):
        assert parameters == "matrices"
        assert force_rewrite
        folder, A = Path(folder), self.problem[2]
        for name in ("src", "inc/public", "inc/private"):
            (folder / name).mkdir(parents=True)
        (folder / "inc/public/osqp.h").write_text(HEADER)
        (folder / "workspace.h").write_text("")
        rows = ", ".join("{" + ", ".join(f"{x:.17g}" for x in row) + "}" for row in A)
        sizes = f"#define M {len(A)}\n#define N {A.shape[1]}\n"
        (folder / "workspace.c").write_text(sizes + SOURCE.replace("ROWS", rows))
