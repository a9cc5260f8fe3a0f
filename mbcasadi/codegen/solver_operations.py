"""Bounds of the QP solver's scalar operations, counted in its templates.

One operation is an addition, multiplication, division, root or comparison of numbers. n unknowns,
m rows; every loop runs to its end, every second pass is made.
"""

PROOF_ROUNDS = 10  # of `ldp_proof`: powers of ten between its two tolerances


def operations_per_iteration(m: int, n: int) -> int:
    """Return the most operations of an iteration: one row enters or leaves.

    The point and the rows' values, two searches for the worst row, the row as Q h + rest with a
    second projection, both multipliers, and the rotations of a row that leaves.
    """
    point = 2 * n + 2 * n * n + 2 * m * n
    search = 12 * m
    take = 8 * n * n + 12 * n
    multipliers = 2 * n * n + 4 * n
    return point + search + take + multipliers + _leave(n) + 6 * n


def fixed_operations(m: int, n: int) -> int:
    """Return the most operations of a solution beside its iterations.

    Lengths and bounds of the rows, n rows of a warm start that enter and leave again, two
    refinements, the proof of infeasibility, multipliers.
    """
    pose = 2 * m * n + 16 * m
    warm = n * (8 * n * n + 16 * n) + n * (n * n + 2 * n + _leave(n))
    refine = 2 * (n * n + 8 * n + 2 * n * n + 2 * m * n + 6 * m)
    proof = PROOF_ROUNDS * (2 * n * n + 2 * (n + 1) * 11 * n + 3 * n * n) + n * _leave(n)
    read = 3 * n * n + 6 * n + 4 * m
    return pose + warm + refine + proof + read


def _leave(n: int) -> int:
    """Rotations of R, Q, y and h, and what the entering row gets back."""
    return 9 * n * n + 12 * n + 4 * n * n + 5 * n
