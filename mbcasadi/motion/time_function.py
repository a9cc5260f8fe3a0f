"""A Function of time that is called thousands of times."""

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.simulation.buffered_function import BufferedFunction

Array = NDArray[np.float64]


class TimeFunction:
    """Calls a Function (t) → vectors on buffers, and can be sent to another process.

    Attributes:
        function: that it calls.
    """

    def __init__(self, function: ca.Function) -> None:
        self.function, self._call = function, BufferedFunction(function)

    def __call__(self, now: float) -> Array:
        """Return all outputs at the time `now`, s, one behind the other."""
        outputs = self._call(now)
        return outputs[0] if len(outputs) == 1 else np.concatenate(outputs)

    def __reduce__(self) -> tuple[type, tuple[ca.Function]]:
        return TimeFunction, (self.function,)
