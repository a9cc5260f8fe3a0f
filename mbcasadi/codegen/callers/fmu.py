"""A co-simulation unit of FMI 3.0: the exported C, the functions of the standard, a description.

A step of the length of the period is one tick on the inputs that were set before. Each component
of a signal is a variable of its own; the state z and the memory are the unit's state, which a
simulator can keep, restore and store.
"""

import hashlib
import io
import platform
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.codegen.builder import compile_with_estimate
from mbcasadi.codegen.c_interface import CLaw, law_template
from mbcasadi.codegen.callers.fmu_description import (
    Variables,
    build_description,
    model_description,
    variables_of,
)
from mbcasadi.codegen.compiler import find_compiler
from mbcasadi.codegen.example_run import example_inputs
from mbcasadi.codegen.manifest import recommended_flags
from mbcasadi.codegen.text import comma_list, number
from mbcasadi.errors import CompilerError, ExportError
from mbcasadi.platforms import platform_of

EARLIEST = (1980, 1, 1, 0, 0, 0)  # a zip file's first date: the same input gives the same bytes
FUNCTIONS = "fmi3Functions.c"
MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}
SYSTEMS = {"linux": "linux", "darwin": "darwin", "win32": "windows"}
WARNINGS = ("-Wno-unused-parameter",)


def fmu_archive(
    law: CLaw,
    contents: Mapping[str, bytes],
    example: Mapping[str, ArrayLike],
    report: Callable[[str], None],
) -> bytes:
    """Return the bytes of `<name>.fmu`.

    Args:
        law: what is exported.
        contents: the files of the export, by name.
        example: start values of the inputs.
        report: called with one line for each step.

    Raises:
        ExportError: a law without a period, or with a solver that is no part of the C.
        CompilerError: the compiler failed.
    """
    _require_unit(law)
    variables = variables_of(law, example_inputs(law.inputs, law.defaults, example))
    sources = {name: contents[name] for name in (f"{law.name}.c", f"{law.name}.h")}
    token = hashlib.sha256(b"".join(sources.values())).hexdigest()
    sources[FUNCTIONS] = _functions_c(law, variables, token).encode()
    files = {f"sources/{name}": data for name, data in sources.items()}
    files["sources/buildDescription.xml"] = build_description(law, FUNCTIONS).encode()
    files["modelDescription.xml"] = model_description(law, variables, token).encode()
    return _zipped(files | _binary(law, sources, report))


def _require_unit(law: CLaw) -> None:
    if law.period is None:
        raise ExportError(
            f"{law.name!r} has no period, so that it is no co-simulation unit; export a "
            "controller, or leave fmu out"
        )
    if law.has_daqp:
        raise ExportError(
            f"the co-simulation unit of {law.name!r} would need DAQP's library; export it with "
            'solver="mbcasadi", which is part of the C'
        )


def _functions_c(law: CLaw, variables: Variables, token: str) -> str:
    places = "".join(f", {variables.places[port.name]}" for port in law.signals)
    status = variables.return_place
    return law_template(
        law,
        "fmi3.c.in",
        {
            "token": token,
            "none": law_template(law, "fmi3_none.c.in"),
            "given": len(variables.given),
            "floats": len(variables.given) + len(variables.results),
            "values": len(variables.given) + len(variables.results) + len(variables.codes),
            "nz": law.nz,
            "nu": law.nu,
            "start": comma_list(number(x) for x in _start_values(law, variables)),
            "initial": f"  memcpy(s->z, {law.name}_z0, NZ * sizeof(real));\n"
            if law.has_state
            else "",
            "arguments": places,
            "code": f"  {status} = code;\n" if status else "  (void)code;\n",
            "period": number(law.period or 0.0),
        },
    )


def _start_values(law: CLaw, variables: Variables) -> NDArray[np.float64]:
    """Return the value of each variable before the first step; u is the safe output."""
    results = np.zeros(len(variables.results))
    first = variables.first_of_u
    if first is not None and law.u_safe is not None:
        results[first : first + law.nu] = law.u_safe
    starts = [variable.start for variable in variables.given]
    return np.concatenate([starts, results, np.zeros(len(variables.codes))])


def platform_name(system: str = sys.platform, machine: str | None = None) -> str:
    """Return FMI's name of an operating system and processor, "" where it has none."""
    processor = MACHINES.get((machine or platform.machine()).lower())
    name = SYSTEMS.get(system)
    return f"{processor}-{name}" if processor and name else ""


def _binary(
    law: CLaw, sources: Mapping[str, bytes], report: Callable[[str], None]
) -> dict[str, bytes]:
    """Return the library for this machine; nothing where there is no compiler for it.

    Raises:
        CompilerError: the compiler failed.
    """
    name = platform_name()
    try:
        compiler = find_compiler()
    except CompilerError:
        compiler = ()
    if not (name and compiler):
        report(f"{law.name}.fmu: no compiler here, so it holds sources and no binary")
        return {}
    here = platform_of()
    with tempfile.TemporaryDirectory(prefix="mbcasadi-") as folder:
        for file, data in sources.items():
            (Path(folder) / file).write_bytes(data)
        files = [str(Path(folder) / file) for file in sources if file.endswith(".c")]
        command = (*compiler, "-std=c99", *recommended_flags(law), *WARNINGS, f"-I{folder}")
        command += (*here.shared, *files, *here.mathematics)
        library = Path(folder) / f"{law.name}{here.library}"
        lines = sources[f"{law.name}.c"].count(b"\n")
        compile_with_estimate(command, library, lines, f"{law.name}.fmu", report)
        return {f"binaries/{name}/{law.name}{here.library}": library.read_bytes()}


def _zipped(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, EARLIEST), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
