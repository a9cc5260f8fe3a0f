"""Firmware of an export for a Cortex-M7, as QEMU's machine mps2-an500 runs it."""

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.codegen.compiler import find_compiler
from mbcasadi.codegen.manifest import Manifest
from mbcasadi.codegen.targets.replay import (
    COUNTS,
    Replay,
    make_folder,
    read_replay,
    replay_files,
    replay_values,
    write_record,
)
from mbcasadi.codegen.text import template
from mbcasadi.errors import CompilerError, ExportError

COMPILER = "arm-none-eabi-gcc"
PROCESSOR = ("-mcpu=cortex-m7", "-mfpu=fpv5-d16", "-mfloat-abi=hard", "-mthumb")
COMPILE = ("-std=c99", "-O2", "-ffreestanding", "-ffunction-sections", "-fdata-sections")
# Without contraction, which GNU modes would switch on, the bits are those of other processors.
EXACT = ("-ffp-contract=off",)
LINK = ("-nostartfiles", "-nostdlib", "-Wl,--gc-sections", "-Wl,--fatal-warnings")
LIBRARIES = ("-Wl,--start-group", "-lm", "-lc", "-lgcc", "-Wl,--end-group")
EMULATOR = ("qemu-system-arm", "-M", "mps2-an500", "-display", "none", "-monitor", "none")
# One nanosecond of the emulator's time for each instruction; SysTick counts 25 MHz of it.
COUNTING = ("-icount", "shift=0", "-semihosting-config", "enable=on,target=native")
INSTRUCTIONS_PER_TICK = 40
STACK = 65_536  # bytes of the firmware's stack
FIRMWARE = "firmware.elf"


@dataclass(frozen=True)
class EmulatedRun:
    """A record replayed by the emulator.

    Attributes:
        replay: outputs of each tick; its `clock` counts instructions, in steps of 40.
        stack_bytes: how deep the painted stack was, start and board included.
    """

    replay: Replay
    stack_bytes: int


def write_firmware(manifest: Manifest, folder: Path) -> None:
    """Write startup code, board and linker script beside the replay program."""
    files = replay_files(manifest)
    del files["host_board.c"]
    make_folder(folder)
    files["cortex_m7.c"] = template("targets/cortex_m7.c.in", {})
    files["cortex_m7.ld"] = template("targets/cortex_m7.ld.in", {"stack": STACK})
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def build_firmware(
    manifest: Manifest,
    source: Path,
    folder: Path,
    flags: Sequence[str] = (),
    inputs: Mapping[str, ArrayLike] | None = None,
) -> Path:
    """Compile the export in `source` with its firmware; returns the program.

    Args:
        manifest: of the export.
        source: its folder.
        folder: where the firmware goes.
        flags: behind ours.
        inputs: record that the firmware reads; None writes none.

    Returns:
        `firmware.elf` in `folder`, beside its map.

    Raises:
        CompilerError: no compiler, or it failed.
        ShapeError, UnknownNameError: an input does not fit.
    """
    write_firmware(manifest, folder)
    if inputs is not None:
        write_record(manifest, folder, inputs)
    compiler = find_compiler(COMPILER)
    files = (str(source / f"{manifest['name']}.c"), "replay.c", "cortex_m7.c")
    command = [*compiler, *PROCESSOR, *COMPILE, *EXACT, *flags, f"-I{source}", *files, *LINK]
    command += ["-T", "cortex_m7.ld", "-Wl,-Map=firmware.map", *LIBRARIES, "-o", FIRMWARE]
    (folder / "README.md").write_text(_readme(manifest, command), encoding="utf-8")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CompilerError(f"{COMPILER} failed: {' '.join(command)}\n{done.stderr}")
    return folder / FIRMWARE


def _readme(manifest: Manifest, command: Sequence[str]) -> str:
    """Return the page of the firmware's folder."""
    given = [s for s in manifest["inputs"] if s["name"] != "z" or not manifest["z0"]]
    texts: dict[str, str | int] = {
        key: ", ".join(f"`{s['name']}` ({s['size']})" for s in signals)
        for key, signals in (("input_list", given), ("output_list", manifest["outputs"]))
    }
    values = replay_values(manifest)
    texts |= {name: values[name] for name in ("name", "stride")}
    texts |= {"columns": int(values["width"]) + COUNTS, "command": shlex.join(command)}
    return template("targets/cortex_m7.md.in", texts)


def run_firmware(
    manifest: Manifest, folder: Path, inputs: Mapping[str, ArrayLike], limit: float = 300.0
) -> EmulatedRun:
    """Run the firmware in the emulator over recorded inputs.

    Raises:
        ExportError: no emulator, or the program stopped with a fault.
    """
    write_record(manifest, folder, inputs)
    command = [*EMULATOR, *COUNTING, "-kernel", FIRMWARE]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=limit, check=False
        )
    except FileNotFoundError as error:
        raise ExportError(f"{EMULATOR[0]} is not installed; Debian: qemu-system-arm") from error
    if done.returncode != 0:
        raise ExportError(f"{EMULATOR[0]} ended with {done.returncode}: {done.stderr}")
    depth = int(np.fromfile(folder / "report", dtype="<u4")[0])
    replay = read_replay(manifest, folder)
    counted = Replay(replay.outputs, replay.iterations, INSTRUCTIONS_PER_TICK * replay.clock)
    return EmulatedRun(counted, depth)
