"""The solver's part of a law's C, its rows, and DAQP's files from CasADi's wheel.

The rows of a least-distance problem are lengths, values at x, and single rows, read in place. `A`
is stored as CasADi does, nonzeros column by column, and is not copied. A column is a list of runs:
rows that follow each other.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import casadi as ca

from mbcasadi.codegen.c_interface import CLaw
from mbcasadi.codegen.cone_c import ROW, WITHOUT, cone_values, plane_rows
from mbcasadi.codegen.constant_rows import ConstantRows
from mbcasadi.codegen.precision import Real, numbers_of
from mbcasadi.codegen.sizes import LEAST_UNKNOWNS, iteration_limit
from mbcasadi.codegen.stagewise_c import stagewise_c
from mbcasadi.codegen.text import comma_list, constant, number, template
from mbcasadi.description.qp_stages import REFINED, SolverFlag
from mbcasadi.errors import ExportError


class Run(NamedTuple):
    """Nonzeros `start ... start + length - 1`, from `row` of `column` downwards."""

    row: int
    length: int
    column: int
    start: int


def rows_of_a_tick(pattern: ca.Sparsity, cones: int = 0) -> dict[str, str]:
    """Return the template values for rows that each tick computes, the last ones of cones."""
    nnz, m = max(1, int(pattern.nnz())), max(1, pattern.size1()) + plane_rows(cones)
    values = {"matrix": "p->A", "length2": "p->length2", "measured": "ldp_measure(p)"}
    access = values | {"row_tables": _run_macros(pattern), "unused": ""}
    access["plane_row"] = ROW if cones else ""
    return values | {
        "row_members": f"  ldp_real A[{nnz}], length2[{m}];\n",
        "rows": template("rows.c.in", access) + template("row_lengths.c.in", {}),
    }


def constant_rows(rows: ConstantRows, real: Real = "double") -> dict[str, str]:
    """Return the template values for rows that are constants, with their lengths."""
    values = {"matrix": "ldp_A", "length2": "ldp_length2", "measured": "1"}
    tables = constant("static const ldp_real", "ldp_A", rows.nonzeros, real)
    tables += constant("static const ldp_real", "ldp_length2", rows.length2.tolist(), real)
    macros = _run_macros(rows.pattern)
    access = values | {"row_tables": tables + macros, "unused": "  (void)p;\n", "plane_row": ""}
    return values | {"row_members": "", "rows": template("rows.c.in", access)}


def runs(pattern: ca.Sparsity) -> list[Run]:
    """Return the runs of a pattern, column by column."""
    found: list[Run] = []
    rows, columns = pattern.get_triplet()
    for k, (row, column) in enumerate(zip(rows, columns, strict=True)):
        last = found[-1] if found else None
        if last and last.column == column and last.row + last.length == row:
            found[-1] = last._replace(length=last.length + 1)
        else:
            found.append(Run(row, 1, column, k))
    return found


def _run_macros(pattern: ca.Sparsity) -> str:
    """Return C that tells row, length, column and start of a run; constants where A is full."""
    places = dict(zip(Run._fields, ("0", "LDP_M", "(k)", "((k) * LDP_M)"), strict=True))
    text = "#define LDP_RUNS LDP_N\n"
    if not pattern.is_dense():
        found = runs(pattern)
        numbers = comma_list(n for run in found for n in run)
        text = f"#define LDP_RUNS {len(found)}\n"
        text += f"static const int ldp_runs[{4 * max(1, len(found))}] = {{{numbers}}};\n"
        places = {name: f"ldp_runs[4 * (k) + {i}]" for i, name in enumerate(Run._fields)}
    return text + "".join(
        f"#define LDP_RUN_{name.upper()}(k) {place}\n" for name, place in places.items()
    )


HEADERS = ("daqp.h", "factorization.h", "auxiliary.h", "constants.h", "types.h")
LIBRARY = "libdaqpstat.a"


def wheel_files() -> dict[str, bytes]:
    """Return DAQP's headers, static library and licence, by their path in the export.

    Raises:
        ExportError: this CasADi does not contain them.
    """
    root = Path(ca.__file__).parent
    sources = {f"daqp/include/daqp/{h}": root / "include" / "daqp" / h for h in HEADERS}
    sources[f"daqp/{LIBRARY}"] = root / LIBRARY
    sources["daqp/LICENSE"] = root / "include" / "licenses" / "daqp-external" / "LICENSE"
    missing = [str(path) for path in sources.values() if not path.is_file()]
    if missing:
        raise ExportError(
            f"this CasADi comes without DAQP ({missing[0]} is not there); install CasADi from "
            'PyPI, or export with daqp="system" and build with -DDAQP_DIR=<folder of DAQP>'
        )
    return {name: path.read_bytes() for name, path in sources.items()}


def least_distance_c(law: CLaw) -> str:
    """Return the C that solves the law's least-distance problem, or that over a horizon."""
    carry = int(law.functions[0].nnz_out("carry"))
    if law.horizon is not None:
        return stagewise_c(law.horizon, carry)
    rows = (
        rows_of_a_tick(law.pattern, law.cones)
        if law.rows is None
        else constant_rows(law.rows, law.real)
    )
    if law.prepares_rows:
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
