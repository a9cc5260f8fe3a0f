"""Contacts of a file as a line of Python: as few calls as tell them apart."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import ProblemError
from mbcasadi.system import GeometryContact, System, contacts_of
from mbcasadi.validation.spec.code_text import Call, arguments_of, literal

Array = NDArray[np.float64]
Listed = Callable[[str, Sequence[object]], str]


def contact_lines(
    touches: Sequence[Mapping[str, Any]], system: System, q: Array, listed: Listed
) -> list[str]:
    """Return the line of the contacts of a file, none where it has none.

    Args:
        touches: its tables.
        system: the model.
        q: (nq,) start.
        listed: (name, values) → the text of a list, or of its name.

    Raises:
        ProblemError: contacts that are no points as `contacts_of` has them, or on several planes.
    """
    if not touches:
        return []
    groups = groupby(touches, lambda each: {k: v for k, v in each.items() if k != "frame"})
    calls = [
        _group([each["frame"] for each in own], dict(o), system, q, listed) for o, own in groups
    ]
    if len(calls) == 1:
        return [Call(f"contacts = {calls[0].opening}", calls[0].items, "]", "").text()]
    calls = [Call(f"*{each.opening}", each.items, "]", "") for each in calls]
    return [Call("contacts = [", calls, "]").text()]


def _group(
    frames: Sequence[str], options: dict[str, Any], system: System, q: Array, listed: Listed
) -> Call:
    """Return contacts with the same options."""
    if options.get("kind") != "contact":
        made = f"mb.Contact({', '.join(['name', *arguments_of(options)])})"
        return Call("[", [made, f"for name in {listed('feet', frames)}"], "]", "")
    found = [c for c in contacts_of(system, q=q) if {c.name, _pair(c)} & {*frames}]
    named = {name for c in found for name in (c.name, _pair(c))}
    planes = [*dict.fromkeys(c.geom1 for c in found)]
    if not {*frames} <= named or len(planes) != 1:
        raise ProblemError(
            f"no script can be written of the contacts {', '.join(frames)}: they are no points of "
            "shapes on one plane as `mb.contacts_of` has them; write the TOML"
        )
    geoms, plane = [*dict.fromkeys(c.geom2 for c in found)], planes[0]
    names = [c.name for c in found]
    every = [c.name for c in contacts_of(system, geoms=geoms, ground=plane, q=q)]
    own = {key: value for key, value in options.items() if key not in ("kind", "friction")}
    friction = {"friction": options["friction"]} if "friction" in options else {}
    made = f"c.as_contact({', '.join(arguments_of(friction))})"
    if own:
        made = f"replace({', '.join([made, *arguments_of(own)])})"
    where = ["system", f"geoms={listed('feet', geoms)}", f"ground={literal(plane)}"]
    call = Call("for c in mb.contacts_of(", [*where, "q=q0"])
    some = [] if names == every else [Call("if c.name in [", [*map(literal, names)], "]")]
    return Call("[", [made, call, *some], "]", "")


def _pair(contact: GeometryContact) -> str:
    return f"{contact.geom2} on {contact.geom1}"
