"""Coverage of the features of a compiled model: in the equations, or in the plant only."""

from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import (
    Actuator,
    Connect,
    CoverageItem,
    Equality,
    FixedTendon,
    JointCoupling,
    PathPulley,
    PathSite,
    RigidTree,
    SpatialTendon,
    Tendon,
    TendonCoupling,
    Weld,
)
from mbcasadi.description.coverage import Treatment
from mbcasadi.description.mocap import mocap_equalities
from mbcasadi.description.tree import DOF_SIZE
from mbcasadi.mjcf.compat import spring_yield
from mbcasadi.mjcf.fluid import fluid_features
from mbcasadi.mjcf.names import names, object_names

Array = NDArray[np.float64]

MJCF_WORDS: dict[type, str] = {
    Connect: "connect",
    Weld: "weld",
    JointCoupling: "joint",
    TendonCoupling: "tendon",
}


def used_features(
    tree: RigidTree, actuators: Sequence[Actuator], equalities: Sequence[Equality]
) -> list[CoverageItem]:
    """Return the features that the equations contain."""
    return [
        *(
            _item("joint", [j.name for j in tree.joints if j.kind == kind], kind)
            for kind in DOF_SIZE
            if any(j.kind == kind for j in tree.joints)
        ),
        *_joint_forces(tree),
        *_tendon_forces(tree),
        *fluid_features(tree.fluid, tuple(body.name for body in tree.bodies)),
        *_used_actuators(tree, actuators),
        *_used_equalities(equalities),
        *_to_mocap(tree, equalities),
    ]


def _used_equalities(equalities: Sequence[Equality]) -> list[CoverageItem]:
    groups: dict[str, list[str]] = {}
    for equality in equalities:
        what = MJCF_WORDS[type(equality)] + ("" if equality.active else ", switched off: no rows")
        groups.setdefault(what, []).append(equality.name)
    return [_item("equality", members, what) for what, members in groups.items()]


def _to_mocap(tree: RigidTree, equalities: Sequence[Equality]) -> list[CoverageItem]:
    """Return the equalities whose rows hold the initial pose of a mocap body."""
    depending = list(mocap_equalities(tree, equalities))
    advice = "its rows take the mocap body's initial pose; they do not follow `mocap_pos`"
    return [_item("equality", depending, "to a mocap body", advice=advice)] if depending else []


def _joint_forces(tree: RigidTree) -> list[CoverageItem]:
    dofs = {j.name: slice(j.dof, j.dof + DOF_SIZE[j.kind]) for j in tree.joints}
    groups = {
        "armature": [n for n, s in dofs.items() if np.any(tree.armature[s])],
        "damping": [n for n, s in dofs.items() if np.any(tree.damping[s])],
        "polynomial damping": [j.name for j in tree.joints if j.damping_poly],
        "stiffness": [j.name for j in tree.joints if j.stiffness],
        "polynomial stiffness": [j.name for j in tree.joints if j.stiffness_poly],
        "actuatorfrcrange": [j.name for j in tree.joints if j.force_range],
        "actuatorgravcomp": [j.name for j in tree.joints if j.compensation == "actuator"],
    }
    items = [_item("joint", members, what) for what, members in groups.items() if members]
    compensated = [body.name for body in tree.bodies if body.gravcomp]
    items += [_item("body", compensated, "gravcomp")] if compensated else []
    lost = [j.name for j in tree.joints if j.compensation == "none"]
    if compensated and lost:
        advice = "no actuator acts in this model, so compensation on these joints is zero, as there"
        items.append(_item("joint", lost, "actuatorgravcomp without actuation", advice=advice))
    return items


def _tendon_forces(tree: RigidTree) -> list[CoverageItem]:
    spatial = [t for t in tree.tendons if isinstance(t, SpatialTendon)]
    groups = {
        "fixed tendon": [t.name for t in tree.tendons if isinstance(t, FixedTendon)],
        "spatial tendon": [t.name for t in spatial],
        "pulley": [t.name for t in spatial if any(isinstance(e, PathPulley) for e in t.path)],
        "wrapping": [t.name for t in spatial if t.wraps],
        "side site": [t.name for t in spatial if any(g.side is not None for g in t.wraps)],
        "stiffness": [t.name for t in tree.tendons if t.stiffness or t.stiffness_poly],
        "damping": [t.name for t in tree.tendons if t.damping or t.damping_poly],
        "armature": [t.name for t in tree.tendons if t.armature],
        "actuatorfrcrange": [t.name for t in tree.tendons if t.force_range],
    }
    items = [_item("tendon", members, what) for what, members in groups.items() if members]
    across = [t.name for t in tree.tendons if t.armature and _spans_branches(tree, t)]
    if across:
        advice = "MuJoCo's M has no entry between branches: their coupling is omitted, as there"
        items.append(_item("tendon", across, "armature across branches", advice=advice))
    return items


def _spans_branches(tree: RigidTree, tendon: Tendon) -> bool:
    """Return whether a tendon couples joints of which neither carries the other."""
    if isinstance(tendon, FixedTendon):
        bodies = [tree.joints[j].body for j in tendon.joints]
    else:
        sites = [element.frame for element in tendon.path if isinstance(element, PathSite)]
        bodies = [_moving_body(tree, tree.frames[site].body) for site in sites]
    paths = [_ancestors(tree, body) for body in bodies]
    return any(a[0] not in b and b[0] not in a for a in paths for b in paths)


def _moving_body(tree: RigidTree, body: int) -> int:
    """Return the nearest body with a joint that carries a body, or the world."""
    while body and not tree.bodies[body].joints:
        body = tree.bodies[body].parent
    return body


def _ancestors(tree: RigidTree, body: int) -> list[int]:
    """Return a body and all that carry it, up to the world."""
    path = [body]
    while path[-1]:
        path.append(tree.bodies[path[-1]].parent)
    return path


def _used_actuators(tree: RigidTree, actuators: Sequence[Actuator]) -> list[CoverageItem]:
    groups: dict[str, list[str]] = {}
    for actuator in actuators:
        groups.setdefault(f"{actuator.transmission} transmission", []).append(actuator.name)
        if actuator.dynamics not in ("none", "dcmotor"):
            groups.setdefault(f"{actuator.dynamics} dynamics", []).append(actuator.name)
        for law, present in _laws(actuator).items():
            if present:
                groups.setdefault(law, []).append(actuator.name)
    items = [_item("actuator", members, what) for what, members in groups.items()]
    return items + ([_item("keyframe", list(tree.keyframes), "qpos")] if tree.keyframes else [])


def _laws(actuator: Actuator) -> dict[str, bool]:
    motor, pid = actuator.motor, actuator.pid
    return {
        "pid integral": pid is not None and pid.integral is not None,
        "pid slew rate": pid is not None and pid.reached is not None,
        "pid with the rate of its set-point": pid is not None and bool(pid.rate_gain),
        "muscle gain": actuator.muscle_gain is not None,
        "muscle bias": actuator.muscle_bias is not None,
        "actearly": actuator.ahead > 0.0,
        "dcmotor": motor is not None,
        "dcmotor inductance": motor is not None and motor.current is not None,
        "dcmotor cogging": motor is not None and any(motor.cogging),
        "dcmotor controller": motor is not None and motor.controller is not None,
        "dcmotor thermal": motor is not None and motor.thermal is not None,
        "dcmotor lugre": motor is not None and motor.bristle is not None,
    }


def plant_only_features(model: mujoco.MjModel) -> list[CoverageItem]:
    """Return what acts in MuJoCo only: forces of its solver, pictures."""
    joints, tendons = names(model, "joint"), names(model, "tendon")
    with_friction = {int(model.dof_jntid[i]) for i in np.flatnonzero(model.dof_frictionloss)}
    solver = "a force of MuJoCo's solver, not of the smooth dynamics"
    groups = [
        ("joint", pick(joints, model.jnt_limited), "limits", solver),
        ("joint", [joints[i] for i in sorted(with_friction)], "frictionloss", solver),
        ("tendon", pick(tendons, model.tendon_limited), "limits", solver),
        ("tendon", pick(tendons, model.tendon_frictionloss), "frictionloss", solver),
        (
            "body",
            pick(names(model, "body"), model.body_mocapid >= 0),
            "mocap",
            "the equations hold it at its initial pose; move it in the plant only to look at",
        ),
    ]
    items = [_item(kind, who, what, "plant only", why) for kind, who, what, why in groups if who]
    return items + _yielding(model) + _counts(model, solver)


def _yielding(model: mujoco.MjModel) -> list[CoverageItem]:
    """Return the springs whose rest follows a stretch that is too large."""
    groups = (("joint", "jnt", "springref"), ("tendon", "tendon", "springlength"))
    items = []
    for kind, prefix, parameter in groups:
        every = names(model, kind)
        who = [name for i, name in enumerate(every) if spring_yield(model, prefix, i)]
        advice = (
            f"the equations take the rest of the model; read it with {parameter} as a parameter, "
            "which `Plant.spring_rests` gives and `validate` feeds"
        )
        items += [_item(kind, who, "springyield", "plant only", advice)] if who else []
    return items


def _counts(model: mujoco.MjModel, solver: str) -> list[CoverageItem]:
    in_contact = np.count_nonzero(model.geom_contype | model.geom_conaffinity) + model.npair
    collides = model.flex_contype | model.flex_conaffinity | model.flex_selfcollide
    flexes = pick(names(model, "flex"), collides)
    flex_contact = [_item("flex", flexes, "contact", "plant only", solver)] if flexes else []
    counts = [
        (
            "geoms and pairs",
            in_contact,
            "contact",
            f"{solver}; `contacts_of` has its geometry, `Contact` its law",
        ),
        ("equality constraints", model.neq, "solref, solimp", "constraints are exact here"),
        ("skins, cameras, lights", model.nskin + model.ncam + model.nlight, "pictures", "unused"),
    ]
    items = [
        CoverageItem(f"{who} ({count}): {what}", "plant only", "", why)
        for who, count, what, why in counts
        if count
    ]
    options = "option: timestep, integrator, solver, cone"
    return [
        *flex_contact,
        *items,
        CoverageItem(options, "plant only", "", "how MuJoCo steps, not what it solves"),
    ]


def pick(all_names: Sequence[str], mask: Array | Sequence[int]) -> list[str]:
    """Return the names where a mask over all of them is set, or those with the given ids."""
    ids = mask if isinstance(mask, tuple) else np.flatnonzero(mask)
    return [all_names[int(i)] for i in ids]


def _item(
    kind: str, members: list[str], what: str, treatment: Treatment = "used", advice: str = ""
) -> CoverageItem:
    return CoverageItem(f"{object_names(kind, members)}: {what}", treatment, "", advice)
