"""The expressions of the walking planner: gait, desired pose, and inputs of both laws."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from mbcasadi.contacts.groups import contact_groups_of
from mbcasadi.control.inverse_dynamics.controller import InverseDynamicsQP
from mbcasadi.mpc.legged.footsteps import Footholds, Motion, SwingParameters
from mbcasadi.mpc.legged.from_system import rigid_body_state, trunk_joint
from mbcasadi.mpc.legged.gait import Gait, Path, swing_path
from mbcasadi.mpc.legged.ground_axes import rotate_about_vertical
from mbcasadi.mpc.legged.nominal_stance import NominalStance, feet_of
from mbcasadi.mpc.legged.planner_references import Carried, References
from mbcasadi.mpc.legged.pressing_force import touch_down_of
from mbcasadi.mpc.legged.rigid_body import Array, SingleRigidBody, next_state
from mbcasadi.mpc.legged.standing_feet import (
    Scheduled,
    Standing,
    standing_by_force,
    standing_by_schedule,
)
from mbcasadi.qp.input_guard import is_bounded
from mbcasadi.spatial.quaternions import LEAST_MEASURED2
from mbcasadi.system import System


@dataclass(frozen=True)
class PlannerEquations:
    """The equations of a planner; see `walking_planner` for the arguments."""

    law: InverseDynamicsQP
    body: SingleRigidBody
    gait: Gait
    stepping: SwingParameters
    stance: NominalStance
    trunk: str
    horizon: int
    period: float
    delay: int
    q0: Array

    @cached_property
    def feet(self) -> tuple[tuple[int, ...], ...]:
        """The contacts of each foot: of one body."""
        groups = contact_groups_of(self.law.system, self.law.contacts)
        return tuple(group.members for group in groups)

    @property
    def z0(self) -> Array:
        """The state in the pose q0, all feet on the ground."""
        places = self.stance.places.ravel()
        z = [places, np.append(self.stance.centre[:2], self.stance.yaw)]
        if self.stepping.touch_down is not None:
            flags = np.tile([1.0, 0.0], len(self.feet))
            z += [places, flags]
        return np.concatenate(z)

    def function(self, name: str) -> ca.Function:
        """Return (q, v, [f_measured], command, u, t, z) → (ref, mask, outer_*, z_next)."""
        inputs = self._inputs()
        normal = self.stance.ground[:, 2]
        x, _, arm = rigid_body_state(self.law.system, normal).call([inputs["q"], inputs["v"]])
        places = feet_of(self.law.system, self.law.contacts, inputs["q"], self.stance.ground)
        shares = ca.SX(self.gait.swing_share(inputs["t"]))
        standing = self._standing(inputs, places, shares)
        remembered = inputs["z"][3 * self.body.feet :][:3]
        goal = goal_near(x[[3, 4, 2]], remembered, self.stepping.max_drift)
        velocity = rotate_about_vertical(goal[2], inputs["command"][:2])
        spin = inputs["command"][2]
        now = Motion(inputs["t"], x, velocity, spin, shares)
        holds = Footholds(self.gait, self.stepping, self.stance)
        targets = holds.targets(now, standing.foothold_heights)
        paths = standing.paths(self._swings(shares, standing.takeoffs, targets))
        goal_next = goal + self.law.period * ca.vertcat(velocity, spin)
        loads = [standing.on[i] * f for i, f in enumerate(ca.vertsplit(inputs["u"], 3))]
        height = self.stance.centre[2] + standing.rise
        carried = Carried(x, arm, goal, height, velocity, spin, loads, places)
        references = References(self.law, self.body, self.stance, self.trunk, self.q0)
        rest_of_mask = ca.SX.ones(len(self.law.mask_names) - self.body.feet)
        z_next = ca.vertcat(*standing.takeoffs, goal_next, standing.memory(paths))
        outputs = {
            "ref": references.reference(carried, paths),
            "mask": ca.vertcat(standing.on, rest_of_mask),
            **self._outer(carried, standing, now, targets, inputs["u"]),
            "z_next": ca.if_else(is_measured(self.law.system, inputs), z_next, inputs["z"]),
        }
        dense = [ca.densify(value) for value in outputs.values()]
        return ca.Function(
            name, list(inputs.values()), dense, list(inputs), list(outputs), {"cse": True}
        )

    def _swings(
        self, shares: ca.SX, takeoffs: list[ca.SX], targets: list[ca.SX]
    ) -> list[Path[ca.SX]]:
        """Return the path of each contact in its swing."""
        height, flight = self.stepping.height, self.gait.flight
        return [
            swing_path(shares[i], takeoffs[i], targets[i], height, flight)
            for i in range(self.body.feet)
        ]

    def _inputs(self) -> dict[str, ca.SX]:
        """Return the symbols of the inputs."""
        system, nf = self.law.system, 3 * self.body.feet
        sizes = {"q": system.nq, "v": system.nv}
        if self.stepping.touch_down is not None:
            sizes["f_measured"] = nf
        sizes |= {"command": 3, "u": nf, "t": 1, "z": self.z0.size}
        return {key: ca.SX.sym(key, size) for key, size in sizes.items()}

    def _standing(self, inputs: dict[str, ca.SX], places: list[ca.SX], shares: ca.SX) -> Standing:
        """Return which feet stand, and where the others left the ground."""
        given, nf = self.stepping.touch_down, 3 * self.body.feet
        takeoffs = ca.vertsplit(inputs["z"][:nf], 3)
        contacts = Scheduled(self.gait.on_ground(inputs["t"]), shares, places, takeoffs)
        if given is None:
            return standing_by_schedule(self.stance, contacts)
        memory, rule = inputs["z"][nf + 3 :], touch_down_of(given, self.law, self.feet, self.q0)
        forces, period = inputs["f_measured"], self.law.period
        return standing_by_force(rule, self.stance, self.feet, contacts, forces, memory, period)

    def _outer(
        self, carried: Carried, standing: Standing, now: Motion, targets: list[ca.SX], u: ca.SX
    ) -> dict[str, ca.SX]:
        """Return the inputs of the MPC: the body predicted over its delay, and the reference."""
        x, feet = carried.x, ca.vertcat(*carried.places)
        step = next_state(self.body, self.period)
        for k in range(self.delay):
            on_ground = ca.kron(self._schedule(now, standing, k, 1), ca.DM.ones(3))
            x = step(x, feet, on_ground * u)
        refs = []
        for k in range(1, self.horizon + 1):
            ahead = (self.delay + k) * self.period
            yaw = carried.goal[2] + ahead * carried.spin
            place = carried.goal[:2] + ahead * carried.velocity
            pose = ca.vertcat(0, 0, yaw, place, carried.height)
            refs.append(ca.vertcat(pose, 0, 0, carried.spin, carried.velocity, 0))
        footholds = [
            ca.if_else(standing.on[i], carried.places[i], targets[i]) for i in range(self.body.feet)
        ]
        return {
            "outer_x0": x,
            "outer_ref": ca.vertcat(*refs),
            "outer_feet": ca.vertcat(*footholds),
            "outer_mask": self._schedule(now, standing, self.delay, self.horizon),
        }

    def _schedule(self, now: Motion, standing: Standing, first: int, count: int) -> ca.SX:
        """Return which contacts carry load in `count` intervals of the MPC, from the first on.

        A foot that stands early does so until it is scheduled to, one that is late not before the
        second interval.
        """
        rows = []
        for k in range(first, first + count):
            planned = self.gait.schedule(now.t + k * self.period, 1, self.period)
            rows.append(standing.expected(planned, now, self.gait, (k + 0.5) * self.period, k == 0))
        return ca.vertcat(*rows)


def is_measured(system: System, inputs: Mapping[str, ca.SX]) -> ca.SX:
    """Return whether inputs of a planner are numbers, but z, and the trunk has an orientation."""
    measured = ca.vertcat(*(value for key, value in inputs.items() if key != "z"))
    place = trunk_joint(system).qpos + 3
    upright = ca.sumsqr(inputs["q"][place : place + 4]) >= LEAST_MEASURED2
    return ca.logic_and(is_bounded(measured), upright)


def goal_near(pose: ca.SX, goal: ca.SX, max_drift: float) -> ca.SX:
    """Return the desired pose (x, y, yaw), at a limited distance from the measured one."""
    apart = goal - pose
    apart[2] = ca.atan2(ca.sin(apart[2]), ca.cos(apart[2]))
    return pose + ca.fmin(ca.fmax(apart, -max_drift), max_drift)
