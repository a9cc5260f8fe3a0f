"""Bodies, joints and frames of a compiled model as a `RigidTree`."""

from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Body, Frame, Joint, RigidTree
from mbcasadi.description.tree import Compensation, Integration, JointKind
from mbcasadi.mjcf.compat import spring_yield
from mbcasadi.mjcf.flags import Flags
from mbcasadi.mjcf.fluid import fluid
from mbcasadi.mjcf.geoms import collision_rules, geoms
from mbcasadi.mjcf.names import model_name, names
from mbcasadi.mjcf.reflected_inertia import ReflectedInertia
from mbcasadi.mjcf.softness import friction_slope
from mbcasadi.mjcf.tendons import force_range, higher_coefficients, tendons

Array = NDArray[np.float64]

JOINT_KINDS: dict[int, JointKind] = {
    int(mujoco.mjtJoint.mjJNT_FREE): "free",
    int(mujoco.mjtJoint.mjJNT_BALL): "ball",
    int(mujoco.mjtJoint.mjJNT_SLIDE): "slide",
    int(mujoco.mjtJoint.mjJNT_HINGE): "hinge",
}
INTEGRATORS = {
    int(value): name.removeprefix("mjINT_").lower()
    for name, value in mujoco.mjtIntegrator.__members__.items()
}
NAMELESS = "MuJoCo Model"  # what MuJoCo calls a model without a name


def rigid_tree(
    model: mujoco.MjModel, flags: Flags, reflected: ReflectedInertia, path: Path | None
) -> RigidTree:
    """Return the tree; forces that the flags switch off are zero in it.

    Args:
        model: the compiled model.
        flags: what the model switches off.
        reflected: armature and damping that actuators add to joints and tendons.
        path: where it was read from; names a nameless model.
    """
    name = model_name(model)
    if name in ("", NAMELESS):
        name = "model" if path is None else path.stem
    damping = np.array(model.dof_damping) + reflected.joint_damping
    return RigidTree(
        name=name,
        bodies=_bodies(model, flags),
        joints=_joints(model, flags, reflected),
        frames=_frames(model),
        tendons=tendons(model, flags, reflected),
        gravity=np.array(model.opt.gravity) if flags.gravity else np.zeros(3),
        q0=np.array(model.qpos0),
        q_spring=np.array(model.qpos_spring),
        armature=np.array(model.dof_armature) + reflected.joint_armature,
        damping=damping if flags.damper else np.zeros(model.nv),
        keyframes={key: np.array(model.key_qpos[i]) for i, key in enumerate(names(model, "key"))},
        geoms=geoms(model),
        collision_rules=collision_rules(model),
        integration=Integration(
            rule=INTEGRATORS[int(model.opt.integrator)],
            timestep=float(model.opt.timestep),
            implicit_damping=flags.implicit_damping,
        ),
        fluid=fluid(model, flags),
    )


def _bodies(model: mujoco.MjModel, flags: Flags) -> tuple[Body, ...]:
    bodies = []
    for i, name in enumerate(names(model, "body")):
        first, count = int(model.body_jntadr[i]), int(model.body_jntnum[i])
        R = rotation(model.body_iquat[i])
        bodies.append(
            Body(
                name=name,
                parent=int(model.body_parentid[i]),
                pos=np.array(model.body_pos[i]),
                quat=np.array(model.body_quat[i]),
                mass=float(model.body_mass[i]),
                com=np.array(model.body_ipos[i]),
                inertia=R @ np.diag(model.body_inertia[i]) @ R.T,
                gravcomp=float(model.body_gravcomp[i]) if flags.passive else 0.0,
                joints=tuple(range(first, first + count)),
                weld_root=int(model.body_weldid[i]),
                mocap=int(model.body_mocapid[i]) if model.body_mocapid[i] >= 0 else None,
                mobility=float(model.body_invweight0[i, 0]),
            )
        )
    return tuple(bodies)


def _joints(model: mujoco.MjModel, flags: Flags, reflected: ReflectedInertia) -> tuple[Joint, ...]:
    joints = []
    for i, name in enumerate(names(model, "joint")):
        kind = JOINT_KINDS[int(model.jnt_type[i])]
        qpos, dof = int(model.jnt_qposadr[i]), int(model.jnt_dofadr[i])
        scalar = kind in ("slide", "hinge")
        damping_poly = model.dof_dampingpoly[dof] + reflected.joint_damping_poly[dof]
        force_limited = flags.actuation and bool(model.jnt_actfrclimited[i])
        joints.append(
            Joint(
                name=name,
                kind=kind,
                body=int(model.jnt_bodyid[i]),
                qpos=qpos,
                dof=dof,
                pos=np.array(model.jnt_pos[i]),
                axis=np.array(model.jnt_axis[i]),
                ref=float(model.qpos0[qpos]) if scalar else 0.0,
                stiffness=float(model.jnt_stiffness[i]) if flags.spring else 0.0,
                stiffness_poly=higher_coefficients(model.jnt_stiffnesspoly[i], flags.spring),
                spring_yield=spring_yield(model, "jnt", i),
                damping_poly=higher_coefficients(damping_poly, flags.damper),
                force_range=force_range(model.jnt_actfrcrange[i], force_limited),
                compensation=_compensation(bool(model.jnt_actgravcomp[i]), flags),
                friction_loss=float(model.dof_frictionloss[dof]) if flags.friction_loss else 0.0,
                friction_slope=friction_slope(model, dof) if scalar else np.inf,
            )
        )
    return tuple(joints)


def _compensation(routed: bool, flags: Flags) -> Compensation:
    if not routed:
        return "passive"
    return "actuator" if flags.actuation else "none"


def frame_indices(model: mujoco.MjModel, kind: str) -> dict[int, int]:
    """Return the index in `RigidTree.frames` for the id of each site, body, geom or camera.

    Cameras that are not fixed to their bodies have none.
    """
    counts = {"site": model.nsite, "body": model.nbody, "geom": model.ngeom}
    first, kinds = 0, list(counts)
    for before in kinds[: kinds.index(kind)] if kind in kinds else kinds:
        first += counts[before]
    ids = _fixed_cameras(model) if kind == "camera" else range(counts[kind])
    return {object_id: first + place for place, object_id in enumerate(ids)}


def _fixed_cameras(model: mujoco.MjModel) -> list[int]:
    fixed = model.cam_mode == int(mujoco.mjtCamLight.mjCAMLIGHT_FIXED)
    return [int(camera) for camera in np.flatnonzero(fixed)]


def _frames(model: mujoco.MjModel) -> tuple[Frame, ...]:
    """Return sites in their order, then bodies, geoms, and cameras fixed to their bodies."""
    sites = (
        Frame(name, "site", int(body), np.array(pos), np.array(quat))
        for name, body, pos, quat in zip(
            names(model, "site"), model.site_bodyid, model.site_pos, model.site_quat, strict=True
        )
    )
    geoms = (
        Frame(name, "geom", int(body), np.array(pos), np.array(quat))
        for name, body, pos, quat in zip(
            names(model, "geom"), model.geom_bodyid, model.geom_pos, model.geom_quat, strict=True
        )
    )
    bodies = (
        Frame(name, "body", i, np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))
        for i, name in enumerate(names(model, "body"))
    )
    camera_names = names(model, "camera")
    cameras = (
        Frame(
            camera_names[i],
            "camera",
            int(model.cam_bodyid[i]),
            np.array(model.cam_pos[i]),
            np.array(model.cam_quat[i]),
        )
        for i in _fixed_cameras(model)
    )
    return (*sites, *bodies, *geoms, *cameras)


def rotation(quat: Array) -> Array:
    """Return the (3, 3) rotation of a unit quaternion w x y z."""
    w, (x, y, z) = quat[0], quat[1:]
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.asarray(np.eye(3) + 2.0 * w * skew + 2.0 * skew @ skew)
