"""A tree of rigid bodies as plain numbers, in MuJoCo's order and frames.

Lengths in m, masses in kg, angles in rad; quaternions are w x y z and unit. Body 0 is the
world. A parent always precedes its children.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description.fluid import Fluid
from mbcasadi.description.geoms import CollisionRules, Geom
from mbcasadi.description.tendons import Tendon
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]
JointKind = Literal["free", "ball", "slide", "hinge"]
FrameKind = Literal["site", "body", "geom", "camera"]
Compensation = Literal["passive", "actuator", "none"]

QPOS_SIZE: dict[str, int] = {"free": 7, "ball": 4, "slide": 1, "hinge": 1}
DOF_SIZE: dict[str, int] = {"free": 6, "ball": 3, "slide": 1, "hinge": 1}


@summarised
@dataclass(frozen=True)
class Joint:
    """One joint of a body; joints of the same body act in their order in `RigidTree.joints`.

    Attributes:
        name: unique name; unnamed MJCF joints get `joint<id>`.
        kind: "free", "ball", "slide" or "hinge".
        body: index of the body that it moves.
        qpos: first index in q.
        dof: first index in v.
        pos: (3,) anchor in the body frame.
        axis: (3,) unit axis in the body frame (slide, hinge).
        ref: position at which the geometry is the authored one (`qpos0`; slide, hinge).
        stiffness: spring constant, N/m or N m/rad.
        stiffness_poly: higher coefficients of MuJoCo's polynomial spring, () where linear.
        spring_yield: stretch at which the spring yields and its rest follows, 0 where it does not.
        damping_poly: higher coefficients of MuJoCo's polynomial damper, () where linear.
        force_range: clip of the summed actuator force on this joint (`actuatorfrcrange`), or None.
        compensation: what the gravity compensation on this joint is: a "passive" force, a force of
            its "actuator" (`actuatorgravcomp`), or "none": MuJoCo drops what is routed to actuators
            of a model that has none, or whose actuation is switched off.
        friction_loss: dry friction, N or N m (`frictionloss`); a force of the plant, in none of the
            equations.
        friction_slope: the damping that it is in MuJoCo where nothing slips, N s/m or N m s/rad.
    """

    name: str
    kind: JointKind
    body: int
    qpos: int
    dof: int
    pos: Array
    axis: Array
    ref: float = 0.0
    stiffness: float = 0.0
    stiffness_poly: tuple[float, ...] = ()
    spring_yield: float = 0.0
    damping_poly: tuple[float, ...] = ()
    force_range: tuple[float, float] | None = None
    compensation: Compensation = "passive"
    friction_loss: float = 0.0
    friction_slope: float = np.inf


@summarised
@dataclass(frozen=True)
class Body:
    """One rigid body.

    Attributes:
        name: unique name; unnamed MJCF bodies get `body<id>`.
        parent: index of the parent body (the world is its own parent).
        pos, quat: (3,), (4,) pose of the body frame in its parent, at `qpos0`.
        mass: kg.
        com: (3,) centre of mass in the body frame.
        inertia: (3, 3) rotational inertia about the centre of mass, body axes.
        gravcomp: fraction of the weight that is compensated (`gravcomp`).
        joints: indices into `RigidTree.joints`, in order of action.
        weld_root: first body of the rigid group that this one belongs to (`body_weldid`).
        mocap: index among the mocap bodies (`mocap_pos`, `mocap_quat` of a plant), or None. `pos`
            and `quat` are the initial pose, which the equations hold it at.
        mobility: MuJoCo's estimate of the inverse mass that a contact feels, 1/kg.
    """

    name: str
    parent: int
    pos: Array
    quat: Array
    mass: float
    com: Array
    inertia: Array
    gravcomp: float = 0.0
    joints: tuple[int, ...] = ()
    weld_root: int = 0
    mocap: int | None = None
    mobility: float = 0.0


@dataclass(frozen=True)
class Frame:
    """A frame fixed to a body: a site, the body frame itself, that of a geom or of a camera."""

    name: str
    kind: FrameKind
    body: int
    pos: Array
    quat: Array


@dataclass(frozen=True)
class Integration:
    """How a simulation of the model takes its steps, for those who have to predict one.

    Attributes:
        rule: MuJoCo's "euler", "rk4", "implicit", "implicitfast" or "discrete".
        timestep: s.
        implicit_damping: whether "euler" takes the damping of joints at the end of the step.
    """

    rule: str = "euler"
    timestep: float = 0.002
    implicit_damping: bool = True


@summarised
@dataclass(frozen=True)
class RigidTree:
    """A kinematic tree with its inertias and passive elements.

    Attributes:
        name: model name.
        bodies: body 0 is the world.
        joints: in MuJoCo's order.
        frames: sites, bodies, geoms and fixed cameras that can be addressed by name.
        tendons: fixed and spatial ones, in MuJoCo's order.
        gravity: (3,) m/s², zero where the model disables gravity.
        q0: (nq,) the authored configuration (`qpos0`).
        q_spring: (nq,) rest configuration of the joint springs (`qpos_spring`).
        armature: (nv,) inertia added on the diagonal of M by joints and actuators.
        damping: (nv,) linear damping of the joints.
        keyframes: configurations by name.
        geoms: shapes, in MuJoCo's order.
        collision_rules: which geoms may touch.
        integration: the model's own integrator and time step.
        constants: entries of q behind those of the joints, which never move: parameters of the
            model that stay symbols (`parameters.py`).
        fluid: the medium that it moves in, or None.
    """

    name: str
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    frames: tuple[Frame, ...]
    tendons: tuple[Tendon, ...]
    gravity: Array
    q0: Array
    q_spring: Array
    armature: Array
    damping: Array
    keyframes: dict[str, Array] = field(default_factory=dict)
    geoms: tuple[Geom, ...] = ()
    collision_rules: CollisionRules = field(default_factory=CollisionRules)
    integration: Integration = Integration()
    constants: int = 0
    fluid: Fluid | None = None

    def _summary(self) -> dict[str, object]:
        return {
            "nq": self.nq,
            "nv": self.nv,
            "bodies": len(self.bodies),
            "joints": [joint.name for joint in self.joints],
            "geoms": len(self.geoms),
        }

    @property
    def nq(self) -> int:
        """Size of q, constants included."""
        return self.nq_of_joints + self.constants

    @property
    def nq_of_joints(self) -> int:
        """Size of the part of q that moves, MuJoCo's `nq`."""
        return sum(QPOS_SIZE[joint.kind] for joint in self.joints)

    @property
    def nv(self) -> int:
        """Size of v."""
        return sum(DOF_SIZE[joint.kind] for joint in self.joints)
