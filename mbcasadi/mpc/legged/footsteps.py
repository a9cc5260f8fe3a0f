"""The expressions of the walking planner: desired pose, footholds, and inputs of both laws."""

from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.inverse_dynamics.controller import InverseDynamicsQP
from mbcasadi.mpc.legged.from_system import rigid_body_state, trunk_joint
from mbcasadi.mpc.legged.gait import Gait, Path, swing_path
from mbcasadi.mpc.legged.rigid_body import Array, SingleRigidBody, geometry, next_state
from mbcasadi.qp.input_guard import LEAST_QUAT2, is_bounded
from mbcasadi.shapes import require_name
from mbcasadi.system.frames import require_fixed


@dataclass(frozen=True)
class SwingParameters:
    """Parameters of the swing.

    Attributes:
        height: of a swing, m.
        feedback: displacement of the foothold for each m/s of excess speed of the body, s.
        reach: largest distance of a foothold from the point below the hip, m.
        max_drift: largest distance of the desired pose from the measured one, m and rad.
        ground_penetration: depth below the ground at which a swing ends, m.
    """

    height: float = 0.06
    feedback: float = 0.1
    reach: float = 0.15
    max_drift: float = 0.1
    ground_penetration: float = 0.0

    def __post_init__(self) -> None:
        require_fields(self)


class NominalStance(NamedTuple):
    """The robot at the nominal pose q0 of a planner.

    Attributes:
        centre: (3,) centre of mass, m.
        yaw: rad.
        places: (feet, 3) of the contacts, m.
        hips: (feet, 2) of the contacts from the centre of mass, turned back by yaw, m.
        arm: (3,) from the centre of mass to the trunk's origin, turned back by yaw, m.
    """

    centre: Array
    yaw: float
    places: Array
    hips: Array
    arm: Array


class Now(NamedTuple):
    """One tick: state of the body, commanded rates, feet, forces."""

    t: ca.SX
    x: ca.SX
    arm: ca.SX
    velocity: ca.SX
    spin: ca.SX
    goal: ca.SX
    on: ca.SX
    places: list[ca.SX]
    targets: list[ca.SX]
    u: ca.SX


@dataclass(frozen=True)
class PlannerEquations:
    """The equations of a planner; see `walking_planner` for the arguments.

    `rest` is the reference (nref,) that holds q0, for what the planner does not compute.
    """

    law: InverseDynamicsQP
    body: SingleRigidBody
    gait: Gait
    stepping: SwingParameters
    stance: NominalStance
    trunk: str
    horizon: int
    period: float
    delay: int
    rest: Array

    def function(self, name: str) -> ca.Function:
        """Return (q, v, command, u, t, z) → (ref, mask, outer_*, z_next)."""
        system, nf = self.law.system, 3 * self.body.feet
        sizes = {"q": system.nq, "v": system.nv, "command": 3, "u": nf, "t": 1, "z": nf + 3}
        inputs = {key: ca.SX.sym(key, size) for key, size in sizes.items()}
        t, command = inputs["t"], inputs["command"]
        x, _, arm = rigid_body_state(system).call([inputs["q"], inputs["v"]])
        on, shares = self.gait.on_ground(t), ca.SX(self.gait.swing_share(t))
        places = feet_of(self.law, inputs["q"])
        takeoffs = [
            ca.if_else(ca.logic_or(on[i], ca.logic_not(finite(takeoff))), places[i], takeoff)
            for i, takeoff in enumerate(ca.vertsplit(inputs["z"][:nf], 3))
        ]
        goal = self._goal(inputs["z"][nf:], x)
        velocity, spin = rotate_about_vertical(goal[2], command[:2]), command[2]
        targets = [self._foothold(i, x, velocity, spin, shares[i]) for i in range(self.body.feet)]
        now = Now(t, x, arm, velocity, spin, goal, on, places, targets, inputs["u"])
        paths = [
            swing_path(shares[i], takeoffs[i], targets[i], self.stepping.height, self.gait.flight)
            for i in range(self.body.feet)
        ]
        goal_next = goal + self.law.period * ca.vertcat(velocity, spin)
        measured = ca.vertcat(*(inputs[key] for key in ("t", "q", "v", "command", "u")))
        place = trunk_joint(system).qpos + 3
        upright = ca.sumsqr(inputs["q"][place : place + 4]) >= LEAST_QUAT2
        valid = ca.logic_and(finite(measured), upright)
        outputs = {
            "ref": self._reference(now, paths),
            "mask": ca.vertcat(on, ca.SX.ones(len(self.law.mask_names) - self.body.feet)),
            **self._outer(now),
            "z_next": ca.if_else(valid, ca.vertcat(*takeoffs, goal_next), inputs["z"]),
        }
        dense = [ca.densify(value) for value in outputs.values()]
        return ca.Function(
            name, list(inputs.values()), dense, list(inputs), list(outputs), {"cse": True}
        )

    def _goal(self, goal: ca.SX, x: ca.SX) -> ca.SX:
        """Return the desired pose (x, y, yaw), at a limited distance from the measured one."""
        max_drift = self.stepping.max_drift
        apart = goal - x[[3, 4, 2]]
        apart[2] = ca.atan2(ca.sin(apart[2]), ca.cos(apart[2]))
        return x[[3, 4, 2]] + ca.fmin(ca.fmax(apart, -max_drift), max_drift)

    def _foothold(self, i: int, x: ca.SX, velocity: ca.SX, spin: ca.SX, share: ca.SX) -> ca.SX:
        """Return the foothold of foot i; see the head of `walking_planner.py`."""
        hip, reach = ca.SX(ca.DM(self.stance.hips[i])), self.stepping.reach
        landing, half_stance = (1 - share) * self.gait.flight, self.gait.stance / 2
        below = (
            x[3:5]
            + landing * x[9:11]
            + rotate_about_vertical(x[2] + (landing + half_stance) * spin, hip)
        )
        step = half_stance * velocity + self.stepping.feedback * (x[9:11] - velocity)
        step = step * ca.fmin(1, reach / (ca.norm_2(step) + np.finfo(float).tiny))
        return ca.vertcat(below + step, self.stance.places[i, 2] - self.stepping.ground_penetration)

    def _reference(self, now: Now, paths: list[Path[ca.SX]]) -> ca.SX:
        """Return the reference of the inverse dynamics."""
        loads = [now.on[i] * f for i, f in enumerate(ca.vertsplit(now.u, 3))]
        values = {f"{self.trunk}.{key}": value for key, value in self._trunk(now, loads).items()}
        values["force"] = ca.vertcat(*(ca.vertcat(f[2], f[0], f[1]) for f in loads))
        for i, contact in enumerate(self.law.contacts):
            still = Path(now.places[i], ca.SX.zeros(3), ca.SX.zeros(3))
            for quantity, at_rest, swinging in zip(Path._fields, still, paths[i], strict=True):
                values[f"{contact.frame}.{quantity}"] = ca.if_else(now.on[i], at_rest, swinging)
        ref, places = ca.SX(ca.DM(self.rest)), self.law.reference
        for name, value in values.items():
            require_name("slice of the reference", name, list(places))
            ref[places[name]] = value
        return ref

    def _trunk(self, now: Now, loads: list[ca.SX]) -> dict[str, ca.SX]:
        """Return the desired pose and speed, and the effect of the loads on the trunk's origin."""
        _, G = geometry(self.body).call([now.x, ca.vertcat(*now.places)])
        acceleration = G @ ca.vertcat(*loads)
        alpha, omega, arm = acceleration[:3], now.x[6:9], now.arm
        gravity, arm_0 = ca.DM(self.body.gravity), ca.SX(ca.DM(self.stance.arm))
        place = ca.vertcat(now.goal[:2], self.stance.centre[2])
        back = ca.vertcat(rotate_about_vertical(now.goal[2], arm_0[:2]), arm_0[2])
        spin, half = ca.vertcat(0, 0, now.spin), now.goal[2] / 2
        of_arm = ca.cross(alpha, arm) + ca.cross(omega, ca.cross(omega, arm))
        return {
            "position": place + back,
            "velocity": ca.vertcat(now.velocity, 0) + ca.cross(spin, back),
            "acceleration": acceleration[3:] + gravity + of_arm,
            "quaternion": ca.vertcat(ca.cos(half), 0, 0, ca.sin(half)),
            "angular_velocity": spin,
            "angular_acceleration": alpha,
        }

    def _outer(self, now: Now) -> dict[str, ca.SX]:
        """Return the inputs of the MPC: the body predicted over its delay, and the reference."""
        x, feet = now.x, ca.vertcat(*now.places)
        step = next_state(self.body, self.period)
        for k in range(self.delay):
            on_ground = ca.kron(
                self.gait.schedule(now.t + k * self.period, 1, self.period), ca.DM.ones(3)
            )
            x = step(x, feet, on_ground * now.u)
        refs = []
        for k in range(1, self.horizon + 1):
            ahead = (self.delay + k) * self.period
            yaw, place = now.goal[2] + ahead * now.spin, now.goal[:2] + ahead * now.velocity
            pose = ca.vertcat(0, 0, yaw, place, self.stance.centre[2])
            refs.append(ca.vertcat(pose, 0, 0, now.spin, now.velocity, 0))
        footholds = [
            ca.if_else(now.on[i], now.places[i], now.targets[i]) for i in range(self.body.feet)
        ]
        first = now.t + self.delay * self.period
        return {
            "outer_x0": x,
            "outer_ref": ca.vertcat(*refs),
            "outer_feet": ca.vertcat(*footholds),
            "outer_mask": self.gait.schedule(first, self.horizon, self.period),
        }


def feet_of(law: InverseDynamicsQP, q: ca.SX) -> list[ca.SX]:
    """Return the places of the contacts, world axes, m.

    Raises:
        ProblemError: a contact rolls over its body, so that no task can hold its place.
    """
    frames = [law.system.frame(contact.frame, contact.kind) for contact in law.contacts]
    for frame in frames:
        require_fixed(frame)
    return [frame.pose(q)[0] for frame in frames]


def nominal_stance(law: InverseDynamicsQP, q0: Array) -> NominalStance:
    """Return the robot at q0."""
    state = rigid_body_state(law.system)(q0, np.zeros(law.system.nv))
    x, arm = (np.array(state[k]).ravel() for k in (0, 2))
    places = np.array([np.array(ca.DM(place)).ravel() for place in feet_of(law, ca.SX(ca.DM(q0)))])
    c, s = np.cos(x[2]), np.sin(x[2])
    turn = np.array([[c, -s], [s, c]])
    hips = (places[:, :2] - x[3:5]) @ turn
    return NominalStance(x[3:6], float(x[2]), places, hips, np.append(arm[:2] @ turn, arm[2]))


def finite(a: ca.SX) -> ca.SX:
    """Return 1 where a vector holds finite numbers of a plausible size, else 0."""
    return is_bounded(a)


def rotate_about_vertical(yaw: ca.SX, a: ca.SX) -> ca.SX:
    """Return a horizontal vector (2,), turned about the vertical."""
    c, s = ca.cos(yaw), ca.sin(yaw)
    return ca.vertcat(c * a[0] - s * a[1], s * a[0] + c * a[1])
