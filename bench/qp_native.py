"""Ours and DAQP in C on the same least-distance problems, cold and warm."""

import ctypes
import tempfile
from dataclasses import dataclass
from pathlib import Path

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from bench.tick_peers import NATIVE
from mbcasadi.codegen.compiler import compile_c, find_compiler
from mbcasadi.codegen.constant_rows import ConstantRows
from mbcasadi.codegen.sizes import most_iterations
from mbcasadi.codegen.solver_c import constant_rows, daqp_c, rows_of_a_tick, solver_c, wheel_files
from mbcasadi.platforms import library_name, platform_of

Array = NDArray[np.float64]

FLAGS = ("-std=gnu99", "-O3", "-march=native")
HEAD = "#define _POSIX_C_SOURCE 199309L\n" + "".join(
    f"#include <{name}.h>\n" for name in ("float", "math", "string")
)


@dataclass(frozen=True)
class NativeTimes:
    """Of each problem: s, the best of several passes; x (ticks, n); number of active rows."""

    seconds: Array
    x: Array
    active: NDArray[np.int32]


def native_times(
    problems: tuple[Array, Array, Array], *, daqp: bool, warm: bool, passes: int
) -> NativeTimes:
    """Time one solver on A (ticks, m, n), lower and upper (ticks, m), in this order.

    Rows that are the same at all ticks are constants of the C.
    """
    A, lower, upper = problems
    ticks, m, n = A.shape
    fixed = bool(np.all(A[0] == A))
    rows = constant_rows(ConstantRows(A[0])) if fixed else rows_of_a_tick(ca.Sparsity.dense(m, n))
    pattern = ConstantRows(A[0]).pattern if fixed else ca.Sparsity.dense(m, n)
    text = HEAD + solver_c(pattern, rows, 0, most_iterations(m, n))
    text += "" if fixed else f"#define ROWS {m * n}\n"
    text += "#define WITH_DAQP\n" + daqp_c(m, n, rows, constant=fixed) if daqp else ""
    text += (NATIVE / "qp_least_distance.c").read_text(encoding="utf-8")
    seconds, x, active = np.zeros(ticks), np.zeros((ticks, n)), np.zeros(ticks, np.int32)
    given = [np.ascontiguousarray(v) for v in (A.transpose(0, 2, 1), lower, upper)]
    with tempfile.TemporaryDirectory(prefix="mbcasadi-qp-") as folder:
        library = ctypes.CDLL(str(_library(Path(folder), text, daqp=daqp)))
        library.time_all(
            ctypes.c_long(ticks),
            *(v.ctypes.data_as(ctypes.c_void_p) for v in given),
            int(warm),
            passes,
            *(v.ctypes.data_as(ctypes.c_void_p) for v in (seconds, x, active)),
        )
    return NativeTimes(seconds, x, active)


def _library(folder: Path, text: str, *, daqp: bool) -> Path:
    source = folder / "solver.c"
    source.write_text(text, encoding="utf-8")
    libraries: list[str] = []
    if daqp:
        for name, data in wheel_files().items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        libraries = ["-isystem", f"{folder}/daqp/include", f"{folder}/daqp/libdaqpstat.a"]
    command = (*find_compiler(None), *FLAGS, *platform_of().shared, str(source), *libraries, "-lm")
    return compile_c(command, folder / library_name("solver")).path
