"""Derivatives of the independent rows of a body that several points hold to the world.

The rows of `points_of_bodies` are `[√k p̈; S Vᵀ ω̇ + κ(ω)]`, with the acceleration p̈ of the mean
point (`pair_derivatives`) and, in the body's axes, its angular velocity ω and acceleration ω̇;
`κ_j = ωᵀ K_j ω` is what the points' accelerations `ω × (ω × r_i)` leave. A joint with the axis e,
carried with ω_c, ω̇_c and `x = ω_c × e`, changes them by

    along q ⊕ dq:   δω = x,   δω̇ = ω̇_c × e + x × (ω - ω_c),
    along v:        δω = e,   δω̇ = x + e × (ω - ω_c) + spin × e.

The moment `m = R V S lam` turns with the body: `∂(Jᵀ m)/∂q_k = e_j·(e_k × m)` for k beyond j.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from mbcasadi.constraints.pair_derivatives import (
    PairDerivatives,
    axes_of,
    carriers_of,
    pair_derivatives,
)
from mbcasadi.constraints.pairs import pair_of
from mbcasadi.constraints.points_of_bodies import PointsOfBody
from mbcasadi.description import RigidTree
from mbcasadi.model.motion import LinkPose, from_columns
from mbcasadi.spatial import ZERO3, Vec3, add, cross, dot, entries, stack, subtract, vec3


@dataclass(frozen=True)
class _Turn:
    """An axis that turns the body: its dof, the place of its joint, and what it changes.

    Fields: `e` the axis; `w_q`, `dw_q`, `dw_v` changes of ω and ω̇, that of ω along v is e.
    """

    dof: int
    joint: int
    e: Vec3
    w_q: Vec3
    dw_q: Vec3
    dw_v: Vec3


@dataclass(frozen=True)
class BodyDerivatives:
    """What the independent rows of a body give to derivatives.

    Attributes:
        group: the points of the body.
        mean: derivatives of their mean.
        turns: axes that turn the body, from the root outwards.
        pose: of its link.
        w: its angular velocity in the world.
    """

    group: PointsOfBody
    mean: PairDerivatives
    turns: tuple[_Turn, ...]
    pose: LinkPose
    w: Vec3

    def rows(self, nv: int) -> tuple[ca.SX, ca.SX]:
        """Return the derivatives (m, nv) of `A_r a + c_r` by `q ⊕ dq` and by v."""
        count, root_k = len(self.group.of_turn), float(np.sqrt(self.group.signs.size))
        to_rows = [from_columns(self.pose.columns, vec3(row)) for row in self.group.of_turn]
        of_rate = [from_columns(self.pose.columns, part) for part in self._rate_slopes()]
        by_q, by_v = ca.SX(count, nv), ca.SX(count, nv)
        for turn in self.turns:
            for j, (t, s) in enumerate(zip(to_rows, of_rate, strict=True)):
                by_q[j, turn.dof] = dot(t, turn.dw_q) + dot(s, turn.w_q)
                by_v[j, turn.dof] = dot(t, turn.dw_v) + dot(s, turn.e)
        of_mean = self.mean.rows(nv)
        return ca.vertcat(root_k * of_mean[0], by_q), ca.vertcat(root_k * of_mean[1], by_v)

    def force(self, nv: int, lam: ca.SX) -> ca.SX:
        """Return the derivative (nv, nv) of `A_rᵀ lam` by `q ⊕ dq`, lam (m, 1) held fixed."""
        derivative = ca.SX(nv, nv)
        moment = self._in_world(ca.SX(ca.DM(self.group.of_turn.T)) @ lam[3:])
        for turn in self.turns:
            arm = cross(turn.e, moment)
            for above in self.turns:
                if above.joint < turn.joint:
                    derivative[above.dof, turn.dof] = dot(above.e, arm)
        root_k = float(np.sqrt(self.group.signs.size))
        return self.mean.force(nv, root_k * lam[:3]) + derivative

    def multipliers(self, nv: int, lam: ca.SX) -> ca.SX:
        """Return the derivative (3k, nv) of `Q lam` by `q ⊕ dq`, lam (m, 1) held fixed."""
        derivative = ca.SX(3 * self.group.signs.size, nv)
        for i, part in enumerate(np.split(self.group.turning, self.group.signs.size)):
            of_point = self._in_world(ca.SX(ca.DM(part)) @ lam[3:])
            for turn in self.turns:
                derivative[3 * i : 3 * i + 3, turn.dof] = stack(cross(turn.e, of_point))
        return derivative

    def _in_world(self, local: ca.SX) -> Vec3:
        return from_columns(self.pose.columns, entries(local, 0))

    def _rate_slopes(self) -> list[Vec3]:
        """Return the slopes `2 K_j ω` of κ, body axes."""
        x, y, z = (dot(column, self.w) for column in self.pose.columns)
        w = ca.vertcat(x, y, z)
        return [entries(2 * ca.SX(ca.DM(K)) @ w, 0) for K in self.group.of_rate]


def body_derivatives(
    tree: RigidTree, group: PointsOfBody, q: ca.SX, v: ca.SX, a: ca.SX
) -> BodyDerivatives:
    """Return what derivatives of the independent rows of a body need.

    Args:
        tree: the mechanism.
        group: the points of the body.
        q, v, a: (nq, 1), (nv, 1), (nv, 1) configuration, velocity, acceleration.
    """
    pair = pair_of(tree, group.mean, q)
    path = pair.chain.path(pair.links[0])
    end, carriers = carriers_of(pair, path, (v, a))
    turns = []
    for place, (i, carrier, spin) in enumerate(carriers):
        for dof, e, _ in axes_of(pair.chain.links[i], pair.poses[i]):
            if e is ZERO3:
                continue
            x, relative = cross(carrier.w, e), subtract(end.w, carrier.w)
            dw_q = add(cross(carrier.dw, e), cross(x, relative))
            dw_v = add(add(x, cross(e, relative)), cross(spin, e))
            turns.append(_Turn(dof, place, e, x, dw_q, dw_v))
    pose = pair.poses[pair.links[0]]
    return BodyDerivatives(group, pair_derivatives(pair, v, a), tuple(turns), pose, end.w)
