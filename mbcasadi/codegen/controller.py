"""The control function's C: CasADi's text, the solver's setting, the functions of the header."""

from mbcasadi.codegen.casadi_c import generate
from mbcasadi.codegen.header import parameters
from mbcasadi.codegen.law import Law, find_port
from mbcasadi.codegen.sizes import (
    PRIMAL_TOLERANCE,
    STATUS_FAILED,
    iteration_limit,
    work_sizes,
)
from mbcasadi.codegen.text import constant, listed, number, template


def controller_c(law: Law) -> str:
    """Return `<name>.c`: CasADi's C, the solver's setting, and the functions of the header."""
    head = (
        f'#include "{law.name}.h"\n\n#include <float.h>\n#include <math.h>\n#include <string.h>\n\n'
    )
    glue = template("controller.c.in", _controller_values(law))
    solver = _least_distance_c(law) if law.staged else ""
    return head + generate(law.functions, law.name) + "\n" + solver + glue.rstrip() + "\n"


def _controller_values(law: Law) -> dict[str, str | int]:
    upper = law.name.upper()
    bind = [f"  in[{i}] = {p.identifier};\n" for i, p in enumerate(law.inputs)]
    bind += [f"  out[{i}] = {p.identifier};\n" for i, p in enumerate(law.outputs)]
    state, status = find_port(law.inputs, "z"), find_port(law.outputs, "status")
    nz = 0 if law.z0 is None else law.z0.size
    if state and nz:
        i = law.inputs.index(state)
        bind.append(f"  if (z) in[{i}] = (const double *)memcpy(m->state, z, sizeof m->state);\n")
    success, local = f"{upper}_OK", ""
    if status:
        k = law.outputs.index(status)
        local = "  double status_value = 0;\n"
        bind.append(f"  if (!out[{k}]) out[{k}] = &status_value;\n")
        success = f"status_code(out[{k}][0])"
    work = work_sizes(law)
    values: dict[str, str | int] = {
        "stage_members": "  struct ldp ldp;\n" if law.staged else "",
        "state_member": f"  double state[{nz}];\n" if nz else "",
        "constants": _constant_definitions(law),
        "body": _body(law, bool(status)),
        "parameters": parameters(law),
        "locals": local,
        "bind": "".join(bind),
        "failure": "safe_output(out)" if law.u_min is not None else f"{upper}_FAILED",
        "success": success,
        "accessors": _solver_definitions(law),
        "n_in_array": max(1, len(law.inputs)),
        "n_out_array": max(1, len(law.outputs)),
        "name": law.name,
        "NAME": upper,
    }
    values.update({k: max(1, size) for k, size in work.items()})
    return values


def _body(law: Law, has_status: bool) -> str:
    values: dict[str, str | int] = {
        "n_in": len(law.inputs),
        "n_out": len(law.outputs),
        "name": law.name,
        "NAME": law.name.upper(),
    }
    text = template("staged.c.in" if law.staged else "plain.c.in", values)
    if has_status:
        text += (
            "\nstatic int status_code(double status) {\n"
            f"  return status >= 0 && status <= 99 ? (int)status : {STATUS_FAILED};\n}}\n"
        )
    return text + (_safe_output(law) if law.u_min is not None else "")


def _safe_output(law: Law) -> str:
    """Return the C that writes a bounded output where the arithmetic broke down."""
    lines = [
        "",
        "/* The arithmetic broke down: zero control within its limits, the initial state. */",
        "static int safe_output(double **out) {",
        "  int i;",
    ]
    for k, port in enumerate(law.outputs):
        value = {
            "u": f"fmin(fmax(0, {law.name}_u_min[i]), {law.name}_u_max[i])",
            "z_next": f"{law.name}_z0[i]",
            "status": str(STATUS_FAILED),
        }.get(port.name, "HUGE_VAL" if port.name == "residual" else "0")
        if port.size:
            lines += [
                f"  if (out[{k}])",
                f"    for (i = 0; i < {port.size}; ++i) out[{k}][i] = {value};",
            ]
    code = STATUS_FAILED if find_port(law.outputs, "status") else f"{law.name.upper()}_FAILED"
    return "\n".join([*lines, f"  return {code};", "}", ""])


def _least_distance_c(law: Law) -> str:
    pattern = law.functions[0].sparsity_out("A_qp")
    rows, cols = pattern.get_triplet()
    carry = int(law.functions[0].nnz_out("carry"))
    n, m, nnz = law.n, law.m, int(pattern.nnz())
    values: dict[str, str | int] = {
        "n": n,
        "m": m,
        "nnz": nnz,
        "carry": carry,
        "n_array": max(1, n),
        "m_array": max(1, m),
        "mn_array": max(1, m * n),
        "nnz_array": max(1, nnz),
        "carry_array": max(1, carry),
        "rows": listed(rows),
        "cols": listed(cols),
        "iteration_limit": iteration_limit(law),
        "primal_tol": number(PRIMAL_TOLERANCE),
        "NAME": law.name.upper(),
    }
    return template("least_distance.c.in", values) + "\n"


def _constant_definitions(law: Law) -> str:
    rows = [constant("const double", f"{law.name}_{n}", v) for n, v in law.constants]
    return "".join([*rows, "\n"]) if rows else ""


def _solver_definitions(law: Law) -> str:
    if not law.staged:
        return ""
    return "".join(
        f"\nint {law.name}_{what}(const void *memory) {{\n"
        f"  return memory ? ((const struct memory *)memory)->{what} : 0;\n}}\n"
        for what in ("exit_flag", "iterations")
    )
