"""The files beside the C: example, build file and README."""

from mbcasadi.codegen.c_interface import STATES, CLaw, Port, arguments, find_port, law_template
from mbcasadi.codegen.example_run import STEP, TICKS, WAVE, ExampleRun
from mbcasadi.codegen.manifest import DaqpOrigin, recommended_flags
from mbcasadi.codegen.precision import numbers_of
from mbcasadi.codegen.sensor_rows import sensor_page
from mbcasadi.codegen.sizes import iteration_limit, memory_doubles
from mbcasadi.codegen.text import (
    comma_list,
    constant,
    number,
    plain_line,
)
from mbcasadi.description.controller import HANDED

MOST_LABELS = 12
"""Components of a signal that the README shows; the header has all."""


def main_c(law: CLaw, run: ExampleRun) -> str:
    """Return `main.c`: ticks on inputs that move around the start, compared with a record."""
    real = law.real
    own = [
        f"  {constant(real, p.identifier, run.inputs[p.name].tolist(), real)}" for p in law.inputs
    ]
    own += [f"  {real} {p.identifier}[{max(1, p.size)}] = {{0}};\n" for p in law.outputs]
    identifiers = {p.name: p.identifier for p in law.signals}
    size = run.values.shape[1]
    moves = [
        f"    move({identifiers[name]}, start_{identifiers[name]}, {run.inputs[name].size}, row);\n"
        for name in run.waves
        if run.inputs[name].size
    ]
    if "t" in run.inputs and law.period is not None:
        period = number(law.period, real)
        moves.append(f"    {identifiers['t']}[0] = ({real})row * {period};\n")
    starts = [
        constant(
            f"static const {real}", f"start_{identifiers[name]}", run.inputs[name].tolist(), real
        )
        for name in run.waves
        if run.inputs[name].size
    ]
    restart = "    if (row == 0) memcpy(z, start_z, sizeof z);\n" if law.has_state else ""
    if law.has_state:
        start = run.inputs["z"].tolist()
        starts.append(constant(f"static const {real}", "start_z", start, real))
    wave_values: dict[str, str | int] = {
        "wave": WAVE,
        "half": WAVE // 2,
        "step": number(float(STEP), real),
        "real": real,
    }
    return law_template(
        law,
        "main.c.in",
        {
            "ticks": TICKS,
            "rows": len(run.values),
            "size": max(1, size),
            "count": size,
            "record": comma_list(number(value, real) for value in run.values.ravel()),
            "tolerances": comma_list(number(value, real) for value in run.tolerance),
            "real": real,
            "abs": "fabs" if real == "double" else "fabsf",
            "digits": 12 if real == "double" else 7,
            "cast": "" if real == "double" else "(double)",
            "starts": "".join(starts),
            "mover": law_template(law, "example_wave.c.in", wave_values)
            if any("move(" in line for line in moves)
            else "",
            "moves": "".join(moves),
            "restart": restart,
            "output": run.output,
            "identifier": identifiers[run.output],
            "declarations": "".join(own),
            "call": _call(law),
            "feedback": "    memcpy(z, z_next, sizeof z);\n" if law.has_state else "",
        },
    )


def _call(law: CLaw) -> str:
    """Return the C of one tick: a step, or both phases."""
    tick_arguments = arguments(law.signals)
    if not law.prepared_from:
        return f"    code = {law.name}_step(memory{tick_arguments});\n"
    prepare_arguments = arguments(law.prepared_from)
    return (
        f"    if ({law.name}_prepare(memory{prepare_arguments})) return 1;\n"
        "    /* here the measurement comes */\n"
        f"    code = {law.name}_feedback(memory{tick_arguments});\n"
    )


def cmake_lists(law: CLaw, daqp: DaqpOrigin, *, supervised: bool = False) -> str:
    """Return `CMakeLists.txt`."""
    default = "${CMAKE_CURRENT_SOURCE_DIR}/daqp" if daqp == "wheel" else ""
    snippet = law_template(law, "daqp.cmake.in", {"default": default})
    return law_template(
        law,
        "CMakeLists.txt.in",
        {
            "daqp": snippet if law.has_daqp else "",
            "optimisation": " ".join(recommended_flags(law)),
            "more_sources": f" {law.name}_supervised.c" if supervised else "",
            "more_headers": f" {law.name}_supervised.h" if supervised else "",
        },
    )


def readme(
    law: CLaw,
    daqp: DaqpOrigin,
    *,
    mujoco_plugin: bool = False,
    fmu: bool = False,
    supervised: bool = False,
) -> str:
    """Return `README.md`."""
    shipped = law.has_daqp and daqp == "wheel"
    subject = "A control function" if law.u_min is not None else "A function"
    period = f", sampled every {number(law.period)} s" if law.period is not None else ""
    origin = f" made from {plain_line(law.source)}" if law.source else ""
    link = "-Idaqp/include daqp/libdaqpstat.a " if shipped else "-ldaqpstat "
    return law_template(
        law,
        "README.md.in",
        {
            "summary": f"{subject} in C99{origin}{period}.",
            "daqp_row": "| `daqp/` | the solver's headers and static library |\n"
            if shipped
            else "",
            "caller_rows": _caller_rows(
                law, mujoco_plugin=mujoco_plugin, fmu=fmu, supervised=supervised
            ),
            "supervision": _supervision_page(law) if supervised else "",
            "daqp_flags": link if law.has_daqp else "",
            "optimisation": " ".join(recommended_flags(law)),
            "bytes": 8 * memory_doubles(law),
            "call": arguments(law.signals),
            "state": "The state is explicit: start with `z = z0`, and hand each `z_next` to the "
            "next tick (the two may be the same array).\n"
            if law.has_state
            else "",
            "nulls": _nulls(law),
            "returned": _returned(law),
            "phases": _phases_page(law),
            "signals": "\n".join(
                [signal_row("in", p) for p in law.inputs]
                + [signal_row("out", p) for p in law.outputs]
            ),
            "measurements": sensor_page(law),
            "solver": _solver_page(law, daqp) if law.staged else "",
        },
    )


def _caller_rows(law: CLaw, *, mujoco_plugin: bool, fmu: bool, supervised: bool) -> str:
    """Return the rows of the files that were asked for."""
    rows = {
        f"`{law.name}_mujoco.c`, `.xml`": "an engine plugin of MuJoCo, which "
        "`mbcasadi.codegen.open_project('.').build_mujoco_plugin(mujoco.__path__[0])` compiles, "
        "and its declaration in MJCF",
        f"`{law.name}.fmu`": "a co-simulation unit of FMI 3.0",
        f"`{law.name}_supervised.c`, `.h`": "the controller with its supervision",
    }
    wanted = (mujoco_plugin, fmu, supervised)
    return "".join(
        f"| {file} | {text} |\n"
        for (file, text), is_wanted in zip(rows.items(), wanted, strict=True)
        if is_wanted
    )


def _supervision_page(law: CLaw) -> str:
    values = {
        "call": arguments([p for p in law.signals if p.name not in STATES]),
    }
    return law_template(law, "readme_supervised.md.in", values)


def _nulls(law: CLaw) -> str:
    """Return what null inputs stand for, of the inputs that the law has."""
    names = {port.name for port in law.inputs} - (set(HANDED) - set(law.defaults))
    meanings = {
        "z": "a null `z` as the initial state",
        "tuning": "a null `tuning` as its defaults",
        "p": "a null `p` as the model's own numbers",
        "mask": "a null `mask` as all on",
        "valid": "a null `valid` as all valid",
        "dt": "a null `dt` as the period",
    }
    parts = [text for name, text in meanings.items() if name in names]
    return ", ".join(["A null input counts as zeros", *parts]) + "."


def _returned(law: CLaw) -> str:
    """Return the table of the numbers that a step returns; nothing without a status."""
    if find_port(law.outputs, "status") is None or not law.statuses:
        return ""
    rows = "".join(f"| {code} | {text} |\n" for code, text in enumerate(law.statuses))
    return (
        f"\n| returned | meaning |\n|---|---|\n{rows}"
        f"| -1 | `{law.name.upper()}_BAD_MEMORY`: the memory is not ready, safe output |\n"
    )


def _phases_page(law: CLaw) -> str:
    if not law.prepared_from:
        return ""
    values = {
        "known": arguments(law.prepared_from),
        "call": arguments(law.signals),
        "names": ", ".join(f"`{p.name}`" for p in law.prepared_from),
    }
    return law_template(law, "readme_phases.md.in", values)


def signal_row(side: str, port: Port) -> str:
    """Return a row of a table of signals."""
    labels = [
        plain_line(name) + (f" [{plain_line(unit)}]" if unit else "")
        for name, unit in port.entries
        if name
    ]
    shown = labels if len(labels) <= MOST_LABELS else [*labels[: MOST_LABELS // 2], "…", labels[-1]]
    components = ", ".join(shown)
    return f"| {side} | `{port.name}` | {port.size} | {components} |"


def _solver_page(law: CLaw, daqp: DaqpOrigin) -> str:
    values: dict[str, str | int] = {
        "n": law.n,
        "m": law.m,
        "iterations": iteration_limit(law),
        "primal_tol": numbers_of(law.real)["primal_tol"].rstrip("f"),
        "rounding": numbers_of(law.real)["rounding"].rstrip("f"),
    }
    method = "method_horizon.md.in" if law.horizon else "method.md.in"
    if law.has_daqp:
        method = "method_daqp.md.in"
        values["daqp_origin"] = (
            "`daqp/` holds DAQP's library for the machine that exported, and its licence."
            if daqp == "wheel"
            else "DAQP is not part of this folder."
        )
    values["method"] = law_template(law, method, values).rstrip()
    return law_template(law, "readme_solver.md.in", values)
