"""Where feet and base of a robot are at q0 and now, in axes of the ground."""

from collections.abc import Sequence
from functools import cached_property

import casadi as ca
import numpy as np

from mbcasadi.contacts.groups import contact_groups_of
from mbcasadi.description import Contact
from mbcasadi.mpc.legged.from_system import trunk_joint
from mbcasadi.mpc.legged.ground_axes import (
    common_normal,
    ground_rotation,
    rotate_about_vertical,
    to_ground,
)
from mbcasadi.mpc.legged.nominal_stance import feet_of
from mbcasadi.mpc.ocp.problem import Array
from mbcasadi.mpc.whole_body.foot_clearance import FootClearance, foot_clearances
from mbcasadi.spatial import rotation
from mbcasadi.system import System


class StanceGeometry:
    """Geometry of what has these attributes.

    Attributes:
        system: with its contacts as rows.
        contacts: its feet.
        q0: (nq,) pose in which all stand.
    """

    system: System
    contacts: Sequence[Contact]
    q0: Array

    @cached_property
    def ground(self) -> Array:
        """(3, 3) rotation from axes of the ground to the world's."""
        return ground_rotation(common_normal(self.contacts))

    @cached_property
    def feet(self) -> ca.Function:
        """(q) → (places): (3, nc) of the contacts, m, axes of the ground."""
        q = ca.SX.sym("q", self.system.nq)
        places = feet_of(self.system, self.contacts, q, self.ground)
        return ca.Function("feet", [q], [ca.densify(ca.horzcat(*places))], ["q"], ["places"])

    @cached_property
    def stance(self) -> tuple[Array, Array, float]:
        """Places (3, nc) of the feet at q0, (3,) that of the base, and its yaw."""
        place, R = self.base_pose(ca.SX(ca.DM(self.q0)))
        turn = np.array(ca.DM(R))
        yaw = float(np.arctan2(turn[1, 0], turn[0, 0]))
        return self.feet(self.q0).full(), np.array(ca.DM(place)).ravel(), yaw

    @cached_property
    def hips(self) -> Array:
        """(2, nc) places of the feet beside the base at q0, turned back by its yaw, m."""
        places, base, yaw = self.stance
        c, s = np.cos(yaw), np.sin(yaw)
        return np.asarray(np.array([[c, s], [-s, c]]) @ (places[:2] - base[:2, None]))

    @cached_property
    def clearances(self) -> list[FootClearance]:
        """Feet side by side."""
        groups = contact_groups_of(self.system, self.contacts)
        return foot_clearances(self.hips, [group.members for group in groups])

    def base_pose(self, q: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return place (3,) and rotation (3, 3) of the free body, axes of the ground."""
        place = trunk_joint(self.system).qpos
        quat = q[place + 3 : place + 7]
        w, x, y, z = ca.vertsplit(quat / ca.norm_2(quat))
        R = ca.vertcat(*(ca.horzcat(*row) for row in rotation((w, x, y, z))))
        return to_ground(self.ground, q[place : place + 3]), to_ground(self.ground, R)

    def under_base(self, places: ca.SX) -> ca.SX:
        """Return the pose (x, y, yaw) under which the hips are nearest to the feet, (3, nc)."""
        hips, centre = ca.DM(self.hips), ca.sum2(places[:2, :]) / places.shape[1]
        middle = ca.DM(self.hips.mean(axis=1))
        of_hips, of_feet = hips - ca.repmat(middle, 1, hips.shape[1]), places[:2, :] - centre
        along = ca.sum2(ca.sum1(of_hips * of_feet))
        across = ca.sum2(of_hips[0, :] * of_feet[1, :] - of_hips[1, :] * of_feet[0, :])
        yaw = ca.atan2(across, along)
        return ca.vertcat(centre - rotate_about_vertical(yaw, ca.SX(middle)), yaw)
