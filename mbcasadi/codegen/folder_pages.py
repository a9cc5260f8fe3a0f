"""The files beside the C: example, build file and README."""

from collections.abc import Mapping

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.codegen.c_interface import Law, Port, find_port
from mbcasadi.codegen.manifest import DaqpOrigin, recommended_flags
from mbcasadi.codegen.sizes import iteration_limit, memory_doubles
from mbcasadi.codegen.text import constant, number, package_version, template
from mbcasadi.description.controller import defaults_of
from mbcasadi.description.qp_stages import C_PRIMAL_TOLERANCE
from mbcasadi.shapes import column, require_name


def example_inputs(
    law: Law, example: Mapping[str, ArrayLike] | None
) -> dict[str, NDArray[np.float64]]:
    """Return a value for every input: `example`, then z0 and entries, then the Function's defaults.

    Raises:
        UnknownNameError: `example` names an input that the law does not have.
        ShapeError: a value has another size than its input.
    """
    examples = dict(example or {})
    for name in examples:
        require_name("input", name, [p.name for p in law.inputs])
    values = {}
    for port in law.inputs:
        if port.name in examples:
            values[port.name] = column(port.name, examples[port.name], port.size)
        elif port.name == "z" and law.z0 is not None:
            values[port.name] = law.z0
        elif port.name in law.entries:
            values[port.name] = defaults_of(law.entries[port.name])
        else:
            values[port.name] = np.full(port.size, port.default)
    return values


def main_c(law: Law, example: Mapping[str, ArrayLike] | None) -> str:
    """Return `main.c`: a loop over the law on one state."""
    values = example_inputs(law, example)
    declared = [
        f"  {constant('double', p.identifier, values[p.name].tolist())}" for p in law.inputs
    ]
    declared += [f"  double {p.identifier}[{max(1, p.size)}] = {{0}};\n" for p in law.outputs]
    arguments = [p.identifier for p in law.inputs + law.outputs]
    printed = [p for p in law.outputs if p.name == "u"] or list(law.outputs[:1])
    feedback = "    memcpy(z, z_next, sizeof z);\n" if law.has_state else ""
    return template(
        "main.c.in",
        {
            "declarations": "".join(declared),
            "call": _call(law, arguments),
            "feedback": feedback,
            "prints": "".join(_print(p) for p in printed),
            "name": law.name,
            "NAME": law.name.upper(),
        },
    )


def _call(law: Law, arguments: list[str]) -> str:
    """Return the C of one tick: a step, or both phases."""
    tick_arguments = "".join(f", {a}" for a in arguments)
    if not law.prepared_from:
        return f"    code_ = {law.name}_step(memory{tick_arguments});\n"
    prepare_arguments = "".join(f", {p.identifier}" for p in law.prepared_from)
    return (
        f"    if ({law.name}_prepare(memory{prepare_arguments})) return 1;\n"
        "    /* here the measurement comes */\n"
        f"    code_ = {law.name}_feedback(memory{tick_arguments});\n"
    )


def cmake_lists(law: Law, daqp: DaqpOrigin) -> str:
    """Return `CMakeLists.txt`."""
    default = "${CMAKE_CURRENT_SOURCE_DIR}/daqp" if daqp == "wheel" else ""
    snippet = template("daqp.cmake.in", {"default": default, "name": law.name})
    return template(
        "CMakeLists.txt.in",
        {
            "daqp": snippet if law.has_daqp else "",
            "optimisation": " ".join(recommended_flags(law)),
            "name": law.name,
            "NAME": law.name.upper(),
        },
    )


def readme(law: Law, daqp: DaqpOrigin) -> str:
    """Return `README.md`."""
    shipped = law.has_daqp and daqp == "wheel"
    subject = "A control function" if law.u_min is not None else "A function"
    period = f", sampled every {number(law.period)} s" if law.period is not None else ""
    origin = f" made from {law.source}" if law.source else ""
    link = "-Idaqp/include daqp/libdaqpstat.a " if shipped else "-ldaqpstat "
    return template(
        "README.md.in",
        {
            "summary": f"{subject} in C99{origin}{period}.",
            "version": package_version(),
            "casadi": ca.CasadiMeta.version(),
            "daqp_row": "| `daqp/` | the solver's headers and static library |\n"
            if shipped
            else "",
            "daqp_flags": link if law.has_daqp else "",
            "optimisation": " ".join(recommended_flags(law)),
            "bytes": 8 * memory_doubles(law),
            "call": "".join(f", {p.identifier}" for p in law.inputs + law.outputs),
            "state": "The state is explicit: start with `z = z0`, and hand each `z_next` to the "
            "next tick (the two may be the same array).\n"
            if law.has_state
            else "",
            "nulls": _nulls(law),
            "returned": _returned(law),
            "phases": _phases_page(law),
            "signals": "\n".join(
                [_row("in", p) for p in law.inputs] + [_row("out", p) for p in law.outputs]
            ),
            "solver": _solver_page(law, daqp) if law.staged else "",
            "name": law.name,
            "NAME": law.name.upper(),
        },
    )


def _nulls(law: Law) -> str:
    """Return what null inputs stand for, of the inputs that the law has."""
    names = {port.name for port in law.inputs}
    meanings = {
        "z": "a null `z` as the initial state",
        "tuning": "a null `tuning` as its defaults",
        "p": "a null `p` as the model's own numbers",
        "mask": "a null `mask` switches all off",
    }
    parts = [text for name, text in meanings.items() if name in names]
    return ", ".join(["A null input counts as zeros", *parts]) + "."


def _returned(law: Law) -> str:
    """Return the table of the numbers that a step returns; nothing without a status."""
    if find_port(law.outputs, "status") is None or not law.statuses:
        return ""
    rows = "".join(f"| {code} | {text} |\n" for code, text in enumerate(law.statuses))
    return (
        f"\n| returned | meaning |\n|---|---|\n{rows}"
        f"| -1 | `{law.name.upper()}_BAD_MEMORY`: the memory is not ready, safe output |\n"
    )


def _phases_page(law: Law) -> str:
    if not law.prepared_from:
        return ""
    values = {
        "known": "".join(f", {p.identifier}" for p in law.prepared_from),
        "call": "".join(f", {p.identifier}" for p in law.inputs + law.outputs),
        "names": ", ".join(f"`{p.name}`" for p in law.prepared_from),
        "name": law.name,
    }
    return template("readme_phases.md.in", values)


def _print(port: Port) -> str:
    if port.size == 0:
        return ""
    return (
        f"  for (tick_ = 0; tick_ < {port.size}; ++tick_)\n"
        f'    printf("{port.name}[%d] = %.12g\\n", tick_, {port.identifier}[tick_]);\n'
    )


def _row(side: str, port: Port) -> str:
    units = port.units or ("",) * len(port.components)
    labels = [f"{c} [{u}]" if u else c for c, u in zip(port.components, units, strict=True)]
    components = ", ".join(label for label in labels if label).replace("|", "/")
    return f"| {side} | `{port.name}` | {port.size} | {components} |"


def _solver_page(law: Law, daqp: DaqpOrigin) -> str:
    values: dict[str, str | int] = {
        "n": law.n,
        "m": law.m,
        "iterations": iteration_limit(law),
        "primal_tol": number(C_PRIMAL_TOLERANCE),
        "name": law.name,
    }
    method = "method.md.in"
    if law.has_daqp:
        method = "method_daqp.md.in"
        values["daqp_origin"] = (
            "`daqp/` holds DAQP's library for the machine that exported, and its licence."
            if daqp == "wheel"
            else "DAQP is not part of this folder."
        )
    values["method"] = template(method, values).rstrip()
    return template("readme_solver.md.in", values)
