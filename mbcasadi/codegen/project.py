"""An exported folder, as an object that builds, loads and times it."""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import casadi as ca
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.codegen.builder import Builder, mujoco_files
from mbcasadi.codegen.calls import Array, Memory, call_prepare, call_tick, new_memory
from mbcasadi.codegen.compiler import BuildResult, library_to_load
from mbcasadi.codegen.count import Size
from mbcasadi.codegen.manifest import Manifest, record_measurement
from mbcasadi.codegen.supervision.replay_log import LogReplay, replay
from mbcasadi.codegen.supervision.supervised import Supervised, new_supervised
from mbcasadi.codegen.targets.cortex_m7 import build_firmware
from mbcasadi.codegen.targets.footprint import Footprint, measured_footprint
from mbcasadi.codegen.targets.web import build_wasm, write_page
from mbcasadi.codegen.timing import (
    LongestTick,
    TickTimes,
    input_record,
    run_timing,
    timing_c,
    worst_case_of,
)
from mbcasadi.errors import ExportError, ProblemError
from mbcasadi.platforms import machine_name
from mbcasadi.short_text import with_table


@with_table
@dataclass(frozen=True)
class CProject:
    """A folder that `export_c` wrote.

    Attributes:
        folder: its path.
        name: prefix of its C symbols.
        manifest: sizes, names, units, order, limits, versions, hashes.
        progress: called with one line for each step of a build.
    """

    folder: Path
    name: str
    manifest: Manifest
    progress: Callable[[str], None] | None = field(default=None, compare=False, repr=False)

    def _summary(self) -> dict[str, object]:
        return {"name": self.name, "operations of a tick": self.operations, "folder": self.folder}

    def __repr__(self) -> str:
        return f"CProject('{self.name}', {self.operations} operations, in {str(self.folder)!r})"

    @property
    def _builder(self) -> Builder:
        return Builder(self.folder, self.name, self.manifest, self.progress)

    @property
    def source(self) -> Path:
        """The C file."""
        return self.folder / f"{self.name}.c"

    @property
    def header(self) -> Path:
        """The header."""
        return self.folder / f"{self.name}.h"

    @property
    def operations(self) -> int:
        """Scalar operations of one tick, without the QP solver."""
        return sum(self.manifest["operations"].values())

    @property
    def lines(self) -> int:
        """Lines of generated C."""
        return self.source.read_bytes().count(b"\n")

    @checked
    def build(self, cc: str | None = None, flags: Sequence[str] | None = None) -> BuildResult:
        """Compile the shared library that `load` opens, unless it is up to date.

        Args:
            cc: the compiler; $CC, then `cc`, `gcc` or `clang` on the PATH by default.
            flags: optimisation flags, e.g. `("-O3", "-march=native")`; the manifest's by
                default: `-O3`, or `-O1` where one function is so large that the compiler
                would need minutes.

        Raises:
            CompilerError: no compiler, or it failed; its message is kept.
        """
        return self._builder.library(cc, flags)

    @checked
    def size(self, cc: str | None = None, flags: Sequence[str] | None = None) -> Size:
        """Build, and return the size of the export.

        Raises:
            CompilerError: no compiler, or it failed.
        """
        result = self.build(cc, flags)
        return Size(
            self.operations,
            int(self.manifest["largest_function"]),
            self.lines,
            int(self.manifest["memory_bytes"]),
            result.path.stat().st_size,
            result,
        )

    @checked
    def load(self, cc: str | None = None, flags: Sequence[str] | None = None) -> ca.Function:
        """Return the compiled C as a `ca.Function` with the law's inputs and outputs.

        Raises:
            CompilerError: no compiler, or it failed.
        """
        return ca.external(self.name, str(library_to_load(self.build(cc, flags).path)))

    @checked
    def build_mujoco_plugin(
        self, mujoco: str | Path, cc: str | None = None, flags: Sequence[str] | None = None
    ) -> BuildResult:
        """Compile the engine plugin of MuJoCo, which `mujoco.mj_loadPluginLibrary` loads.

        Args:
            mujoco: folder of MuJoCo's headers (`include`) and library: that of the Python package,
                `mujoco.__path__[0]`, or that of a release.
            cc, flags: as in `build`.

        Raises:
            ExportError: the export has no plugin, or the folder is not MuJoCo's.
            CompilerError: no compiler, or it failed.
        """
        if self.manifest.get("mujoco") is None:
            raise ExportError(
                f"{self.folder} holds no MuJoCo plugin; export with mujoco_plugin=True"
            )
        return self._builder.mujoco_plugin(*mujoco_files(Path(mujoco)), cc, flags)

    def memory(self) -> Memory:
        """Build, and return a new block of memory for `step`, `prepare` and `feedback`."""
        return new_memory(self.manifest, self.build().path)

    @checked
    def step(self, memory: Memory, inputs: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """Call the C's step: one whole tick.

        Inputs that are missing count as zeros, tuning as its defaults.

        Returns:
            all outputs by name, their nonzeros column by column.

        Raises:
            ShapeError, UnknownNameError: an input does not fit.
            ExportError: the memory is not of this law, or the arithmetic failed.
        """
        return call_tick(self.manifest, "step", memory, inputs)

    @checked
    def prepare(self, memory: Memory, inputs: Mapping[str, ArrayLike]) -> None:
        """Call the C's prepare: the part of a tick that needs no measurement.

        Raises:
            ShapeError, UnknownNameError: as in `step`.
            ExportError: as in `step`, and where a tick has one phase only.
        """
        call_prepare(self.manifest, memory, inputs)

    @checked
    def feedback(self, memory: Memory, inputs: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """Call the C's feedback with all inputs, those of the preparation unchanged.

        Raises:
            ShapeError, UnknownNameError, ExportError: as in `prepare`.
        """
        return call_tick(self.manifest, "feedback", memory, inputs)

    @checked
    def supervised(self, log_ticks: int = 0) -> Supervised:
        """Build, and return the supervised controller, ready for its first tick.

        Args:
            log_ticks: size of its log; 0: none.

        Raises:
            ExportError: the export is not supervised.
            CompilerError: no compiler, or it failed.
            ProblemError: a negative size.
        """
        return new_supervised(self.manifest, self.build().path, log_ticks)

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
            tolerance: of u, as a share of its largest value in the log; 0 compares bits. By default
                0 for a library of the same compiler and processor as the one that wrote the log,
                else 1e-6 (float: 0.05).
            library: shared library of this export, with its supervision; built here by default.

        Raises:
            ExportError: the log or the library are not of this export.
            CompilerError: no compiler, or it failed.
            ProblemError: a negative tolerance.
        """

        def compiled() -> Path:
            return self.build().path if library is None else Path(library)

        return replay(self.manifest, compiled, Path(log), tolerance, self.progress)

    @checked
    def build_example(
        self, cc: str | None = None, flags: Sequence[str] | None = None
    ) -> BuildResult:
        """Compile `main.c` with the law into a program."""
        return self._builder.example(cc, flags)

    def run_example(self) -> str:
        """Build and run `main.c`, and return what it prints.

        Raises:
            ExportError: the program failed, or its control differs from the record.
        """
        program = self.build_example().path
        process = subprocess.run(
            [str(program)], capture_output=True, encoding="utf-8", errors="replace", check=False
        )
        if process.returncode != 0:
            raise ExportError(
                f"{program} failed with exit status {process.returncode}: {process.stderr}"
                f"{process.stdout}"
            )
        return process.stdout

    @checked
    def time(
        self,
        inputs: Mapping[str, ArrayLike],
        repeats: int = 5,
        *,
        evict: bool = False,
        cc: str | None = None,
        flags: Sequence[str] | None = None,
    ) -> TickTimes:
        """Time every tick over recorded inputs, in a C program linked with the built library.

        For a law with two phases each pass times whole ticks first, then the phases.

        Args:
            inputs: name → (ticks, size), or (size,) for a constant value. If `z` is
                missing, it starts at z0 and is passed from tick to tick, as on a robot.
            repeats: passes over the record.
            evict: sweep the caches before each tick.
            cc, flags: as in `build`.

        Raises:
            ShapeError: an input has another size.
            ExportError: the program failed.
        """
        chained = "z" not in inputs
        program = self._builder.timing_program(timing_c(self.manifest, chained=chained), cc, flags)
        return run_timing(self.manifest, program.path, inputs, repeats, evict=evict)

    @checked
    def worst_case(
        self,
        inputs: Mapping[str, ArrayLike],
        ticks: int = 1_000_000,
        *,
        cc: str | None = None,
        flags: Sequence[str] | None = None,
        record: bool = False,
    ) -> LongestTick:
        """Time at least so many ticks over recorded inputs, and bound their operations.

        Args:
            inputs, cc, flags: as in `time`; the record is repeated.
            ticks: 1 or more.
            record: write the result into the manifest, by this machine's name.

        Raises:
            ShapeError, ExportError: as in `time`.
            ProblemError: `ticks` is less than 1.
        """
        if ticks < 1:
            raise ProblemError(f"ticks is {ticks}, expected 1 or more")
        samples = max(1, len(input_record(self.manifest, inputs)))
        times = self.time(inputs, -(-ticks // samples), cc=cc, flags=flags)
        longest = worst_case_of(self.manifest, times)
        if record:
            values = asdict(longest) | {"command": list(self._builder.command(cc, flags)[:-1])}
            record_measurement(self.folder, self.manifest, "ticks", machine_name(), values)
        return longest

    @checked
    def footprint(
        self, target: str, flags: Sequence[str] | None = None, *, record: bool = False
    ) -> Footprint:
        """Compile for a target and return flash, RAM and stack.

        Args:
            target: "cortex-m7" (arm-none-eabi-gcc), or the command of a GCC of version 10 or later.
            flags: behind `-O2`.
            record: write the result into the manifest.

        Raises:
            CompilerError: no compiler, it failed, or it writes no call graph.
        """
        footprint = measured_footprint(self.manifest, self.folder, target, flags)
        if record:
            values = asdict(footprint) | {"ram_bytes": footprint.ram_bytes}
            values["command"] = [w for w in footprint.command if str(self.folder) not in w]
            record_measurement(self.folder, self.manifest, "footprints", target, values)
        return footprint

    @checked
    def cortex_m7(
        self,
        folder: str | Path,
        flags: Sequence[str] | None = None,
        inputs: Mapping[str, ArrayLike] | None = None,
    ) -> Path:
        """Write and compile firmware that runs the law over a record on a Cortex-M7.

        The folder has the startup code with its linker script, for QEMU's machine mps2-an500, the
        replay program, `firmware.elf`, `firmware.map`, and a README that says how to run it. It
        runs the law without a supervision over the file `inputs`, and writes `outputs`.

        Args:
            folder: where to write.
            flags: of the compiler, behind ours.
            inputs: name → (ticks, size), as in `time`, written as `inputs`; without z, which the
                firmware hands from tick to tick.

        Raises:
            ExportError: there is a z.
            CompilerError: arm-none-eabi-gcc is not installed, or it failed.
            ShapeError, UnknownNameError: an input does not fit.
        """
        return build_firmware(self.manifest, self.folder, Path(folder), flags or (), inputs)

    @checked
    def wasm(self, folder: str | Path) -> Path:
        """Compile to WebAssembly: `<name>.wasm` and `<name>.js`, which runs it over a record.

        Raises:
            CompilerError: clang or lld is not installed, or it failed.
        """
        return build_wasm(self.manifest, self.folder, Path(folder))

    @checked
    def web_page(
        self,
        path: str | Path,
        inputs: Mapping[str, ArrayLike],
        controls: ArrayLike,
        lines: ArrayLike | None = None,
    ) -> None:
        """Write a page that computes the control of a record in the browser, tick by tick.

        It needs no other file, and shows the largest difference from the recorded control.

        Args:
            path: the HTML file.
            inputs: name → (ticks, size), as in `time`.
            controls: (ticks, nu) recorded control.
            lines: (ticks, points, 2) drawing of each tick: one line through all points.

        Raises:
            ShapeError, UnknownNameError: the record does not fit.
            ExportError: the law has no output u.
            CompilerError: as in `wasm`.
        """
        write_page(self.manifest, self.folder, Path(path), inputs, controls, lines)
