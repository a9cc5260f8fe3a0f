"""NumPy arrays of many states, as the C of a batch reads and writes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.codegen.batches.library import Port
from mbcasadi.errors import ShapeError
from mbcasadi.real_numbers import described, real_array

Array = NDArray[Any]


@dataclass(frozen=True)
class BatchPort:
    """One input or output of a batch.

    Attributes:
        name: of the Function's input or output.
        pattern: its entries of one state.
    """

    name: str
    pattern: ca.Sparsity

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of one state: (rows,) for a column, (rows, columns) for a matrix."""
        rows, columns = self.pattern.shape
        return (rows,) if columns == 1 else (rows, columns)

    @cached_property
    def is_dense(self) -> bool:
        """Whether the pattern has every entry."""
        return bool(self.pattern.is_dense())

    @cached_property
    def nonzeros(self) -> NDArray[np.int64]:
        """Row and column of each nonzero, in CasADi's order; the row alone for a column."""
        places = np.array([self.pattern.row(), self.pattern.get_col()], np.int64)
        return places[: len(self.shape)]

    def layout(self, strides: tuple[int, ...], itemsize: int) -> "Layout":
        """Return where the nonzeros of a state are."""
        known = self._layouts.get(strides)
        if known is None:
            offset = np.ascontiguousarray(np.array(strides, np.int64) @ self.nonzeros)
            together = bool(np.array_equal(offset, itemsize * np.arange(offset.size)))
            known = self._layouts[strides] = Layout(offset, _address(offset), together)
        return known

    @cached_property
    def _layouts(self) -> "dict[tuple[int, ...], Layout]":
        return {}


class Layout(NamedTuple):
    """Bytes from the first entry of a state to each nonzero, and whether these are together."""

    offset: NDArray[np.int64]
    address: int
    together: bool


def input_array(port: BatchPort, value: ArrayLike, dtype: np.dtype[Any]) -> tuple[Array, bool]:
    """Return an input as an array of this type, and whether it has one row for each state.

    Args:
        port: the input.
        value: (n, *shape), or `shape` for all states; numbers, or (n,), where it is a scalar.
        dtype: of the C.

    Raises:
        ShapeError: another shape, or no real numbers.
    """
    array = value if isinstance(value, np.ndarray) and value.dtype == dtype else None
    if array is None or isinstance(array, np.ma.MaskedArray) or not array.flags.aligned:
        array = np.require(real_array(port.name, value), dtype, "A")
    shape = port.shape
    if shape == (1,) and array.shape != (1,) and array.ndim < 2:
        array = array.reshape(-1, 1) if array.ndim else array.reshape(1)
    if array.shape == shape:
        return array, False
    if array.ndim == len(shape) + 1 and array.shape[1:] == shape:
        return array, True
    listed = ", ".join(map(str, shape))
    raise ShapeError(
        f"{port.name} has shape {np.shape(value)}, expected (n, {listed}), one row for each state, "
        f"or {shape} for all of them"
    )


def state_count(inputs: Mapping[str, tuple[Array, bool]]) -> int:
    """Return the number of states.

    Raises:
        ShapeError: two inputs have different numbers.
    """
    counts = {name: len(array) for name, (array, varies) in inputs.items() if varies}
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise ShapeError(f"{found} rows; expected one number of states")
    return next(iter(counts.values()), 1)


def output_array(port: BatchPort, given: object, count: int, dtype: np.dtype[Any]) -> Array:
    """Return the array of an output, with zeros where the Function has none but zeros.

    Args:
        port: the output.
        given: array of the caller, or None for a new one.
        count: number of states.
        dtype: of the C.

    Raises:
        ShapeError: the given array has another shape or type, or cannot be written.
    """
    shape = (count, *port.shape)
    dense = port.is_dense
    if given is None:
        return np.empty(shape, dtype) if dense else np.zeros(shape, dtype)
    if not isinstance(given, np.ndarray) or given.dtype != dtype or given.shape != shape:
        is_array = isinstance(given, np.ndarray)
        found = f"shape {given.shape} and type {given.dtype}" if is_array else described(given)  # type: ignore[attr-defined]
        raise ShapeError(f"out[{port.name!r}] has {found}, expected shape {shape} and type {dtype}")
    if not given.flags.writeable or not given.flags.aligned:
        raise ShapeError(f"out[{port.name!r}] cannot be written; expected an array of its own")
    if not dense:
        given[...] = 0
    return given


def require_apart(outputs: Mapping[str, Array], inputs: Mapping[str, tuple[Array, bool]]) -> None:
    """Raise `ShapeError` where an output lies in the memory of another array.

    An output may be an input itself, row by row: a state is read before it is written.
    """
    for name, array in outputs.items():
        for other, (value, _) in inputs.items():
            if np.may_share_memory(array, value) and not _is_same(array, value):
                raise ShapeError(f"out[{name!r}] overlaps the input {other!r}; give other memory")
        for other, value in outputs.items():
            if other != name and np.may_share_memory(array, value):
                raise ShapeError(f"out[{name!r}] overlaps out[{other!r}]; give other memory")


def _is_same(one: Array, other: Array) -> bool:
    is_alike = one.strides == other.strides and one.shape == other.shape
    return is_alike and _address(one) == _address(other)


def _address(array: Array) -> int:
    """Return where an array begins; `array.ctypes` takes four times as long."""
    address: int = array.__array_interface__["data"][0]
    return address


def c_ports(ports: Sequence[BatchPort], arrays: Sequence[tuple[Array, bool]]) -> Any:
    """Return the arrays as the C's structures."""
    structures = (Port * max(1, len(ports)))()
    for i, (port, (array, varies)) in enumerate(zip(ports, arrays, strict=True)):
        strides = array.strides[1:] if varies else array.strides
        layout = port.layout(strides, array.itemsize)
        stride = array.strides[0] if varies else 0
        structures[i] = Port(_address(array), stride, layout.address, layout.together)
    return structures
