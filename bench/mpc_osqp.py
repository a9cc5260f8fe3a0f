"""OSQP's generated C on the condensed QPs of a closed loop, each warm from the solution before."""

import ctypes
import importlib.util
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.qp_native import FLAGS, NativeTimes
from bench.tick_peers import NATIVE
from mbcasadi.codegen.compiler import compile_c, find_compiler
from mbcasadi.platforms import library_name, platform_of

Array = NDArray[np.float64]

OSQP_ACCURACY = 1e-6
MOST_ITERATIONS = 100_000
NAME = f"OSQP, C, warm, to {OSQP_ACCURACY:g}"
ABSENT = "OSQP (absent: install osqp)"


def osqp_times(problems: tuple[Array, Array, Array], passes: int) -> tuple[str, NativeTimes | None]:
    """Return name and times of OSQP on A (ticks, m, n), the same at all ticks, lower and upper."""
    if importlib.util.find_spec("osqp") is None:
        return ABSENT, None
    A, lower, upper = problems
    ticks, _, n = A.shape
    seconds, x = np.zeros(ticks), np.zeros((ticks, n))
    low, high = np.ascontiguousarray(lower), np.ascontiguousarray(upper)
    with tempfile.TemporaryDirectory(prefix="mbcasadi-osqp-") as folder:
        library = ctypes.CDLL(str(_library(Path(folder), A[0], lower[0], upper[0])))
        failed = library.time_all(
            ctypes.c_long(ticks),
            *(v.ctypes.data_as(ctypes.c_void_p) for v in (low, high)),
            passes,
            *(v.ctypes.data_as(ctypes.c_void_p) for v in (seconds, x)),
        )
    name = f"{NAME}, {failed} of {ticks} failed" if failed else NAME
    return name, NativeTimes(seconds, x, np.zeros(ticks, np.int32))


def _library(folder: Path, A: Array, lower: Array, upper: Array) -> Path:
    """Generate and compile the solver of one matrix; its step size adapts as in the library."""
    osqp: Any = importlib.import_module("osqp")
    sparse: Any = importlib.import_module("scipy.sparse")
    solver = osqp.OSQP()
    accuracy = {"eps_abs": OSQP_ACCURACY, "eps_rel": OSQP_ACCURACY, "max_iter": MOST_ITERATIONS}
    n = A.shape[1]
    bounds = (sparse.csc_matrix(A), lower, upper)
    solver.setup(sparse.eye(n, format="csc"), np.zeros(n), *bounds, verbose=False, **accuracy)
    solver.codegen(f"{folder}/", parameters="matrices", force_rewrite=True)
    sources = [*sorted((folder / "src").glob("*.c")), folder / "workspace.c"]
    sources.append(NATIVE / "qp_osqp.c")
    includes = [f"-I{folder}", *(f"-I{folder}/inc/{kind}" for kind in ("public", "private"))]
    command = (*find_compiler(None), *FLAGS, *platform_of().shared, *includes, *map(str, sources))
    return compile_c((*command, "-lm"), folder / library_name("solver")).path
