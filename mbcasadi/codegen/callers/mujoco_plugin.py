"""The engine plugin of MuJoCo that runs an export inside `mj_step`, and its declaration in MJCF.

The plugin is one more C file beside the controller's. MuJoCo calls it among the passive forces,
that is behind positions and velocities and before actuators: it writes the controls of the model's
own actuators, so that their laws, ranges and activations stay MuJoCo's.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypedDict
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.codegen.c_interface import CLaw, Port, find_port, law_template, tick_call
from mbcasadi.codegen.emergency import keeps_last
from mbcasadi.codegen.example_run import example_inputs
from mbcasadi.codegen.sensor_rows import Y, sensor_elements, sensor_tables
from mbcasadi.codegen.sizes import memory_doubles
from mbcasadi.codegen.text import c_string, comma_list, number
from mbcasadi.description.controller import HANDED, INPUTS
from mbcasadi.errors import ExportError

COMMAND = "command"
"""An input beside those of a controller that may be left at its default."""

KNOWN_TO_MUJOCO = ("q", "v", "act", "t", "z")
"""Inputs that MuJoCo's state gives; all others come from userdata or config attributes."""

LEAST_COMPONENTS = ("q", "v", "act", "u")
"""Signals whose components must have the names of the model."""

RECORD_HEAD = 2  # what the step returned, and its flags


class UserdataEntry(TypedDict):
    """Places of one input in `mjData.userdata`, behind the first one of the instance."""

    switch: int
    first: int
    size: int


class MujocoEntry(TypedDict):
    """What the manifest says of the plugin."""

    plugin: str
    userdata: dict[str, UserdataEntry]
    nuserdata: int
    plugin_state: dict[str, list[int]]


class UserInput(NamedTuple):
    """One input that MuJoCo does not know."""

    port: Port
    first: int
    is_needed: bool
    default: NDArray[np.float64]


class Kept(NamedTuple):
    """The C around a tick whose memory holds what one tick hands to the next beside z.

    Attributes:
        doubles: how many.
        initial: C that makes `state + KEPT_AT` ready.
        run: C of one tick, from the record `now` to `next`.
    """

    doubles: int
    initial: str
    run: str


def require_plugin(law: CLaw, example: Mapping[str, ArrayLike]) -> None:
    """Raise `ExportError` where no plugin of MuJoCo can call this law, or it has no reference."""
    u = find_port(law.outputs, "u")
    if law.period is None or u is None or not u.size:
        raise ExportError(
            f"{law.name!r} has no control u and no period, so that no MuJoCo plugin can run it; "
            "export a controller, or leave mujoco_plugin out"
        )
    ref = find_port(law.inputs, "ref")
    if ref is not None and ref.size and "ref" not in example:
        raise ExportError(
            f"{law.name!r} follows a reference, and a MuJoCo plugin needs one to start with; give "
            'example={"ref": law.reference_at(q0)}'
        )
    for name in LEAST_COMPONENTS:
        port = find_port(law.inputs, name) or find_port(law.outputs, name)
        if port is not None and port.size and not all(port.components or ("",)):
            raise ExportError(
                f"{law.name!r}: signal {name!r} has no names of its components; a MuJoCo plugin "
                "finds joints and actuators by them: name them as the model does"
            )


def plugin_files(
    law: CLaw, example: Mapping[str, ArrayLike], kept: Kept | None = None
) -> dict[str, str]:
    """Return `<name>_mujoco.c` and `<name>_mujoco.xml`, by file name.

    Args:
        law: what is exported.
        example: defaults of the inputs that MuJoCo does not know, the reference among them.
        kept: how a tick runs; by default by the step of the law.

    Raises:
        ExportError: no plugin of MuJoCo can call this law, or the reference is missing.
    """
    require_plugin(law, example)
    inputs = user_inputs(law, example_inputs(law.inputs, law.defaults, example))
    return {
        f"{law.name}_mujoco.c": _plugin_c(law, inputs, kept or _kept_of(law, inputs)),
        f"{law.name}_mujoco.xml": _plugin_xml(law, inputs),
    }


def mujoco_entry(law: CLaw) -> MujocoEntry:
    """Return the manifest's entry: where inputs and results are in MuJoCo's data."""
    inputs = user_inputs(law, {})
    nu = RECORD_HEAD + law.nu
    nz = law.nz
    return {
        "plugin": f"mbcasadi.{law.name}",
        "userdata": {
            entry.port.name: {
                "switch": entry.first + k,
                "first": entry.first + k + 1,
                "size": entry.port.size,
            }
            for k, entry in enumerate(inputs)
        },
        "nuserdata": sum(entry.port.size + 1 for entry in inputs),
        "plugin_state": {
            "returned": [0, 1],
            "flags": [1, 1],
            "u": [RECORD_HEAD, law.nu],
            "z": [nu, nz],
        },
    }


def user_inputs(law: CLaw, values: Mapping[str, NDArray[np.float64]]) -> list[UserInput]:
    """Return the inputs that MuJoCo does not know, with their defaults."""
    inputs, first = [], 0
    for port in law.inputs:
        if port.name in KNOWN_TO_MUJOCO or (port.name == Y and law.sensors):
            continue
        default = np.asarray(values.get(port.name, np.zeros(port.size)), dtype=float)
        is_needed = port.name not in (*INPUTS, *HANDED, COMMAND)
        inputs.append(UserInput(port, first, is_needed, default.ravel()))
        first += port.size
    return inputs


def _plugin_c(law: CLaw, inputs: list[UserInput], kept: Kept) -> str:
    sizes = {name: _size(law, name) for name in ("q", "v", "act")}
    return law_template(
        law,
        "mujoco_plugin.c.in",
        {
            "nq": sizes["q"],
            "nv": sizes["v"],
            "na": sizes["act"],
            "nu": law.nu,
            "nz": law.nz,
            "user": len(inputs),
            "given": sum(entry.port.size for entry in inputs),
            "kept": kept.doubles,
            "tables": _tables(law, inputs),
            "places": law_template(law, "mujoco_places.c.in"),
            "attributes": "".join(f", {c_string(entry.port.name)}" for entry in inputs),
            "initial": kept.initial,
            "period": number(law.period or 0.0),
            "run": kept.run,
            **_sensor_parts(law),
        },
    )


def _sensor_parts(law: CLaw) -> dict[str, str]:
    """Return what the plugin has of the sensors that the law reads, where it reads any."""
    y = find_port(law.inputs, Y)
    if y is None or not law.sensors:
        return dict.fromkeys((*SENSOR_PARTS, "sizes_of_sensors", "sensors"), "")
    text = law_template(law, "mujoco_sensors.c.in", {"rows": sensor_tables(law)})
    return SENSOR_PARTS | {"sizes_of_sensors": f", NY = {y.size}", "sensors": text}


SENSOR_PARTS = {
    "places_of_means": "  COUNT, /* time steps since the last tick, and sums of y over them */\n"
    "  SUMS,\n  END_OF_SUMS = SUMS + NY - 1,\n",
    "sensor_member": "  int sensors[NY];                    /* addresses in sensordata */\n",
    "find_sensors": "  find_sensors(m, prefix, p->sensors);\n",
    "y": " real y[NY];",
    "read_sensors": "  read_sensors(p->sensors, d, now + SUMS, now[COUNT], y);\n",
    "refresh": "      mj_sensorVel(m, d); /* which else comes behind the passive forces */\n",
    "forget_means": "    memset(state + COUNT, 0, (1 + NY) * sizeof *state);\n",
    "add_readings": "  add_readings(((struct plugin *)d->plugin_data[instance])->sensors, d, "
    "state + SUMS);\n  state[COUNT] += 1;\n",
}
"""C around a tick of a plugin whose law reads sensors."""


def _size(law: CLaw, name: str) -> int:
    port = find_port(law.inputs, name)
    return port.size if port else 0


def _tables(law: CLaw, inputs: list[UserInput]) -> str:
    """Return the names of q, v, act and u, and the inputs that MuJoCo does not know."""
    tables = []
    for name in LEAST_COMPONENTS:
        port = find_port(law.outputs if name == "u" else law.inputs, name)
        names = [c_string(c) for c in port.components] if port else []
        tables.append(f"static const char *const {name}_names[] = {{{comma_list(names)}}};\n")
    rows = [
        f"  {{{c_string(e.port.name)}, {e.port.size}, {e.first}, {int(e.is_needed)}}},\n"
        for e in inputs
    ]
    values = [number(value) for entry in inputs for value in entry.default]
    tables.append(
        "static const struct user_input user_inputs[] = {\n"
        + ("".join(rows) or "  {0, 0, 0, 0},\n")
        + "};\n"
    )
    tables.append(f"static const double defaults[GIVEN + 1] = {{{comma_list(values)}}};\n")
    return "".join(tables)


def _initial(law: CLaw) -> str:
    if not law.has_state:
        return ""
    return f"  for (i = 0; i < NZ; ++i) state[Z_AT + i] = {law.name}_z0[i];\n"


def _kept_of(law: CLaw, inputs: list[UserInput]) -> Kept:
    """Return the step of a law; its memory is kept where it holds the last control."""
    call = tick_call(law, "p->memory", lambda port: places_of(law, inputs)[port.name])
    if not keeps_last(law):
        return Kept(0, _initial(law), f"  next[RETURNED] = {call};\n")
    initial = _initial(law) + f"  {law.name}_init(state + KEPT_AT, KEPT * sizeof *state);\n"
    before = "  memcpy(p->memory, now + KEPT_AT, sizeof p->memory);\n"
    after = "  memcpy(next + KEPT_AT, p->memory, sizeof p->memory);\n"
    return Kept(memory_doubles(law), initial, f"{before}  next[RETURNED] = {call};\n{after}")


def places_of(law: CLaw, inputs: list[UserInput]) -> dict[str, str]:
    """Return the C of the pointers to all signals of a tick, by name."""
    places = {entry.port.name: f"user + {entry.first}" for entry in inputs}
    places |= {name: name for name in KNOWN_TO_MUJOCO}
    results = {"u": "u", "z_next": "z", "flags": "flags"}
    places |= {Y: Y} if law.sensors else {}
    return places | {port.name: results.get(port.name, "0") for port in law.outputs}


REMARK = """
  The controller reads sensors, not qpos and qvel. The <sensor> below adds those that it needs;
  leave out what the model has. Of a body, add gyro and accelerometer at a site there.
"""


def _plugin_xml(law: CLaw, inputs: list[UserInput]) -> str:
    entry = mujoco_entry(law)
    rows = [
        f"    {place['switch']:5d}: 1 where {name} is the numbers behind it ({place['size']}), "
        "0 where it is as below\n"
        for name, place in entry["userdata"].items()
    ]
    layout = "  Places in mjData.userdata:\n" + "".join(rows) if rows else ""
    config = [("userdata", "0")] if inputs else []
    config += [
        (e.port.name, " ".join(number(x) for x in e.default))
        for e in inputs
        if e.default.size and not e.is_needed
    ]
    size = f'  <size nuserdata="{entry["nuserdata"]}"/>\n' if inputs else ""
    return law_template(
        law,
        "mujoco_plugin.xml.in",
        {
            "layout": layout,
            "sensors": sensor_elements(law),
            "remark": REMARK if law.sensors else "",
            "size": size,
            "config": "".join(
                f"        <config key={quoteattr(key)} value={quoteattr(value)}/>\n"
                for key, value in config
            ),
        },
    )
