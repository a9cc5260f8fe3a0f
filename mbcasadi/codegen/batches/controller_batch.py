"""The exported tick of a controller over many states."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from mbcasadi.codegen.batches.batch_c import ONE_LANE, Ports, run_c
from mbcasadi.codegen.batches.library import BatchLibrary, build_library, compiler_command
from mbcasadi.codegen.export import export_c
from mbcasadi.codegen.text import template
from mbcasadi.description import Controller


def controller_library(
    controller: Controller,
    folder: Path,
    feedback: Mapping[str, str],
    *,
    cc: str | None,
    flags: Sequence[str] | None,
) -> BatchLibrary:
    """Export a controller beside the loop over states and compile both.

    Args:
        controller: with or without a QP.
        folder: the export is its subfolder `export`.
        feedback: output → input that it replaces at the next step.
        cc, flags: as in `batch`.

    Raises:
        ExportError, CompilerError: as in `batch`.
    """
    project = export_c(controller, folder / "export", overwrite=True)
    name = project.name
    inputs = {signal["name"]: signal["size"] for signal in project.manifest["inputs"]}
    outputs = {signal["name"]: signal["size"] for signal in project.manifest["outputs"]}
    doubles = project.manifest["memory_bytes"] // 8
    ports = Ports(inputs, outputs, (len(inputs), len(outputs), 0, doubles))
    arguments = [f"m->arg[{i}]" for i in range(len(inputs))]
    arguments += [f"m->res[{i}]" for i in range(len(outputs))]
    head = template("batch_controller.c.in", {"name": name, "NAME": name.upper()})
    init = f"(begins && {name}_init(m->w, sizeof m->w))"
    call = f"{init} || {name}_step(m->w, {', '.join(arguments)}) < 0"
    source = head + ONE_LANE + run_c(ports, f"{name}_tick", feedback, call)
    level, *others = project.manifest["flags"]
    command = compiler_command(cc, flags, level)
    command = (
        *command,
        *others,
        f"-I{project.folder}",
        "-isystem",
        f"{project.folder}/daqp/include",
    )
    solver = project.manifest["solver"]
    libraries = [f"{project.folder}{os.sep}daqp{os.sep}libdaqpstat.a"] if solver else []
    sources = {f"{name}.c": project.source.read_text(), f"{name}_tick.c": source}
    return build_library(sources, f"{name}_tick", folder, command, libraries)
