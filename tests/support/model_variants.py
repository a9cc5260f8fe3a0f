"""The same robot written otherwise: other names, another order of bodies, another base frame."""

import xml.etree.ElementTree as ET
from pathlib import Path

import mujoco
import numpy as np

KEPT = ("class", "childclass", "type", "file", "dclass")
"""Attributes that hold no name of an element that we rename."""


def xml_of(path: str | Path) -> ET.Element:
    """Return a model's own text, whole, with all angles in radians and no defaults."""
    return ET.fromstring(mujoco.MjSpec.from_file(str(path)).to_xml())


def renamed(path: str | Path) -> str:
    """Return a model whose names say nothing: e0, e1, ... in the order in which they come."""
    root = xml_of(path)
    names = {each.get("name"): "" for each in root.iter() if each.get("name")}
    fresh = {name: f"e{k}" for k, name in enumerate(names)}
    for each in root.iter():
        for key, value in each.attrib.items():
            if key not in KEPT:
                each.set(key, fresh.get(value, value))
    return ET.tostring(root, encoding="unicode")


def reversed_bodies(path: str | Path) -> str:
    """Return a model whose bodies come in the reverse order; key frames keep their poses."""
    root = xml_of(path)
    for body in root.findall("worldbody//body"):
        for joint in (*body.findall("joint"), *body.findall("freejoint")):
            if not joint.get("name"):  # key frames find it by its name
                joint.set("name", f"of_{body.get('name')}")
    old = mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))
    for each in root.iter():
        bodies = [child for child in each if child.tag == "body"]
        for body in bodies:
            each.remove(body)
        each.extend(reversed(bodies))
    frames = root.find("keyframe")
    if frames is not None:
        root.remove(frames)
    spec = mujoco.MjSpec.from_string(ET.tostring(root, encoding="unicode"))
    new = spec.compile()
    for k in range(old.nkey):
        qpos = np.zeros(new.nq)
        for j in range(old.njnt):
            first, size = old.jnt_qposadr[j], {0: 7, 1: 4}.get(int(old.jnt_type[j]), 1)
            at = new.joint(old.joint(j).name).qposadr[0]
            qpos[at : at + size] = old.key_qpos[k, first : first + size]
        spec.add_key(name=old.key(k).name, qpos=qpos)
    spec.compile()
    return spec.to_xml()


def turned_base(path: str | Path, angle: float) -> str:
    """Return a robot with a free joint whose base frame is turned about the vertical, rad.

    What hangs on the base is turned back, so that in the world all is where it was.
    """
    spec = mujoco.MjSpec.from_file(str(path))
    turn = np.array([np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)])
    back = turn * [1, -1, -1, -1]
    base = next(b for b in spec.bodies[1:] if any(j.type == 0 for j in b.joints))
    first = {joint.name: k for k, joint in enumerate(base.joints)}
    assert len(first) == 1, "the base moves by its free joint alone"
    for each in (*base.bodies, *base.geoms, *base.sites, *base.cameras):
        _turn(each, back)
    if base.explicitinertial:
        base.ipos = _rotated(back, base.ipos)
        base.iquat = _times(back, base.iquat)
    base.quat = _times(base.quat, turn)
    at = spec.compile().jnt_qposadr[base.joints[0].id]
    for key in (each for each in spec.keys if len(each.qpos)):
        qpos = np.array(key.qpos)
        qpos[at + 3 : at + 7] = _times(qpos[at + 3 : at + 7], turn)
        key.qpos = qpos
    spec.compile()
    return spec.to_xml()


def turned_roots(path: str | Path, angle: float) -> str:
    """Return a robot that is fixed to the world, turned about the vertical as a whole, rad."""
    spec = mujoco.MjSpec.from_file(str(path))
    spec.compile()
    spec = mujoco.MjSpec.from_string(spec.to_xml())  # all orientations are quaternions
    turn = np.array([np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)])
    for body in spec.worldbody.bodies:
        _turn(body, turn)
    spec.compile()
    return spec.to_xml()


def _turn(element, turn: np.ndarray) -> None:
    """Turn an element of a body about the body's origin."""
    element.pos = _rotated(turn, element.pos)
    element.quat = _times(turn, element.quat)


def _times(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    product = np.zeros(4)
    mujoco.mju_mulQuat(product, np.array(first, dtype=float), np.array(second, dtype=float))
    return product


def _rotated(turn: np.ndarray, x: np.ndarray) -> np.ndarray:
    result = np.zeros(3)
    mujoco.mju_rotVecQuat(result, np.array(x, dtype=float), np.array(turn, dtype=float))
    return result
