"""State, forces and time that sensors read, with the recursions that they share.

A frame is a pose fixed to a link; what is world axes is said, all else is in the axes of the link.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import casadi as ca

from mbcasadi.description import Actuator, Frame, RigidTree, SensorFrame
from mbcasadi.model.chain import WORLD, Chain, chain_of
from mbcasadi.model.frames import frame_on_link, frame_origin, point_jacobian
from mbcasadi.model.motion import LinkPose, from_columns, link_poses
from mbcasadi.model.placement import Pose
from mbcasadi.model.recursion import LinkMotion, link_motions
from mbcasadi.model.transmission import frame_quat
from mbcasadi.spatial import Mat3, Quat, Vec3, entries, rotate, vec3


@dataclass(frozen=True)
class SensedState:
    """What sensors read.

    Attributes:
        tree: the mechanism.
        actuators: in the order of the controls.
        q, v, a: (nq, 1), (nv, 1), (nv, 1) configuration, velocity, acceleration.
        u, act: (nu, 1), (na, 1) controls and activations.
        wrenches: (6, nbody) external force, N, above moment about the origin of the body, N m, on
            each body, world axes.
        t: time, s.
        solver: (n, 1) what MuJoCo's solver did, one number for each sensor of `SENSED_SOLVER`.
    """

    tree: RigidTree
    actuators: Sequence[Actuator]
    q: ca.SX
    v: ca.SX
    a: ca.SX
    u: ca.SX
    act: ca.SX
    wrenches: ca.SX
    t: ca.SX
    solver: ca.SX = field(default_factory=lambda: ca.SX(0, 1))

    @cached_property
    def chain(self) -> Chain:
        """The links."""
        return chain_of(self.tree)

    @cached_property
    def poses(self) -> dict[int, LinkPose]:
        """World poses of all links."""
        return link_poses(self.chain, self.q)

    @cached_property
    def motions(self) -> dict[int, LinkMotion]:
        """Motions of all links, accelerations less gravity."""
        return link_motions(self.chain, self.q, self.v, self.a)

    def frame(self, of: SensorFrame) -> "SensedFrame":
        """Return a frame of a sensor."""
        if of.principal is None:
            frame = self.tree.frames[of.index]
        else:
            body = self.tree.bodies[of.index]
            frame = Frame(body.name, "body", of.index, body.com, of.principal)
        link, mounted = frame_on_link(self.chain, frame)
        return SensedFrame(self, frame, link, mounted)


@dataclass(frozen=True)
class SensedFrame:
    """A frame on a link at a state."""

    state: SensedState
    frame: Frame
    link: int
    mounted: Pose

    @cached_property
    def columns(self) -> Mat3:
        """Axes of the frame, world axes."""
        on_link = self.pose.columns
        x, y, z = (from_columns(on_link, vec3(self.mounted.R[:, k])) for k in range(3))
        return (x, y, z)

    @property
    def pose(self) -> LinkPose:
        """World pose of the link."""
        return self.state.poses[self.link]

    @cached_property
    def origin(self) -> Vec3:
        """World position of the origin, m."""
        return frame_origin(self.pose, self.mounted)

    @cached_property
    def velocity(self) -> tuple[Vec3, Vec3]:
        """Velocity of the origin, m/s, and angular velocity, rad/s, world axes."""
        state = self.state
        J = point_jacobian(state.chain, state.poses, self.link, self.origin)
        rate = J @ state.v
        return entries(rate), entries(rate, 3)

    @cached_property
    def acceleration(self) -> tuple[Vec3, Vec3]:
        """Acceleration of the origin less gravity, m/s², and angular one, rad/s², world axes."""
        motion = self.state.motions[self.link]
        linear = motion.acceleration_at(vec3(self.mounted.p))
        return from_columns(self.pose.columns, linear), from_columns(self.pose.columns, motion.dw)

    @property
    def quat(self) -> Quat:
        """Orientation in the world, with MuJoCo's sign."""
        return frame_quat(self.state.tree, self.frame, self.state.q)

    @property
    def moves(self) -> bool:
        """Whether a joint carries the frame."""
        return self.link != WORLD

    def in_axes(self, vector: Vec3) -> Vec3:
        """Return a vector of world axes in the axes of the frame."""
        return rotate(self.columns, vector)
