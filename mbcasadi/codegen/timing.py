"""Times of single ticks, measured in C."""

import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.codegen.calls import prepared_from, real_of
from mbcasadi.codegen.manifest import Manifest
from mbcasadi.codegen.text import comma_list, number, template
from mbcasadi.errors import ExportError, ShapeError
from mbcasadi.shapes import real_array, require_name
from mbcasadi.short_text import summarised

COLUMNS, COLUMNS_OF_PHASES = 2, 6  # of the program's results
# Larger than the last-level cache of common machines.
SWEEP_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class TickTimes:
    """Wall-clock time of each tick, s.

    Attributes:
        seconds: (ticks,) all of them, in order.
        status: (ticks,) status returned by the step function.
        evicted: whether the caches were swept before each tick.
        preparation, feedback: the same of each phase, where a tick has two.
    """

    seconds: NDArray[np.float64]
    status: NDArray[np.int64]
    evicted: bool
    preparation: "TickTimes | None" = None
    feedback: "TickTimes | None" = None

    @property
    def median(self) -> float:
        """Median, s."""
        return float(np.median(self.seconds))

    @property
    def p99(self) -> float:
        """99th percentile, s."""
        return float(np.percentile(self.seconds, 99))

    @property
    def max(self) -> float:
        """Longest tick, s."""
        return float(np.max(self.seconds))


def timing_c(manifest: Manifest, *, chained: bool) -> str:
    """Return the C program that times the law; `chained` passes z from tick to tick."""
    inputs, outputs, z0 = manifest["inputs"], manifest["outputs"], manifest["z0"] or []
    chained = chained and bool(z0)
    declarations, arguments, offset = [], [], 0
    real = manifest.get("real", "double")
    for signal in inputs:
        if signal["name"] == "z" and chained:
            arguments.append("state")
            continue
        arguments.append(f"in + {offset}")
        offset += signal["size"]
    for signal in outputs:
        declarations.append(f"static {real} out_{signal['name']}[{max(1, signal['size'])}];\n")
        arguments.append(f"out_{signal['name']}")
    start = feedback = ""
    if chained:
        numbers = comma_list(number(v, real) for v in z0)
        declarations.append(f"static const {real} z0[{len(z0)}] = {{{numbers}}};\n")
        declarations.append(f"static {real} state[{len(z0)}];\n")
        start = "    memcpy(state, z0, sizeof state);\n"
        feedback = "      memcpy(state, out_z_next, sizeof state);\n"
    names = [signal["name"] for signal in inputs]
    prepare_arguments = [arguments[names.index(name)] for name in prepared_from(manifest)]
    values: dict[str, str | int] = {
        "real": real,
        "stride": offset,
        "columns": COLUMNS_OF_PHASES if prepare_arguments else COLUMNS,
        "declarations": "".join(declarations),
        "arguments": "".join(f", {a}" for a in arguments),
        "known": "".join(f", {a}" for a in prepare_arguments),
        "start": start,
        "feedback": feedback,
        "name": manifest["name"],
        "NAME": manifest["name"].upper(),
    }
    values["phases"] = template("timing_phases.c.in", values) if prepare_arguments else ""
    return template("timing.c.in", values)


def run_timing(
    manifest: Manifest,
    program: Path,
    inputs: Mapping[str, ArrayLike],
    repeats: int,
    *,
    evict: bool,
) -> TickTimes:
    """Run the timing program over the recorded inputs and read its results.

    Args:
        manifest: of the export.
        program: the compiled timing program.
        inputs: name → (ticks, size), or (size,) for a constant value.
        repeats: passes over the record.
        evict: sweep the caches before each tick.

    Raises:
        ShapeError, UnknownNameError: an input does not fit.
        ExportError: the program failed.
    """
    record = input_record(manifest, inputs)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "inputs"), Path(folder, "results")
        source.write_bytes(np.ascontiguousarray(record, real_of(manifest)).tobytes())
        sweep = SWEEP_BYTES if evict else 0
        command = [str(program), str(source), str(target)]
        command += [str(len(record)), str(repeats), str(sweep)]
        process = subprocess.run(command, capture_output=True, check=False)
        if process.returncode != 0:
            raise ExportError(f"{program.name} failed with exit status {process.returncode}")
        columns = COLUMNS_OF_PHASES if prepared_from(manifest) else COLUMNS
        results = np.fromfile(target).reshape(-1, columns)
    ticks, *phases = (
        TickTimes(results[:, i].copy(), results[:, i + 1].astype(np.int64), evict)
        for i in range(0, columns, 2)
    )
    return replace(ticks, preparation=phases[0], feedback=phases[1]) if phases else ticks


def input_record(manifest: Manifest, inputs: Mapping[str, ArrayLike]) -> NDArray[np.float64]:
    """Return the inputs side by side, one row for each tick.

    What is missing counts as in C: as its default, else as zeros.

    Raises:
        ShapeError: a size does not fit, or two records have different lengths.
        UnknownNameError: an input is not the law's.
    """
    signals = manifest["inputs"]
    for name in inputs:
        require_name("input", name, [s["name"] for s in signals])
    arrays = {k: np.atleast_2d(real_array(k, v)) for k, v in inputs.items()}
    ticks = max((len(a) for a in arrays.values()), default=1)
    missing = {name: np.array([values]) for name, values in manifest["defaults"].items()}
    columns = []
    for signal in signals:
        name, size = signal["name"], signal["size"]
        if name == "z" and name not in arrays and manifest["z0"]:
            continue
        array = arrays.get(name, missing.get(name, np.zeros((1, size))))
        if array.ndim != 2 or array.shape[1] != size or len(array) not in {1, ticks}:
            raise ShapeError(f"{name} has shape {array.shape}, expected ({ticks}, {size})")
        columns.append(np.broadcast_to(array, (ticks, size)))
    return np.hstack(columns) if columns else np.zeros((ticks, 0))


RARE = 99.99  # percentile


@summarised
@dataclass(frozen=True)
class LongestTick:
    """What a tick takes at most.

    Attributes:
        ticks: how many were timed.
        median, p99, p9999, longest: s, on this machine; a scheduler that interrupts the program
            counts, so the longest is that of machine and tick together.
        operations: of a tick at the limit of iterations; None where the solver has no bound.
        iteration_limit: of the QP solver, 0 without one. `<name>_limit_iterations` sets another.
    """

    ticks: int
    median: float
    p99: float
    p9999: float
    longest: float
    operations: int | None
    iteration_limit: int


def operations_at(manifest: Manifest, iterations: int) -> int | None:
    """Return the most operations of a tick with so many iterations; None without a bound."""
    bound = manifest["tick_operations"]
    slope = bound["per_iteration"]
    return None if slope is None else bound["fixed"] + slope * iterations


def worst_case_of(manifest: Manifest, times: TickTimes) -> LongestTick:
    """Return the worst case of timed ticks."""
    solver = manifest["solver"]
    limit = 0 if solver is None else solver["iteration_limit"]
    rare = float(np.percentile(times.seconds, RARE))
    bound = operations_at(manifest, limit)
    return LongestTick(times.seconds.size, times.median, times.p99, rare, times.max, bound, limit)
