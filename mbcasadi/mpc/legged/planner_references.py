"""References of all tasks while a robot walks: trunk, feet, and what goes along with the trunk.

The desired pose (x, y, yaw) moves with the command. A frame or centre of mass that the planner does
not compute keeps the place beside this pose that it has at q0; joints, directions and all else keep
the values of q0. All is computed in axes of the ground, and turned into the world's.
"""

from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.control.inverse_dynamics.controller import InverseDynamicsQP
from mbcasadi.control.tasks.com_task import ComTask
from mbcasadi.control.tasks.frame_task import FrameTask
from mbcasadi.mpc.legged.gait import Path
from mbcasadi.mpc.legged.ground_axes import rotate_about_vertical, to_world
from mbcasadi.mpc.legged.nominal_stance import NominalStance
from mbcasadi.mpc.legged.rigid_body import Array, SingleRigidBody, geometry
from mbcasadi.shapes import require_name
from mbcasadi.spatial.quaternions import multiply, quaternion_of
from mbcasadi.spatial.vectors import vec3

AXES = "xyz"


class Carried(NamedTuple):
    """The desired motion of the trunk's pose and what acts on it, in axes of the ground.

    Attributes:
        x: (12,) state of the rigid body.
        arm: (3,) from the centre of mass to the trunk's origin, m.
        goal: (x, y, yaw).
        height: of the centre of mass, m.
        velocity: (2,) m/s.
        spin: rad/s.
        loads: (3,) for each contact, N; zero off the ground.
        places: (3,) of the contacts, m.
    """

    x: ca.SX
    arm: ca.SX
    goal: ca.SX
    height: ca.SX
    velocity: ca.SX
    spin: ca.SX
    loads: list[ca.SX]
    places: list[ca.SX]


@dataclass(frozen=True)
class References:
    """The references of a law, for a robot that is at q0 in its nominal stance."""

    law: InverseDynamicsQP
    body: SingleRigidBody
    stance: NominalStance
    trunk: str
    q0: Array

    def reference(self, carried: Carried, paths: list[Path[ca.SX]]) -> ca.SX:
        """Return the reference of the inverse dynamics.

        Args:
            carried: the trunk's motion.
            paths: of the contacts.

        Raises:
            UnknownNameError: the law has no slice for the trunk or for a contact.
        """
        by_load = self._by_loads(carried)
        values = self._carried_tasks(carried, by_load)
        computed = {
            f"{self.trunk}.{quantity}": value
            for quantity, value in self._trunk(carried, by_load).items()
        }
        for contact, path in zip(self.law.contacts, paths, strict=True):
            for quantity, value in zip(Path._fields, path, strict=True):
                computed[f"{contact.frame}.{quantity}"] = to_world(self.stance.ground, value)
        computed["force"] = ca.vertcat(*(f[[2, 0, 1]] for f in carried.loads))
        ref, slices = ca.SX(ca.DM(self.law.reference_at(self.q0))), self.law.reference_slices
        for name in computed:
            require_name("slice of the reference", name, list(slices))
        for name, value in (values | computed).items():
            ref[slices[name]] = value
        return ref

    def _by_loads(self, carried: Carried) -> ca.SX:
        """Return (6,) angular and linear acceleration of the rigid body."""
        _, G = geometry(self.body).call([carried.x, ca.vertcat(*carried.places)])
        gravity = ca.DM([0, 0, 0, *self.body.gravity])
        return G @ ca.vertcat(*carried.loads) + gravity

    def _trunk(self, carried: Carried, by_load: ca.SX) -> dict[str, ca.SX]:
        """Return the desired pose and speed, and the effect of the loads on the trunk's origin."""
        ground, arm_0 = self.stance.ground, ca.SX(ca.DM(self.stance.arm))
        alpha, omega, arm = by_load[:3], carried.x[6:9], carried.arm
        place, velocity = self._beside(carried, arm_0)
        of_arm = ca.cross(alpha, arm) + ca.cross(omega, ca.cross(omega, arm))
        half = carried.goal[2] / 2
        upright = ca.vertcat(ca.cos(half), 0, 0, ca.sin(half))
        return {
            "position": to_world(ground, place),
            "velocity": to_world(ground, velocity),
            "acceleration": to_world(ground, by_load[3:] + of_arm),
            "quaternion": product(_quaternion(ground), upright),
            "angular_velocity": to_world(ground, ca.vertcat(0, 0, carried.spin)),
            "angular_acceleration": to_world(ground, alpha),
        }

    def _beside(self, carried: Carried, arm: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return place and velocity (3,) of a point at `arm` from the desired centre of mass."""
        back = ca.vertcat(rotate_about_vertical(carried.goal[2], arm[:2]), arm[2])
        centre = ca.vertcat(carried.goal[:2], carried.height)
        spin = ca.vertcat(0, 0, carried.spin)
        return centre + back, ca.vertcat(carried.velocity, 0) + ca.cross(spin, back)

    def _carried_tasks(self, carried: Carried, by_load: ca.SX) -> dict[str, ca.SX]:
        """Return the references of frames and centres of mass that go along with the trunk."""
        values: dict[str, ca.SX] = {}
        for task in self.law.tasks:
            if isinstance(task, ComTask):
                motion = self._centre(carried, by_load)
                values |= _rows(task.name, task.axes, motion)
            elif isinstance(task, FrameTask) and not task.base:
                values |= self._frame(task, carried)
        return values

    def _centre(self, carried: Carried, by_load: ca.SX) -> dict[str, ca.SX]:
        place, velocity = self._beside(carried, ca.SX.zeros(3))
        motion = {"position": place, "velocity": velocity, "acceleration": by_load[3:]}
        return {name: to_world(self.stance.ground, value) for name, value in motion.items()}

    def _frame(self, task: FrameTask, carried: Carried) -> dict[str, ca.SX]:
        """Return the references of a frame whose pose beside the trunk's is that of q0."""
        ground = self.stance.ground
        values: dict[str, ca.SX] = {}
        pose = self.law.system.frame(task.frame, task.kind)
        if task.position:
            place, velocity = self._beside(carried, self._arm_of(pose.pose(self.q0)[0]))
            motion = {"position": to_world(ground, place), "velocity": to_world(ground, velocity)}
            values |= _rows(task.name, task.position, motion)
        if task.orientation:
            half = (carried.goal[2] - self.stance.yaw) / 2
            turn = ca.vertcat(ca.cos(half), ca.sin(half) * ca.DM(ground[:, 2]))
            held = ca.SX(ca.DM(pose.quaternion(self.q0)))
            values[f"{task.name}.quaternion"] = product(turn, held)
            spin = to_world(ground, ca.vertcat(0, 0, carried.spin))
            values |= _rows(task.name, task.orientation, {"angular_velocity": spin})
        return values

    def _arm_of(self, place: ca.DM) -> ca.SX:
        """Return (3,) where a place in the world is from the centre of mass, turned back by yaw."""
        away = self.stance.ground.T @ np.array(place).ravel() - self.stance.centre
        c, s = np.cos(self.stance.yaw), np.sin(self.stance.yaw)
        x, y, z = away
        return ca.SX(ca.DM([c * x + s * y, c * y - s * x, z]))


def product(a: ca.SX, b: ca.SX) -> ca.SX:
    """Return the quaternion (4,) of the rotation by b, then by a."""
    return ca.vertcat(*multiply((a[0], a[1], a[2], a[3]), (b[0], b[1], b[2], b[3])))


def _quaternion(rotation: Array) -> ca.SX:
    """Return the quaternion (4,) of a rotation matrix."""
    x, y, z = (vec3(row) for row in rotation)
    return ca.vertcat(*quaternion_of((x, y, z)))


def _rows(name: str, axes: str, motion: dict[str, ca.SX]) -> dict[str, ca.SX]:
    """Return the slices of a task that is controlled along some axes of the world."""
    places = [AXES.index(axis) for axis in axes]
    return {f"{name}.{quantity}": value[places] for quantity, value in motion.items()}
