"""One of two computations, of which the other is not done."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import casadi as ca

Values = dict[str, ca.SX]
Branch = Callable[[Values], Sequence[ca.SX]]


def either(
    name: str, condition: Any, given: Mapping[str, Any], one: Branch, other: Branch
) -> list[ca.SX]:
    """Return what `one` makes of given values where the condition holds, else what `other` does.

    Of matrices (MX) only the chosen one is computed, with dense results; of scalars (SX) both are.

    Args:
        name: of the Function that holds both.
        condition: a number; zero is false.
        given: expressions by name.
        one, other: from expressions by name to as many results of the same sizes.
    """
    if not any(isinstance(value, ca.MX) for value in (condition, *given.values())):
        pairs = zip(one(dict(given)), other(dict(given)), strict=True)
        return [ca.if_else(condition, first, second) for first, second in pairs]
    matrices = {key: ca.MX(value) for key, value in given.items()}
    symbols = {key: ca.MX.sym(key, x.sparsity()) for key, x in matrices.items()}
    branches = [
        ca.Function(
            f"{name}_{i}",
            list(symbols.values()),
            [cast(ca.MX, ca.densify(x)) for x in branch(cast(Values, dict(symbols)))],
        )
        for i, branch in enumerate((one, other))
    ]
    chosen = ca.Function.if_else(name, branches[0], branches[1])
    return cast(list[ca.SX], chosen.call([ca.MX(condition), *matrices.values()]))
