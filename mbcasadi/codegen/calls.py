"""Calls of the C functions from Python, on memory that the caller keeps."""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.codegen.compiler import library_to_load
from mbcasadi.codegen.manifest import Manifest, SignalEntry
from mbcasadi.errors import ExportError
from mbcasadi.shapes import column, require_name
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]
Numbers = NDArray[np.float64] | NDArray[np.float32] | NDArray[np.floating]
BYTES = 8  # of a double


@summarised
@dataclass(frozen=True)
class Memory:
    """The memory of one controller.

    Attributes:
        block: memory that the C functions read and write.
        library: the compiled C.
    """

    block: Array
    library: ctypes.CDLL


def new_memory(manifest: Manifest, library: Path) -> Memory:
    """Return a block of memory that is ready for its first call.

    Raises:
        ExportError: the library cannot be loaded, or is one of another export.
    """
    memory = Memory(np.zeros(manifest["memory_bytes"] // BYTES), load_library(manifest, library))
    initialise = getattr(memory.library, f"{manifest['name']}_init")
    _require_success(initialise(pointer(memory.block), ctypes.c_size_t(memory.block.nbytes)))
    return memory


def load_library(manifest: Mapping[str, object], library: Path) -> ctypes.CDLL:
    """Return the compiled C of an export.

    Raises:
        ExportError: the library cannot be loaded, or is one of another export.
    """
    try:
        loaded = ctypes.CDLL(str(library_to_load(library)))
    except OSError as error:
        raise ExportError(
            f"cannot load {library} ({error}); give a library of this export for this machine"
        ) from error
    name = f"{manifest['name']}_signature"
    if not hasattr(loaded, name):
        raise ExportError(f"{library} has no function {name}: it is no library of this export")
    compiled = getattr(loaded, name)
    compiled.restype = ctypes.c_char_p
    found = compiled().decode()
    if found != manifest["signature"]:
        raise ExportError(
            f"{library} has the signature {found}, expected {manifest['signature']} of the "
            "manifest: it is the library of another export; build again"
        )
    return loaded


def real_of(manifest: Manifest) -> type[np.floating]:
    """Return the type of the C's numbers; an export of before it was named has doubles."""
    return np.float32 if manifest.get("real", "double") == "float" else np.float64


def prepared_from(manifest: Manifest) -> list[str]:
    """Return the inputs of the preparation phase; none where a tick has one phase."""
    return list(manifest.get("prepared_from", []))


def call_prepare(manifest: Manifest, memory: Memory, inputs: Mapping[str, ArrayLike]) -> None:
    """Call `<name>_prepare`.

    Raises:
        ExportError: a tick of this law has one phase only.
        ShapeError, UnknownNameError: an input does not fit.
    """
    signals = [s for s in manifest["inputs"] if s["name"] in prepared_from(manifest)]
    if not signals:
        raise ExportError(f"{manifest['name']} prepares nothing: its ticks have one phase")
    _run(manifest, "prepare", memory, input_columns(signals, inputs, real_of(manifest)))


def call_tick(
    manifest: Manifest, phase: str, memory: Memory, inputs: Mapping[str, ArrayLike]
) -> dict[str, Array]:
    """Call `<name>_step` or `<name>_feedback`; returns all outputs, nonzeros column by column.

    Args:
        manifest: of the export.
        phase: "step" or "feedback".
        memory: of this controller, see `new_memory`.
        inputs: values by name; zeros where one is missing.

    Raises:
        ExportError: there is no such phase.
        ShapeError, UnknownNameError: an input does not fit.
    """
    if phase == "feedback" and not prepared_from(manifest):
        raise ExportError(f"{manifest['name']} has no feedback phase: call its step")
    kind = real_of(manifest)
    outputs = {s["name"]: np.zeros(s["size"], kind) for s in manifest["outputs"]}
    columns = input_columns(manifest["inputs"], inputs, kind)
    _run(manifest, phase, memory, [*columns, *outputs.values()])
    return {name: array.astype(float) for name, array in outputs.items()}


def input_columns(
    signals: Sequence[SignalEntry], inputs: Mapping[str, ArrayLike], kind: type[np.floating]
) -> list[Numbers | None]:
    """Return a vector for each signal, None (zeros in C) where none is given."""
    sizes = {s["name"]: s["size"] for s in signals}
    with np.errstate(over="ignore"):  # what is too large for float is infinite there
        return _columns_of(sizes, inputs, kind)


def _columns_of(
    sizes: Mapping[str, int], inputs: Mapping[str, ArrayLike], kind: type[np.floating]
) -> list[Numbers | None]:
    for name in inputs:
        require_name("input", name, list(sizes))
    return [
        column(name, inputs[name], size, finite=False).astype(kind) if name in inputs else None
        for name, size in sizes.items()
    ]


def _run(
    manifest: Manifest, phase: str, memory: Memory, arguments: Sequence[Numbers | None]
) -> None:
    function = getattr(memory.library, f"{manifest['name']}_{phase}")
    _require_success(function(*(pointer(array) for array in (memory.block, *arguments))))


def pointer(array: Numbers | None) -> ctypes.c_void_p | None:
    """Return the C pointer to an array, null for None."""
    return None if array is None else array.ctypes.data_as(ctypes.c_void_p)


def _require_success(code: int) -> None:
    if code < 0:
        raise ExportError(
            f"the C returned {code}: -1 is memory that it does not accept, -2 is arithmetic that "
            "could not be completed"
        )
