"""Plans and ticks of an export in Python: the compiled C on memory of its own."""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.codegen.callers.mujoco_plugin import MujocoEntry
from mbcasadi.codegen.calls import input_columns, pointer
from mbcasadi.codegen.manifest import Manifest, SignalEntry
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
@dataclass(frozen=True)
class TwoRatesController:
    """Plans and ticks as compiled C, on memory of their own; `TwoRatesProject.load` makes one.

    The two methods may be called from two threads.

    Attributes:
        manifest: of the export.
        library: the compiled C.
        block: memory of the controller.
    """

    manifest: TwoRatesManifest
    library: ctypes.CDLL
    block: Array

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
        q: ArrayLike,
        v: ArrayLike,
        command: ArrayLike,
        t: ArrayLike,
        others: Mapping[str, ArrayLike] | None = None,
    ) -> dict[str, Array]:
        """Compute one plan and hand it to the ticks.

        Args:
            q, v: (nq,), (nv,) measured at t.
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
        q: ArrayLike,
        v: ArrayLike,
        t: ArrayLike,
        others: Mapping[str, ArrayLike] | None = None,
    ) -> dict[str, Array]:
        """Run one tick, which follows the newest plan whose moment has come.

        Args:
            q, v: (nq,), (nv,) measured at t.
            t: one number, s.
            others: further inputs by name; missing ones are null in C.

        Returns:
            outputs of the law by name, `age` of the plan, s, NaN where none acts, and `code`, what
            the C returns: the status of the law, or 100 where none acts.

        Raises:
            ShapeError, UnknownNameError: an input does not fit.
        """
        given = {"q": q, "v": v, "t": np.atleast_1d(t)}
        sides = self.manifest["inputs"], self.manifest["outputs"]
        return self._call("tick", *sides, given | dict(others or {}))

    def _call(
        self,
        function: str,
        inputs: Sequence[SignalEntry],
        outputs: Sequence[SignalEntry],
        given: Mapping[str, ArrayLike],
    ) -> dict[str, Array]:
        columns = input_columns(inputs, given, np.float64)
        results = {signal["name"]: np.zeros(signal["size"]) for signal in outputs}
        pointers = [pointer(array) for array in (self.block, *columns, *results.values())]
        code = getattr(self.library, f"{self.manifest['name']}_{function}")(*pointers)
        return {**results, "code": np.array(code, dtype=float)}
