"""The solver's part of a law's C."""

import casadi as ca

from mbcasadi.codegen.c_interface import Law
from mbcasadi.codegen.phases import prepares_rows
from mbcasadi.codegen.precision import Real, numbers_of
from mbcasadi.codegen.sizes import iteration_limit
from mbcasadi.codegen.solver_rows import constant_rows, rows_of_a_tick
from mbcasadi.codegen.text import number, template
from mbcasadi.description.qp_stages import REFINED, SolverFlag


def least_distance_c(law: Law) -> str:
    """Return the C that solves the law's least-distance problem."""
    carry = int(law.functions[0].nnz_out("carry"))
    rows = rows_of_a_tick(law.pattern) if law.rows is None else constant_rows(law.rows)
    if prepares_rows(law):
        rows["measured"] = "p->measured"
    text = solver_c(law.pattern, rows, carry, iteration_limit(law))
    return text + daqp_c(law, rows) if law.has_daqp else text


def daqp_c(law: Law, rows: dict[str, str | int]) -> str:
    """Return the C that solves the law's least-distance problem by DAQP."""
    values: dict[str, str | int] = {
        "n_array": max(1, law.n),
        "m_array": max(1, law.m),
        "refined": number(REFINED),
        "constant": int(law.rows is not None),
    }
    return template("daqp.c.in", values | rows)


def solver_c(
    pattern: ca.Sparsity, rows: dict[str, str | int], carry: int, limit: int, real: Real = "double"
) -> str:
    """Return the C of the solver: `struct ldp` and `ldp_solve`.

    Args:
        pattern: (m, n) of the rows.
        rows: how the rows are stored and read, of `solver_rows`.
        carry: numbers that are handed from build to finish.
        limit: of iterations.
        real: the C type of all numbers.
    """
    m, n = max(1, pattern.size1()), max(1, pattern.size2())
    values: dict[str, str | int] = {
        "n": pattern.size2(),
        "m": pattern.size1(),
        "carry": carry,
        "n_array": n,
        "m_array": m,
        "carry_array": max(1, carry),
        "triangle": n * (n + 1) // 2,
        "iteration_limit": limit,
        "optimal": int(SolverFlag.OPTIMAL),
        "stopped": int(SolverFlag.STOPPED),
        "infeasible": int(SolverFlag.INFEASIBLE),
    }
    values |= numbers_of(real) | rows
    values["active_rows"] = template("active_rows.c.in", values)
    return template("least_distance.c.in", values) + "\n"
