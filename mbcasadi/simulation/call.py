"""A CasADi Function on buffers that are laid out once, for loops in Python.

A call costs a few microseconds; going through `ca.DM` costs ten times that.
"""

from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Call:
    """Calls a Function by position, on vectors; the answers are copies.

    Outputs are made dense when the Function is wrapped; inputs must be dense.
    """

    def __init__(self, function: ca.Function) -> None:
        self.function = _dense(function)
        f = self.function
        self._arguments = [np.zeros(f.numel_in(i)) for i in range(f.n_in())]
        self._results = [np.zeros(f.numel_out(i)) for i in range(f.n_out())]
        self._buffer, self._evaluate = f.buffer()
        for i, argument in enumerate(self._arguments):
            self._point(self._buffer.set_arg, i, argument)
        for i, result in enumerate(self._results):
            self._point(self._buffer.set_res, i, result)

    @staticmethod
    def _point(setter: Any, index: int, array: Array) -> None:
        # CasADi's stubs show the C signature (pointer, size); its wrapper wants a memoryview.
        setter(index, array.data)

    def __call__(self, *values: Array | float) -> list[Array]:
        """Return all outputs as vectors."""
        for argument, value in zip(self._arguments, values, strict=True):
            argument[:] = value
        self._evaluate()
        return [result.copy() for result in self._results]


def _dense(function: ca.Function) -> ca.Function:
    """Return the Function with outputs that have no structural zeros."""
    if all(function.sparsity_out(i).is_dense() for i in range(function.n_out())):
        return function
    inputs = function.mx_in()
    outputs = [ca.densify(x) for x in function.call(inputs)]
    return ca.Function(function.name(), inputs, outputs, function.name_in(), function.name_out())
