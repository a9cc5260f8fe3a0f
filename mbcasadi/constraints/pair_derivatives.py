"""Derivatives of the rows of a pair of points along the configuration and the velocity.

A pair is seen from the nearest link that carries both points, at rest (`rows`). A joint k of one
end with the axis e moves the end's point p by `J_k = e × ρ`, `ρ = p - o_k`. Displaced by a unit,
with the angular velocity ω of what carries the joint, `x = ω × e` and the accelerations of o_k and
p, it changes the acceleration of p by

    e × (p̈ - ö_k) + (ω̇ × e + ω × x) × ρ + 2 x × ρ̇,   its speed by   2 x × ρ + 2 e × ρ̇;

a slide by `ω̇ × e + ω × x` and `2 x`. These are the fields of `model.derivative_recursion` at one
point. The axes of a ball turn with its own spin too, which adds `(spin × e) × ρ` along its speed.
Joints that carry both points turn the whole row. With the joint of j or k that is nearer to the
root called r, the other s,

    ∂(J_jᵀ λ)/∂q_k = (λ × e_r)·J_s,    symmetric but for the axes of one ball.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import casadi as ca

from mbcasadi.constraints.pairs import Pair
from mbcasadi.model.chain import Link
from mbcasadi.model.motion import WORLD_POSE, LinkPose, from_columns
from mbcasadi.spatial import ZERO3, Scalar, Vec3, add, cross, dot, entries, scale, stack, subtract

Entry = tuple[int, int, Scalar]


@dataclass(frozen=True)
class PointMotion:
    """Motion of a point and of the axes that it is fixed to, world axes.

    Attributes:
        point: m.
        w, dw: angular velocity and acceleration, rad/s, rad/s².
        v, a: velocity and acceleration, m/s, m/s².
    """

    point: Vec3
    w: Vec3
    dw: Vec3
    v: Vec3
    a: Vec3

    def at(self, point: Vec3) -> "PointMotion":
        """Return the motion of another point of the same body."""
        d = subtract(point, self.point)
        rate = cross(self.w, d)
        a = add(self.a, add(cross(self.dw, d), cross(self.w, rate)))
        return PointMotion(point, self.w, self.dw, add(self.v, rate), a)


@dataclass(frozen=True)
class Axis:
    """One dof that moves the point of an end.

    Attributes:
        dof: of the joint.
        joint: place of the joint on the way from the root.
        turn: axis of rotation; zero for translations.
        J: velocity of the point at unit speed, with the sign of the end.
        by_q, by_v: derivatives of the point's acceleration, with the sign of the end, m/s².
    """

    dof: int
    joint: int
    turn: Vec3
    J: Vec3
    by_q: Vec3
    by_v: Vec3


@dataclass(frozen=True)
class PairDerivatives:
    """What a pair of points gives to derivatives.

    Attributes:
        ends: the axes that move either point, from the root outwards.
        shared: dofs that turn both points, with their axes.
        acceleration: `A a + c`, m/s².
    """

    ends: tuple[tuple[Axis, ...], tuple[Axis, ...]]
    shared: tuple[tuple[int, Vec3], ...]
    acceleration: Vec3

    def rows(self, nv: int) -> tuple[ca.SX, ca.SX]:
        """Return the derivatives (3, nv) of `A a + c` by `q ⊕ dq` and by v."""
        by_q, by_v = ca.SX(3, nv), ca.SX(3, nv)
        for end in self.ends:
            for axis in end:
                by_q[:, axis.dof], by_v[:, axis.dof] = stack(axis.by_q), stack(axis.by_v)
        for dof, turn in self.shared:
            by_q[:, dof] = stack(cross(turn, self.acceleration))
        return ca.sparsify(by_q), ca.sparsify(by_v)

    def force(self, nv: int, lam: ca.SX) -> ca.SX:
        """Return the derivative (nv, nv) of `Aᵀ lam` by `q ⊕ dq`, lam (3, 1) held fixed."""
        derivative, of_row = ca.SX(nv, nv), entries(lam, 0)
        for end in self.ends:
            for row, column, value in self._force_entries(end, of_row):
                derivative[row, column] = value
        return ca.sparsify(derivative)

    def _force_entries(self, end: tuple[Axis, ...], lam: Vec3) -> Iterator[Entry]:
        for dof, turn in self.shared:
            moment = cross(lam, turn)
            yield from ((axis.dof, dof, dot(moment, axis.J)) for axis in end)
        for above in end:
            if above.turn is ZERO3:
                continue
            moment = cross(lam, above.turn)
            for below in end:
                if below.joint < above.joint:
                    continue
                yield below.dof, above.dof, dot(moment, below.J)
                if below.joint > above.joint:
                    yield above.dof, below.dof, dot(moment, below.J)

    def share(self, nv: int, w: ca.SX) -> ca.SX:
        """Return the derivative (3, nv) of `A w` by `q ⊕ dq`, w (nv, 1) held fixed."""
        derivative, total = ca.SX(3, nv), ZERO3
        for end in self.ends:
            joints = sorted({axis.joint for axis in end})
            axes = {joint: [axis for axis in end if axis.joint == joint] for joint in joints}
            turns = [ZERO3]
            for joint in joints:
                spin = _sum(scale(w[axis.dof], axis.turn) for axis in axes[joint])
                turns.append(add(turns[-1], spin))
            below = ZERO3
            for joint, turn in reversed(list(zip(joints, turns, strict=False))):
                below = add(below, _sum(scale(w[axis.dof], axis.J) for axis in axes[joint]))
                for axis in axes[joint]:
                    value = add(cross(axis.turn, below), cross(turn, axis.J))
                    derivative[:, axis.dof] = stack(value)
            total = add(total, below)
        for dof, axis_of_both in self.shared:
            derivative[:, dof] = stack(cross(axis_of_both, total))
        return ca.sparsify(derivative)


def pair_derivatives(pair: Pair, v: ca.SX, a: ca.SX) -> PairDerivatives:
    """Return what derivatives of the rows of a pair need.

    Args:
        pair: its anchors at the configuration.
        v, a: (nv, 1), (nv, 1) velocity and acceleration.
    """
    paths = [pair.chain.path(link) for link in pair.links]
    both = set(paths[0]) & set(paths[1])
    ends, accelerations = [], []
    for path, point, sign in zip(paths, pair.points, (1.0, -1.0), strict=True):
        moving = tuple(i for i in path if i not in both)
        acceleration, axes = _end(pair, moving, point, (v, a))
        accelerations.append(scale(sign, acceleration))
        ends.append(tuple(_with_sign(axis, sign) for axis in axes))
    shared = tuple(
        (dof, turn)
        for i in sorted(both)
        for dof, turn, _ in axes_of(pair.chain.links[i], pair.poses[i])
        if turn is not ZERO3
    )
    return PairDerivatives((ends[0], ends[1]), shared, add(*accelerations))


def _end(
    pair: Pair, moving: tuple[int, ...], point: Vec3, rates: tuple[ca.SX, ca.SX]
) -> tuple[Vec3, list[Axis]]:
    """Return the acceleration of a point and the axes that move it, carried by a link at rest."""
    motion, carriers = carriers_of(pair, moving, rates)
    end = motion.at(point)
    axes = []
    for place, (i, carrier, spin) in enumerate(carriers):
        for dof, turn, shift in axes_of(pair.chain.links[i], pair.poses[i]):
            if turn is ZERO3:
                by_q, by_v = _of_shift(carrier, shift)
                axes.append(Axis(dof, 2 * place, ZERO3, shift, by_q, by_v))
            else:
                by_q, by_v = _of_turn(carrier, end, turn, spin)
                J = cross(turn, subtract(point, carrier.point))
                # The rotations of a free joint come after its translations.
                axes.append(Axis(dof, 2 * place + 1, turn, J, by_q, by_v))
    return end.a, axes


def carriers_of(
    pair: Pair, moving: Iterable[int], rates: tuple[ca.SX, ca.SX]
) -> tuple[PointMotion, list[tuple[int, PointMotion, Vec3]]]:
    """Return the motion of the last link, and for each link what carries its joint and its spin.

    Args:
        pair: its poses.
        moving: links on the way to the last one, the first carried by a link at rest.
        rates: velocity and acceleration.
    """
    carriers: list[tuple[int, PointMotion, Vec3]] = []
    motion = PointMotion(ZERO3, ZERO3, ZERO3, ZERO3, ZERO3)
    for i in moving:
        link, pose = pair.chain.links[i], pair.poses[i]
        carrier = motion.at(pose.origin)
        motion, carrier, spin = _after_joint(link, pose, carrier, rates)
        carriers.append((i, carrier, spin))
    return motion, carriers


def axes_of(link: Link, pose: LinkPose) -> list[tuple[int, Vec3, Vec3]]:
    """Return each dof of a link with its axis of rotation and its direction of translation."""
    dof, columns = link.joint.dof, pose.columns
    match link.joint.kind:
        case "hinge":
            return [(dof, columns[2], ZERO3)]
        case "slide":
            return [(dof, ZERO3, columns[2])]
        case "ball":
            return [(dof + k, columns[k], ZERO3) for k in range(3)]
    moving = [(dof + k, ZERO3, WORLD_POSE.columns[k]) for k in range(3)]
    return moving + [(dof + 3 + k, columns[k], ZERO3) for k in range(3)]


def _after_joint(
    link: Link, pose: LinkPose, carrier: PointMotion, rates: tuple[ca.SX, ca.SX]
) -> tuple[PointMotion, PointMotion, Vec3]:
    """Return the motions of a link and of what its rotations start from, and its own spin."""
    v, a = rates
    kind, dof = link.joint.kind, link.joint.dof
    if kind == "slide":
        e = pose.columns[2]
        speed, rise = scale(v[dof], e), scale(a[dof], e)
        accel = add(carrier.a, add(cross(scale(2.0, carrier.w), speed), rise))
        motion = PointMotion(carrier.point, carrier.w, carrier.dw, add(carrier.v, speed), accel)
        return motion, carrier, ZERO3
    if kind == "free":
        carrier = PointMotion(pose.origin, ZERO3, ZERO3, entries(v, dof), entries(a, dof))
        dof = dof + 3
    if kind == "hinge":
        spin, rise = scale(v[dof], pose.columns[2]), scale(a[dof], pose.columns[2])
    else:
        spin = from_columns(pose.columns, entries(v, dof))
        rise = from_columns(pose.columns, entries(a, dof))
    dw = add(add(carrier.dw, rise), cross(carrier.w, spin))
    motion = PointMotion(carrier.point, add(carrier.w, spin), dw, carrier.v, carrier.a)
    return motion, carrier, ZERO3 if kind == "hinge" else spin


def _of_shift(carrier: PointMotion, e: Vec3) -> tuple[Vec3, Vec3]:
    x = cross(carrier.w, e)
    return add(cross(carrier.dw, e), cross(carrier.w, x)), scale(2.0, x)


def _of_turn(carrier: PointMotion, end: PointMotion, e: Vec3, spin: Vec3) -> tuple[Vec3, Vec3]:
    arm, rate = subtract(end.point, carrier.point), subtract(end.v, carrier.v)
    x = cross(carrier.w, e)
    bend = add(cross(carrier.dw, e), cross(carrier.w, x))
    by_q = add(cross(e, subtract(end.a, carrier.a)), cross(bend, arm))
    by_q = add(by_q, cross(scale(2.0, x), rate))
    turning = add(scale(2.0, x), cross(spin, e))
    return by_q, add(cross(turning, arm), cross(scale(2.0, e), rate))


def _with_sign(axis: Axis, sign: float) -> Axis:
    J, by_q, by_v = (scale(sign, part) for part in (axis.J, axis.by_q, axis.by_v))
    return Axis(axis.dof, axis.joint, axis.turn, J, by_q, by_v)


def _sum(vectors: Iterable[Vec3]) -> Vec3:
    total = ZERO3
    for vector in vectors:
        total = add(total, vector)
    return total
