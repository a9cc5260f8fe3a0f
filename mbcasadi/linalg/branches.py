"""One of two computations, of which the other is not done."""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import casadi as ca

Values = dict[str, ca.SX]
Branch = Callable[[Values], Sequence[ca.SX]]


def either(
    name: str, condition: ca.SX, given: Mapping[str, ca.SX], one: Branch, other: Branch
) -> list[ca.SX]:
    """Return what `one` makes of given values where the condition holds, else what `other` does.

    Of matrices (MX) only the chosen one is computed, dense;
    of scalars (SX) both are.

    Args:
        name: of the Function that holds both.
        condition: a number; zero and NaN are false.
        given: expressions by name.
        one, other: from expressions by name to as many results of the same sizes.
    """
    values = dict(given)
    if not any(isinstance(value, ca.MX) for value in (condition, *values.values())):
        pairs = zip(one(values), other(values), strict=True)
        return [ca.if_else(condition, first, second) for first, second in pairs]
    matrices = {key: ca.MX(value) for key, value in values.items()}
    symbols = {key: ca.MX.sym(key, x.sparsity()) for key, x in matrices.items()}
    scalars = cast(Values, symbols)
    results = [ca.densify(x) for x in one(scalars)], [ca.densify(x) for x in other(scalars)]
    functions = [
        ca.Function(f"{name}_{i}", [*symbols.values()], [*each]) for i, each in enumerate(results)
    ]
    chosen = ca.Function.if_else(name, *functions)(condition, *matrices.values())
    return list(cast(Sequence[ca.SX], chosen if isinstance(chosen, tuple) else (chosen,)))
