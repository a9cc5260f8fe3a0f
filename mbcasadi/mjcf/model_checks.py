"""What no equation can be made of: models that are too large, NaN, names that are no text."""

import os
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import ModelError
from mbcasadi.mjcf.compat import actuator_slots
from mbcasadi.mjcf.names import names

LARGEST_BODIES = 20_000
"""MuJoCo's compiler needs seconds for so many bodies, and minutes for five times as many."""

LARGEST_NV = 1_000
"""Degrees of freedom; expressions for M alone hold nv² entries."""

PREFIXES = {
    "body": "body",
    "jnt": "joint",
    "dof": "joint",
    "geom": "geom",
    "pair": "pair",
    "site": "site",
    "tendon": "tendon",
    "actuator": "actuator",
    "eq": "equality",
    "key": "key",
}
"""Prefix of MuJoCo's arrays → the kind of object that their rows belong to."""

DERIVED = ("invweight0", "subtreemass", "M0", "length0", "acc0", "aabb", "rbound", "length")
UNUSED = ("rgba", "user")
MAY_BE_INFINITE = ("range", "sol", "margin", "gap", "time")


def require_size(source: object) -> None:
    """Raise `ModelError` before MuJoCo compiles a source with too many bodies."""
    if isinstance(source, mujoco.MjSpec):
        count = len(source.bodies)
    elif isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        count = source.count("<body")
    elif isinstance(source, (str, os.PathLike)) and Path(source).suffix.lower() != ".mjb":
        count = Path(source).read_bytes().count(b"<body")
    else:
        return
    if count > LARGEST_BODIES:
        raise ModelError(
            f"the model has {count} bodies; expected at most {LARGEST_BODIES}: leave out what does "
            "not move, or merge it into few bodies"
        )


def require_text_names(model: mujoco.MjModel) -> None:
    """Raise `ModelError` where a name is not UTF-8."""
    try:
        model.names.decode()
    except UnicodeDecodeError as error:
        end = model.names.find(b"\0", error.start)
        start = model.names.rfind(b"\0", 0, error.start) + 1
        raise ModelError(
            f"the name {model.names[start:end]!r} is not UTF-8 text; save the file in UTF-8, or "
            "use ASCII names"
        ) from error


def require_equations_possible(model: mujoco.MjModel) -> None:
    """Raise `ModelError` for a model that is too large, or holds NaN or infinity.

    The message names the element and its attribute, as MuJoCo calls it.
    """
    if model.nv > LARGEST_NV:
        raise ModelError(
            f"the model has {model.nv} degrees of freedom; expected at most {LARGEST_NV}: weld "
            "what need not move"
        )
    for field in ("gravity", "timestep", "density", "viscosity", "wind", "magnetic"):
        _require_finite("option", field, np.atleast_1d(getattr(model.opt, field)))
    for prefix in PREFIXES:
        for field in _fields(model, prefix):
            attribute, values = field.removeprefix(f"{prefix}_"), getattr(model, field)
            rows = np.asarray(values).reshape(len(values), -1)
            for row in np.flatnonzero(~_is_number(attribute, rows)):
                element = _element(model, prefix, attribute, int(row))
                _require_finite(element, attribute, rows[row])
    for field in ("qpos0", "qpos_spring"):
        for place in np.flatnonzero(~np.isfinite(getattr(model, field))):
            joint = int(np.flatnonzero(model.jnt_qposadr <= place)[-1])
            name = names(model, "joint")[joint]
            _require_finite(f"joint '{name}'", field, getattr(model, field)[place : place + 1])


def _fields(model: mujoco.MjModel, prefix: str) -> list[str]:
    """Return the names of the arrays of numbers that were given, not computed by MuJoCo."""
    return [
        name
        for name in dir(model)
        if name.startswith(f"{prefix}_")
        and name.removeprefix(f"{prefix}_") not in DERIVED
        and not name.endswith(UNUSED)
        and isinstance(getattr(model, name), np.ndarray)
        and getattr(model, name).dtype.kind == "f"
        and getattr(model, name).size
    ]


def _is_number(attribute: str, rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    bad = np.isnan(rows)
    if not any(word in attribute for word in MAY_BE_INFINITE):
        bad |= np.isinf(rows)
    return np.asarray(~bad.any(axis=1))


def _element(model: mujoco.MjModel, prefix: str, attribute: str, row: int) -> str:
    """Return `joint 'elbow'` for a row of an array; an actuator may own several rows."""
    kind = PREFIXES[prefix]
    if prefix == "dof":
        row = int(model.dof_jntid[row])
    if kind == "actuator":
        slots = actuator_slots(model)
        starts = {"gear": [slot.output for slot in slots], "ctrlrange": [s.ctrl for s in slots]}
        firsts = starts.get(attribute, list(range(len(slots))))
        owner = max(i for i, first in enumerate(firsts) if first <= row)
        return f"actuator '{names(model, kind, len(slots))[owner]}'"
    return f"{kind} '{names(model, kind)[row]}'"


def _require_finite(element: str, attribute: str, values: NDArray[np.float64]) -> None:
    if not np.all(np.isfinite(values)):
        raise ModelError(
            f"{element}: {attribute} = {values.tolist()}; expected finite numbers. NaN in a file "
            "is usually a mistake of the program that wrote it"
        )
