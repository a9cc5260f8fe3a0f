"""What a C compiler knows, found out by small files."""

import subprocess
import tempfile
from functools import cache
from pathlib import Path

from mbcasadi.platforms import platform_of

VECTORS = """\
typedef double v __attribute__((vector_size(16)));
#ifndef __GNUC__
#error "no vectors"
#endif
v f(v a, v b);
v f(v a, v b) { return (v)((a < b) & (1.0 - a == b)); }
"""


@cache
def has_vectors(command: tuple[str, ...]) -> bool:
    """Return whether a compiler knows vectors of lanes, GCC's extension of C."""
    return _accepts((*command, "-c"), VECTORS)


@cache
def native_flags(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the flags for this machine's instructions where the compiler knows them."""
    for flag in ("-march=native", "-mcpu=native"):
        flags = (flag, *platform_of().native)
        if _accepts((*command, *flags, "-c")):
            return flags
    return ()


def _accepts(command: tuple[str, ...], text: str = "int x;\n") -> bool:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text(text, encoding="utf-8")
        full = [*command, "-Werror", "-Wno-psabi", str(source), "-o", str(Path(folder, "probe.o"))]
        return subprocess.run(full, capture_output=True, check=False).returncode == 0
