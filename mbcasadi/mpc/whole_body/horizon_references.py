"""Setpoints, places of feet and masks over a horizon, for a robot that walks by commands.

    (q, v, command, disturbance, t, z) → (ref, z_next)

What a sample asks for is in `sample_references.py`; what is remembered between two plans is `Kept`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

import casadi as ca
import numpy as np

from mbcasadi.control.inverse_dynamics.parts.force_feedback import MEASURED
from mbcasadi.description import Contact
from mbcasadi.mpc.legged.footsteps import SwingParameters
from mbcasadi.mpc.legged.from_system import trunk_joint
from mbcasadi.mpc.legged.gait import Gait, Walk
from mbcasadi.mpc.legged.ground_axes import (
    rotate_about_vertical,
    to_ground,
)
from mbcasadi.mpc.legged.planner_equations import goal_near, is_measured
from mbcasadi.mpc.legged.standing_feet import lift_places
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.mpc.ocp.stage import DISTURBANCE
from mbcasadi.mpc.whole_body.base_shift import shifted_pose
from mbcasadi.mpc.whole_body.felt_contacts import FeltContacts
from mbcasadi.mpc.whole_body.gait_samples import gait_samples
from mbcasadi.mpc.whole_body.sample_references import Base, Now, SampleReferences, known_by
from mbcasadi.mpc.whole_body.standing import ROUNDING, Remembered, Standing
from mbcasadi.system import System

Column = TypeVar("Column")

SHIFT = 6
"""Numbers of a shift of the base, by which the command ends."""


class Kept(NamedTuple, Generic[Column]):
    """What z holds, in its order.

    `lifts` (3 nc,) are the places where the feet left the ground, `goal` is (x, y, yaw); `down`
    (nc,) are the contacts that are down, with a rule; `walk` is `Remembered`, with `standing`.
    """

    lifts: Column
    goal: Column
    down: Column
    walk: Column


@dataclass(frozen=True)
class HorizonReferences(SampleReferences):
    """What a gait and a command ask of each sample.

    Attributes:
        ocp: the problem, whose p is filled.
        system: with its contacts as rows.
        contacts: its feet.
        gait, stepping: of the feet.
        q0: (nq,) pose in which all stand.
        delay: intervals from a measurement to the first sample.
        decay: T_d, s.
        uneven: whether heights of the ground follow the three numbers of the command.
        standing: when the robot stands; None for a gait from its start on.
        rule: by which measured forces change the contacts; None for the gait alone.
        shift: whether a shift of the base ends the command.
    """

    ocp: OptimalControlProblem
    system: System
    contacts: Sequence[Contact]
    gait: Gait
    stepping: SwingParameters
    q0: Array
    delay: int
    decay: float
    uneven: bool = False
    standing: Standing | None = None
    rule: FeltContacts | None = None
    shift: bool = False

    @property
    def _kept_at_q0(self) -> Kept[Array]:
        """What is kept of q0."""
        places, base, yaw = self.stance
        down = np.ones(0 if self.rule is None else len(self.contacts))
        walk = np.zeros(0 if self.standing is None else len(Remembered._fields))
        return Kept(places.T.ravel(), np.array([*base[:2], yaw]), down, walk)

    @property
    def z0(self) -> Array:
        """The state at q0, `Kept`."""
        return np.concatenate(self._kept_at_q0)

    def _kept(self, z: ca.SX) -> Kept[ca.SX]:
        """Return the parts of z."""
        ends = np.cumsum([0, *(part.size for part in self._kept_at_q0)]).tolist()
        return Kept(*ca.vertsplit(z, ends))

    def function(self, name: str) -> ca.Function:
        """Return (q, v, command, disturbance, [f_measured], t, z) → (ref, z_next)."""
        sizes = {
            "q": self.system.nq,
            "v": self.system.nv,
            "command": 3 + self.uneven * len(self.contacts) + SHIFT * self.shift,
            DISTURBANCE: self.system.nv,
            **({} if self.rule is None else {MEASURED: 3 * len(self.contacts)}),
            "t": 1,
        }
        inputs = {key: ca.SX.sym(key, n) for key, n in (sizes | {"z": self.z0.size}).items()}
        now, spans, z_next = self._now(inputs)
        known = known_by(now)
        good = is_measured(self.system, inputs)
        outputs = [ca.vertcat(*known), spans, ca.if_else(good, z_next, inputs["z"])]
        outputs = [ca.densify(x) for x in outputs]
        first = ca.Function("now", [*inputs.values()], outputs, {"cse": True})
        given = {key: ca.MX.sym(key, x.shape) for key, x in inputs.items()}
        of_now, along, z_after = first.call([*given.values()])
        count = self.ocp.horizon + 1
        sample = self._sample_fun(now).map(count)
        ref = ca.vec(sample(ca.repmat(of_now, 1, count), along))
        return ca.Function(name, [*given.values()], [ref, z_after], [*given], ["ref", "z_next"])

    def _now(self, inputs: Mapping[str, ca.SX]) -> tuple[Now, ca.SX, ca.SX]:
        """Return what all samples depend on, number and times of each (4, N + 1), and z_next.

        The rows are the number k of a sample, how far it is ahead, and the lengths of the intervals
        before and behind it, s.
        """
        t, kept = inputs["t"], self._kept(inputs["z"])
        places, remembered = self.feet(inputs["q"]), ca.vertsplit(kept.lifts, 3)
        first, h = self.delay, self.ocp.period
        times = self._times(inputs, t + first * h)
        walk = Walk(self.gait, self.gait.start, None) if times is None else times.walk(self.gait)
        on, felt = ca.SX(walk.on_ground(t)), None
        if self.rule is not None:
            ground = self._given_heights(inputs) if self.uneven else ca.horzcat(*remembered)[2, :].T
            felt = self.rule.felt(walk, t, inputs[MEASURED], kept.down, places[2, :].T - ground)
            on = felt.down
        lifts = ca.horzcat(*lift_places(on, ca.horzsplit(places), remembered))
        base = self._base(inputs, lifts, walk)
        moments = self._moments(walk, t + first * h)
        between = [after - before for before, after in pairwise(moments)]
        columns = zip(
            range(len(moments)),
            (first * h + moment for moment in moments),
            [h, *between],
            [*between, h],
            strict=True,
        )
        spans = ca.horzcat(*(ca.vertcat(*map(ca.SX, column)) for column in columns))
        down = ca.SX(0, 1) if felt is None else felt.down
        walk_times = ca.SX(0, 1) if times is None else ca.vertcat(*times)
        z_next = ca.vertcat(*Kept(ca.vec(lifts), self._goal_after(base, h), down, walk_times))
        now = Now(base, places, lifts, inputs[DISTURBANCE], walk, t, felt)
        return now, spans, z_next

    def _moments(self, walk: Walk, t: ca.SX) -> Sequence[ca.SX | float]:
        """Return the times (N + 1) of the samples from the first one on, which is at t, s.

        Where the lengths of intervals are data, samples lie on the switches of the walk.
        """
        lengths = self.ocp.lengths
        return self.ocp.times.tolist() if lengths is None else gait_samples(walk, t, lengths)

    def _times(self, inputs: Mapping[str, ca.SX], moment: ca.SX) -> Remembered | None:
        """Return beginning and end of the walk from the moment on at which the plan acts."""
        if self.standing is None:
            return None
        joint, command = trunk_joint(self.system), inputs["command"]
        radius = float(np.linalg.norm(self.hips, axis=0).max())
        velocity = to_ground(self.ground, inputs["v"][joint.dof : joint.dof + 3])
        asked = ca.fmax(ca.norm_2(command[:2]), radius * ca.fabs(command[2]))
        known = Remembered(*ca.vertsplit(self._kept(inputs["z"]).walk))
        speeds = asked, ca.norm_2(velocity[:2])
        h = self.ocp.period
        at = moment, h, (self.ocp.horizon // 2) * h
        return known.next(self.standing, self.gait, at, speeds)

    def _base(self, inputs: Mapping[str, ca.SX], lifts: ca.SX, walk: Walk) -> Base:
        from scipy.spatial.transform import Rotation

        heights = lifts[2, :].T
        joint, remembered = trunk_joint(self.system), self._kept(inputs["z"]).goal
        place, R = self.base_pose(inputs["q"])
        shift = inputs["command"][-SHIFT:] if self.shift else ca.SX(SHIFT, 1)
        velocity = to_ground(self.ground, inputs["v"][joint.dof : joint.dof + 3])
        yaw = ca.atan2(R[1, 0], R[0, 0]) - shift[5]
        place -= ca.vertcat(rotate_about_vertical(yaw, shift[:2]), shift[2])
        walks = inputs["t"] >= walk.begin
        if walk.end is not None:
            stands = inputs["t"] >= walk.end + self.gait.flight - ROUNDING
            remembered = ca.if_else(stands, self.under_base(lifts), remembered)
            walks = ca.logic_and(walks, inputs["t"] < walk.end)
        goal = goal_near(ca.vertcat(place[:2], yaw), remembered, self.stepping.max_drift)
        desired, spin = walks * inputs["command"][:2], walks * inputs["command"][2]
        if self.uneven:
            heights = self._given_heights(inputs)
        pose = ca.SX(ca.DM(self.q0))
        if self.shift:
            heading = self.ground @ Rotation.from_euler("z", self.stance[2]).as_matrix()
            pose = shifted_pose(self.system, self.contacts, self.q0, heading, shift)
        return Base(place, velocity[:2], yaw, goal, desired, spin, heights, shift, pose)

    def _given_heights(self, inputs: Mapping[str, ca.SX]) -> ca.SX:
        """Return the heights (nc,) of the ground on which feet land by the command, m."""
        over_plane: ca.SX = inputs["command"][3 : 3 + len(self.contacts)]
        return ca.SX(ca.DM(self.stance[0][2])) + over_plane
