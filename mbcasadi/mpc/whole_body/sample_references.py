"""Setpoint, places of feet and masks of one sample of a horizon, for a robot that walks.

At a sample that is τ ahead, a foot that swings is on its way from where it left the ground to

    p_L = b(τ_L) + R(ψ_L) r + ½ T v_d + k e^{-τ_L / T_d} (v - v_d),
    b(τ) = b + ∫ v_d + T_d (1 - e^{-τ / T_d}) (v - v_d):

below its hip r beside the base b where that will be when it lands, at τ_L, ahead by half a stance
T of the desired speed; an excess of speed decays with T_d. While no foot stands the base is thrown:
at τ behind the last lift and τ' before the first landing its setpoint, and the paths of all feet,
are higher by ½ g_n τ τ'. All is in axes of the ground, whose height is where feet stood last.
"""

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.mpc.legged.footsteps import SwingParameters
from mbcasadi.mpc.legged.from_system import gravity_of, trunk_joint
from mbcasadi.mpc.legged.gait import Gait, Walk, swing_path
from mbcasadi.mpc.legged.ground_axes import rotate_about_vertical, to_world
from mbcasadi.mpc.legged.planner_references import product
from mbcasadi.mpc.ocp.problem import LANDING, STEP, OptimalControlProblem
from mbcasadi.mpc.ocp.stage import DISTURBANCE
from mbcasadi.mpc.ocp.stage_tuning import TUNING
from mbcasadi.mpc.whole_body.contact_mask import mask_of_contacts
from mbcasadi.mpc.whole_body.felt_contacts import LANDS, Felt, FeltContacts
from mbcasadi.mpc.whole_body.foot_clearance import apart
from mbcasadi.mpc.whole_body.stance_geometry import StanceGeometry
from mbcasadi.mpc.whole_body.standing import WALK


class Base(NamedTuple):
    """The free body at a tick, in axes of the ground: (3,) place, (2,) velocity, yaw, its goal.

    `goal` is (x, y, yaw); `desired` (2,) and `spin` are the command; `heights` (nc,) are those on
    which the feet land: given ones, or those at which they stood last. `shift` (6,) is where the
    base is to be beside `place` and `goal`, and how it is to be turned, m and rad; `pose` (nq,) is
    q0 with that shift.
    """

    place: ca.SX
    velocity: ca.SX
    yaw: ca.SX
    goal: ca.SX
    desired: ca.SX
    spin: ca.SX
    heights: ca.SX
    shift: ca.SX
    pose: ca.SX


class Now(NamedTuple):
    """What all samples of a plan depend on.

    `places`, `lifts` (3, nc) are where feet are, and where they left the ground, in axes of the
    ground; `force` (nv,) is the disturbance; `t` is the time now, s; `felt` is what forces show.
    """

    base: Base
    places: ca.SX
    lifts: ca.SX
    force: ca.SX
    walk: Walk
    t: ca.SX
    felt: Felt | None

    @property
    def parts(self) -> list[ca.SX]:
        """All columns and matrices of it."""
        ends = [self.walk.begin, *([] if self.walk.end is None else [self.walk.end])]
        own = [*self.base, self.places, self.lifts, self.force, self.t, *(self.felt or ())]
        return [ca.SX(x) for x in (*own, *ends)]

    def with_parts(self, parts: Sequence[ca.SX]) -> "Now":
        """Return the same with other columns and matrices, in the order of `parts`."""
        left = iter(parts)
        base = Base(*(next(left) for _ in self.base))
        places, lifts, force, t = (next(left) for _ in range(4))
        felt = None if self.felt is None else Felt(*(next(left) for _ in self.felt))
        begin, end = next(left), next(left, None)
        return Now(base, places, lifts, force, self.walk._replace(begin=begin, end=end), t, felt)


def known_by(now: Now) -> list[ca.SX]:
    """Return the columns of what is no constant, one after another."""
    return [ca.vec(ca.densify(part)) for part in now.parts if not part.is_constant()]


class SampleReferences(StanceGeometry):
    """References of the samples of what has these attributes.

    Attributes:
        ocp: the problem, whose p is filled.
        gait, stepping: of the feet.
        decay: T_d, s.
        rule: by which measured forces change the contacts; None for the gait alone.
        shift: whether a shift of the base ends the command.
    """

    ocp: OptimalControlProblem
    gait: Gait
    stepping: SwingParameters
    decay: float
    rule: FeltContacts | None
    shift: bool

    def _goal_after(self, base: Base, ahead: float | ca.SX) -> ca.SX:
        """Return the goal (x, y, yaw) after a time, s."""
        middle = base.goal[2] + base.spin * ahead / 2
        way = rotate_about_vertical(middle, base.desired) * ahead
        return base.goal + ca.vertcat(way, base.spin * ahead)

    def _foothold(self, base: Base, i: int, ahead: ca.SX) -> ca.SX:
        """Return where foot i lands (3,), a time ahead, s."""
        yaw, half_stance = base.yaw + base.spin * ahead, self.gait.stance / 2
        desired = rotate_about_vertical(yaw, base.desired)
        way = rotate_about_vertical(base.yaw + base.spin * ahead / 2, base.desired) * ahead
        excess = base.velocity - rotate_about_vertical(base.yaw, base.desired)
        left = ca.exp(-ca.fmax(ahead, 0) / self.decay)
        hip = rotate_about_vertical(yaw + half_stance * base.spin, ca.SX(ca.DM(self.hips[:, i])))
        step = half_stance * desired + self.stepping.feedback * left * excess
        step *= ca.fmin(1, self.stepping.reach / ca.fmax(ca.norm_2(step), 1e-9))
        place = base.place[:2] + way + self.decay * (1 - left) * excess + hip + step
        return ca.vertcat(place, base.heights[i] - self.stepping.ground_penetration)

    def _sample_fun(self, now: Now) -> ca.Function:
        """Return (`known_by(now)`, span) → p of a sample; a span is a column of `_now`."""
        symbols = [
            part if part.is_constant() else ca.SX.sym("part", *part.shape) for part in now.parts
        ]
        symbolic, span = now.with_parts(symbols), ca.SX.sym("span", 4)
        p = self._sample(symbolic, ca.vertsplit(span))
        known = ca.vertcat(*known_by(symbolic))
        return ca.Function("sample", [known, span], [ca.densify(p)], {"cse": True})

    def _sample(self, now: Now, span: Sequence[ca.SX]) -> ca.SX:
        """Return p of a sample.

        `span` is its number, how far it is ahead, and the lengths of the intervals before and
        behind it, s.
        """
        base, places, lifts, force, walk, t, felt = now
        k, ahead, before_it, behind_it = span
        time = t + ahead
        shares = ca.SX(walk.swing_share(time))
        rise = self._rise(walk, time, shares)
        swinging, flight = [], self.gait.flight
        targets = [
            self._foothold(base, i, ahead + (1 - shares[i]) * flight)
            for i in range(len(self.contacts))
        ]
        targets = apart(self.clearances, targets, places, ca.SX(walk.on_ground(t)), base.yaw)
        for i, target in enumerate(targets):
            begins = ahead - shares[i] * flight  # its swing, s ahead
            landed = begins - self.gait.stance  # and the stance before
            lands = ca.logic_and(landed > 0, t + landed > walk.begin)
            stands = ca.if_else(lands, self._foothold(base, i, landed), places[:, i])
            here = ca.if_else(begins <= 0, lifts[:, i], stands)
            path = swing_path(
                shares[i], here, target, self.stepping.height, max(flight, self.ocp.period)
            )
            swing = path.position + ca.vertcat(0, 0, rise[0])
            if felt is not None and self.rule is not None:
                is_late = ca.logic_and(felt.late[i], k < LANDS)
                swing = ca.if_else(is_late, self.rule.lower(places[:, i], ahead), swing)
            swinging.append(to_world(self.ground, swing))
        goal = self._goal_after(base, ahead)
        before, on = (
            ca.SX(walk.on_ground(time + side)) for side in (-before_it / 2, behind_it / 2)
        )
        if felt is not None:
            before = felt.on_later(before, ahead - before_it / 2, k - 1)
            on = felt.on_later(on, ahead + behind_it / 2, k)
        lands = on * (1 - before)
        values = self._setpoint(base, goal, rise) | {
            "feet": ca.vertcat(*swinging),
            "mask": mask_of_contacts(self.system, self.contacts, on),
            "ground": self._grounds(base, places, felt, ahead) - ca.DM(self.stance[0][2]),
            LANDING: ca.vertcat(lands, (k > 1) * lands),
            "t": time,
            DISTURBANCE: force,
            WALK: ca.vertcat(walk.begin, 0 if walk.end is None else walk.end),
        }
        values |= {} if self.ocp.lengths is None else {STEP: ca.SX(behind_it)}
        nominal = self.ocp.parameters()[0]
        parts = [
            values.get(key, ca.SX(ca.DM(nominal[place])))
            for key, place in slot_slices(self.ocp.slots).items()
            if key != TUNING
        ]
        p: ca.SX = ca.vertcat(*parts)
        return p

    def _grounds(self, base: Base, places: ca.SX, felt: Felt | None, ahead: ca.SX | float) -> ca.SX:
        """Return the heights on which feet land, (nc,): late ones below where they are."""
        if felt is None or self.rule is None:
            return base.heights
        lower = [self.rule.lower(place, ahead)[2] for place in ca.horzsplit(places)]
        return ca.if_else(felt.late, ca.fmin(base.heights, ca.vertcat(*lower)), base.heights)

    def _rise(self, walk: Walk, time: ca.SX, shares: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return height and speed of the arc of a base that no foot carries; zero on the ground."""
        since, left = (ca.mmin(x) * self.gait.flight for x in (shares, 1 - shares))
        fall = float(-self.ground[:, 2] @ gravity_of(self.system))
        thrown = ca.logic_not(ca.mmax(ca.SX(walk.on_ground(time))))
        return thrown * fall * since * left / 2, thrown * fall * (left - since) / 2

    def _setpoint(self, base: Base, goal: ca.SX, rise: tuple[ca.SX, ca.SX]) -> dict[str, ca.SX]:
        """Return q and v of the setpoint: the pose q0, moved to the goal at the desired speed.

        Its height is that over the mean of the ground under the feet, and of the arc in flight. A
        shift moves it over them.
        """
        joint, (_, origin, yaw0) = trunk_joint(self.system), self.stance
        place, dof = joint.qpos, joint.dof
        q, v = ca.SX(base.pose), ca.SX.zeros(self.system.nv)
        over_feet = float(origin[2] - self.stance[0][2].mean())
        height = ca.sum1(base.heights) / base.heights.numel() + over_feet + rise[0]
        centre = ca.vertcat(goal[:2] + rotate_about_vertical(goal[2], base.shift[:2]), height)
        centre[2] += base.shift[2]
        q[place : place + 3] = to_world(self.ground, centre)
        half = (goal[2] - yaw0) / 2
        turn = ca.vertcat(ca.cos(half), ca.sin(half) * ca.DM(self.ground[:, 2]))
        q[place + 3 : place + 7] = product(turn, q[place + 3 : place + 7])
        velocity = rotate_about_vertical(goal[2], base.desired)
        v[dof : dof + 3] = to_world(self.ground, ca.vertcat(velocity, rise[1]))
        R0 = self.ground @ np.array(ca.DM(self.base_pose(ca.SX(ca.DM(self.q0)))[1]))
        v[dof + 3 : dof + 6] = ca.DM(R0.T @ self.ground[:, 2]) * base.spin
        return {"setpoint.q": q, "setpoint.v": v}
