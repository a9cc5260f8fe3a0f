"""Two rates as an engine plugin of MuJoCo: a plan in every tick that begins one of its periods.

The plugin runs both in lock step. What they hand on is in `mjData.plugin_state`, so that copies and
resets of the data repeat bit for bit; z there is the number of the tick within the plan's period.
"""

from collections.abc import Mapping
from dataclasses import replace

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.codegen.c_interface import CLaw, Port
from mbcasadi.codegen.callers.mujoco_plugin import (
    Kept,
    MujocoEntry,
    mujoco_entry,
    places_of,
    plugin_files,
    user_inputs,
)
from mbcasadi.codegen.emergency import keeps_last
from mbcasadi.codegen.supervision.layout import supervised_state_doubles
from mbcasadi.codegen.two_rates.interface import OPTIONAL, TIME, Interface
from mbcasadi.codegen.two_rates.source import state_doubles
from mbcasadi.errors import ExportError


def two_rates_plugin(interface: Interface, example: Mapping[str, ArrayLike]) -> dict[str, str]:
    """Return `<name>_mujoco.c` and `<name>_mujoco.xml`, by file name.

    Raises:
        ExportError: no plugin of MuJoCo can call these laws.
    """
    faults = [law.name for law in (interface.plan, interface.law) if keeps_last(law)]
    if faults:
        raise ExportError(
            f"{faults[0]!r} has no safe output of its own (`Controller.emergency`), and a plugin "
            "of MuJoCo cannot keep its last control; give it one, or leave mujoco_plugin out"
        )
    names = [port.name for port in interface.plan_inputs]
    shared = [p.name for p in interface.tick_inputs if p.name in names and p.name in OPTIONAL]
    if shared:
        raise ExportError(
            f"the plan and the law both have an input {shared[0]!r}, which a plugin of MuJoCo "
            "cannot tell apart; leave mujoco_plugin out"
        )
    law = _both(interface)
    given = {key: value for key, value in example.items() if key not in ("z", "t")}
    return plugin_files(law, given, _kept(interface, law))


def two_rates_plugin_entry(interface: Interface) -> MujocoEntry:
    """Return what the manifest says of the plugin."""
    return mujoco_entry(_both(interface))


def _both(interface: Interface) -> CLaw:
    """Return the two functions as one law, whose z counts ticks."""
    inputs = {p.name: p for p in (*interface.plan_inputs, *interface.tick_inputs)}
    count = Port("z", ca.Sparsity.dense(1), ("tick",), ("",))
    outputs = {p.name: p for p in (*interface.plan_outputs, *interface.tick_outputs)}
    return replace(
        interface.law,
        name=interface.name,
        inputs=(*inputs.values(), count),
        outputs=(*outputs.values(), replace(count, name="z_next")),
        z0=np.zeros(1),
        defaults={**interface.plan.defaults, **interface.law.defaults, "z": np.zeros(1)},
    )


def _kept(interface: Interface, law: CLaw) -> Kept:
    places = places_of(law, user_inputs(law, {}))
    none = {p.name: "0" for p in interface.plan_outputs}
    plan = _call(
        interface, "plan", [*interface.plan_inputs, *interface.plan_outputs], places | none
    )
    tick = _call(interface, "tick", [*interface.tick_inputs, *interface.tick_outputs], places)
    upper, doubles = interface.name.upper(), state_doubles(interface)
    own = f"{doubles} * sizeof *p->memory"
    get, put, ticks = "", "", 0
    if interface.watch is not None:
        ticks = supervised_state_doubles(interface.watch.ticks)
        of_law = f"{interface.law.name}_supervised"
        place = f"{interface.name}_law(p->memory)"
        get = f"  {of_law}_get({place}, next + KEPT_AT + {doubles});\n"
        put = f"  {of_law}_set({place}, now + KEPT_AT + {doubles});\n"
    initial = (
        "  {\n"
        "    struct plugin *p = (struct plugin *)data;\n"
        f"    if (p && !{interface.name}_init(p->memory, sizeof p->memory)) {{\n"
        f"      memcpy(state + KEPT_AT, p->memory, {own});\n"
        f"    {get.replace('next', 'state')}"
        "    }\n"
        "  }\n"
    )
    run = (
        f"  memcpy(p->memory, now + KEPT_AT, {own});\n"
        f"{put}"
        f"  if (z[0] < 0.5) {plan};\n"
        f"  next[RETURNED] = {tick};\n"
        f"  z[0] = z[0] + 1.5 > {upper}_EVERY ? 0 : z[0] + 1;\n"
        f"  memcpy(next + KEPT_AT, p->memory, {own});\n"
        f"{get}"
    )
    return Kept(doubles + ticks, initial, run)


def _call(interface: Interface, function: str, ports: list[Port], places: dict[str, str]) -> str:
    watch = function == "tick" and interface.watch is not None
    own = ["0", f"(uint32_t)({places[TIME]}[0] / {interface.name.upper()}_PERIOD + 0.5)"]
    arguments = ", ".join(["p->memory", *own * watch, *(places[port.name] for port in ports)])
    return f"{interface.name}_{function}({arguments})"
