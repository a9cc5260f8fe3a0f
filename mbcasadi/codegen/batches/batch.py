"""From a CasADi Function to a compiled one that evaluates many states."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.codegen.batches.arrays import BatchPort
from mbcasadi.codegen.batches.batch_c import BatchText, batch_text
from mbcasadi.codegen.batches.batch_function import BatchFunction
from mbcasadi.codegen.batches.controller_batch import (
    Patterns,
    closed_loop_patterns,
    controller_library,
    patterns_of,
)
from mbcasadi.codegen.batches.library import (
    BatchLibrary,
    build_library,
    compiler_command,
)
from mbcasadi.codegen.batches.rank_decisions import decides_rank_below_float
from mbcasadi.codegen.compiler import find_compiler, has_vectors, process_folder
from mbcasadi.codegen.count import largest_body, operations
from mbcasadi.codegen.manifest import COMPILER_CLIFF
from mbcasadi.codegen.names import require_identifier
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.errors import ProblemError
from mbcasadi.platforms import usable_cores
from mbcasadi.shapes import require_name, require_whole

Real = Literal["double", "float"]


@checked
def batch(
    function: ca.Function | Controller | HasController,
    *,
    real: Real = "double",
    threads: int | None = None,
    feedback: Mapping[str, str] | None = None,
    plant: ca.Function | None = None,
    lanes: bool = True,
    folder: str | Path | None = None,
    cc: str | None = None,
    flags: Sequence[str] | None = None,
    progress: Callable[[str], None] | None = None,
) -> BatchFunction:
    """Compile a Function so that one call evaluates many states, in lanes of vectors and threads.

    >>> fd = mb.batch(mb.forward_dynamics(system))
    >>> a = fd(q, v, f)["a"]  # (n, nv), from (n, nq), (n, nv), (nv,)

    The C that CasADi generates is compiled twice: as it is, and with vectors in the place of its
    numbers, 8 doubles with AVX-512, 4 with AVX, 2 elsewhere, twice as many floats. Sums, products,
    roots and comparisons give the same bits on both paths; sin, cos, tan, asin, acos, atan, atan2,
    exp and log are polynomials of our own, within 2 units in the last place; other functions are
    the C library's in each lane. Nested Functions with branches or solvers run in each lane apart.

    A controller runs its exported tick for each state on the scalar path, from a fresh memory: its
    state is `z`, which is z0 where it is not given.

    Args:
        function: any named Function with generated C, of SX or nested in MX; or a controller.
        real: type of the numbers. "float" is refused where the Function decides a rank by a
            tolerance below float's rounding.
        threads: that share a call; the usable cores by default.
        feedback: output → input that it replaces where a call has several `steps`.
        plant: with a controller: a step of what it moves, evaluated after each tick. Its inputs are
            outputs of the controller (u), inputs of both (q, v), or inputs of the batch of its own.
        lanes: whether vectors are used where the compiler has them; else the scalar path.
        folder: where the C and the library stay; a library of the same C is used again. A
            folder that lasts as long as the process by default.
        cc: the compiler, as in `CProject.build`.
        flags: compiler flags in the place of `-O2` (`-O1` for very large Functions) and of the
            flag for this machine's instructions.
        progress: called with one line for each step.

    Raises:
        ProblemError: the Function has no ports, feedback does not fit, or float decides a rank.
        UnknownNameError: feedback names no output or input.
        ExportError: no generated C, or the folder cannot be written.
        CompilerError: no compiler, or it failed.
    """
    report = progress or (lambda _: None)
    count = require_threads(threads)
    place = _folder(folder)
    pairs = dict(feedback or {})
    defaults: dict[str, NDArray[np.float64]] = {}
    apart: tuple[str, ...] = ()
    if isinstance(function, ca.Function):
        name, (inputs, outputs) = function.name(), patterns_of(function)
        require_fit(name, (inputs, outputs), pairs)
        require_alone(function, real, plant)
        report(f"{name}: generating C for {operations(function)} operations")
        text = batch_text(function, name, real, pairs)
        library = _library(function, text, place, lanes=lanes, cc=cc, flags=flags)
        apart = text.scalar_functions
    else:
        controller = function if isinstance(function, Controller) else function.controller
        if real != "double":
            raise ProblemError(f"a controller's tick has real = 'double' only, not {real!r}")
        name, (inputs, outputs) = (
            controller.name,
            closed_loop_patterns(controller.function, plant),
        )
        require_fit(name, (inputs, outputs), pairs)
        library = controller_library(controller, place, pairs, plant=plant, cc=cc, flags=flags)
        defaults = controller.defaults
    report(f"{name}: compiled in {library.build.seconds:.1f} s, {library.lanes} lanes")
    return BatchFunction(
        name=name,
        inputs=tuple(BatchPort(port, pattern) for port, pattern in inputs.items()),
        outputs=tuple(BatchPort(port, pattern) for port, pattern in outputs.items()),
        real=real,
        threads=count,
        feedback=pairs,
        defaults=defaults,
        scalar_functions=apart,
        library=library,
        _pool=ThreadPoolExecutor(count, thread_name_prefix="mbcasadi-batch"),
    )


def _library(
    function: ca.Function,
    text: BatchText,
    folder: Path,
    *,
    lanes: bool,
    cc: str | None,
    flags: Sequence[str] | None,
) -> BatchLibrary:
    """Compile the path in lanes where the compiler has vectors, else the scalar one."""
    name = function.name()
    level = "-O1" if largest_body(function) > COMPILER_CLIFF else "-O2"
    command = compiler_command(cc, flags, level)
    sources = {f"{name}.c": text.scalar}
    if not lanes or not has_vectors(find_compiler(cc)):
        return build_library(sources, f"{name}_scalar", folder, command)
    sources[f"{name}_lanes.c"] = text.lanes
    return build_library(sources, f"{name}_lane", folder, command)


def require_fit(
    name: str, patterns: tuple[Patterns, Patterns], feedback: Mapping[str, str]
) -> None:
    """Raise where a Function cannot be evaluated with this feedback."""
    require_identifier(name)
    inputs, outputs = patterns
    if not outputs:
        raise ProblemError(f"{name} has no outputs; expected at least one")
    for output, taker in feedback.items():
        require_name("output", output, list(outputs))
        require_name("input", taker, list(inputs))
        given, taken = outputs[output], inputs[taker]
        if given != taken:
            raise ProblemError(
                f"feedback: {output} is {given.dim()} and {taker} is {taken.dim()}; expected the "
                "same entries"
            )


def require_alone(function: ca.Function, real: Real, plant: ca.Function | None) -> None:
    """Raise for a plant without a controller, and for a rank that float cannot decide."""
    if plant is not None:
        raise ProblemError(
            f"plant is for a controller, and {function.name()} is a Function: call the plant in it"
        )
    if real == "float" and decides_rank_below_float(function):
        raise ProblemError(
            f"{function.name()} compares with a tolerance below float's rounding (a rank, a drop "
            "rule): in float it would decide by rounding; use real='double'"
        )


def require_threads(threads: int | None) -> int:
    """Return the number of threads; the usable cores for None."""
    if threads is None:
        return usable_cores()
    require_whole(1, threads=threads)
    return int(threads)


def _folder(folder: str | Path | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(dir=process_folder()))
    return Path(folder).absolute()
