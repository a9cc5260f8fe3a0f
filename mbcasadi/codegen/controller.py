"""The control function's C: CasADi's text, the solver's setting, the functions of the header."""

from mbcasadi.codegen.c_interface import Law, Port, find_port
from mbcasadi.codegen.casadi_c import generate
from mbcasadi.codegen.header import parameters
from mbcasadi.codegen.phases import (
    build_arguments,
    finish_arguments,
    members,
    output_loops,
    phases_c,
    zero_control,
)
from mbcasadi.codegen.sizes import work_sizes
from mbcasadi.codegen.solver_c import least_distance_c
from mbcasadi.codegen.text import constant, template
from mbcasadi.description.status import Status

# GCC and Clang define the first two, Microsoft's compiler the third.
STRICT_ARITHMETIC = """\
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || \\
    defined(_M_FP_FAST)
#error "no -ffast-math, -Ofast, -ffinite-math-only, /fp:fast: they remove the checks of NaN"
#endif
"""


def controller_c(law: Law) -> str:
    """Return `<name>.c`: CasADi's C, the solver's setting, and the functions of the header."""
    head = (
        f'#include "{law.name}.h"\n\n#include <float.h>\n#include <math.h>\n#include <string.h>\n\n'
        f"{STRICT_ARITHMETIC}\n"
    )
    glue = template("controller.c.in", _controller_values(law))
    solver = least_distance_c(law) if law.staged else ""
    return head + generate(law.functions, law.name) + "\n" + solver + glue.rstrip() + "\n"


def _controller_values(law: Law) -> dict[str, str | int]:
    upper = law.name.upper()
    bind = [f"  in[{i}] = {_argument(law, p)};\n" for i, p in enumerate(law.inputs)]
    bind += [f"  out[{i}] = {p.identifier};\n" for i, p in enumerate(law.outputs)]
    state, status = find_port(law.inputs, "z"), find_port(law.outputs, "status")
    nz = 0 if law.z0 is None else law.z0.size
    keep = ""
    if state and nz and state not in law.prepared_from:
        i = law.inputs.index(state)
        keep = f"  if (z) in[{i}] = (const double *)memcpy(m->state, z, sizeof m->state);\n"
        bind += [keep] if not law.prepared_from else []
    success, local = f"{upper}_OK", ""
    if status:
        k = law.outputs.index(status)
        local = "  double status_value = 0;\n"
        bind.append(f"  if (!out[{k}]) out[{k}] = &status_value;\n")
        success = f"status_code(out[{k}][0])"
    work = work_sizes(law)
    values: dict[str, str | int] = {
        "stage_members": "  struct ldp ldp;\n" if law.staged else "",
        "phase_members": "  int is_prepared;\n  volatile int busy;\n"
        if law.prepared_from
        else "  int padding;\n",
        "state_member": f"  double state[{nz}];\n" if keep else "",
        "keep": keep,
        "prepared_members": members(law),
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
    values["entries"] = (
        phases_c(law, values) if law.prepared_from else template("step.c.in", values)
    )
    return values


def _argument(law: Law, port: Port) -> str:
    """Return the C of one input; `tuning` has defaults."""
    if port.name != "tuning":
        return port.identifier
    return f"{port.identifier} ? {port.identifier} : {law.name}_tuning_default"


def _body(law: Law, has_status: bool) -> str:
    values: dict[str, str | int] = {
        "n_in": len(law.inputs),
        "n_out": len(law.outputs),
        "build_arguments": build_arguments(law) if law.staged else "",
        "finish_arguments": finish_arguments(law) if law.staged else "",
        "name": law.name,
        "NAME": law.name.upper(),
    }
    text = template("staged.c.in" if law.staged else "plain.c.in", values)
    if has_status:
        text += (
            "\nstatic int status_code(double status) {\n"
            f"  return status >= 0 && status <= 99 ? (int)status : {Status.FAILED};\n}}\n"
        )
    return text + (_safe_output(law) if law.u_min is not None else "")


def _safe_output(law: Law) -> str:
    """Return the C that writes a bounded output where the arithmetic failed."""
    entries = {
        "u": zero_control(law),
        "z_next": f"{law.name}_z0[i]",
        "status": str(Status.FAILED),
        "residual": "HUGE_VAL",
    }
    lines = [
        "",
        "/* The arithmetic broke down: zero control within its limits, the initial state. */",
        "static int safe_output(double **out) {",
        "  int i;",
        *output_loops(law, entries),
    ]
    code = Status.FAILED if find_port(law.outputs, "status") else f"{law.name.upper()}_FAILED"
    return "\n".join([*lines, f"  return {code};", "}", ""])


def _constant_definitions(law: Law) -> str:
    rows = [constant("const double", f"{law.name}_{n}", v) for n, v in law.constants]
    return "".join([*rows, "\n"]) if rows else ""


def _solver_definitions(law: Law) -> str:
    if not law.staged:
        return ""
    return "".join(
        f"\nint {law.name}_{field}(const void *memory) {{\n"
        f"  return memory ? ((const struct memory *)memory)->{field} : 0;\n}}\n"
        for field in ("exit_flag", "iterations")
    )
