"""A CasADi Function on buffers that are laid out once, for loops in Python.

A call costs a few microseconds; going through `ca.DM` costs ten times that.
"""

from collections.abc import Callable

import casadi as ca
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class BufferedFunction:
    """Calls a Function by position, on vectors of all entries; the outputs are copies.

    Sparse inputs and outputs are made dense when the Function is wrapped.
    """

    def __init__(self, function: ca.Function) -> None:
        self.function = _dense_function(function)
        f = self.function
        self._arguments = [np.zeros(f.numel_in(i)) for i in range(f.n_in())]
        self._results = [np.zeros(f.numel_out(i)) for i in range(f.n_out())]
        self._buffer, self._evaluate = f.buffer()
        for i, argument in enumerate(self._arguments):
            self._bind(self._buffer.set_arg, i, argument)
        for i, result in enumerate(self._results):
            self._bind(self._buffer.set_res, i, result)

    @staticmethod
    def _bind(setter: Callable[..., None], index: int, array: Array) -> None:
        # CasADi's stubs show the C signature (pointer, size); its wrapper takes a memoryview.
        setter(index, array.data)

    @property
    def failed(self) -> bool:
        """Whether the last call could not be completed; no error is raised for that."""
        return bool(self._buffer.ret())

    def __call__(self, *values: Array | float) -> list[Array]:
        """Return all outputs as vectors."""
        for argument, value in zip(self._arguments, values, strict=True):
            argument[:] = value
        self._evaluate()
        return [result.copy() for result in self._results]


def _dense_function(function: ca.Function) -> ca.Function:
    """Return the Function with inputs and outputs that have no structural zeros."""
    patterns = [function.sparsity_in(i) for i in range(function.n_in())]
    results = [function.sparsity_out(i) for i in range(function.n_out())]
    if all(pattern.is_dense() for pattern in patterns + results):
        return function
    names = function.name_in()
    inputs = [ca.MX.sym(n, *p.shape) for n, p in zip(names, patterns, strict=True)]
    sparse_inputs = [ca.project(x, p) for x, p in zip(inputs, patterns, strict=True)]
    outputs = [ca.densify(x) for x in function.call(sparse_inputs)]
    return ca.Function(function.name(), inputs, outputs, names, function.name_out())
