"""The solver's C, compiled for one size, and the judge's, both called on NumPy arrays."""

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.codegen.compiler import find_compiler
from mbcasadi.codegen.precision import Real
from mbcasadi.codegen.sizes import most_iterations
from mbcasadi.codegen.solver_c import rows_of_a_tick, solver_c

HERE = Path(__file__).parent
HEAD = "#include <float.h>\n#include <math.h>\n#include <string.h>\n"
FLAGS = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Werror")


class Answers(NamedTuple):
    """What the solver returns of k problems; `ray` proves an infeasibility."""

    x: np.ndarray
    lam: np.ndarray
    active: np.ndarray
    flag: np.ndarray
    iterations: np.ndarray
    ray: np.ndarray


class Solver:
    """The solver for m rows and n unknowns."""

    def __init__(self, m: int, n: int, folder: Path, real: Real = "double"):
        self.m, self.n, self.limit = m, n, most_iterations(m, n)
        pattern = ca.Sparsity.dense(m, n)
        text = HEAD + solver_c(pattern, rows_of_a_tick(pattern), 0, self.limit, real)
        text += (HERE / "driver.c").read_text()
        self.library = library(text, folder, f"solver_{m}_{n}_{real}")

    def __call__(self, A, low, high, warm=None, limit=None) -> Answers:
        """Solve problems (k, m, n), (k, m), (k, m) from the active sets `warm` (k, m)."""
        k = len(A)
        found = Answers(
            np.empty((k, self.n)), *(np.empty((k, self.m)) for _ in range(2)),
            *(np.empty(k, np.int32) for _ in range(2)), np.empty((k, self.m)),
        )  # fmt: skip
        columns = np.ascontiguousarray(A.transpose(0, 2, 1))
        given = [columns, *map(np.ascontiguousarray, (low, high))]
        start = None if warm is None else np.ascontiguousarray(warm)
        self.library.solve_all(
            ctypes.c_long(k), *map(pointer, given), None if start is None else pointer(start),
            self.limit if limit is None else limit, *map(pointer, found),
        )  # fmt: skip
        return found


class Judge:
    """Optima and proofs of infeasibility in extended precision."""

    def __init__(self, folder: Path):
        self.library = library((HERE / "judge.c").read_text(), folder, "judge")

    def optimum(self, A, low, high, x, lam) -> np.ndarray:
        """Return (k, 4): violation, distance of active rows, stationarity, gap; zero is right."""
        verdict = np.empty((len(A), 4))
        given = [np.ascontiguousarray(v) for v in (A, low, high, x, lam)]
        sizes = [ctypes.c_long(v) for v in A.shape]
        self.library.optimum(*sizes, *map(pointer, given), pointer(verdict))
        verdict[~np.isfinite(x).all(axis=1)] = np.inf
        return verdict

    def infeasible(self, A, low, high, ray, radius: float) -> np.ndarray:
        """Return (k,) whether the numbers `ray` (k, m) prove that there is no solution."""
        verdict = np.empty(len(A), np.int32)
        given = [np.ascontiguousarray(v) for v in (A, low, high, ray)]
        sizes = [ctypes.c_long(v) for v in A.shape]
        self.library.infeasible(
            *sizes, *map(pointer, given), ctypes.c_double(radius), pointer(verdict)
        )
        return verdict.astype(bool)


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    """Return the address of an array for C."""
    return array.ctypes.data_as(ctypes.c_void_p)


def library(text: str, folder: Path, name: str, flags: Sequence[str] = FLAGS) -> ctypes.CDLL:
    """Compile C and load it."""
    source, target = folder / f"{name}.c", folder / f"{name}.so"
    source.write_text(text)
    command = [*find_compiler(None), *flags, "-shared", "-fPIC", str(source), "-o", str(target)]
    subprocess.run([*command, "-lm"], check=True)
    return ctypes.CDLL(str(target))
