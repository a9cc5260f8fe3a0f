"""The files beside the C of two rates: example, build file and README."""

from collections.abc import Container, Iterable, Mapping
from itertools import zip_longest

from numpy.typing import ArrayLike

from mbcasadi.codegen.c_interface import Port, arguments, law_template
from mbcasadi.codegen.example_run import example_inputs
from mbcasadi.codegen.folder_pages import signal_row
from mbcasadi.codegen.manifest import DEFAULT_FLAGS, LARGE_FLAGS, recommended_flags
from mbcasadi.codegen.text import constant
from mbcasadi.codegen.two_rates.interface import AGE, OPTIONAL, Interface
from mbcasadi.codegen.two_rates.source import two_rates_doubles, two_rates_template
from mbcasadi.codegen.two_rates.watch import watch_of_pages

PLANS = 10
"""Periods of the plan that the example runs."""


SHOWN = ("u", AGE)
"""Outputs of a tick that the example prints."""


def two_rates_main(interface: Interface, example: Mapping[str, ArrayLike]) -> str:
    """Return `main.c`: inputs that both rates share, all others null.

    Raises:
        UnknownNameError, ShapeError: the example's inputs do not fit.
    """
    inputs = {p.name: p for p in (*interface.plan_inputs, *interface.tick_inputs)}
    shared = [port for port in inputs.values() if port.name not in OPTIONAL]
    shown = [port for port in interface.tick_outputs if port.name in SHOWN]
    start = example_inputs(shared, {}, example)
    declared = [
        "  " + constant("double", port.identifier, start[port.name].tolist()) for port in shared
    ]
    declared += [f"  double {port.identifier}[{max(1, port.size)}] = {{0}};\n" for port in shown]
    named = {port.name for port in shared}
    values: dict[str, str | int] = {
        "ticks": PLANS * interface.every,
        "size": interface.law.nu,
        "declarations": "".join(declared),
        "plan_arguments": _given(interface.plan_inputs, named) + _given(interface.plan_outputs, ()),
        "tick_arguments": _given(interface.tick_inputs, named)
        + _given(interface.tick_outputs, SHOWN),
        **watch_of_pages(interface.watch, interface.name),
    }
    return two_rates_template(interface, "main.c.in", values)


def _given(ports: Iterable[Port], names: Container[str]) -> str:
    """Return the names of some parameters, null for the others, behind others."""
    return "".join(f", {p.identifier if p.name in names else 0}" for p in ports)


def _calls(interface: Interface) -> dict[str, str | int]:
    plan = (*interface.plan_inputs, *interface.plan_outputs)
    tick = (*interface.tick_inputs, *interface.tick_outputs)
    return {"plan_arguments": arguments(plan), "tick_arguments": arguments(tick)}


def two_rates_flags(interface: Interface) -> tuple[str, ...]:
    """Return the optimisation with which all sources compile in reasonable time."""
    return recommended_flags(*interface.parts.values())


def two_rates_cmake(interface: Interface) -> str:
    """Return `CMakeLists.txt`: each law with an optimisation of its own."""
    laws, watched = interface.parts.values(), _watched(interface)
    slow = [law.name for law in laws if recommended_flags(law) == LARGE_FLAGS]
    names = [law.name for law in laws]
    slow += [interface.common.name] if slow else []
    own = [
        f"set_source_files_properties({name}.c PROPERTIES COMPILE_OPTIONS {LARGE_FLAGS[0]})\n"
        for name in slow
    ]
    return law_template(
        interface.law,
        "CMakeLists.txt.in",
        {
            "name": interface.name,
            "NAME": interface.name.upper(),
            "daqp": "".join(own),
            "optimisation": " ".join(DEFAULT_FLAGS),
            "more_sources": "".join(
                f" {name}.c" for name in [*names, interface.common.name, *watched]
            ),
            "more_headers": "".join(f" {name}.h" for name in [*names, *watched]),
        },
    )


def _watched(interface: Interface) -> list[str]:
    """Return the names of sources of a supervision."""
    return [] if interface.watch is None else [f"{interface.law.name}_supervised"]


PLUGIN = "an engine plugin of MuJoCo, and its declaration in MJCF"


def two_rates_readme(interface: Interface, *, mujoco_plugin: bool = False) -> str:
    """Return `README.md`."""
    statuses = zip_longest(interface.plan.statuses, interface.law.statuses, fillvalue="")
    rows = [
        signal_row(f"{function}, {side}", port)
        for function, inputs, outputs in (
            ("plan", interface.plan_inputs, interface.plan_outputs),
            ("tick", interface.tick_inputs, interface.tick_outputs),
        )
        for side, ports in (("in", inputs), ("out", outputs))
        for port in ports
    ]
    laws = [law.name for law in interface.parts.values()]
    sources = [interface.name, *laws, interface.common.name, *_watched(interface)]
    values = _calls(interface) | watch_of_pages(interface.watch, interface.name)
    values |= {
        "optimisation": " ".join(two_rates_flags(interface)),
        "plugin": f"| `{interface.name}_mujoco.c`, `.xml` | {PLUGIN} |\n" if mujoco_plugin else "",
        "sources": " ".join(f"{name}.c" for name in sources),
        "bytes": 8 * two_rates_doubles(interface),
        "statuses": "".join(f"| {k} | {p} | {t} |\n" for k, (p, t) in enumerate(statuses)),
        "signals": "\n".join(rows),
    }
    return two_rates_template(interface, "README.md.in", values)
