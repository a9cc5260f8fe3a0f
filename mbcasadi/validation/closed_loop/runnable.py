"""What a closed loop runs: anything that answers a measurement with a control.

The generated C of a controller (`CompiledLaw`) is one of them; the others are in `controllers/`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen import TickTimes
from mbcasadi.description import Controller
from mbcasadi.plant import Plant

Array = NDArray[np.float64]


class RunningLaw(Protocol):
    """A controller during one run: values in, all outputs out, by name."""

    def size(self, name: str) -> int:
        """Return the number of elements of an input, 0 where there is no such input."""
        ...

    def __call__(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """Return the outputs, `u` among them; `values` may hold more names than there are inputs.

        Args:
            values: q, v, act, t and what else a loop provides, as vectors.
        """
        ...


class Runnable(ABC):
    """What answers a measurement with a control, and how it is described.

    Attributes:
        controller: names, sizes, limits and period; what metrics and reports need.
    """

    controller: Controller

    @property
    @abstractmethod
    def kind(self) -> str:
        """What runs, in words, with its article: "the generated C"."""

    @abstractmethod
    def start(self, plant: Plant) -> RunningLaw:
        """Return what is called at each tick of a new run on this plant."""

    def facts(self) -> dict[str, object]:
        """Return further name → text or number for the report's settings."""
        return {}

    def times(self, inputs: Mapping[str, Array]) -> TickTimes | None:  # noqa: ARG002
        """Return the time of each tick with recorded inputs; None where that means nothing.

        Args:
            inputs: name → (ticks, size).

        Raises:
            ExportError: the program that takes the time cannot be built.
        """
        return None
