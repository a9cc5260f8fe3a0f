"""The solver of a problem over a horizon in C: its sizes and tables for `stagewise.c.in`."""

from collections.abc import Iterable, Mapping

import casadi as ca

from mbcasadi.codegen.text import comma_list, constant, number, template
from mbcasadi.description.qp_stages import (
    PROOF_ROUNDING,
    UNBOUNDED,
    SolverFlag,
)
from mbcasadi.description.stagewise_qp import StagewiseQP, StagewiseRows

PENALTY = 1e4
"""Penalty of a row over its stiffness: violations shrink by about this factor in a run."""

RADIUS = 1e6
"""Within so many of its unit a proof of infeasibility holds for a control without bounds."""

RECURSIONS = 100
"""Recursions of a tick at most, unless the caller sets another limit."""

RANK = 48
"""Rows whose responses correct a solution with factors of other active rows."""


def stagewise_c(problem: StagewiseQP, carry: int) -> str:
    """Return the C of the solver: `struct ldp`, `ldp_prepare`, and `ldp_solve` as in `solver_c`.

    Args:
        problem: whose data `struct ldp` points to.
        carry: numbers that are handed from build to finish.
    """
    values: dict[str, str | int] = {
        "horizon": problem.horizon,
        "nu": problem.nu,
        "na": problem.na,
        "nb": problem.nb,
        "nf": problem.nf,
        "priced": _priced(problem),
        "rows": problem.inside.count,
        "end_rows": problem.at_end.count,
        "rotations": len(problem.rotations),
        "step": _length(problem),
        "column": problem.column_size,
        "accuracy": number(problem.accuracy),
        "penalty": number(PENALTY),
        "rank": _rank(problem),
        "unbounded": number(UNBOUNDED),
        "iteration_limit": RECURSIONS,
        "optimal": int(SolverFlag.OPTIMAL),
        "stopped": int(SolverFlag.STOPPED),
        "infeasible": int(SolverFlag.INFEASIBLE),
        "radius": number(RADIUS),
        "rounding": number(PROOF_ROUNDING),
        "carry_array": max(1, carry),
        "tables": _tables(problem),
    }
    return template("stagewise.c.in", values) + "\n"


def _length(problem: StagewiseQP) -> str:
    """Return the length of an interval: a number, or where it is in the column."""
    if problem.step is None:
        return f"column[{problem.column['step'].start}]"
    return number(problem.step)


def _priced(problem: StagewiseQP) -> int:
    """Return the number of first rows of F that are rates, or have a cost."""
    last: int = max(problem.H.get_col(), default=0)
    return max(problem.nb, last + 1 - problem.nz)


def _rank(problem: StagewiseQP) -> int:
    return min(RANK, max(1, problem.m))


PLACES = {
    "F": "F",
    "PHI": "Phi",
    "GAMMA": "Gamma",
    "DA": "d_a",
    "DB": "d_b",
    "H": "H",
    "SLOPE": "g",
}
"""Names in C of the parts of an interval's column."""


def _tables(problem: StagewiseQP) -> str:
    """Return places in a column, patterns, prices and stiffnesses."""
    column, text = problem.column, "/* places in the column of an interval */\n"
    text += "".join(f"#define LQ_{c} {column[name].start}\n" for c, name in PLACES.items())
    text += f"#define LQ_END_COUNT {problem.H_end.nnz()}\n"
    for name, pattern in (("F", problem.F), ("H", problem.H), ("H_end", problem.H_end)):
        text += _pattern(f"lq_{name}", pattern)
    text += f"#define LQ_DATA {problem.size}\n"
    text += _integers("short", "lq_rotation", problem.rotations)
    text += constant("static const double", "lq_unit", problem.units[: problem.nu].tolist())
    for name, rows, places in (
        ("inside", problem.inside, problem.column),
        ("at_end", problem.at_end, problem.end),
    ):
        text += _rows(name, rows, places)
    return text


def _rows(name: str, rows: StagewiseRows, places: Mapping[str, slice]) -> str:
    """Return the table of rows."""
    by_row: ca.Sparsity = rows.G.T
    text = _integers("short", f"lq_{name}_col", by_row.row())
    text += _integers("int", f"lq_{name}_start", by_row.colind())
    prices = rows.prices.clip(max=UNBOUNDED).ravel().tolist()
    text += constant("static const double", f"lq_{name}_price", prices or [0.0])
    text += constant(
        "static const double", f"lq_{name}_stiffness", rows.stiffness.tolist() or [0.0]
    )
    numbers = [rows.count, *(places[key].start for key in ("G", "lower", "upper"))]
    tables = [f"lq_{name}_{key}" for key in ("start", "col", "price", "stiffness")]
    members = ", ".join(map(str, [*numbers, *tables]))
    return f"{text}static const struct lq_rows lq_{name} = {{{members}}};\n"


def _pattern(name: str, pattern: ca.Sparsity) -> str:
    """Return the table of the nonzeros of a matrix, column by column."""
    text = _integers("int", f"{name}_start", pattern.colind())
    text += _integers("short", f"{name}_row", pattern.row())
    members = f"{pattern.size2()}, {name}_start, {name}_row"
    return f"{text}static const struct lq_pattern {name} = {{{members}}};\n"


def _integers(kind: str, name: str, values: Iterable[int]) -> str:
    numbers = list(values) or [0]
    return f"static const {kind} {name}[{len(numbers)}] = {{{comma_list(numbers)}}};\n"


def response_doubles(problem: StagewiseQP) -> int:
    """Return the size of the responses of rows, which are used while the problem is solved."""
    return _rank(problem) * (problem.horizon * problem.ny + problem.nx)


def stagewise_doubles(problem: StagewiseQP, carry: int) -> int:
    """Return the size of `struct ldp`, with space for alignment."""
    nx, nz, na, nb, nu = problem.nx, problem.nz, problem.na, problem.nb, problem.nu
    nf, ny = problem.nf, problem.ny
    lz, lx, la, lb = (-(-size // 8) * 8 for size in (nz, nx, na, nb))
    m, rows, spare = problem.m + 1, max(problem.inside.count, problem.at_end.count), 8
    interval = nf * lz + nu * lz + nx * lx + 3 * spare + lx + nu + 3 * ny
    shared = nx * lx + (nz + nf + rows) * lz + nb * (lx + la + lb) + 7 * spare
    vectors = 4 * nx + problem.n + max(1, carry) + 11 * m
    rank = _rank(problem)
    responses = rank * (rank + 1) + 16 * (nz + nx + max(nx, nf)) + 1
    return problem.horizon * interval + shared + vectors + responses + 8
