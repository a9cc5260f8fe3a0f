"""Functions as compiled C, warnings as errors."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import casadi as ca

from mbcasadi.codegen.compiler import find_compiler

FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-O0")
SHOWN = 2000  # characters of the compiler's message


def compiled(function: ca.Function, folder: Path) -> ca.Function:
    """Generate C, compile it with warnings as errors, and load it back."""
    return all_compiled([function], folder)[function.name()]


def all_compiled(functions: Sequence[ca.Function], folder: Path) -> dict[str, ca.Function]:
    """Return the C of some Functions in one library, by name."""
    generator = ca.CodeGenerator(f"{functions[0].name()}_c", {"with_header": False})
    for function in functions:
        generator.add(function)
    source = Path(generator.generate(f"{folder}/"))
    library = source.with_suffix(".so")
    command = [*find_compiler(), *FLAGS, "-fPIC", "-shared", str(source), "-o", str(library), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:SHOWN]
    return {function.name(): ca.external(function.name(), str(library)) for function in functions}
