"""A C program that runs an export over recorded inputs, on any target."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.codegen.calls import prepared_from
from mbcasadi.codegen.manifest import Manifest
from mbcasadi.codegen.text import comma_list, number, template
from mbcasadi.codegen.timing import input_record
from mbcasadi.errors import ExportError

COUNTS = 2  # beside the outputs of a tick: iterations of the solver, the board's clock
INPUTS, OUTPUTS = "inputs", "outputs"


@dataclass(frozen=True)
class Replay:
    """What a target computed over a record.

    Attributes:
        outputs: (ticks, n) all outputs of each tick, in the manifest's order.
        iterations: (ticks,) of the QP solver; zeros where there is none.
        clock: (ticks,) what the board counted during each tick; zeros where it has no counter.
    """

    outputs: NDArray[np.float64]
    iterations: NDArray[np.int64]
    clock: NDArray[np.int64]


def make_folder(folder: Path) -> None:
    """Make a folder for what is built, unless it is there.

    Raises:
        ExportError: it is the present one, which an empty path names, or it cannot be made.
    """
    if folder == Path():
        raise ExportError("the folder is the present one; give the path of another")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportError(f"cannot make {folder}: {error.strerror}; give another path") from error


def replay_files(manifest: Manifest) -> dict[str, str]:
    """Return `replay.c`, `board.h` and `host_board.c`, the board of an operating system.

    The program reads the file `inputs` and writes `outputs`, in the folder where it is started.
    """
    values = replay_values(manifest)
    return {
        "replay.c": template("targets/replay.c.in", values),
        "board.h": template("targets/board.h.in", values),
        "host_board.c": template("targets/host_board.c.in", values),
    }


def write_record(manifest: Manifest, folder: Path, inputs: Mapping[str, ArrayLike]) -> None:
    """Write the record that the program reads, one row of inputs for each tick.

    Raises:
        ShapeError, UnknownNameError: an input does not fit.
        ExportError: there is a `z`, which is the program's own.
    """
    record = program_record(manifest, inputs)
    (folder / INPUTS).write_bytes(np.ascontiguousarray(record, dtype="<f8").tobytes())


def program_record(manifest: Manifest, inputs: Mapping[str, ArrayLike]) -> NDArray[np.float64]:
    """Return the rows that a program reads: all inputs but the state z, which it has itself.

    Raises:
        ShapeError, UnknownNameError: an input does not fit.
        ExportError: there is a `z`.
    """
    if "z" in inputs and manifest["z0"]:
        raise ExportError(
            "the record has z, and the program hands its own state from tick to tick, from z0 on; "
            "leave z out"
        )
    return input_record(manifest, inputs)


def read_replay(manifest: Manifest, folder: Path) -> Replay:
    """Return what the program wrote.

    Raises:
        ExportError: the file does not hold whole ticks.
    """
    width = sum(signal["size"] for signal in manifest["outputs"]) + COUNTS
    data = np.fromfile(folder / OUTPUTS, dtype="<f8")
    if data.size == 0 or data.size % width:
        raise ExportError(
            f"{folder / OUTPUTS} has {data.size} numbers, expected rows of {width}; "
            "did the program stop early?"
        )
    rows = data.reshape(-1, width)
    return Replay(rows[:, :-COUNTS], rows[:, -2].astype(np.int64), rows[:, -1].astype(np.int64))


def replay_values(manifest: Manifest) -> dict[str, str | int]:
    """Return what the templates of a program with one tick of the law need."""
    real = manifest["real"]
    name, z0 = manifest["name"], manifest["z0"] or []
    arguments: dict[str, str] = {}
    stride = 0
    for signal in manifest["inputs"]:
        if signal["name"] == "z" and z0:
            arguments["z"] = "state"
            continue
        arguments[signal["name"]] = f"in + {stride}"
        stride += signal["size"]
    results, width, state = [], 0, 0
    for signal in manifest["outputs"]:
        state = width if signal["name"] == "z_next" else state
        results.append(f"out + {width}")
        width += signal["size"]
    step = "".join(f", {a}" for a in (*arguments.values(), *results))
    known = "".join(f", {arguments[n]}" for n in prepared_from(manifest))
    prepare = f"    {name}_prepare(memory{known});\n" if known else ""
    phase = "feedback" if known else "step"
    numbers = comma_list(number(v, real) for v in z0)
    size = len(z0)
    return {
        "name": name,
        "NAME": name.upper(),
        "stride": stride,
        "width": width,
        "real": real,
        "declarations": f"static {real} state[{size}] = {{{numbers}}};\n" if z0 else "",
        "locals": "  int i;\n" if z0 else "",
        "tick": f"{prepare}    {name}_{phase}(memory{step});\n",
        "iterations": f"{name}_iterations(memory)" if manifest["solver"] else "0",
        "feedback": f"    for (i = 0; i < {size}; ++i) state[i] = out[{state} + i];\n"
        if z0
        else "",
    }
