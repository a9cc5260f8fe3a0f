"""The same robot in another size: lengths s, masses s³, times √s, gravity as it is.

Forces are then s³, torques s⁴, inertias s⁵, speeds √s. A motion of the scaled robot is that of the
original at t/√s, with controls and coordinates in their own units.
"""

from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np

HINGE, SLIDE, BALL, FREE = (
    mujoco.mjtJoint.mjJNT_HINGE,
    mujoco.mjtJoint.mjJNT_SLIDE,
    mujoco.mjtJoint.mjJNT_BALL,
    mujoco.mjtJoint.mjJNT_FREE,
)
AT_ONCE = (mujoco.mjtDyn.mjDYN_NONE, mujoco.mjtDyn.mjDYN_FILTER, mujoco.mjtDyn.mjDYN_FILTEREXACT)


class Units(NamedTuple):
    """By what numbers of a coordinate change: its length, its force, and time."""

    length: float
    force: float
    time: float

    @property
    def stiffness(self) -> float:
        return self.force / self.length

    @property
    def damping(self) -> float:
        return self.force * self.time / self.length

    @property
    def inertia(self) -> float:
        return self.force * self.time**2 / self.length


def linear(s: float) -> Units:
    """Return the units of a slide, a spatial tendon or a point."""
    return Units(s, s**3, s**0.5)


def rotary(s: float) -> Units:
    """Return the units of a hinge."""
    return Units(1.0, s**4, s**0.5)


class Scaled(NamedTuple):
    """A scaled model, and by what its controls change; its XML has six figures of each number."""

    spec: mujoco.MjSpec
    controls: np.ndarray


def scaled(path: str | Path, s: float) -> Scaled:
    """Return a model s times as large.

    Raises:
        ValueError: a feature without a rule here.
    """
    spec = mujoco.MjSpec.from_file(str(path))
    units = {
        joint.name: rotary(s) if joint.type in (HINGE, BALL) else linear(s) for joint in spec.joints
    }
    of_tendon = {tendon.name: _of_tendon(tendon, units, s) for tendon in spec.tendons}
    for body in spec.bodies:
        _scale(body, s, pos=s, ipos=s, mass=s**3, inertia=s**5, fullinertia=s**5)
    for each in (*spec.frames, *spec.cameras, *spec.lights):
        _scale(each, s, pos=s)
    for site in spec.sites:
        _scale(site, s, pos=s, size=s, fromto=s)
    for geom in spec.geoms:
        _scale_geom(geom, s)
    for joint in spec.joints:
        _scale_joint(joint, units[joint.name], s)
    for tendon in spec.tendons:
        _scale_tendon(tendon, of_tendon[tendon.name], s)
    for mesh in spec.meshes:
        _scale(mesh, s, scale=s, refpos=s)
    for pair in spec.pairs:
        _scale(pair, s, margin=s, gap=s)
        pair.friction = np.array(pair.friction) * [1, 1, s, s, s]
        _soft(pair, ("solref", "solreffriction"), ("solimp",), s, s)
    for equality in spec.equalities:
        _scale_equality(equality, units, of_tendon, s)
    controls = [_scale_actuator(each, units, of_tendon, s) for each in spec.actuators]
    _scale_options(spec, s)
    old = mujoco.MjModel.from_xml_path(str(path))
    for key in spec.keys:
        key.qpos = scaled_pose(old, np.array(key.qpos), s) if len(key.qpos) else key.qpos
        key.qvel, key.act = np.zeros(old.nv), np.zeros(0)
        key.ctrl = np.array(key.ctrl) * controls if len(key.ctrl) else key.ctrl
        key.mpos = np.array(key.mpos) * s
    return Scaled(spec, np.array(controls))


def scaled_pose(model: mujoco.MjModel, q: np.ndarray, s: float) -> np.ndarray:
    """Return a pose (nq,) of the scaled model."""
    q = q.copy()
    for kind, at in zip(model.jnt_type, model.jnt_qposadr, strict=True):
        q[at : at + {int(FREE): 3, int(SLIDE): 1}.get(int(kind), 0)] *= s
    return q


def _scale(each, s: float, **factors: float) -> None:
    """Multiply attributes; those without a value are NaN and stay so."""
    for name, factor in factors.items():
        setattr(each, name, np.array(getattr(each, name)) * factor)


def _soft(each, references, impedances, length: float, s: float) -> None:
    """Scale times of constraints, and the width of their impedance."""
    for name in references:
        first, second = getattr(each, name)
        slower = first > 0
        setattr(each, name, [first * s**0.5, second] if slower else [first / s, second / s**0.5])
    for name in impedances:
        setattr(each, name, np.array(getattr(each, name)) * [1, 1, length, 1, 1])


def _scale_geom(geom, s: float) -> None:
    if geom.type == mujoco.mjtGeom.mjGEOM_PLANE:
        geom.size = np.array(geom.size) * s
        _scale(geom, s, pos=s, margin=s, gap=s)
    else:
        _scale(geom, s, pos=s, size=s, fromto=s, margin=s, gap=s, mass=s**3)
    geom.friction = np.array(geom.friction) * [1, s, s]
    _soft(geom, ("solref",), ("solimp",), s, s)


def _scale_joint(joint, units: Units, s: float) -> None:
    if joint.type == FREE and np.any(
        [*np.ravel(joint.damping), joint.armature, joint.frictionloss]
    ):
        raise ValueError(f"{joint.name}: one number for forces and torques of a free joint")
    _scale(joint, s, pos=s, damping=units.damping, stiffness=units.stiffness)
    _scale(joint, s, armature=units.inertia, frictionloss=units.force, actfrcrange=units.force)
    if joint.type in (SLIDE, FREE):
        _scale(joint, s, range=s, ref=s, springref=s, margin=s)
    if joint.springdamper[0] > 0:
        joint.springdamper = np.array(joint.springdamper) * [s**0.5, 1]
    _soft(
        joint,
        ("solref_limit", "solref_friction"),
        ("solimp_limit", "solimp_friction"),
        units.length,
        s,
    )


def _of_tendon(tendon, units: dict[str, Units], s: float) -> Units:
    """Return the units of a tendon: of its joints where it is a sum of them."""
    joints = {
        units[wrap.target.name] for wrap in tendon.path if wrap.type == mujoco.mjtWrap.mjWRAP_JOINT
    }
    if len(joints) > 1:
        raise ValueError(f"{tendon.name}: slides and hinges in one tendon")
    return next(iter(joints), linear(s))


def _scale_tendon(tendon, units: Units, s: float) -> None:
    _scale(tendon, s, width=s, range=units.length, margin=units.length, stiffness=units.stiffness)
    _scale(tendon, s, damping=units.damping, armature=units.inertia, frictionloss=units.force)
    _scale(tendon, s, actfrcrange=units.force)
    lengths = np.array(tendon.springlength)
    tendon.springlength = np.where(lengths == -1, -1, lengths * units.length)
    _soft(
        tendon,
        ("solref_limit", "solref_friction"),
        ("solimp_limit", "solimp_friction"),
        units.length,
        s,
    )


def _scale_equality(equality, units, of_tendon, s: float) -> None:
    data, kind, first = np.array(equality.data), equality.type, s
    if kind in (mujoco.mjtEq.mjEQ_JOINT, mujoco.mjtEq.mjEQ_TENDON):
        known = units if kind == mujoco.mjtEq.mjEQ_JOINT else of_tendon
        first = known[equality.name1].length
        second = known[equality.name2].length if equality.name2 else 1.0
        data[:5] *= first / second ** np.arange(5)
    elif kind == mujoco.mjtEq.mjEQ_CONNECT:
        data[:6] *= s
    elif kind == mujoco.mjtEq.mjEQ_WELD:
        data[:6] *= s
        data[10] *= s
    else:
        raise ValueError(f"equality '{equality.name}': no rule")
    equality.data = data
    _soft(equality, ("solref",), ("solimp",), first, s)


def _scale_actuator(actuator, units, of_tendon, s: float) -> float:
    """Scale an actuator, and return by what its control changes."""
    if actuator.dyntype not in AT_ONCE or actuator.plugin.active:
        raise ValueError(f"actuator '{actuator.name}': no rule for its activation")
    own = _of_actuator(actuator, units, of_tendon, s)
    gain, bias = np.array(actuator.gainprm), np.array(actuator.biasprm)
    servo = actuator.biastype == mujoco.mjtBias.mjBIAS_AFFINE
    control = own.force
    if servo and bias[1]:
        control = own.length
    elif servo and bias[2]:
        control = own.length / own.time
    per_unit = [own.force, own.stiffness, own.damping]
    gain[:3] *= np.array(per_unit) / control
    bias[:3] *= per_unit
    actuator.gainprm, actuator.biasprm = gain, bias
    _scale(actuator, s, ctrlrange=control, actrange=control, forcerange=own.force)
    _scale(actuator, s, cranklength=s, armature=own.inertia, damping=own.damping)
    if actuator.dyntype != mujoco.mjtDyn.mjDYN_NONE:
        actuator.dynprm = (
            np.array(actuator.dynprm) * np.r_[s**0.5, np.ones(len(actuator.dynprm) - 1)]
        )
    if actuator.delay:
        raise ValueError(f"actuator '{actuator.name}': no rule for its delay")
    return control


def _of_actuator(actuator, units, of_tendon, s: float) -> Units:
    """Return the units of an actuator's length and force; lever arms of a site's become longer."""
    kind = actuator.trntype
    if kind in (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT):
        return units[actuator.target]
    if kind == mujoco.mjtTrn.mjTRN_TENDON:
        return of_tendon[actuator.target]
    gear = np.array(actuator.gear)
    if kind == mujoco.mjtTrn.mjTRN_SITE and not gear[:3].any():
        return rotary(s)
    gear[3:] *= s
    actuator.gear = gear
    return linear(s)


def _scale_options(spec, s: float) -> None:
    option = spec.option
    option.timestep *= s**0.5
    option.viscosity *= s**1.5
    option.wind = np.array(option.wind) * s**0.5
    option.o_margin *= s
    spec.compiler.boundmass *= s**3
    spec.compiler.boundinertia *= s**5
    spec.stat.extent *= s
    spec.stat.center = np.array(spec.stat.center) * s
