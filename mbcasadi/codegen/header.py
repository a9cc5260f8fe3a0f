"""The header of the generated C."""

from mbcasadi.codegen.c_interface import (
    CLaw,
    Port,
    enumerators,
    find_port,
    law_template,
    parameters,
    signature,
)
from mbcasadi.codegen.emergency import keeps_last
from mbcasadi.codegen.sensor_rows import sensor_header
from mbcasadi.codegen.sizes import memory_doubles
from mbcasadi.codegen.text import number, unique_identifiers
from mbcasadi.description.qp_stages import SolverFlag
from mbcasadi.description.status import Status

OWN_MACROS = (
    *("BAD_MEMORY", "FAILED_TICK", "LOG_BYTES", "LOG_HEADER_BYTES", "MEMORY_BYTES"),
    *("MEMORY_DOUBLES", "NOT_FINITE", "OUT_OF_RANGE", "RATE_LIMITED", "RECORD_BYTES"),
    *("SUPERVISED_BYTES", "SUPERVISED_DOUBLES", "SUPERVISED_H"),
)
"""Macros of an export of several words: a component's index could be called so."""


def header_h(law: CLaw) -> str:
    """Return `<name>.h`."""
    upper = law.name.upper()
    returns = f"{upper}_OK, {upper}_BAD_MEMORY or {upper}_FAILED."
    if find_port(law.outputs, "status"):
        returns = f"the status, or {upper}_BAD_MEMORY."
    values: dict[str, str | int] = {
        "title": f"The control function {law.name}." if law.u_min is not None else law.name,
        "signature": signature(law),
        "doubles": memory_doubles(law),
        "period": _period(law),
        "sizes": "\n".join(
            f"#define {name} {p.size}" for name, p in zip(_sizes(law), law.signals, strict=True)
        ),
        "indices": _indices(law),
        "constants": _constant_declarations(law),
        "solver_codes": f"\n#define {upper}_REJECTED (-100) "
        "/* exit flag: the problem is not finite, or one row alone cannot be met */\n"
        if law.staged
        else "",
        "arguments": "\n".join(_argument_lines(law)),
        "rows_of_y": sensor_header(law),
        "aliasing": "\n * z and z_next may be the same array." if law.has_state else "",
        "null_state": _null_inputs(law),
        "returns": returns,
        "emergency": _emergency(law),
        "parameters": parameters(law, law.inputs, law.outputs),
        "functions": "the functions below"
        if law.prepared_from
        else f"{law.name}_init and {law.name}_step",
        "and_feedback": "a tick or its feedback" if law.prepared_from else f"{law.name}_step",
        "busy_comma": "," if law.prepared_from else "",
        "busy_code": f"  {upper}_BUSY = -3 /* another call on this memory is running */\n"
        if law.prepared_from
        else "",
        "phases": _phases(law) if law.prepared_from else "",
        "solver_functions": _accessors(law),
    }
    return law_template(law, "header.h.in", values).strip() + "\n"


def _null_inputs(law: CLaw) -> str:
    """Return what null inputs count as that are no zeros."""
    parts = [
        f",\n * a null {port.name} as {default}" + (" (all on)" if port.name == "mask" else "")
        for port in law.inputs
        if (default := law.default_name(port))
    ]
    return "".join(parts)


def _emergency(law: CLaw) -> str:
    """Return the remark on ticks that cannot run; a bare Function has none."""
    if not law.nu:
        return ""
    upper, has_flags = law.name.upper(), find_port(law.outputs, "flags")
    mark = " and a flag" if has_flags else ""
    status = Status.BAD_INPUT if find_port(law.outputs, "status") else f"{upper}_FAILED"
    source = "that of the state z" if law.emergency else f"the last command, then {law.name}_u_safe"
    return law_template(
        law,
        "emergency.h.in",
        {"source": source, "status": status, "mark": mark},
    ).rstrip()


def _phases(law: CLaw) -> str:
    has_status = find_port(law.outputs, "status")
    status = f"{Status.BAD_INPUT} (bad input)" if has_status else f"{law.name.upper()}_FAILED"
    return law_template(
        law,
        "phases.h.in",
        {
            "arguments": "\n".join(argument_line("in ", port) for port in law.prepared_from),
            "status": status,
            "known_parameters": parameters(law, law.prepared_from),
            "parameters": parameters(law, law.inputs, law.outputs),
        },
    )


def _period(law: CLaw) -> str:
    if law.period is None:
        return ""
    value = number(law.period, law.real)
    return f"/* Sample time, s. */\n#define {law.name.upper()}_PERIOD {value}\n\n"


def _sizes(law: CLaw) -> list[str]:
    """Return the macros of the sizes of all signals."""
    labels = (f"{law.name}_{p.name}_SIZE" for p in law.signals)
    return unique_identifiers(labels, {f"{law.name.upper()}_{name}" for name in OWN_MACROS})


def _indices(law: CLaw) -> str:
    upper = law.name.upper()
    taken = {*_sizes(law), *(f"{upper}_{name}" for name in OWN_MACROS)}
    blocks = []
    for port in law.signals:
        if not port.is_named:
            continue
        names = unique_identifiers((f"{upper}_{port.name}_{c}" for c in port.components), taken)
        rows = enumerators(names, port, "  ")
        blocks.append("\n".join(["enum {", *rows, "};"]).replace(",\n}", "\n}"))
    return "\n".join(blocks) or "/* (the signals have no component names) */"


def _argument_lines(law: CLaw) -> list[str]:
    lines = [argument_line("in ", port) for port in law.inputs]
    return lines + [argument_line("out", port) for port in law.outputs]


def argument_line(side: str, port: Port) -> str:
    """Return the line of a comment that says what a parameter is."""
    rows, cols = port.sparsity.shape
    shape = f"{rows}" if cols == 1 else f"{rows} x {cols}"
    dense = "" if port.sparsity.is_dense() else f", {port.size} nonzeros"
    unit_text = f" [{port.unit_text}]" if port.unit_text else ""
    return f" *   {side} {port.identifier}: {shape}{dense}{unit_text}"


def _constant_declarations(law: CLaw) -> str:
    rows = [
        f"extern const {law.real} {law.name}_{name}[{max(1, len(values))}];"
        for name, values in law.constants
    ]
    return (
        "\n/* Limits of the control, its value without state and memory, initial state. */\n"
        + "\n".join(rows)
        + "\n"
        if rows
        else ""
    )


def _accessors(law: CLaw) -> str:
    text = _solver_declarations(law) if law.staged else ""
    if not keeps_last(law):
        return text
    return text + law_template(law, "last_control.h.in")


def _solver_declarations(law: CLaw) -> str:
    values: dict[str, str | int] = {
        "codes": "DAQP's exit flag (1: optimal)"
        if law.has_daqp
        else f"The solver's exit flag ({SolverFlag.OPTIMAL:d}: optimal, {SolverFlag.STOPPED:d}: "
        f"stopped, {SolverFlag.INFEASIBLE:d}: infeasible)",
        "m": law.m,
    }
    return "\n" + law_template(law, "accessors.h.in", values)
