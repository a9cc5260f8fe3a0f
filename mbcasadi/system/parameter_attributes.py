"""The attributes of a model that may be parameters: how each is read and written.

A parameter is one attribute of one element. What MuJoCo's compiler derived from it stays as it is,
like in an `MjModel` whose fields are edited: the other anchor of a connect or weld, rest lengths,
the gain of a `dampratio`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from mbcasadi.description import Connect, Weld
from mbcasadi.description.mocap import carried_by_mocap
from mbcasadi.description.parameters import ElementKind
from mbcasadi.description.tree import DOF_SIZE
from mbcasadi.system.model_numbers import ModelNumbers

XYZ = ("x", "y", "z")
INERTIA = ("xx", "yy", "zz", "xy", "xz", "yz")
INERTIA_PLACES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
WXYZ = ("w", "x", "y", "z")
AFFINE = ("constant", "length", "velocity")
ENDS = ("lower", "upper")
POLYCOEF = tuple(f"{k}" for k in range(5))

Values = tuple[Any, ...]
"""Numbers, or expressions in their place."""


@dataclass(frozen=True)
class Attribute:
    """One attribute of the elements of a kind.

    Attributes:
        kind, name: in MJCF's words.
        components: names of its entries, () for a single number; an element may have only the
            first ones.
        unit: "" where it depends on the element.
        read: (numbers, index) → entries; () where this element has no such attribute.
        write: (numbers, index, entries) → numbers with these entries.
        least: entries below it are not physical.
    """

    kind: ElementKind
    name: str
    components: tuple[str, ...]
    unit: str
    read: Callable[[ModelNumbers, int], Values]
    write: Callable[[ModelNumbers, int, Values], ModelNumbers]
    least: float = -np.inf


def _array(values: Values) -> Any:
    """Return entries as an array, of floats where all of them are numbers."""
    numeric = not any(isinstance(value, ca.SX) for value in values)
    return np.array(values, dtype=float if numeric else object)


def _field(
    kind: ElementKind, name: str, unit: str, *, least: float = -np.inf, of: str = ""
) -> Attribute:
    """Return an attribute that is a field of the element's description."""
    key = of or name

    def read(numbers: ModelNumbers, i: int) -> Values:
        return (float(getattr(numbers.element(kind, i), key)),)

    def write(numbers: ModelNumbers, i: int, values: Values) -> ModelNumbers:
        return numbers.with_element(kind, i, replace(numbers.element(kind, i), **{key: values[0]}))

    return Attribute(kind, name, (), unit, read, write, least)


def _vector(kind: ElementKind, name: str, unit: str) -> Attribute:
    """Return an attribute that is a vector x, y, z of the element's description."""

    def read(numbers: ModelNumbers, i: int) -> Values:
        return tuple(float(x) for x in getattr(numbers.element(kind, i), name))

    def write(numbers: ModelNumbers, i: int, values: Values) -> ModelNumbers:
        element = replace(numbers.element(kind, i), **{name: _array(values)})
        return numbers.with_element(kind, i, element)

    return Attribute(kind, name, XYZ, unit, read, write)


def _anchor(name: str, of: Mapping[type, str]) -> Attribute:
    """Return an anchor of a connect or weld; MJCF's own is in body 1 or in body 2.

    Args:
        name: of the attribute.
        of: field of the description by the kind of the equality; other kinds have none.
    """

    def read(numbers: ModelNumbers, i: int) -> Values:
        equality: Any = numbers.equalities[i]
        key = of.get(type(equality))
        return () if key is None else tuple(float(x) for x in getattr(equality, key))

    def write(numbers: ModelNumbers, i: int, values: Values) -> ModelNumbers:
        equality: Any = numbers.equalities[i]
        anchored = replace(equality, **{of[type(equality)]: _array(values)})
        return numbers.with_element("equality", i, anchored)

    return Attribute("equality", name, XYZ, "m", read, write)


def _tendon_armature() -> Attribute:
    """Return the armature of a tendon; one that wraps around geoms may have none."""
    usual = _field("tendon", "armature", "", least=0.0)

    def read(numbers: ModelNumbers, i: int) -> Values:
        return () if getattr(numbers.tree.tendons[i], "wraps", ()) else usual.read(numbers, i)

    return replace(usual, read=read)


def _of_dofs(name: str) -> Attribute:
    """Return an attribute of a joint that each of its degrees of freedom has in common."""

    def read(numbers: ModelNumbers, i: int) -> Values:
        joint = numbers.tree.joints[i]
        entries = getattr(numbers.tree, name)[joint.dof : joint.dof + DOF_SIZE[joint.kind]]
        return (float(entries[0]),) if np.all(entries == entries[0]) else ()

    def write(numbers: ModelNumbers, i: int, values: Values) -> ModelNumbers:
        joint, entries = numbers.tree.joints[i], [*getattr(numbers.tree, name)]
        entries[joint.dof : joint.dof + DOF_SIZE[joint.kind]] = values * DOF_SIZE[joint.kind]
        return replace(numbers, tree=replace(numbers.tree, **{name: _array(tuple(entries))}))

    return Attribute("joint", name, (), "", read, write, least=0.0)


def _of_fluid(
    name: str, components: tuple[str, ...], unit: str, *, least: float = -np.inf
) -> Attribute:
    """Return an attribute of the medium, where the model has one."""

    def read(numbers: ModelNumbers, _: int) -> Values:
        fluid = numbers.tree.fluid
        return () if fluid is None else tuple(np.ravel(getattr(fluid, name)).astype(float).tolist())

    def write(numbers: ModelNumbers, _: int, values: Values) -> ModelNumbers:
        fluid: Any = numbers.tree.fluid
        value = _array(values) if components else values[0]
        return replace(numbers, tree=replace(numbers.tree, fluid=replace(fluid, **{name: value})))

    return Attribute("option", name, components, unit, read, write, least)


def _affine_law(name: str, terms: tuple[str, ...]) -> Attribute:
    """Return gain or bias of an actuator, by those of these terms that MuJoCo reads of its type.

    Muscles, motors and PID servos with states of their own and actuators that are off have other
    laws. The term of a gain in velocity stays a number: with it B would depend on v.
    """
    field = f"{name}_terms"

    def read(numbers: ModelNumbers, i: int) -> Values:
        actuator = numbers.actuators[i]
        curves = (actuator.muscle_gain, actuator.muscle_bias, actuator.motor, actuator.pid)
        numbers_of_law = getattr(actuator, name)
        is_affine = actuator.acts and all(curve is None for curve in curves)
        finite = bool(np.all(np.isfinite(numbers_of_law)))
        count = min(len(terms), getattr(actuator, field))
        return numbers_of_law[:count] if is_affine and finite else ()

    def write(numbers: ModelNumbers, i: int, values: Values) -> ModelNumbers:
        rest = getattr(numbers.actuators[i], name)[len(values) :]
        changed: dict[str, Any] = {name: (*values, *rest)}
        actuator = replace(numbers.actuators[i], **changed)
        return numbers.with_element("actuator", i, actuator)

    return Attribute("actuator", name, terms, "", read, write)


def _read_mocap(name: str) -> Callable[[ModelNumbers, int], Values]:
    """Return the reader of the pose of a mocap body that carries no joint."""

    def read(numbers: ModelNumbers, i: int) -> Values:
        carried = carried_by_mocap(numbers.tree)
        moves = any(carried.get(joint.body) == i for joint in numbers.tree.joints)
        body = numbers.tree.bodies[i]
        return () if body.mocap is None or moves else tuple(getattr(body, name).tolist())

    return read


def _read_site(name: str) -> Callable[[ModelNumbers, int], Values]:
    """Return the reader of the pose of a site whose numbers are nowhere else in the equations."""

    def read(numbers: ModelNumbers, i: int) -> Values:
        frame = numbers.tree.frames[i]
        is_free = frame.kind == "site" and not _is_anchor(numbers, i)
        return tuple(getattr(frame, name).tolist()) if is_free else ()

    return read


def _is_anchor(numbers: ModelNumbers, i: int) -> bool:
    """Return whether a site is an end of a connect or weld, or tells a tendon's side of a geom."""
    wraps = (wrap for tendon in numbers.tree.tendons for wrap in getattr(tendon, "wraps", ()))
    if i in {wrap.side for wrap in wraps}:
        return True
    frame = numbers.tree.frames[i]
    pairs = [each for each in numbers.equalities if isinstance(each, Connect | Weld)]
    ends = [end for e in pairs for end in ((e.body1, e.anchor1), (e.body2, e.anchor2))]
    return any(body == frame.body and np.array_equal(at, frame.pos) for body, at in ends)


def _write_pos(kind: ElementKind) -> Callable[[ModelNumbers, int, Values], ModelNumbers]:
    """Return the writer of the position of a mocap body or a site."""

    def write(numbers: ModelNumbers, i: int, values: Values) -> ModelNumbers:
        element = replace(numbers.element(kind, i), pos=_array(values))
        return numbers.with_element(kind, i, element)

    return write


def _write_quat(kind: ElementKind) -> Callable[[ModelNumbers, int, Values], ModelNumbers]:
    """Return the writer of the rotation of a mocap body or a site."""

    def write(numbers: ModelNumbers, i: int, values: Values) -> ModelNumbers:
        element = replace(numbers.element(kind, i), quat=_array(_unit(values)))
        return numbers.with_element(kind, i, element)

    return write


def _unit(values: Values) -> Values:
    size = (
        ca.norm_2(ca.vertcat(*values)) if isinstance(values[0], ca.SX) else np.linalg.norm(values)
    )
    return tuple(value / size for value in values)


def _read_inertia(numbers: ModelNumbers, i: int) -> Values:
    medium = numbers.tree.fluid
    if medium is not None and any(box.body == i for box in medium.boxes):
        return ()  # the box that the medium meets has principal moments, which follow in MuJoCo
    inertia = numbers.tree.bodies[i].inertia
    return tuple(float(inertia[place]) for place in INERTIA_PLACES)


def _write_inertia(numbers: ModelNumbers, i: int, values: Values) -> ModelNumbers:
    xx, yy, zz, xy, xz, yz = values
    inertia = _array((xx, xy, xz, xy, yy, yz, xz, yz, zz)).reshape(3, 3)
    return numbers.with_element("body", i, replace(numbers.tree.bodies[i], inertia=inertia))


def _read_springref(numbers: ModelNumbers, i: int) -> Values:
    joint = numbers.tree.joints[i]
    return (float(numbers.tree.q_spring[joint.qpos]),) if joint.kind in ("slide", "hinge") else ()


def _write_springref(numbers: ModelNumbers, i: int, values: Values) -> ModelNumbers:
    rest = [*numbers.tree.q_spring]
    rest[numbers.tree.joints[i].qpos] = values[0]
    return replace(numbers, tree=replace(numbers.tree, q_spring=_array(tuple(rest))))


def _read_springquat(numbers: ModelNumbers, i: int) -> Values:
    joint = numbers.tree.joints[i]
    if joint.kind != "ball" or not joint.spring_yield:
        return ()
    return tuple(float(c) for c in numbers.tree.q_spring[joint.qpos : joint.qpos + len(WXYZ)])


def _write_springquat(numbers: ModelNumbers, i: int, values: Values) -> ModelNumbers:
    rest, row = [*numbers.tree.q_spring], numbers.tree.joints[i].qpos
    rest[row : row + len(WXYZ)] = _unit(values)
    return replace(numbers, tree=replace(numbers.tree, q_spring=_array(tuple(rest))))


def _read_springlength(numbers: ModelNumbers, i: int) -> Values:
    tendon = numbers.tree.tendons[i]
    return tendon.spring_range if tendon.spring_yield else ()


def _write_springlength(numbers: ModelNumbers, i: int, values: Values) -> ModelNumbers:
    tendon = replace(numbers.tree.tendons[i], spring_range=(values[0], values[1]))
    return numbers.with_element("tendon", i, tendon)


def _read_poly(numbers: ModelNumbers, i: int) -> Values:
    equality = numbers.equalities[i]
    return () if isinstance(equality, Connect | Weld) else equality.poly


def _write_poly(numbers: ModelNumbers, i: int, values: Values) -> ModelNumbers:
    coupling: Any = numbers.equalities[i]
    return numbers.with_element("equality", i, replace(coupling, poly=values))


ATTRIBUTES: dict[tuple[ElementKind, str], Attribute] = {
    (attribute.kind, attribute.name): attribute
    for attribute in (
        _vector("option", "gravity", "m/s²"),
        _of_fluid("wind", XYZ, "m/s"),
        _of_fluid("density", (), "kg/m³", least=0.0),
        _of_fluid("viscosity", (), "kg/(m s)", least=0.0),
        Attribute("mocap", "pos", XYZ, "m", _read_mocap("pos"), _write_pos("mocap")),
        Attribute("mocap", "quat", WXYZ, "", _read_mocap("quat"), _write_quat("mocap")),
        Attribute("site", "pos", XYZ, "m", _read_site("pos"), _write_pos("site")),
        Attribute("site", "quat", WXYZ, "", _read_site("quat"), _write_quat("site")),
        _field("body", "mass", "kg", least=0.0),
        _vector("body", "com", "m"),
        Attribute("body", "inertia", INERTIA, "kg m²", _read_inertia, _write_inertia),
        _field("body", "gravcomp", ""),
        _of_dofs("damping"),
        _of_dofs("armature"),
        _field("joint", "stiffness", ""),
        Attribute("joint", "springref", (), "", _read_springref, _write_springref),
        Attribute("joint", "springquat", WXYZ, "", _read_springquat, _write_springquat),
        _field("tendon", "stiffness", ""),
        Attribute("tendon", "springlength", ENDS, "", _read_springlength, _write_springlength),
        _field("tendon", "damping", "", least=0.0),
        _tendon_armature(),
        _affine_law("gain", AFFINE[:2]),
        _affine_law("bias", AFFINE),
        _anchor("anchor", {Connect: "anchor1", Weld: "anchor2"}),
        _anchor("anchor2", {Connect: "anchor2"}),
        _anchor("anchor1", {Weld: "anchor1"}),
        Attribute("equality", "polycoef", POLYCOEF, "", _read_poly, _write_poly),
    )
}
"""Every attribute that may be a parameter."""
