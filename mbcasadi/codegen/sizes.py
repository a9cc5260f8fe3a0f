"""Memory, iteration limits and most operations of a law.

The bounds of the QP solver's scalar operations are counted in its templates. One operation is an
addition, multiplication, division, root or comparison of numbers. n unknowns, m rows; every loop
runs to its end, every second pass is made.
"""

from mbcasadi.codegen.c_interface import CLaw
from mbcasadi.codegen.cone_c import cone_doubles, plane_rows
from mbcasadi.codegen.stagewise_c import RECURSIONS, response_doubles, stagewise_doubles
from mbcasadi.codegen.work_memory import work_size

CONE_ITERATIONS = 10  # times as many where there are quadratic cones

SOLVER_SCALARS, SOLVER_INTEGERS = 6, 10  # of `struct ldp`, beside its arrays

FLOAT_SPARE = 2  # numbers for alignment between floats, integers and pointers

LEAST_UNKNOWNS = 2  # for which there is memory: compilers warn of loops over arrays of one

# DAQP's two structures in doubles, rounded up, on a 64-bit target.
DAQP_STRUCTURES = 56


def iteration_limit(law: CLaw) -> int:
    """Return the iteration limit of a law's solver."""
    return RECURSIONS if law.horizon else most_iterations(law.m, law.n, law.cones)


def most_iterations(m: int, n: int, cones: int = 0) -> int:
    """Return the iteration limit: a cold start adds and drops each row a few times.

    Each turn of a cone's tangent plane counts too.
    """
    return 50 + 10 * (n + m) * (CONE_ITERATIONS if cones else 1)


def memory_doubles(law: CLaw) -> int:
    """Return the size of the caller's memory in doubles, with space for alignment."""
    work = work_sizes(law)
    others = work["sz_iw"] + work["sz_arg"] + work["sz_res"] + 4
    if law.real == "float":  # pointers and integers are as large as in double
        integers = _solver_integers(law) if law.staged else 0
        return others + integers + FLOAT_SPARE + (_numbers(law) - integers + 1) // 2
    return others + _numbers(law)


def _numbers(law: CLaw) -> int:
    """Return the reals of the memory, and the integers of the solver in pairs."""
    total = work_sizes(law)["sz_w"]
    total += law.nz
    total += law.nu
    if law.staged:
        total += _solver_doubles(law) + 1
    if law.has_daqp:
        total += _daqp_doubles(max(LEAST_UNKNOWNS, law.n), max(1, law.m))
    if law.between:
        total += _between_doubles(law)
    if law.preparation is not None:
        known_size, prepared = (
            sum(p.size for p in law.prepared_from),
            law.preparation.nnz_out("prepared"),
        )
        total += max(1, known_size) + max(1, int(prepared)) + 2
    return total


def _solver_doubles(law: CLaw) -> int:
    """Return the size of `struct ldp`."""
    if law.horizon is not None:
        return stagewise_doubles(law.horizon, int(law.functions[0].nnz_out("carry")))
    n, m = max(LEAST_UNKNOWNS, law.n), max(1, law.m) + plane_rows(law.cones)
    rows = 0 if law.rows is not None else max(1, int(law.pattern.nnz())) + m
    rows += cone_doubles(law.cones, n)
    carry = max(1, int(law.functions[0].nnz_out("carry")))
    factors = n * n + n * (n + 1) // 2
    return rows + 5 * m + carry + factors + 9 * n + SOLVER_SCALARS + _solver_integers(law)


def _solver_integers(law: CLaw) -> int:
    """Return the integers of `struct ldp` in pairs."""
    n, m = max(LEAST_UNKNOWNS, law.n), max(1, law.m) + plane_rows(law.cones)
    return (2 * n + m + SOLVER_INTEGERS + 1 + (2 * n + 1 if law.cones else 0)) // 2


def most_passed(law: CLaw) -> int:
    """Return the largest number of values passed from one problem of a tick to the next."""
    return max(max(1, int(f.numel_in("passed"))) for f in (*law.between, law.functions[1]))


def _between_doubles(law: CLaw) -> int:
    """Return the size of what lies between the problems of a tick."""
    n, m = max(LEAST_UNKNOWNS, law.n), max(1, law.m)
    return 2 * most_passed(law) + n + 2 * m


def _daqp_doubles(n: int, m: int) -> int:
    """Return the size of `struct daqp`."""
    factors = (n + 1) * (n + 2) // 2 + 5 * (n + 1)
    integers = m + n + 2
    return m * n + 3 * m + 2 * n + factors + (integers + 1) // 2 + DAQP_STRUCTURES


def work_sizes(law: CLaw) -> dict[str, int]:
    """Return the lengths of CasADi's work arrays, enough for each Function of the law.

    The solver of a horizon has its responses there, between two Functions.
    """
    functions = law.of_a_tick
    between = 0 if law.horizon is None else response_doubles(law.horizon)
    return {
        "sz_arg": max(int(f.sz_arg()) for f in functions),
        "sz_res": max(max(int(f.sz_res()) for f in functions), 5),
        "sz_iw": max(int(f.sz_iw()) for f in functions),
        "sz_w": max(1, between, *(work_size(law.text, f.name()) for f in functions)),
    }


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
