"""An exported folder of two rates, as an object that builds, loads and runs it."""

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.codegen.builder import compile_with_estimate, file_key, mujoco_files
from mbcasadi.codegen.calls import BYTES, load_library
from mbcasadi.codegen.compiler import BuildResult
from mbcasadi.codegen.compiler_flags import compile_command, library_flags
from mbcasadi.codegen.folder import BUILD_FOLDER, MANIFEST
from mbcasadi.codegen.project_folder import require_unchanged
from mbcasadi.codegen.supervision.replay_log import LogReplay, replay
from mbcasadi.codegen.supervision.supervised import new_log
from mbcasadi.codegen.two_rates.controller import TwoRatesController, TwoRatesManifest
from mbcasadi.codegen.two_rates.interface import FUNCTIONS
from mbcasadi.errors import ExportError
from mbcasadi.platforms import (
    identity_flags,
    library_name,
    platform_of,
    program_name,
    search_flags,
)
from mbcasadi.short_text import with_table

FORMAT = "two rates 2"
"""Of the manifest."""


@with_table
@dataclass(frozen=True)
class TwoRatesProject:
    """A folder that `export_two_rates` wrote.

    Attributes:
        folder: its path.
        name: prefix of its C symbols.
        manifest: sizes, names, units, order, periods, versions, hashes.
        progress: called with one line for each step of a build.
    """

    folder: Path
    name: str
    manifest: TwoRatesManifest
    progress: Callable[[str], None] | None = field(default=None, compare=False, repr=False)

    def _summary(self) -> dict[str, object]:
        rates = f"{self.manifest['plan_period']:g} s, {self.manifest['period']:g} s"
        return {"name": self.name, "periods of plan and tick": rates, "folder": self.folder}

    def __repr__(self) -> str:
        return f"TwoRatesProject({self.name!r}, in {str(self.folder)!r})"

    @property
    def operations(self) -> int:
        """Scalar operations of a plan and of a tick, without the QP solvers."""
        parts = self.manifest["parts"].values()
        return sum(sum(part["operations"].values()) for part in parts)

    @property
    def lines(self) -> int:
        """Lines of generated C."""
        return sum(Path(source).read_bytes().count(b"\n") for source in self._sources)

    @checked
    def build(self, cc: str | None = None, flags: Sequence[str] | None = None) -> BuildResult:
        """Compile the shared library that `load` opens, unless it is up to date.

        Args:
            cc: the compiler; as in `CProject.build`.
            flags: optimisation flags of all sources; those of the manifest by default, which
                compile the largest function in reasonable time.

        Raises:
            CompilerError: no compiler, or it failed.
        """
        own = library_flags(self._sources, self.manifest["flags"], cc, flags)
        command = (*self._command(cc, flags), *own, *self._sources)
        return self._compile(command, library_name(f"{self.name}_{self._key(command)}"))

    @checked
    def load(
        self,
        cc: str | None = None,
        flags: Sequence[str] | None = None,
        log_ticks: int = 0,
    ) -> TwoRatesController:
        """Build, and return a controller in its initial state.

        Args:
            cc, flags: as in `build`.
            log_ticks: how many ticks the log of a supervised law holds; 0: there is none.

        Raises:
            CompilerError: no compiler, or it failed.
            ExportError: a log of an export without supervision.
            ProblemError: a negative number of ticks, or more than the memory holds.
        """
        library = load_library(self.manifest, self.build(cc, flags).path)
        block = np.zeros(self.manifest["memory_bytes"] // BYTES)
        log = new_log(self.manifest["parts"]["law"], library, log_ticks) if log_ticks else None
        controller = TwoRatesController(self.manifest, library, block, log)
        controller.reset()
        return controller

    @checked
    def replay(
        self,
        log: str | Path,
        *,
        tolerance: float | None = None,
        library: str | Path | None = None,
    ) -> LogReplay:
        """Compute the ticks of a log again, each from its own inputs and state.

        Args:
            log: file of a log's memory, see `Supervised.save_log`.
            tolerance, library: as in `CProject.replay`.

        Raises:
            ExportError: the log is not of this export, which may have no supervision.
            CompilerError: no compiler, or it failed.
            ProblemError: a negative tolerance.
        """

        def compiled() -> Path:
            return self.build().path if library is None else Path(library)

        return replay(self.manifest["parts"]["law"], compiled, Path(log), tolerance, self.progress)

    @checked
    def build_mujoco_plugin(
        self, mujoco: str | Path, cc: str | None = None, flags: Sequence[str] | None = None
    ) -> BuildResult:
        """Compile the engine plugin of MuJoCo, which `mujoco.mj_loadPluginLibrary` loads.

        Args:
            mujoco: folder of MuJoCo's headers and library, `mujoco.__path__[0]` for example.
            cc, flags: as in `build`.

        Raises:
            ExportError: the export has no plugin, or the folder is not MuJoCo's.
            CompilerError: no compiler, or it failed.
        """
        if self.manifest["mujoco"] is None:
            raise ExportError(
                f"{self.folder} holds no MuJoCo plugin; export with mujoco_plugin=True"
            )
        include, library = mujoco_files(Path(mujoco))
        command = (*self._command(cc, flags), "-isystem", str(include), *platform_of().shared)
        command += (str(self.folder / f"{self.name}_mujoco.c"), *self._sources, str(library))
        command += search_flags(library.parent)
        return self._compile(command, library_name(f"{self.name}_mujoco_{self._key(command)}"))

    @checked
    def run_example(self, cc: str | None = None, flags: Sequence[str] | None = None) -> str:
        """Build and run `main.c`, and return what it prints.

        Raises:
            CompilerError: no compiler, or it failed.
            ExportError: the program failed.
        """
        command = (*self._command(cc, flags), str(self.folder / "main.c"), *self._sources)
        program = self._compile(command, program_name(f"example_{self._key(command)}")).path
        process = subprocess.run(
            [str(program)], capture_output=True, encoding="utf-8", errors="replace", check=False
        )
        if process.returncode != 0:
            raise ExportError(
                f"{program} failed with exit status {process.returncode}: {process.stderr}"
                f"{process.stdout}"
            )
        return process.stdout

    @property
    def _sources(self) -> list[str]:
        parts = self.manifest["parts"]
        names = [self.name, *(part["name"] for part in parts.values())]
        names.append(f"{self.name}_{FUNCTIONS}")
        if parts["law"]["supervision"] is not None:
            names.append(f"{parts['law']['name']}_supervised")
        return [str(self.folder / f"{name}.c") for name in names]

    def _command(self, cc: str | None, flags: Sequence[str] | None) -> tuple[str, ...]:
        return tuple(compile_command(self.folder, self.manifest["flags"], cc, flags))

    def _key(self, command: Sequence[str]) -> str:
        return file_key(self.manifest, command)

    def _compile(self, command: tuple[str, ...], output: str) -> BuildResult:
        """Compile unless it is there."""
        path = self.folder / BUILD_FOLDER / output
        full = (*command, *platform_of().mathematics, *identity_flags(output))
        if path.exists():
            return BuildResult(path, full, 0.0)
        return compile_with_estimate(full, path, self.lines, self.name, self.progress)


@checked
def open_two_rates(
    folder: str | Path,
    *,
    verify: bool = True,
    progress: Callable[[str], None] | None = None,
) -> TwoRatesProject:
    """Return the folder of an earlier export of two rates, wherever it was moved to.

    Args:
        folder: that `export_two_rates` wrote.
        verify: compare the files that are compiled with their hashes in the manifest.
        progress: called with one line for each step of a build.

    Raises:
        ExportError: there is no manifest of two rates in it, or a file was changed or removed.
    """
    path = Path(folder).absolute()
    found = _content(path)
    missing = sorted(TwoRatesManifest.__required_keys__ - set(found))
    if missing or found["format"] != FORMAT:
        raise ExportError(
            f"{path / MANIFEST} is no manifest of format {FORMAT!r}; give a folder that "
            "export_two_rates wrote, and export again where another version did"
        )
    manifest = cast("TwoRatesManifest", found)
    if verify:
        require_unchanged(path, manifest)
    return TwoRatesProject(path, manifest["name"], manifest, progress)


def is_two_rates(folder: Path) -> bool:
    """Return whether a folder is an export of two rates."""
    return _content(folder).get("format") == FORMAT


def _content(folder: Path) -> dict[str, Any]:
    """Return what the manifest of a folder holds; nothing where there is none."""
    try:
        content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
