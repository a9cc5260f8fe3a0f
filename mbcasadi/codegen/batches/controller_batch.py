"""The exported tick of a controller over many states, alone or with a step of what it moves."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import casadi as ca

from mbcasadi.codegen.batches.batch_c import ONE_LANE, Ports, run_c, without_loader
from mbcasadi.codegen.batches.library import BatchLibrary, build_library, compiler_command
from mbcasadi.codegen.casadi_c import generate
from mbcasadi.codegen.export import export_c
from mbcasadi.codegen.text import template
from mbcasadi.description import Controller
from mbcasadi.errors import ProblemError

Patterns = dict[str, ca.Sparsity]


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
    *,
    plant: ca.Function | None,
    cc: str | None,
    flags: Sequence[str] | None,
) -> BatchLibrary:
    """Export a controller beside the loop over states and compile both.

    Args:
        controller: with or without a QP.
        folder: the export is its subfolder `export`.
        feedback: output → input that it replaces at the next step.
        plant: evaluated after each tick, or None.
        cc, flags: as in `batch`.

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
    command = compiler_command(cc, flags, level)
    command = (*command, *others, f"-I{project.folder}")
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
