"""The solver's part of a law's C: the rows of its QP, and DAQP around them."""

import numpy as np

from mbcasadi.codegen.c_interface import Law
from mbcasadi.codegen.phases import prepares_rows
from mbcasadi.codegen.sizes import iteration_limit
from mbcasadi.codegen.text import comma_list, constant, number, template
from mbcasadi.codegen.unit_rows import FAR, UnitRows
from mbcasadi.description.qp_stages import (
    C_PRIMAL_TOLERANCE,
    DEPENDENT,
    LEAST_DISTANCE,
    PROOF_RADIUS,
    PROOF_ROUNDING,
    RAY_ROUNDING,
    REFINED,
    ROUNDING,
    SMALL_DISTANCE,
    ZERO_BOUND,
    ZERO_ROW,
    SolverFlag,
)


def least_distance_c(law: Law) -> str:
    """Return the C that solves the least-distance problem, its rows constant or of each tick."""
    n, m, carry = law.n, law.m, int(law.functions[0].nnz_out("carry"))
    values: dict[str, str | int] = {
        "n": n,
        "m": m,
        "carry": carry,
        "n_array": max(1, n),
        "m_array": max(1, m),
        "carry_array": max(1, carry),
        "iteration_limit": iteration_limit(law),
        "primal_tol": number(C_PRIMAL_TOLERANCE),
        "refined": number(REFINED),
        "rounding": number(ROUNDING),
        "dependent": number(DEPENDENT),
        "least_distance": number(LEAST_DISTANCE),
        "small_distance": number(SMALL_DISTANCE),
        "far": number(FAR),
        "zero_bound": number(ZERO_BOUND),
        "optimal": int(SolverFlag.OPTIMAL),
        "stopped": int(SolverFlag.STOPPED),
        "infeasible": int(SolverFlag.INFEASIBLE),
        "ray_rounding": number(RAY_ROUNDING),
        "proof_radius": number(PROOF_RADIUS),
        "proof_rounding": number(PROOF_ROUNDING),
        "NAME": law.name.upper(),
    }
    values |= _rows_of_a_tick(law) if law.rows is None else _constant_rows(law.rows)
    second = {key: values[key] for key in ("n_array", "scale")}
    values["second"] = template("dual_active_set.c.in", second)
    return template("least_distance.c.in", values) + "\n"


def _constant_rows(rows: UnitRows) -> dict[str, str | int]:
    """Return the template values for constant rows of unit length, which a tick does not copy."""
    flat = np.ravel(rows.A).tolist()
    tables = (
        "/* The rows are constants, of unit length; ldp_scale is one over the length before. */\n"
    )
    tables += constant("static const double", "ldp_A", flat)
    tables += constant("static const double", "ldp_scale", rows.scale.tolist())
    return {
        "row_tables": tables,
        "row_members": "",
        "normalise": "",
        "normalised": "1",
        "matrix": "(double *)ldp_A; /* it only reads them */",
        "scale": "ldp_scale",
    }


def _rows_of_a_tick(law: Law) -> dict[str, str | int]:
    """Return the template values that scale the rows to unit length on every tick."""
    pattern = law.pattern
    rows, cols = pattern.get_triplet()
    nnz, mn = max(1, int(pattern.nnz())), max(1, law.m * law.n)
    tables = f"#define LDP_NNZ {pattern.nnz()} /* nonzeros of A */\n"
    tables += f"static const int ldp_row[{nnz}] = {{{comma_list(rows)}}};\n"
    tables += f"static const int ldp_col[{nnz}] = {{{comma_list(cols)}}};\n"
    members = f"  double A[{nnz}], M[{mn}], scale[{max(1, law.m)}];\n"
    return {
        "row_tables": tables,
        "row_members": members + ("  int normal;\n" if prepares_rows(law) else ""),
        "normalise": template("rows_of_a_tick.c.in", {"zero_row": number(ZERO_ROW)}) + "\n",
        "normalised": "p->normal" if prepares_rows(law) else "ldp_normalise(p)",
        "matrix": "p->M;",
        "scale": "p->scale",
    }
