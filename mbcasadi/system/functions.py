"""Construction of members: checked expressions, named Functions, builders."""

from collections.abc import Callable, Mapping
from typing import Any, overload

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.shapes import real_array, require_shape

Expression = ca.SX | ca.DM | ArrayLike
Builder = Callable[[], ca.Function]

MATRIX = 2  # dimensions


def matrix(name: str, value: Expression, shape: tuple[int | None, int | None]) -> ca.SX:
    """Return `value` as SX; None in `shape` leaves that size free."""
    if isinstance(value, (ca.SX, ca.DM)):
        expression = ca.SX(value)
    else:
        numbers = real_array(name, value)
        if numbers.ndim > MATRIX:
            raise ShapeError(f"{name} has shape {numbers.shape}, expected a matrix")
        if not np.all(np.isfinite(numbers)):
            raise ShapeError(f"{name} holds NaN or infinity; expected finite numbers")
        expression = ca.SX(ca.DM(numbers if numbers.ndim else numbers.reshape(1, 1)))
    rows, columns = (
        size if expected is None else expected
        for size, expected in zip(expression.shape, shape, strict=True)
    )
    require_shape(name, expression, (int(rows), int(columns)))
    return expression


def function(name: str, inputs: Mapping[str, ca.SX], output: str, value: ca.SX) -> ca.Function:
    """Return a named Function.

    Args:
        name: of the Function.
        inputs: symbols by name.
        output: name of the output.
        value: expression of the symbols.

    Raises:
        ShapeError: `value` holds a symbol that is not an input.
    """
    named = ca.Function(
        name, list(inputs.values()), [value], list(inputs), [output], {"allow_free": True}
    )
    if named.has_free():
        raise ShapeError(
            f"{name} depends on {', '.join(named.get_free())}; expected an expression of "
            f"the given symbols {', '.join(inputs)} only"
        )
    return named


def constant(existing: ca.Function) -> Builder:
    """Return a builder of a Function that exists already."""
    return lambda: existing


@overload
def evaluate(member: ca.Function, values: Mapping[str, ca.SX]) -> ca.SX: ...
@overload
def evaluate(member: ca.Function, values: Mapping[str, ca.MX]) -> ca.MX: ...
@overload
def evaluate(member: ca.Function, values: Mapping[str, ca.DM | ArrayLike]) -> ca.DM: ...
@checked
def evaluate(member: ca.Function, values: Mapping[str, Any]) -> Any:  # CasADi's stubs mix no kinds
    """Return the only output of a member, from a mapping that holds its inputs.

    Raises:
        ProblemError: the mapping lacks an input.
    """
    for name in member.name_in():
        if name not in values:
            raise ProblemError(
                f"'{member.name()}' lacks its input '{name}'; expected "
                f"{', '.join(member.name_in())}"
            )
    return member(**{name: values[name] for name in member.name_in()})[member.name_out(0)]


def user_row_expressions(
    nv: int,
    phi: Expression | None,
    A: Expression | None,
    a0: Expression | None,
    psi: Expression | None,
) -> dict[str, ca.SX]:
    """Return the rows as SX, empty where none is given.

    Args:
        nv: size of v.
        phi: (m, 1) holonomic rows.
        A, a0: (k, nv), (k, 1) Pfaffian rows; a0 is zero by default.
        psi: (j, 1) rows of any form in v.

    Raises:
        ShapeError: a wrong shape.
    """
    pfaffian = matrix("A", ca.SX(0, nv) if A is None else A, (None, nv))
    k = int(pfaffian.shape[0])
    return {
        "phi": matrix("phi", ca.SX(0, 1) if phi is None else phi, (None, 1)),
        "A": pfaffian,
        "a0": matrix("a0", np.zeros((k, 1)) if a0 is None else a0, (k, 1)),
        "psi": matrix("psi", ca.SX(0, 1) if psi is None else psi, (None, 1)),
    }
