"""Single parameters of a compiled model by name: "body:forearm:com", "joint:elbow:damping".

An edit changes the fields of an `MjModel`, then `mj_setConst` brings up to date what MuJoCo derives
from them for its solver. What the compiler derived from the XML stays: the other anchor of a
connect or weld, rest lengths, the gain of a `dampratio`. Poses of mocap bodies are none of these:
they are state, `MjData.mocap_pos`.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

import mujoco
import numpy as np

from mbcasadi.plant.model_attributes import ATTRIBUTES, OPTIONS, Attribute
from mbcasadi.unknown_names import unknown_name

OBJECTS = {
    "body": mujoco.mjtObj.mjOBJ_BODY,
    "site": mujoco.mjtObj.mjOBJ_SITE,
    "joint": mujoco.mjtObj.mjOBJ_JOINT,
    "tendon": mujoco.mjtObj.mjOBJ_TENDON,
    "actuator": mujoco.mjtObj.mjOBJ_ACTUATOR,
    "equality": mujoco.mjtObj.mjOBJ_EQUALITY,
}


class Place(NamedTuple):
    """One entry of a parameter: of which element, which attribute, which entry."""

    element: int
    attribute: Attribute
    entry: int


def scale_parameter(model: mujoco.MjModel, pattern: str, factor: float) -> None:
    """Multiply all parameters whose names match a pattern.

    Args:
        model: changed in place.
        pattern: of a parameter or of one entry; `*` and `?` as in a shell.
        factor: on each number.

    Raises:
        UnknownNameError: it matches nothing; the message lists close names.
        SimulationError: an edit that MuJoCo's compiled model does not take.
    """
    places = {name: place for name, place in _entries(model) if _matches(name, pattern)}
    if not places:
        raise unknown_name("parameter", pattern, [name for name, _ in _entries(model)])
    values = {name: factor * _value(model, place) for name, place in places.items()}
    set_parameters(model, values)


def set_parameters(model: mujoco.MjModel, values: dict[str, float]) -> None:
    """Give entries of parameters other values.

    Args:
        model: changed in place.
        values: by the name of the entry, "body:forearm:com.x".

    Raises:
        UnknownNameError: no such entry.
        SimulationError: an edit that MuJoCo's compiled model does not take.
    """
    places = dict(_entries(model))
    for name, value in values.items():
        if name not in places:
            raise unknown_name("parameter", name, list(places))
        place = places[name]
        numbers = place.attribute.read(model, place.element)
        numbers[place.entry] = value
        place.attribute.write(model, place.element, numbers)
    update_constants(model)


def update_constants(model: mujoco.MjModel) -> None:
    """Bring up to date what MuJoCo derives from fields of a model; anchors stay as they are.

    `mj_setConst` lets the two anchors of a connect coincide at `qpos0`. Quaternions of sites, which
    are edited entry by entry, get their length of one.
    """
    length = np.linalg.norm(model.site_quat, axis=1, keepdims=True)
    model.site_quat /= np.maximum(length, mujoco.mjMINVAL)
    anchors = np.array(model.eq_data)
    mujoco.mj_setConst(model, mujoco.MjData(model))
    model.eq_data[:] = anchors


def parameter_values(model: mujoco.MjModel) -> dict[str, float]:
    """Return the value of every entry of every parameter."""
    return {name: _value(model, place) for name, place in _entries(model)}


def is_single_parameter(name: str) -> bool:
    """Return whether a name is that of single parameters, or a pattern of such names."""
    return ":" in name or name.split(".")[0] in OPTIONS


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name.rsplit(".", 1)[0], pattern)


def _value(model: mujoco.MjModel, place: Place) -> float:
    return float(place.attribute.read(model, place.element)[place.entry])


def _entries(model: mujoco.MjModel) -> Iterator[tuple[str, Place]]:
    """Return the name of each entry and where it is."""
    for option, attribute in OPTIONS.items():
        yield from _of_element(model, option, 0, attribute)
    counts = {
        "body": model.nbody,
        "site": model.nsite,
        "joint": model.njnt,
        "tendon": model.ntendon,
        "actuator": model.nu,
        "equality": model.neq,
    }
    for kind, attributes in ATTRIBUTES.items():
        for i in range(kind == "body", counts[kind]):
            name = mujoco.mj_id2name(model, OBJECTS[kind], i) or f"{kind}{i}"
            for label, attribute in attributes.items():
                if attribute.has(model, i):
                    yield from _of_element(model, f"{kind}:{name}:{label}", i, attribute)


def _of_element(
    model: mujoco.MjModel, name: str, element: int, attribute: Attribute
) -> Iterator[tuple[str, Place]]:
    if not attribute.names:
        yield name, Place(element, attribute, 0)
    for k, entry in enumerate(attribute.names[: len(attribute.read(model, element))]):
        yield f"{name}.{entry}", Place(element, attribute, k)
