"""Flash, RAM and stack of an export with a given compiler, from what the compiler says."""

import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mbcasadi.codegen.compiler import find_compiler
from mbcasadi.codegen.manifest import Manifest
from mbcasadi.codegen.stack import LIBRARY
from mbcasadi.codegen.targets.cortex_m7 import COMPILE, COMPILER, EXACT, PROCESSOR
from mbcasadi.errors import CompilerError
from mbcasadi.short_text import summarised

CORTEX_M7 = "cortex-m7"
NODE = re.compile(r'node: \{ title: "([^"]+)" label: "[^"]*?\\n(\d+) bytes')
EDGE = re.compile(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"')
FLASH, STATIC = (".text", ".rodata", ".data", ".ARM"), (".data", ".bss")


@summarised
@dataclass(frozen=True)
class Footprint:
    """What an export needs on a target, its supervision included, bytes.

    Attributes:
        command: the compiler's command line.
        flash_bytes: code, constants and initial values, without the C library.
        static_bytes: initialised and zeroed data of the C itself.
        memory_bytes: the caller's block.
        stack_bytes: deepest chain of calls by the compiler's own frames, with 1024 bytes for the C
            library where one of its functions is called.
        stack_bound_bytes: the manifest's bound.
    """

    command: tuple[str, ...]
    flash_bytes: int
    static_bytes: int
    memory_bytes: int
    stack_bytes: int
    stack_bound_bytes: int

    @property
    def ram_bytes(self) -> int:
        """Static data, the caller's block and the stack."""
        return self.static_bytes + self.memory_bytes + self.stack_bytes


def measured_footprint(
    manifest: Manifest, source: Path, target: str, flags: Sequence[str] | None
) -> Footprint:
    """Compile the export in `source` and return its footprint.

    Args:
        manifest: of the export.
        source: its folder.
        target: "cortex-m7", or a command of GCC.
        flags: `-O2` by default.

    Raises:
        CompilerError: no compiler, it failed, or it is no GCC of version 10 or later.
    """
    if target == CORTEX_M7:
        command = [*find_compiler(COMPILER), *PROCESSOR, *COMPILE, *EXACT]
    else:
        try:
            command = [*find_compiler(target), "-std=c99", "-O2"]
        except CompilerError as error:
            raise CompilerError(
                f'{error}; or give "{CORTEX_M7}" or the command of another GCC as the target'
            ) from error
    command += [*(flags or ()), f"-I{source}", "-fcallgraph-info=su"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        supervision = manifest.get("supervision")
        parts = ["", "_supervised"] if supervision is not None else [""]
        for part in parts:
            text = str(source / f"{manifest['name']}{part}.c")
            _run([*command, "-c", text, "-o", f"law{part}.o"], folder)
        graphs = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.ci"))]
        if len(graphs) < len(parts):
            raise CompilerError(f"{command[0]} wrote no call graph; give GCC 10 or later")
        stack = _deepest("".join(graphs))
        size = _run([*command[:1], "-print-prog-name=size"], folder).strip()
        sections = [
            row for part in parts for row in _sections(_run([size, "-A", f"law{part}.o"], folder))
        ]
    whole = manifest if supervision is None else supervision
    flash = sum(n for section, n in sections if section.startswith(FLASH))
    static = sum(n for section, n in sections if section.startswith(STATIC))
    memory, bound = whole["memory_bytes"], whole["stack_bytes"]
    return Footprint(tuple(command), flash, static, memory, stack, bound)


def _run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CompilerError(f"{' '.join(command)} failed: {done.stderr}")
    return done.stdout


def _sections(listing: str) -> list[tuple[str, int]]:
    rows = (line.split() for line in listing.splitlines())
    return [(r[0], int(r[1])) for r in rows if len(r) == 3 and r[0].startswith(".")]


def _deepest(graph: str) -> int:
    """Return the deepest chain of frames; functions without one are the C library's."""
    frames = {name: int(size) for name, size in NODE.findall(graph)}
    calls: dict[str, set[str]] = {}
    for caller, callee in EDGE.findall(graph):
        calls.setdefault(caller, set()).add(callee)
    depths: dict[str, int] = {}

    def depth(name: str) -> int:
        if name not in depths:
            below = max((depth(c) for c in calls.get(name, ())), default=0)
            depths[name] = frames.get(name, LIBRARY) + below
        return depths[name]

    return max((depth(name) for name in frames), default=0)
