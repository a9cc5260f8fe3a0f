"""From a CasADi Function to a compiled one that evaluates many states."""

import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.codegen.batches.arrays import BatchPort
from mbcasadi.codegen.batches.batch_c import (
    ONE_LANE,
    BatchText,
    Ports,
    batch_text,
    run_c,
    without_loader,
)
from mbcasadi.codegen.batches.batch_function import BatchFunction
from mbcasadi.codegen.batches.library import (
    BATCH_BUILD,
    BatchBuild,
    BatchLibrary,
    build_library,
    compiler_command,
)
from mbcasadi.codegen.batches.rank_decisions import decides_rank_below_float
from mbcasadi.codegen.casadi_c import generate
from mbcasadi.codegen.compiler import find_compiler, has_vectors, process_folder
from mbcasadi.codegen.count import largest_body, operations
from mbcasadi.codegen.export import export_c
from mbcasadi.codegen.manifest import COMPILER_CLIFF
from mbcasadi.codegen.names import require_identifier
from mbcasadi.codegen.precision import Real
from mbcasadi.codegen.text import template
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.errors import ProblemError
from mbcasadi.platforms import usable_cores
from mbcasadi.progress import notes_to
from mbcasadi.shapes import require_name, require_whole

Patterns = dict[str, ca.Sparsity]


@checked
def batch(
    function: ca.Function | Controller | HasController,
    *,
    real: Real = "double",
    threads: int | None = None,
    feedback: Mapping[str, str] | None = None,
    plant: ca.Function | None = None,
    build: BatchBuild = BATCH_BUILD,
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
        build: compiler, flags and folder.
        progress: called with one line for each step.

    Raises:
        ProblemError: the Function has no ports, feedback does not fit, or float decides a rank.
        UnknownNameError: feedback names no output or input.
        ExportError: no generated C, or the folder cannot be written.
        CompilerError: no compiler, or it failed.
    """
    report = notes_to(progress)
    count = require_threads(threads)
    place = _folder(build.folder)
    pairs = dict(feedback or {})
    defaults: dict[str, NDArray[np.float64]] = {}
    apart: tuple[str, ...] = ()
    if isinstance(function, ca.Function):
        name, (inputs, outputs) = function.name(), patterns_of(function)
        require_fit(name, (inputs, outputs), pairs)
        require_alone(function, real, plant)
        report(f"{name}: generating C for {operations(function)} operations")
        text = batch_text(function, name, real, pairs)
        library = _library(function, text, place, build)
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
        library = controller_library(controller, place, pairs, plant, build)
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
    function: ca.Function, text: BatchText, folder: Path, build: BatchBuild
) -> BatchLibrary:
    """Compile the path in lanes where the compiler has vectors, else the scalar one."""
    name = function.name()
    level = "-O1" if largest_body(function) > COMPILER_CLIFF else "-O2"
    command = compiler_command(build, level)
    sources = {f"{name}.c": text.scalar}
    if not build.lanes or not has_vectors(find_compiler(build.cc)):
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


def patterns_of(function: ca.Function) -> tuple[Patterns, Patterns]:
    """Return the patterns of inputs and outputs by name."""
    inputs = {name: function.sparsity_in(name) for name in function.name_in()}
    return inputs, {name: function.sparsity_out(name) for name in function.name_out()}


def closed_loop_patterns(
    controller: ca.Function, plant: ca.Function | None
) -> tuple[Patterns, Patterns]:
    """Return the patterns of a tick with a step of the plant behind it.

    Inputs of the plant are outputs of the tick, or inputs of both, or inputs of its own.

    Raises:
        ProblemError: one name has two meanings.
    """
    inputs, outputs = patterns_of(controller)
    if plant is None:
        return inputs, outputs
    own_inputs, own_outputs = patterns_of(plant)
    for name, pattern in own_inputs.items():
        known = outputs.get(name) or inputs.get(name)
        if known is not None and known != pattern:
            raise ProblemError(
                f"plant: {name} is {pattern.dim()}, that of the controller {known.dim()}; give "
                "other names to what differs"
            )
    twice = outputs.keys() & own_outputs.keys()
    if twice:
        raise ProblemError(f"plant: {min(twice)} is an output of the controller too; rename it")
    further = {k: v for k, v in own_inputs.items() if k not in outputs}
    return inputs | further, outputs | own_outputs


def controller_library(
    controller: Controller,
    folder: Path,
    feedback: Mapping[str, str],
    plant: ca.Function | None,
    build: BatchBuild,
) -> BatchLibrary:
    """Export a controller beside the loop over states and compile both.

    Args:
        controller: with or without a QP.
        folder: the export is its subfolder `export`.
        feedback: output → input that it replaces at the next step.
        plant: evaluated after each tick, or None.
        build: compiler and flags.

    Raises:
        ExportError, CompilerError: as in `batch`.
    """
    project = export_c(controller, folder / "export", overwrite=True)
    name = project.name
    ticks = [signal["name"] for signal in project.manifest["inputs"]]
    inputs, outputs = closed_loop_patterns(controller.function, plant)
    doubles = project.manifest["memory_bytes"] // 8
    arguments = [f"m->arg[{i}]" for i in range(len(ticks))]
    arguments += [f"m->res[{i}]" for i in range(len(project.manifest["outputs"]))]
    head = template("batch_controller.c.in", {"name": name, "NAME": name.upper()})
    call = f"(begins && {name}_init(m->w, sizeof m->w))"
    call += f" || {name}_step(m->w, {', '.join(arguments)}) < 0"
    iw = w = 0
    if plant is not None:
        prefix = f"{name}_plant"
        text = without_loader(generate((plant,), prefix), plant.name())
        head += f"#define casadi_real double\n{text}\n"
        call += f" || {_plant_call(plant, list(inputs), list(outputs), doubles)}"
        iw, w = plant.sz_iw(), plant.sz_w()
    ports = Ports(
        {port: pattern.nnz() for port, pattern in inputs.items()},
        {port: pattern.nnz() for port, pattern in outputs.items()},
        (len(inputs), len(outputs), iw, doubles + w),
    )
    source = head + ONE_LANE + run_c(ports, f"{name}_tick", feedback, call)
    level, *others = project.manifest["flags"]
    command = (*compiler_command(build, level), *others, f"-I{project.folder}")
    sources = {f"{name}.c": project.source.read_text(encoding="utf-8"), f"{name}_tick.c": source}
    return build_library(sources, f"{name}_tick", folder, command)


def _plant_call(plant: ca.Function, inputs: list[str], outputs: list[str], memory: int) -> str:
    """Return the C that calls the plant on the ports of the closed loop.

    Its work memory lies behind that of the controller, `memory` numbers.
    """
    given = [
        f"m->res[{outputs.index(name)}]"
        if name in outputs and name not in plant.name_out()
        else f"m->arg[{inputs.index(name)}]"
        for name in plant.name_in()
    ]
    taken = [f"m->res[{outputs.index(name)}]" for name in plant.name_out()]
    arguments = f"(const double *[{plant.sz_arg() + 1}]){{{', '.join(given) or '0'}}}"
    results = f"(double *[{plant.sz_res() + 1}]){{{', '.join(taken)}}}"
    return f"casadi_f0({arguments}, {results}, m->iw, m->w + {memory}, 0)"
