"""The solver's part of a law's C."""

from collections.abc import Mapping

import casadi as ca

from mbcasadi.codegen.c_interface import Law
from mbcasadi.codegen.cone_c import WITHOUT, cone_values, plane_rows
from mbcasadi.codegen.phases import prepares_rows
from mbcasadi.codegen.precision import Real, numbers_of
from mbcasadi.codegen.sizes import LEAST_UNKNOWNS, iteration_limit
from mbcasadi.codegen.solver_rows import constant_rows, rows_of_a_tick
from mbcasadi.codegen.text import number, template
from mbcasadi.description.qp_stages import REFINED, SolverFlag


def least_distance_c(law: Law) -> str:
    """Return the C that solves the law's least-distance problem."""
    carry = int(law.functions[0].nnz_out("carry"))
    rows = (
        rows_of_a_tick(law.pattern, law.cones)
        if law.rows is None
        else constant_rows(law.rows, law.real)
    )
    if prepares_rows(law):
        member = "  int measured; /* whether the rows could be scaled in the preparation */\n"
        rows |= {"measured": "p->measured", "row_members": rows["row_members"] + member}
    text = solver_c(law.pattern, rows, carry, iteration_limit(law), law.real, law.cones)
    if not law.has_daqp:
        return text
    return text + daqp_c(law.m, law.n, rows, constant=law.rows is not None)


def daqp_c(m: int, n: int, rows: Mapping[str, str], *, constant: bool) -> str:
    """Return the C of DAQP around `solver_c`, which it needs before it: `daqp_solve`.

    Args:
        m, n: sizes of the rows.
        rows: as in `solver_c`.
        constant: whether the rows never change.
    """
    values: dict[str, str | int] = {
        "n_array": max(LEAST_UNKNOWNS, n),
        "m_array": max(1, m),
        "refined": number(REFINED),
        "constant": int(constant),
    }
    return template("daqp.c.in", {**values, **rows})


def solver_c(
    pattern: ca.Sparsity,
    rows: Mapping[str, str],
    carry: int,
    limit: int,
    real: Real = "double",
    cones: int = 0,
) -> str:
    """Return the C of the solver: `struct ldp` and `ldp_solve`.

    Args:
        pattern: (m, n) of the rows.
        rows: how the rows are stored and read, of `solver_rows`.
        carry: numbers that are handed from build to finish.
        limit: of iterations.
        real: the C type of all numbers.
        cones: number of quadratic cones, whose rows are the last ones.
    """
    m, n = max(1, pattern.size1()), max(LEAST_UNKNOWNS, pattern.size2())
    values: dict[str, str | int] = {
        "n": pattern.size2(),
        "m": pattern.size1(),
        "carry": carry,
        "n_array": n,
        "m_array": m + plane_rows(cones),
        "carry_array": max(1, carry),
        "triangle": n * (n + 1) // 2,
        "iteration_limit": limit,
        "optimal": int(SolverFlag.OPTIMAL),
        "stopped": int(SolverFlag.STOPPED),
        "infeasible": int(SolverFlag.INFEASIBLE),
    }
    values |= {**numbers_of(real), **rows}
    for part in ("active_rows", "multipliers", "farkas", "let_go", "iterate"):
        values[part] = template(f"{part}.c.in", values)
    values |= cone_values(cones, values) if cones else WITHOUT
    return template("least_distance.c.in", values) + "\n"
