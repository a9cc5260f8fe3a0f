"""A Function over many states: what `mb.batch` returns."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import local
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.codegen.batches.arrays import (
    Array,
    BatchPort,
    c_ports,
    input_array,
    output_array,
    require_apart,
    state_count,
)
from mbcasadi.codegen.batches.library import BatchLibrary, SharedStates
from mbcasadi.codegen.compiler import BuildResult
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import require_kind, require_name, require_whole
from mbcasadi.short_text import summarised

PARTS = 16
"""Parts of the work for each thread, so that a thread that was interrupted delays less."""


@summarised
@dataclass(frozen=True)
class BatchFunction:
    """A compiled Function that is evaluated for many states in one call.

    Attributes:
        name: of the Function.
        inputs, outputs: name and pattern of each.
        real: "double" or "float".
        threads: how many share a call.
        feedback: output → input that it replaces at the next of several steps.
        defaults: values of inputs that may be left out, for all states.
        scalar_functions: nested Functions that run in each lane apart.
        library: the compiled C.
    """

    name: str
    inputs: tuple[BatchPort, ...]
    outputs: tuple[BatchPort, ...]
    real: str
    threads: int
    feedback: Mapping[str, str]
    defaults: Mapping[str, NDArray[np.float64]]
    scalar_functions: tuple[str, ...]
    library: BatchLibrary = field(repr=False)
    _pool: ThreadPoolExecutor = field(repr=False, compare=False)
    _own: local = field(default_factory=local, repr=False, compare=False)

    @property
    def lanes(self) -> int:
        """States that one vector holds; 1 on the scalar path."""
        return self.library.lanes

    @property
    def build(self) -> BuildResult:
        """Command, time and memory of the compiler."""
        return self.library.build

    def __call__(
        self,
        *values: ArrayLike,
        out: Mapping[str, NDArray[Any]] | None = None,
        steps: int = 1,
        **named: ArrayLike,
    ) -> dict[str, NDArray[Any]]:
        """Evaluate all states.

        Args:
            values: inputs in the Function's order: (n, rows) for a column, (n, rows, columns) for
                a matrix; without n for a value that all states share. A scalar may be (n,) or a
                number. NaN is a value: it stays in its state.
            out: output → array that takes it, (n, rows) or (n, rows, columns), of the batch's
                real type and any strides. It may be an input itself.
            steps: how often each state is evaluated, the outputs of `feedback` replacing their
                inputs each time.
            named: inputs by name.

        Returns:
            every output by name, (n, rows) or (n, rows, columns), of the batch's real type. Those
            of a state whose evaluation fails (a solver in the Function) are NaN.

        Raises:
            ShapeError: an array does not fit, or two have different numbers of states.
            UnknownNameError: no such input or output.
            ProblemError: an input is missing or given twice, or there is nothing to feed back.
        """
        require_whole(1, steps=steps)
        require_kind("out", out or {}, Mapping, "output → array")
        if steps > 1 and not self.feedback:
            raise ProblemError(
                f"{self.name}: steps = {steps}, and no output is fed back; give feedback= to batch"
            )
        dtype = np.dtype(self.real if self.real == "double" else "float32")
        given = self._by_name(values, named)
        inputs = {p.name: input_array(p, given[p.name], dtype) for p in self.inputs}
        count = state_count(inputs)
        targets = self._targets(out or {}, count, dtype)
        require_apart({name: targets[name] for name in out or {}}, inputs)
        self._run(
            list(inputs.values()), [(array, True) for array in targets.values()], count, steps
        )
        return targets

    def _by_name(
        self, values: tuple[ArrayLike, ...], named: Mapping[str, ArrayLike]
    ) -> dict[str, ArrayLike]:
        names = [port.name for port in self.inputs]
        if len(values) > len(names):
            raise ProblemError(
                f"{self.name} got {len(values)} inputs; expected {', '.join(names) or 'none'}"
            )
        for name in named:
            require_name("input", name, names)
        positional = dict(zip(names, values, strict=False))
        twice = positional.keys() & named.keys()
        if twice:
            raise ProblemError(f"{self.name} got {min(twice)} twice, by position and by name")
        given = {**self.defaults, **positional, **named}
        missing = [name for name in names if name not in given]
        if missing:
            raise ProblemError(f"{self.name} misses the inputs {', '.join(missing)}; give all")
        return given

    def _targets(
        self, out: Mapping[str, NDArray[Any]], count: int, dtype: np.dtype[Any]
    ) -> dict[str, Array]:
        for name in out:
            require_name("output", name, [port.name for port in self.outputs])
        return {p.name: output_array(p, out.get(p.name), count, dtype) for p in self.outputs}

    def _run(
        self,
        inputs: list[tuple[Array, bool]],
        outputs: list[tuple[Array, bool]],
        count: int,
        steps: int,
    ) -> None:
        """Share the states among the threads, in whole blocks of lanes; this one works too."""
        c_inputs, c_outputs = c_ports(self.inputs, inputs), c_ports(self.outputs, outputs)
        blocks = -(-count // self.lanes)
        states = SharedStates(count, self.lanes * max(1, blocks // (PARTS * self.threads)))

        def work() -> bool:
            return self.library.run((c_inputs, c_outputs), states, steps, self._memory())

        others = [self._pool.submit(work) for _ in range(min(blocks, self.threads) - 1)]
        if not work():
            for each in others:
                each.result()

    def _memory(self) -> NDArray[np.uint8]:
        """Return this thread's memory."""
        if not hasattr(self._own, "memory"):
            self._own.memory = self.library.memory()
        block: NDArray[np.uint8] = self._own.memory
        return block
