"""Functions as compiled C."""

import subprocess
from pathlib import Path

import casadi as ca


def compiled(function: ca.Function, folder: Path) -> ca.Function:
    """Generate C, compile it with warnings as errors, and load it back."""
    generator = ca.CodeGenerator(f"{function.name()}.c", {"with_header": False})
    generator.add(function)
    source = Path(generator.generate(f"{folder}/"))
    library = source.with_suffix(".so")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-O1"]
    command = ["gcc", *flags, "-fPIC", "-shared", str(source), "-o", str(library), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    return ca.external(function.name(), str(library))
