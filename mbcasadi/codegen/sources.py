"""The C files of an export: what each one says about the law."""

import casadi as ca

from mbcasadi.codegen.casadi_c import generate
from mbcasadi.codegen.law import Law, Port
from mbcasadi.codegen.text import (
    constant,
    listed,
    number,
    package_version,
    template,
    unique_identifiers,
)

# Distance by which a row of unit length may be violated, relative to the problem's scale.
PRIMAL_TOLERANCE = 1e-10
# Bytes of a pointer, a CasADi integer and DAQP's two structures, rounded up, on a 64-bit target.
POINTER, INTEGER, SOLVER_STRUCTURES = 8, 8, 448

STATUS_FAILED = 4


def iteration_limit(law: Law) -> int:
    """Return DAQP's iteration limit: a cold start adds and drops each row a few times."""
    return 50 + 10 * (law.n + law.m)


def memory_doubles(law: Law) -> int:
    """Return the size of the caller's memory in doubles, with room for alignment."""
    work = _work_sizes(law)
    total = work["sz_w"] + work["sz_iw"] + work["sz_arg"] + work["sz_res"] + 4
    total += 0 if law.z0 is None else law.z0.size
    if law.staged:
        n, m = max(1, law.n), max(1, law.m)
        nnz = max(1, int(law.functions[0].nnz_out("A_qp")))
        carry = max(1, int(law.functions[0].nnz_out("carry")))
        integers = m + n + 1
        total += nnz + m * n + 5 * m + 2 * n + carry + (n + 1) * (n + 2) // 2 + 5 * (n + 1) + 2
        total += (integers + 1) // 2 + SOLVER_STRUCTURES // 8
    return total


def controller_c(law: Law) -> str:
    """Return `<name>.c`: CasADi's C, the solver's setting, and the functions of the header."""
    head = (
        f'#include "{law.name}.h"\n\n#include <float.h>\n#include <math.h>\n#include <string.h>\n\n'
    )
    glue = template("controller.c.in", _controller_values(law))
    solver = _least_distance_c(law) if law.staged else ""
    return head + generate(law.functions, law.name) + "\n" + solver + glue.rstrip() + "\n"


def header_h(law: Law) -> str:
    """Return `<name>.h`."""
    upper = law.name.upper()
    returns = f"{upper}_OK, {upper}_BAD_MEMORY or {upper}_FAILED."
    if _port(law.outputs, "status"):
        returns = f"the status, or {upper}_BAD_MEMORY."
    has_state = law.z0 is not None and law.z0.size > 0
    values = {
        "title": f"The control function {law.name}." if law.u_min is not None else law.name,
        "version": package_version(),
        "casadi": ca.__version__,
        "doubles": memory_doubles(law),
        "period": _period(law),
        "sizes": "\n".join(
            f"#define {upper}_{p.name.upper()}_SIZE {p.size}" for p in law.inputs + law.outputs
        ),
        "indices": _indices(law),
        "constants": _constant_declarations(law),
        "solver_codes": f"\n#define {upper}_REJECTED (-100) "
        "/* exit flag: the problem was not finite, or one row alone cannot be met */\n"
        if law.staged
        else "",
        "arguments": "\n".join(_argument_lines(law)),
        "aliasing": "\n * z and z_next may be the same array." if has_state else "",
        "returns": returns,
        "parameters": parameters(law),
        "solver_functions": _solver_declarations(law),
        "name": law.name,
        "NAME": upper,
    }
    return template("header.h.in", values).strip() + "\n"


def external_c(law: Law) -> str:
    """Return `<name>_external.c`, the face that `casadi.external` loads."""
    arrays = []
    for side, ports in (("in", law.inputs), ("out", law.outputs)):
        for i, port in enumerate(ports):
            numbers = port.sparsity.compress()
            arrays.append(
                f"static const casadi_int {side}_{i}[{len(numbers)}] = {{{listed(numbers)}}};\n"
            )
    calls = [f"arg[{i}]" for i in range(len(law.inputs))]
    calls += [f"res[{i}]" for i in range(len(law.outputs))]
    values = {
        "sparsities": "".join(arrays),
        "call": "".join(f", {c}" for c in calls),
        "n_in": len(law.inputs),
        "n_out": len(law.outputs),
        "n_in_array": max(1, len(law.inputs)),
        "n_out_array": max(1, len(law.outputs)),
        "defaults": _cases([number(p.default) for p in law.inputs]),
        "names_in": _cases([f'"{p.name}"' for p in law.inputs]),
        "names_out": _cases([f'"{p.name}"' for p in law.outputs]),
        "sparsity_in": _cases([f"in_{i}" for i in range(len(law.inputs))]),
        "sparsity_out": _cases([f"out_{i}" for i in range(len(law.outputs))]),
        "name": law.name,
        "NAME": law.name.upper(),
    }
    return template("external.c.in", values)


def parameters(law: Law) -> str:
    """Return the parameters of `<name>_step` after the memory."""
    inputs = [f"const double *{p.identifier}" for p in law.inputs]
    outputs = [f"double *{p.identifier}" for p in law.outputs]
    return "".join(f", {p}" for p in inputs + outputs)


def _controller_values(law: Law) -> dict[str, str | int]:
    upper = law.name.upper()
    bind = [f"  in[{i}] = {p.identifier};\n" for i, p in enumerate(law.inputs)]
    bind += [f"  out[{i}] = {p.identifier};\n" for i, p in enumerate(law.outputs)]
    state, status = _port(law.inputs, "z"), _port(law.outputs, "status")
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
    work = _work_sizes(law)
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
    return values | {k: max(1, size) for k, size in work.items()}


def _body(law: Law, has_status: bool) -> str:
    sizes = {"n_in": len(law.inputs), "n_out": len(law.outputs)}
    names = {"name": law.name, "NAME": law.name.upper()}
    text = template("staged.c.in" if law.staged else "plain.c.in", sizes | names)
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
    return "\n".join([*lines, f"  return {STATUS_FAILED};", "}", ""])


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


def _work_sizes(law: Law) -> dict[str, int]:
    return {
        "sz_arg": max(int(f.sz_arg()) for f in law.functions),
        "sz_res": max(max(int(f.sz_res()) for f in law.functions), 5),
        "sz_iw": max(int(f.sz_iw()) for f in law.functions),
        "sz_w": max(int(f.sz_w()) for f in law.functions),
    }


def _port(ports: tuple[Port, ...], name: str) -> Port | None:
    return next((p for p in ports if p.name == name), None)


def _period(law: Law) -> str:
    if law.period is None:
        return ""
    return f"/* Sample time, s. */\n#define {law.name.upper()}_PERIOD {number(law.period)}\n\n"


def _indices(law: Law) -> str:
    upper = law.name.upper()
    taken = {f"{upper}_{p.name.upper()}_SIZE" for p in law.inputs + law.outputs}
    blocks = []
    for port in law.inputs + law.outputs:
        if not port.components or not all(port.components):
            continue
        names = unique_identifiers((f"{upper}_{port.name}_{c}" for c in port.components), taken)
        units = port.units or ("",) * port.size
        rows = [
            f"  {name} = {i}," + (f" /* {_comment(unit)} */" if unit else "")
            for i, (name, unit) in enumerate(zip(names, units, strict=True))
        ]
        blocks.append("\n".join(["enum {", *rows, "};"]).replace(",\n}", "\n}"))
    return "\n".join(blocks) or "/* (the signals have no component names) */"


def _comment(text: str) -> str:
    return text.replace("*/", "* /")


def _argument_lines(law: Law) -> list[str]:
    lines = []
    for side, ports in (("in ", law.inputs), ("out", law.outputs)):
        for p in ports:
            rows, cols = p.sparsity.shape
            shape = f"{rows}" if cols == 1 else f"{rows} x {cols}"
            dense = "" if p.sparsity.is_dense() else f", {p.size} nonzeros"
            lines.append(f" *   {side} {p.identifier}: {shape}{dense}")
    return lines


def _constants(law: Law) -> list[tuple[str, list[float]]]:
    pairs = (("u_min", law.u_min), ("u_max", law.u_max), ("z0", law.z0))
    return [(name, values.tolist()) for name, values in pairs if values is not None]


def _constant_declarations(law: Law) -> str:
    rows = [
        f"extern const double {law.name}_{name}[{max(1, len(values))}];"
        for name, values in _constants(law)
    ]
    return (
        "\n/* Limits of the control, initial state. */\n" + "\n".join(rows) + "\n" if rows else ""
    )


def _constant_definitions(law: Law) -> str:
    rows = [constant("const double", f"{law.name}_{n}", v) for n, v in _constants(law)]
    return "".join([*rows, "\n"]) if rows else ""


def _solver_declarations(law: Law) -> str:
    if not law.staged:
        return ""
    return (
        "\n/* DAQP's exit flag (1: optimal) and iterations of the last tick. */\n"
        f"int {law.name}_exit_flag(const void *memory);\n"
        f"int {law.name}_iterations(const void *memory);\n"
    )


def _solver_definitions(law: Law) -> str:
    if not law.staged:
        return ""
    return "".join(
        f"\nint {law.name}_{what}(const void *memory) {{\n"
        f"  return memory ? ((const struct memory *)memory)->{what} : 0;\n}}\n"
        for what in ("exit_flag", "iterations")
    )


def _cases(values: list[str]) -> str:
    return "".join(f"    case {i}: return {v};\n" for i, v in enumerate(values))
