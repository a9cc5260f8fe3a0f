"""The rows of a least-distance problem in C: lengths, values at x, and single rows, read in place.

`A` is stored as CasADi does, nonzeros column by column, and is not copied. A column is a list of
runs: rows that follow each other.
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi.codegen.cone_c import ROW, plane_rows
from mbcasadi.codegen.constant_rows import ConstantRows
from mbcasadi.codegen.precision import Real
from mbcasadi.codegen.text import comma_list, constant, template


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
