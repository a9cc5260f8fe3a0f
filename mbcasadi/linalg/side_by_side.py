"""Functions that do one thing for several sets of numbers, which C has in vectors."""

import casadi as ca

from mbcasadi.description.loops import SIDE_BY_SIDE

SETS = 8
"""Sets that are done by one call: a whole number of vectors, few of which wait for each other."""


def side_by_side(function: ca.Function, sets: int) -> ca.Function:
    """Return a scalar Function for several sets of inputs, a row (sets, size) for each matrix.

    Its name says what it is: Functions with other operations have other names.

    Args:
        function: of SX, whose inputs and outputs are dense.
        sets: number of rows.
    """
    sizes = [function.size_in(k) for k in range(function.n_in())]
    inputs = [ca.SX.sym(f"x{k}", sets, n * m) for k, (n, m) in enumerate(sizes)]
    rows = [
        function.call([ca.reshape(x[k, :], *size) for x, size in zip(inputs, sizes, strict=True)])
        for k in range(sets)
    ]
    outputs = [ca.vertcat(*(ca.vec(x).T for x in each)) for each in zip(*rows, strict=True)]
    name = f"{function.name()}_side_by_side_{sets}"
    SIDE_BY_SIDE[name] = function, sets
    return ca.Function(name, inputs, outputs, {"cse": True, "never_inline": True})
