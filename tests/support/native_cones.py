"""The cone solver of the generated C, alone, as a NumPy function."""

import ctypes
from pathlib import Path

import casadi as ca
import numpy as np

from mbcasadi.codegen.compiler import compile_c, find_compiler
from mbcasadi.codegen.sizes import most_iterations
from mbcasadi.codegen.solver_c import rows_of_a_tick, solver_c
from mbcasadi.qp.cone_program import ConeSolution

HEAD = "".join(f"#include <{name}.h>\n" for name in ("float", "math", "string"))
SOLVE = """
int solve(const double *A, const double *lba, const double *uba, double *active, double *x,
          double *lam, int *iterations) {
  static struct ldp p;
  int flag;
  memcpy(p.A, A, sizeof(double) * LDP_M * LDP_N);
  memcpy(p.lba, lba, sizeof(double) * LDP_M);
  memcpy(p.uba, uba, sizeof(double) * LDP_M);
  memcpy(p.active, active, sizeof(double) * LDP_M);
  p.limit = LDP_ITERATIONS;
  flag = ldp_solve(&p);
  memcpy(x, p.x, sizeof(double) * LDP_N);
  memcpy(lam, p.lam_a, sizeof(double) * LDP_M);
  memcpy(active, p.active, sizeof(double) * LDP_M);
  *iterations = p.iterations;
  return flag;
}
"""
FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-O2")


class NativeCones:
    """`solve_cone_program` of one size, as C; `iterations` of the last call."""

    def __init__(self, m: int, n: int, cones: int, folder: Path) -> None:
        pattern = ca.Sparsity.dense(m, n)
        rows = rows_of_a_tick(pattern, cones)
        text = HEAD + solver_c(pattern, rows, 0, most_iterations(m, n, cones), cones=cones) + SOLVE
        source = folder / f"cones_{m}_{n}_{cones}.c"
        source.write_text(text, encoding="utf-8")
        command = (*find_compiler(None), *FLAGS, "-shared", "-fPIC", str(source), "-lm")
        library = compile_c(command, source.with_suffix(".so"))
        self._solve = ctypes.CDLL(str(library.path)).solve
        self._sizes = (m, n, cones)
        self.iterations = 0

    def __call__(self, A, lba, uba, active) -> ConeSolution:
        """Return the solution, from any content of the active set."""
        m, n, _ = self._sizes
        x, lam, held = np.zeros(n), np.zeros(m), np.array(active, dtype=float)
        given = [np.array(np.asarray(A).T, order="C"), *(np.array(b, float) for b in (lba, uba))]
        count = ctypes.c_int(0)
        places = [v.ctypes.data_as(ctypes.c_void_p) for v in (*given, held, x, lam)]
        flag = self._solve(*places, ctypes.byref(count))
        self.iterations = count.value
        return ConeSolution(x, lam, held, flag)
