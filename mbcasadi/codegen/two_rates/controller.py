"""Plans and ticks of an export in Python: the compiled C on memory of its own."""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.codegen.callers.mujoco_plugin import MujocoEntry
from mbcasadi.codegen.calls import BYTES, input_columns, pointer
from mbcasadi.codegen.manifest import Manifest, SignalEntry
from mbcasadi.codegen.supervision.supervised import Supervised, next_sample
from mbcasadi.codegen.supervision.supervision import TickEvent
from mbcasadi.codegen.supervision.tick_log import entry_names, supervision_of
from mbcasadi.errors import ExportError
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]


class TwoRatesManifest(TypedDict):
    """What `manifest.json` holds; `inputs` and `outputs` are those of a tick."""

    format: str
    name: str
    signature: str
    period: float
    plan_period: float
    every: int
    delay: int
    latest: float
    plan_inputs: list[SignalEntry]
    plan_outputs: list[SignalEntry]
    inputs: list[SignalEntry]
    outputs: list[SignalEntry]
    memory_bytes: int
    state_bytes: int
    stack_bytes: dict[str, int]
    mujoco: MujocoEntry | None
    flags: list[str]
    parts: dict[str, Manifest]
    versions: dict[str, str]
    sha256: dict[str, str]


@summarised
@dataclass
class TwoRatesController:
    """Plans and ticks as compiled C, on memory of their own; `TwoRatesProject.load` makes one.

    The two methods may be called from two threads.

    Attributes:
        manifest: of the export.
        library: the compiled C.
        block: memory of the controller.
        log_block: memory of the log of its ticks; None without one.
        sample: number of the last measurement.
    """

    manifest: TwoRatesManifest
    library: ctypes.CDLL
    block: Array
    log_block: Array | None = None
    sample: int = 0

    def _summary(self) -> dict[str, object]:
        keys = ("period", "plan_period", "delay", "latest")
        return {key: self.manifest[key] for key in ("name", *keys)}  # type: ignore[literal-required]

    def reset(self) -> None:
        """Return to the initial state."""
        function = getattr(self.library, f"{self.manifest['name']}_init")
        code = function(pointer(self.block), ctypes.c_size_t(self.block.nbytes))
        if code < 0:
            raise ExportError(f"the C returned {code} for its own memory: export again")

    @checked
    def plan(
        self,
        q: ArrayLike | None,
        v: ArrayLike | None,
        command: ArrayLike,
        t: ArrayLike,
        others: Mapping[str, ArrayLike] | None = None,
    ) -> dict[str, Array]:
        """Compute one plan and hand it to the ticks.

        Args:
            q, v: (nq,), (nv,) measured at t; None where the law estimates them.
            command: of the references.
            t: one number, s.
            others: further inputs by name; missing ones are null in C.

        Returns:
            outputs of the plan by name, and `code`, what the C returns.

        Raises:
            ShapeError, UnknownNameError: an input does not fit.
        """
        given = {"q": q, "v": v, "command": command, "t": np.atleast_1d(t)}
        sides = self.manifest["plan_inputs"], self.manifest["plan_outputs"]
        return self._call("plan", *sides, given | dict(others or {}))

    @checked
    def tick(
        self,
        q: ArrayLike | None,
        v: ArrayLike | None,
        t: ArrayLike,
        others: Mapping[str, ArrayLike] | None = None,
        sample: int | None = None,
    ) -> dict[str, Array]:
        """Run one tick, which follows the newest plan whose moment has come.

        Args:
            q, v: (nq,), (nv,) measured at t; None where the law estimates them.
            t: one number, s.
            others: further inputs by name; missing ones are null in C.
            sample: number of the measurement, of a supervised law; by default the next one.

        Returns:
            outputs of the law by name, `age` of the plan, s, NaN where none acts, and `code`, what
            the C returns: the status of the law, or 100 where none acts.

        Raises:
            ShapeError, UnknownNameError: an input does not fit.
            ProblemError: a sample that is no number of 32 bits.
        """
        given = {"q": q, "v": v, "t": np.atleast_1d(t)}
        sides = self.manifest["inputs"], self.manifest["outputs"]
        watched: list[Any] = []
        if self.manifest["parts"]["law"]["supervision"] is not None:
            self.sample = next_sample(self.sample, sample)
            watched = [pointer(self.log_block), ctypes.c_uint32(self.sample)]
        return self._call("tick", *sides, given | dict(others or {}), watched)

    @property
    def supervised(self) -> Supervised:
        """The supervised law on its part of the memory: events, fault, start, reset, control, log.

        Raises:
            ExportError: an export without supervision, or memory that is not ready.
        """
        law = self.manifest["parts"]["law"]
        size = supervision_of(law)["memory_bytes"]
        function = getattr(self.library, f"{self.manifest['name']}_law")
        function.restype = ctypes.c_void_p
        place = function(pointer(self.block))
        if place is None:
            raise ExportError("the memory is not ready: reset() makes it so")
        first = (place - self.block.ctypes.data) // BYTES
        block = self.block[first : first + size // BYTES]
        return Supervised(law, self.library, block, self.log_block, self.sample)

    @property
    def plan_events(self) -> TickEvent:
        """What was wrong with the inputs of the last plan.

        Raises:
            ExportError: an export without supervision.
        """
        supervision_of(self.manifest["parts"]["law"])
        function = getattr(self.library, f"{self.manifest['name']}_plan_events")
        function.restype = ctypes.c_uint32
        return TickEvent(int(function(pointer(self.block))))

    @property
    def plan_fault(self) -> str:
        """The first input of the last plan that was not plausible, as "q[2] elbow", or "".

        Raises:
            ExportError: an export without supervision.
        """
        supervision_of(self.manifest["parts"]["law"])
        function = getattr(self.library, f"{self.manifest['name']}_plan_fault")
        place = int(function(pointer(self.block)))
        return entry_names(self.manifest["plan_inputs"])[place] if place >= 0 else ""

    def _call(
        self,
        function: str,
        inputs: Sequence[SignalEntry],
        outputs: Sequence[SignalEntry],
        given: Mapping[str, ArrayLike | None],
        watched: Sequence[Any] = (),
    ) -> dict[str, Array]:
        measured = {name: x for name, x in given.items() if x is not None}
        columns = input_columns(inputs, measured, np.float64)
        results = {signal["name"]: np.zeros(signal["size"]) for signal in outputs}
        pointers = [pointer(array) for array in (*columns, *results.values())]
        call = getattr(self.library, f"{self.manifest['name']}_{function}")
        code = call(pointer(self.block), *watched, *pointers)
        return {**results, "code": np.array(code, dtype=float)}
