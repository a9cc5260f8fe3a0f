"""The manifest of an export: sizes, names, units, limits, versions and hashes, as JSON."""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypedDict

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen.c_interface import CLaw, Port, signature
from mbcasadi.codegen.callers.mujoco_plugin import MujocoEntry
from mbcasadi.codegen.count import largest_body, operations
from mbcasadi.codegen.folder import MANIFEST
from mbcasadi.codegen.precision import Real, numbers_of
from mbcasadi.codegen.sensor_rows import SensorEntry, sensor_entries
from mbcasadi.codegen.sizes import (
    fixed_operations,
    iteration_limit,
    memory_doubles,
    operations_per_iteration,
)
from mbcasadi.codegen.stack import stack_bytes
from mbcasadi.codegen.supervision.layout import SupervisionEntry
from mbcasadi.codegen.text import package_version
from mbcasadi.description import TuningParameter
from mbcasadi.description.status import Flag
from mbcasadi.errors import ExportError

DAQP = "DAQP"
"""Its name in the manifest."""

DAQP_VERSION = "0.5"

EQUAL_PARTS = re.compile(r"/\* (\d+) equal parts of (\d+) operations\. \*/")

DaqpOrigin = Literal["wheel", "system"]

# Above this size of one C function, gcc needs minutes at -O2 and beyond.
COMPILER_CLIFF = 50_000
DEFAULT_FLAGS = ("-O3",)
LARGE_FLAGS = ("-O1",)


class SignalEntry(TypedDict):
    """One input or output."""

    name: str
    size: int
    shape: list[int]
    components: list[str]
    units: list[str]


class TuningEntry(TypedDict):
    """One tuning parameter; None for a bound that is infinite."""

    name: str
    default: float
    lower: float | None
    upper: float | None
    unit: str


class EqualPartsEntry(TypedDict):
    """One loop over equal parts of a scalar function: limbs of one design, for example."""

    parts: int
    operations: int


class SolverEntry(TypedDict):
    """The QP solver and its settings."""

    name: str
    version: str
    origin: str
    unknowns: int
    rows: int
    primal_tolerance: float
    iteration_limit: int


class TickOperations(TypedDict):
    """Most operations of a tick: `fixed + per_iteration * iterations` of the QP solver.

    `per_iteration` is None where there is no bound: DAQP, quadratic cones.
    """

    fixed: int
    per_iteration: int | None


class Manifest(TypedDict):
    """What `manifest.json` holds."""

    format: int
    name: str
    signature: str
    source: str
    period: float | None
    inputs: list[SignalEntry]
    outputs: list[SignalEntry]
    u_min: list[float | None] | None
    u_max: list[float | None] | None
    u_safe: list[float] | None
    z0: list[float] | None
    statuses: list[str]
    safe_statuses: list[int]
    flag_bits: dict[str, int]
    tuning: list[TuningEntry]
    parameters: list[TuningEntry]
    defaults: dict[str, list[float]]
    sensors: list[SensorEntry]
    real: Real
    memory_bytes: int
    stack_bytes: int
    prepared_from: list[str]
    operations: dict[str, int]
    tick_operations: TickOperations
    largest_function: int
    equal_parts: list[EqualPartsEntry]
    flags: list[str]
    solver: SolverEntry | None
    notes: dict[str, str]
    versions: dict[str, str]
    sha256: dict[str, str]
    mujoco: MujocoEntry | None
    supervision: SupervisionEntry | None
    measured: dict[str, dict[str, dict[str, object]]]


FORMAT = 2
"""Of the manifest: another number means other keys."""


def recommended_flags(*laws: CLaw) -> tuple[str, ...]:
    """Return the optimisation flags that compile all of these laws in reasonable time."""
    largest = max(largest_body(f) for law in laws for f in law.of_a_tick)
    return LARGE_FLAGS if largest > COMPILER_CLIFF else DEFAULT_FLAGS


def manifest(law: CLaw, daqp: DaqpOrigin, hashed: Mapping[str, bytes]) -> Manifest:
    """Return the manifest; it depends neither on the time nor on the place of the export.

    Args:
        law: what is exported.
        daqp: where the solver comes from.
        hashed: contents of the other files, by name.
    """
    functions = law.of_a_tick
    text = hashed[f"{law.name}.c"].decode() + law.other_text
    versions = {"mbcasadi": package_version(), "casadi": ca.CasadiMeta.version()}
    if law.has_daqp:
        versions["daqp"] = DAQP_VERSION
    return {
        "format": FORMAT,
        "name": law.name,
        "signature": signature(law),
        "source": law.source,
        "period": law.period,
        "inputs": [signal_entry(p) for p in law.inputs],
        "outputs": [signal_entry(p) for p in law.outputs],
        "u_min": _numbers(law.u_min),
        "u_max": _numbers(law.u_max),
        "u_safe": None if law.u_safe is None else law.u_safe.tolist(),
        "z0": None if law.z0 is None else law.z0.tolist(),
        "statuses": list(law.statuses),
        "safe_statuses": [int(code) for code in law.safe_statuses],
        "flag_bits": {str(flag.name): int(flag) for flag in Flag},
        "tuning": [_tuning_entry(entry) for entry in law.tuning],
        "parameters": [_tuning_entry(entry) for entry in law.parameters],
        "defaults": {k: v.tolist() for k, v in law.defaults.items() if k != "z"},
        "sensors": sensor_entries(law),
        "real": law.real,
        "memory_bytes": 8 * memory_doubles(law),
        "stack_bytes": stack_bytes(text),
        "prepared_from": [p.name for p in law.prepared_from],
        "operations": {f.name().removeprefix(f"{law.name}_"): operations(f) for f in functions},
        "tick_operations": _tick_operations(law),
        "largest_function": max(largest_body(f) for f in functions),
        "equal_parts": _equal_parts(text),
        "flags": list(recommended_flags(law)),
        "solver": _solver_entry(law, daqp) if law.staged else None,
        "notes": dict(law.notes),
        "versions": versions,
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(hashed.items())},
        "mujoco": None,
        "supervision": None,
        "measured": {},
    }


def _tick_operations(law: CLaw) -> TickOperations:
    """Return the bound of a tick's operations, its QP solver included."""
    fixed = sum(operations(f) for f in law.of_a_tick)
    if not law.staged:
        return {"fixed": fixed, "per_iteration": 0}
    if law.has_daqp or law.cones or law.horizon:
        return {"fixed": fixed, "per_iteration": None}
    problems = 1 + len(law.between)
    fixed += problems * fixed_operations(law.m, law.n)
    return {"fixed": fixed, "per_iteration": operations_per_iteration(law.m, law.n)}


def _equal_parts(text: str) -> list[EqualPartsEntry]:
    """Return the loops that the C announces."""
    loops = EQUAL_PARTS.findall(text)
    return [{"parts": int(parts), "operations": int(count)} for parts, count in loops]


def _solver_entry(law: CLaw, daqp: DaqpOrigin) -> SolverEntry:
    if law.has_daqp:
        origin = f"casadi {ca.CasadiMeta.version()} wheel" if daqp == "wheel" else "system"
        name, version = DAQP, DAQP_VERSION
    else:
        origin, name, version = "generated", "mbcasadi", package_version()
    return {
        "name": name,
        "version": version,
        "origin": origin,
        "unknowns": law.n,
        "rows": law.m,
        "primal_tolerance": float(numbers_of(law.real)["primal_tol"].rstrip("f")),
        "iteration_limit": (3 if law.has_daqp else 1) * iteration_limit(law),
    }


def manifest_text(content: Mapping[str, object]) -> str:
    """Return the manifest's JSON, always in the same bytes."""
    return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def signal_entry(port: Port) -> SignalEntry:
    """Return one input or output as JSON."""
    return {
        "name": port.name,
        "size": port.size,
        "shape": list(port.sparsity.shape),
        "components": list(port.components),
        "units": list(port.units),
    }


def _tuning_entry(parameter: TuningParameter) -> TuningEntry:
    """Return name, default and bounds as JSON; None means no bound."""
    return {
        "name": parameter.name,
        "default": parameter.default,
        "lower": _finite(parameter.lower),
        "upper": _finite(parameter.upper),
        "unit": parameter.unit,
    }


def _numbers(values: NDArray[np.float64] | None) -> list[float | None] | None:
    """Return JSON numbers; None means no limit."""
    if values is None:
        return None
    return [_finite(v) for v in values]


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def record_measurement(
    folder: Path, manifest: Manifest, kind: str, name: str, values: Mapping[str, object]
) -> None:
    """Add a measurement to the manifest, in the folder and in memory.

    Args:
        folder: of the export.
        manifest: its content, which is changed.
        kind: "footprints" or "ticks".
        name: what was measured on; an earlier entry of this name is replaced.
        values: numbers and texts by name.

    Raises:
        ExportError: the folder holds another export by now, or cannot be written.
    """
    path = folder / MANIFEST
    try:
        present = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ExportError(f"{folder} has no readable {MANIFEST} any more; export again") from error
    if type(present) is not type(manifest) or present.get("sha256") != manifest["sha256"]:
        raise ExportError(f"{folder} holds another export by now; open it again by open_project")
    present.setdefault("measured", {}).setdefault(kind, {})[name] = dict(values)
    _replace(path, manifest_text(present))
    manifest["measured"] = present["measured"]


def _replace(path: Path, text: str) -> None:
    """Write a file completely or not at all."""
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=".manifest-", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).chmod(path.stat().st_mode)
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            with suppress(OSError):
                Path(temporary).unlink()
        raise ExportError(f"cannot write {path}: {error.strerror}") from error
