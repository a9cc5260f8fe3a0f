"""The robot at the nominal pose of a walking planner, in axes of the ground."""

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.description import Contact
from mbcasadi.mpc.legged.from_system import rigid_body_state
from mbcasadi.mpc.legged.ground_axes import common_normal, ground_rotation, to_ground
from mbcasadi.mpc.legged.rigid_body import Array
from mbcasadi.system import System
from mbcasadi.system.frames import require_fixed


class NominalStance(NamedTuple):
    """The robot at the nominal pose q0 of a planner, in axes of the ground.

    Attributes:
        ground: (3, 3) rotation from these axes to the world's.
        centre: (3,) centre of mass, m.
        yaw: rad.
        places: (feet, 3) of the contacts, m.
        hips: (feet, 2) of the contacts from the centre of mass, turned back by yaw, m.
        arm: (3,) from the centre of mass to the trunk's origin, turned back by yaw, m.
    """

    ground: Array
    centre: Array
    yaw: float
    places: Array
    hips: Array
    arm: Array


def feet_of(system: System, contacts: Sequence[Contact], q: ca.SX, ground: Array) -> list[ca.SX]:
    """Return the places of the contacts, axes of the ground, m.

    Raises:
        ProblemError: a contact rolls over its body, so that no task can hold its place.
    """
    frames = [system.frame(contact.frame, contact.kind) for contact in contacts]
    for frame in frames:
        require_fixed(frame)
    return [to_ground(ground, frame.pose(q)[0]) for frame in frames]


def nominal_stance(system: System, contacts: Sequence[Contact], q0: Array) -> NominalStance:
    """Return the robot at q0.

    Raises:
        ProblemError: contacts on different planes.
    """
    normal = common_normal(contacts)
    ground = ground_rotation(normal)
    state = rigid_body_state(system, normal)(q0, np.zeros(system.nv))
    x, arm = (np.array(state[k]).ravel() for k in (0, 2))
    feet = feet_of(system, contacts, ca.SX(ca.DM(q0)), ground)
    places = np.array([np.array(ca.DM(place)).ravel() for place in feet])
    c, s = np.cos(x[2]), np.sin(x[2])
    turn = np.array([[c, -s], [s, c]])
    hips = (places[:, :2] - x[3:5]) @ turn
    back = np.append(arm[:2] @ turn, arm[2])
    return NominalStance(ground, x[3:6], float(x[2]), places, hips, back)
