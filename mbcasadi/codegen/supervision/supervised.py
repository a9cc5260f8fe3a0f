"""A supervised controller in Python: the compiled C on memory of its own."""

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.codegen.calls import (
    BYTES,
    input_columns,
    load_library,
    pointer,
    prepared_from,
    real_of,
)
from mbcasadi.codegen.manifest import Manifest
from mbcasadi.codegen.supervision.layout import header_type
from mbcasadi.codegen.supervision.supervision import TickEvent
from mbcasadi.codegen.supervision.tick_log import (
    TickLog,
    entry_names,
    parse,
    records_type,
    supervision_of,
    tick_log,
    without_state,
)
from mbcasadi.errors import ExportError, ProblemError
from mbcasadi.shapes import column
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]


@summarised
@dataclass
class Supervised:
    """A supervised controller that runs as compiled C; `CProject.supervised` makes one.

    Attributes:
        manifest: of its export.
        library: the compiled C.
        block: memory of the controller, its state z included; a copy is a copy of the controller.
        log_block: memory of the log; None without one.
        sample: number of the last measurement.
    """

    manifest: Manifest
    library: ctypes.CDLL
    block: Array
    log_block: Array | None
    sample: int = field(default=0)

    def _summary(self) -> dict[str, object]:
        return {"name": self.manifest["name"], "events": self.events, "sample": self.sample}

    @checked
    def step(self, inputs: Mapping[str, ArrayLike], sample: int | None = None) -> dict[str, Array]:
        """Run one tick.

        Args:
            inputs: by name, without the state z; missing ones are null in C.
            sample: number of the measurement; by default the next one, so that it is new.

        Returns:
            all outputs by name, without z_next.

        Raises:
            ShapeError, UnknownNameError: an input does not fit.
        """
        return self._tick("step", inputs, sample)

    @checked
    def prepare(self, inputs: Mapping[str, ArrayLike]) -> int:
        """Run the part of a tick that needs no measurement; returns what the C returns.

        Raises:
            ExportError: a tick of this law has one phase only.
            ShapeError, UnknownNameError: an input does not fit.
        """
        known = prepared_from(self.manifest)
        if not known:
            raise ExportError(f"{self.manifest['name']} prepares nothing: its ticks have one phase")
        signals = [s for s in without_state(self.manifest["inputs"]) if s["name"] in known]
        columns = input_columns(signals, inputs, real_of(self.manifest))
        return int(self._function("supervised_prepare")(*map(pointer, (self.block, *columns))))

    @checked
    def feedback(
        self, inputs: Mapping[str, ArrayLike], sample: int | None = None
    ) -> dict[str, Array]:
        """Run the rest of a tick, as `step`.

        Raises:
            ExportError, ShapeError, UnknownNameError: as in `prepare`.
        """
        if not prepared_from(self.manifest):
            raise ExportError(f"{self.manifest['name']} has no feedback phase: call its step")
        return self._tick("feedback", inputs, sample)

    @checked
    def start(self, u: ArrayLike) -> None:
        """Let the next control begin at u (nu,) and fade to that of the law.

        Raises:
            ShapeError: another size, NaN or infinity.
        """
        sizes = {s["name"]: s["size"] for s in self.manifest["outputs"]}
        value = column("u", u, sizes["u"]).astype(real_of(self.manifest))
        self._function("supervised_start")(pointer(self.block), pointer(value))

    def reset(self) -> None:
        """End the safe law after the watchdog tripped."""
        self._function("supervised_reset")(pointer(self.block))

    @property
    def events(self) -> TickEvent:
        """What happened in the last tick."""
        function = self._function("supervised_events")
        function.restype = ctypes.c_uint32
        return TickEvent(int(function(pointer(self.block))))

    @property
    def fault(self) -> str:
        """The first entry of the last inputs that was not plausible, as "q[2] elbow", or ""."""
        place = int(self._function("supervised_fault")(pointer(self.block)))
        return entry_names(without_state(self.manifest["inputs"]))[place] if place >= 0 else ""

    @property
    def control(self) -> Array:
        """The last control (nu,), which another controller can start from."""
        sizes = {s["name"]: s["size"] for s in self.manifest["outputs"]}
        u = np.zeros(sizes["u"], real_of(self.manifest))
        self._function("supervised_control")(pointer(self.block), pointer(u))
        return u.astype(float)

    def log(self) -> TickLog:
        """Return the last ticks.

        Raises:
            ExportError: there is no log.
        """
        return tick_log(self.manifest, parse(self.manifest, self._log_bytes(), "the log"))

    @checked
    def save_log(self, path: str | Path) -> None:
        """Write the log as `mbcasadi replay` reads it.

        Raises:
            ExportError: there is no log, or the file cannot be written.
        """
        data = self._log_bytes()
        try:
            Path(path).write_bytes(data)
        except OSError as error:
            raise ExportError(f"cannot write {path}: {error.strerror}") from error

    def _log_bytes(self) -> bytes:
        if self.log_block is None:
            raise ExportError("there is no log; make one by supervised(log_ticks=1000)")
        return self.log_block.tobytes()[: self._log_size]

    @property
    def _log_size(self) -> int:
        assert self.log_block is not None
        head, record = header_type().itemsize, records_type(self.manifest).itemsize
        return head + (self.log_block.nbytes - head) // record * record

    def _tick(
        self, phase: str, inputs: Mapping[str, ArrayLike], sample: int | None
    ) -> dict[str, Array]:
        self.sample = next_sample(self.sample, sample)
        real = real_of(self.manifest)
        given, written = (without_state(self.manifest[kind]) for kind in ("inputs", "outputs"))
        outputs = {s["name"]: np.zeros(s["size"], real) for s in written}
        arguments = [*input_columns(given, inputs, real), *outputs.values()]
        self._function(f"supervised_{phase}")(
            pointer(self.block),
            pointer(self.log_block),
            ctypes.c_uint32(self.sample),
            *map(pointer, arguments),
        )
        return {name: array.astype(float) for name, array in outputs.items()}

    def _function(self, name: str) -> "ctypes._NamedFuncPointer":
        return getattr(self.library, f"{self.manifest['name']}_{name}")  # type: ignore[no-any-return]


def next_sample(before: int, sample: int | None) -> int:
    """Return the number of a measurement; by default the one behind the last.

    Raises:
        ProblemError: no number of 32 bits.
    """
    if sample is not None and not 0 <= sample < 2**32:
        raise ProblemError(f"sample is {sample}, expected a number of 32 bits")
    return (before + 1) % 2**32 if sample is None else sample


def new_supervised(manifest: Manifest, library: Path, log_ticks: int) -> Supervised:
    """Return a controller that is ready for its first tick.

    Raises:
        ExportError: the export is not supervised, or the library is one of another export.
        ProblemError: the number of ticks is negative.
    """
    size = supervision_of(manifest)["memory_bytes"]
    loaded = load_library(manifest, library)
    block = np.zeros(size // BYTES)
    log = None
    initialise = getattr(loaded, f"{manifest['name']}_supervised_init")
    initialise(pointer(block), ctypes.c_size_t(block.nbytes))
    if log_ticks:
        log = new_log(manifest, loaded, log_ticks)
    return Supervised(manifest, loaded, block, log)


def new_log(manifest: Manifest, library: ctypes.CDLL, ticks: int) -> Array:
    """Return memory of a log.

    Raises:
        ExportError: the export is not supervised.
        ProblemError: the number of ticks is negative, or more than the memory holds.
    """
    if ticks < 0:
        raise ProblemError(f"log_ticks is {ticks}, expected 0 or more")
    record = records_type(manifest).itemsize
    size = header_type().itemsize + ticks * record
    try:
        block = np.zeros(-(-size // BYTES))
    except (MemoryError, ValueError, OverflowError) as error:
        raise ProblemError(
            f"log_ticks is {ticks}, and each of them takes {record} bytes; give fewer"
        ) from error
    prepare = getattr(library, f"{manifest['name']}_log_init")
    prepare(pointer(block), ctypes.c_size_t(size))
    return block
