"""The pose in which a robot stands: on its feet, its base level as it was, its legs bent.

A leg that is straight cannot push, and a pose whose centre of mass is beside the feet cannot be
held. So the base goes down, in steps, until every leg moves its foot along all directions, and the
centre of mass comes over the middle of the feet; from folded legs it goes up. Steps are those of
damped least squares, weighted: feet first, then height and attitude of the base, then the centre of
mass, then the joints' pose.
"""

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi import model
from mbcasadi.anatomy.feet import RobotFoot
from mbcasadi.anatomy.level_feet import levelled, small_turn
from mbcasadi.anatomy.links import Links
from mbcasadi.anatomy.robot import RobotDescription, RobotLimb
from mbcasadi.system import System
from mbcasadi.system.ranges import position_ranges

Array = NDArray[np.float64]

BENT = 0.1
"""Least singular value of a foot's Jacobian by the joints of its leg, of the length of the leg."""

FOLDED, UNFOLDED = 1 / 3, 0.5
"""Shares of a leg's length: distance of a foot from the hip below which the leg is folded, on the
stop of its knee or near it, and the height to which the hips of such legs rise."""

LOWERED, LOWEST = 0.04, 6
"""Share of a leg's length by which the base goes down in one step, and steps at most."""

KICK = 0.1
"""Least angle, rad, by which the hip and the ankle of a straight leg are bent at first."""

TURNED = 1e-6
"""Least singular value of rotations that joints make, rad."""

STEPS, STEP, DAMPING = 150, 0.5, 1e-6
"""Of least squares: steps for each height, share of the errors in a step, and their damping."""

POLISHED = 4
"""Steps of Newton's method for the feet alone, at the end."""

FEET, BASE, MASS, JOINTS = 10.0, 1.0, 0.3, 0.02
"""Weights of errors, each in shares of the leg's length, or rad."""

OFF_ENDS = 0.05
"""Share of a joint's range by which it stays off its ends."""

INSIDE = 0.6
"""Distance of the centre of mass from the edge of the feet's hull, of that of their middle."""

SMALL = 1e-5
"""Change of a step, m or rad, at which a search ends."""

CLOSE = 1e-3
"""Error of a foot, of the leg's length, above which a pose is none."""


def standing_pose(
    system: System, robot: RobotDescription, q: Array, *, can_squat: bool = False
) -> Array:
    """Return a pose near q in which a robot with a floating base stands on its feet.

    A pose that stands is kept, but for its height: the feet are on the plane z = 0.

    Args:
        system: of the robot.
        robot: its description, in the pose q.
        q: (nq,) pose to begin with.
        can_squat: whether the base has to go down from it on feet that stay flat.

    Returns:
        (nq,) the pose; q where the robot has no feet, or where none is found.
    """
    legs = robot.limbs_of("leg")
    if not legs or robot.base != "floating" or system.tree is None:
        return q
    return _Search(system, robot, legs, Links(system.tree, q), can_squat).pose()


@dataclass(frozen=True, eq=False)
class _Search:
    """A search for a pose."""

    system: System
    robot: RobotDescription
    legs: tuple[RobotLimb, ...]
    start: Links
    can_squat: bool

    @cached_property
    def length(self) -> float:
        return float(np.mean([leg.length for leg in self.legs]))

    @cached_property
    def feet(self) -> list[RobotFoot]:
        """The foot of each leg."""
        return [leg.foot for leg in self.legs if leg.foot is not None]

    def _soles(self, q: Array) -> list[Array]:
        """Return the points (k, 3) on which each foot stands, m, in the world."""
        links = Links(self.start.tree, q)
        body = {each.name: k for k, each in enumerate(links.tree.bodies)}
        return [links.place(body[foot.body], foot.points) for foot in self.feet]

    def pose(self) -> Array:
        """Return the first pose that stands with bent legs, else the one that bends them most."""
        q = self.start.q
        best, most = q, (self._balanced(q), self._bent(q))
        if most[0] and most[1] >= BENT and self._level:
            return self._on_ground(self._unfolded(q))
        is_straight = most[1] < BENT
        for step in range(LOWEST + 1):
            share = LOWERED * step
            if is_straight and (self.can_squat or not step):
                angle = np.arccos(1 - share)  # which lowers a leg of two equal parts as far
                q = self._kicked(self.start.q, max(KICK, float(angle)))
            q, error = self._solved(q, share * self.length)
            found = self._balanced(q), self._bent(q)
            if error <= CLOSE and found > most:
                best, most = q, found
            if found[1] >= BENT:
                break
        return self._on_ground(best)

    @property
    def _level(self) -> bool:
        """Whether the feet are flat on one level at the start."""
        return float(np.abs(self._feet_rows(self.start.q)[1]).max()) < CLOSE

    def _unfolded(self, q: Array) -> Array:
        """Return a pose with a higher base where a leg is folded: it cannot give way to a step."""
        links = Links(self.start.tree, q)
        joints = {joint.name: joint for joint in self.start.tree.joints}
        hips = [links.anchor(joints[leg.joints[0]]) for leg in self.legs if leg.foot is not None]
        away = np.array(hips) - [self._foot(k, q)[0] for k in range(len(hips))]
        if float(np.linalg.norm(away, axis=1).min()) >= FOLDED * self.length:
            return q
        higher, error = self._solved(q, float(away[:, 2].mean()) - UNFOLDED * self.length)
        return higher if error <= CLOSE and self._balanced(higher) else q

    def _on_ground(self, q: Array) -> Array:
        """Return a pose at the height at which the lowest foot touches the plane z = 0."""
        moved = q.copy()
        moved[self._height] -= np.vstack(self._soles(q))[:, 2].min()
        return moved

    @cached_property
    def _height(self) -> int:
        """Index of the height of the base in q."""
        tree = self.start.tree
        return next(joint.qpos for joint in tree.joints if joint.kind == "free") + 2

    def _balanced(self, q: Array) -> bool:
        """Return whether the centre of mass is well inside the hull of the feet."""
        from scipy.spatial import ConvexHull, QhullError

        points = np.vstack(self._soles(q))[:, :2]
        try:
            faces = ConvexHull(points).equations
        except QhullError:
            return False
        center = np.array(self._mass(q)[0]).ravel()[:2]
        inside = [-float((faces[:, :2] @ x + faces[:, 2]).max()) for x in (center, points.mean(0))]
        return inside[0] > INSIDE * inside[1]

    def _middle(self, q: Array) -> Array:
        """Return the (3,) middle of the feet, m."""
        return np.asarray(np.mean([self._foot(k, q)[0] for k in range(len(self.feet))], axis=0))

    def _bent(self, q: Array) -> float:
        """Return how far the least movable leg is from straight, of its length."""
        columns = {joint.name: joint.dof for joint in self.start.tree.joints}
        least = np.inf
        for k, leg in enumerate(self.legs):
            own = self._foot(k, q)[1][:, [columns[name] for name in leg.joints]]
            moves = float(np.linalg.svd(own[:3], compute_uv=False)[-1])
            if self.can_squat and self.feet[k].shape == "flat":
                _, turns, joints = np.linalg.svd(own[3:])
                keeps_flat = joints[int(np.sum(turns > TURNED)) :]
                moves = min(moves, float(np.linalg.norm(keeps_flat @ own[2])))
            least = min(least, moves / leg.length)
        return least

    @cached_property
    def _mass(self) -> ca.Function:
        """(q) → place (3, 1), m, and Jacobian (3, nv) of the centre of mass."""
        q, tree = ca.SX.sym("q", self.system.nq), self.start.tree
        p = model.center_of_mass(tree, q)
        return ca.Function("center_of_mass", [q], [p, model.tangent_jacobian(tree, p, q)])

    def _foot(self, k: int, q: Array) -> tuple[Array, Array, Array]:
        """Return place (3,) and Jacobian (6, nv) of the middle of a sole, and its rotation."""
        foot = self.feet[k]
        frame = self.system.frame(foot.body, "body")
        p, R = (np.array(value) for value in frame.pose(q))
        J = np.array(frame.jacobian(q))
        arm = R @ foot.points.mean(axis=0)
        J[:3] -= np.cross(arm, J[3:], axisb=0, axisc=0)
        return p.ravel() + arm, J, R

    def _kicked(self, q: Array, angle: float) -> Array:
        """Return a pose whose hips and ankles are bent by an angle, rad, and knees by twice it."""
        tree, bent = self.start.tree, q.copy()
        ends = position_ranges(self.system)
        joints = {joint.name: joint for joint in tree.joints}
        left = np.append(self.robot.left, 0.0)
        for leg in self.legs:
            pitch = [
                joints[name]
                for name in leg.joints
                if joints[name].kind == "hinge" and abs(self.start.axis(joints[name]) @ left) > 0.7
            ][:3]
            turns = np.array([1.0, -2.0, 1.0])[: len(pitch)]
            turns *= [np.sign(self.start.axis(joint) @ left) for joint in pitch]
            places = [joint.qpos for joint in pitch]
            low, high = (each[places] for each in ends)
            sides = [np.clip(q[places] + side * angle * turns, low, high) for side in (1, -1)]
            moved = [float(np.abs(each - q[places]).sum()) for each in sides]
            knee = moved[1] > moved[0] + 1e-9 or (
                abs(moved[1] - moved[0]) <= 1e-9 and self._ahead(leg) < -BENT * self.length
            )
            bent[places] = sides[int(knee)]
        return bent

    def _ahead(self, leg: RobotLimb) -> float:
        """Return how far a leg's foot is ahead of the middle of all feet, m."""
        k = self.legs.index(leg)
        q = self.start.q
        return float((self._foot(k, q)[0] - self._middle(q))[:2] @ self.robot.ahead)

    def _solved(self, guess: Array, lower: float) -> tuple[Array, float]:
        """Return a pose whose base is lower, m, feet where they were, and the error of its feet."""
        system, start = self.system, self.start.q
        base = system.frame(self.robot.base_body, "body")
        p0, attitude = (np.array(value) for value in base.pose(start))
        q = guess.copy()
        for _ in range(STEPS):
            on_feet, off_feet = self._feet_rows(q)
            p, R = (np.array(value) for value in base.pose(q))
            J = np.array(base.jacobian(q))
            center, J_mass = (np.array(value) for value in self._mass(q))
            beside = (self._middle(q) - center.ravel())[:2]
            back = np.array(system.difference(q, start)).ravel()
            rows = (
                FEET * on_feet,
                BASE / self.length * J[2:3],
                BASE * J[3:],
                MASS / self.length * J_mass[:2],
                JOINTS * np.eye(system.nv)[6:],
            )
            errors = (
                FEET * off_feet,
                BASE / self.length * ((p0 - p)[2] - lower),
                BASE * small_turn(R, attitude),
                MASS / self.length * beside,
                JOINTS * back[6:],
            )
            A, b = np.vstack(rows), np.concatenate(errors)
            dv = STEP * np.linalg.solve(A.T @ A + DAMPING * np.eye(system.nv), A.T @ b)
            q = self._moved(q, dv)
            if np.abs(dv).max() < SMALL:
                break
        for _ in range(POLISHED):  # the weights leave a little of the feet's errors
            on_feet, off_feet = self._feet_rows(q)
            newton = np.linalg.lstsq(on_feet, off_feet, rcond=DAMPING)[0]
            q = self._moved(q, np.asarray(newton, dtype=float))
        return q, float(np.abs(self._feet_rows(q)[1]).max())

    def _moved(self, q: Array, dv: Array) -> Array:
        """Return a pose moved by dv (nv,), joints inside their ranges."""
        return np.clip(np.array(self.system.integrate(q, dv)).ravel(), *self._ends)

    @cached_property
    def _wanted(self) -> list[tuple[Array, Array]]:
        """Place (3,) of each foot, m, all on one level, and the rotation that lays it flat."""
        found = [self._foot(k, self.start.q) for k in range(len(self.feet))]
        ground = min(place[2] for place, _, _ in found)
        return [
            (np.array([*p[:2], ground]), levelled(R, foot.points @ R.T))
            for (p, _, R), foot in zip(found, self.feet, strict=True)
        ]

    def _feet_rows(self, q: Array) -> tuple[Array, Array]:
        """Return Jacobian (k, nv) and errors (k,) of feet and loops, lengths in those of a leg."""
        rows, errors = [], []
        for k, (place, R0) in enumerate(self._wanted):
            p, J, R = self._foot(k, q)
            rows.append(J[:3] / self.length)
            errors.append((place - p) / self.length)
            if self.feet[k].shape != "point":
                rows.append(J[3:])
                errors.append(small_turn(R, R0))
        if self.system.nc:
            rows.append(np.array(self.system.constraint_jacobian(q)) / self.length)
            errors.append(-np.array(self.system.constraint(q)).ravel() / self.length)
        return np.vstack(rows), np.concatenate(errors)

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        """Lowest and highest q (nq,), a margin inside the ranges of the joints."""
        low, high = position_ranges(self.system)
        margin = OFF_ENDS * np.where(np.isfinite(high - low), high - low, 0.0)
        return low + margin, high - margin
