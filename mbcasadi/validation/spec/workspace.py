"""Where an arm can draw a circle: its own pose, or the best of many, off its limits by a margin.

All is judged on MuJoCo's model, at each of some places of the circle and at its speed: joints keep
off the ends of their ranges, the forces that carry and move the arm stay below the actuators'
limits, targets of servos off the ends of theirs, nothing touches, and the tool can move along all
axes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.anatomy import RobotLimb, RobotTool
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant
from mbcasadi.plant.contacts import frame_index
from mbcasadi.validation.spec.motion_options import SUITED_MOTION, MotionOptions

Array = NDArray[np.float64]

RADIUS, FREQUENCY = 0.05, 0.5
"""Of a circle, in shares of the arm's length, and Hz, where they are not given."""

OFF_ENDS = 0.1
"""Least distance of a joint from the ends of its range, of the range."""

CARRIED = 0.8
"""Largest share of an actuator's force that carries and moves the arm."""

OFF_TARGETS = 0.05
"""Least distance of a servo's target from the ends of its range, of the range."""

MOVABLE = 0.05
"""Least singular value of the tool's Jacobian, of the arm's length."""

SAMPLES, SEED = 300, 0
"""Random poses, and the seed of them."""

PROBED = 20
"""Random poses that tell along which axes a tool moves."""

TURN = 0.5 * np.pi
"""Rad to both sides of a joint without a range, among random poses."""

PLACES, NEWTON, CLOSE = 8, 12, 1e-4
"""Places of a circle, steps of Newton's method for each, and its error, of the arm's length."""

AXES = "xyz"


@dataclass(frozen=True)
class Workplace:
    """A pose of an arm, and the circle about it.

    Attributes:
        q: (nq,) pose.
        axes: world axes along which the tool can move, of "xyz".
        plane: two of them, of the circle that begins and ends at the tool.
        radius, frequency: of the circle, m and Hz.
        margin: the least of all criteria, as a share of what each requires; above 1 all are met.
        load: largest share of an actuator's force that the circle takes; above 1 it cannot be done.
    """

    q: Array
    axes: str
    plane: str
    radius: float
    frequency: float
    margin: float
    load: float


def workplace(
    plant: Plant, arm: RobotLimb, q: Array, motion: MotionOptions = SUITED_MOTION
) -> Workplace:
    """Return where an arm can work: at q if it can, else at the best of random poses.

    Args:
        plant: with the arm.
        arm: whose tool moves.
        q: (nq,) pose of all other joints, and of the arm at first.
        motion: radius and frequency of the circle, where they are given.

    Raises:
        ProblemError: a circle that is larger than the arm is long.
    """
    if motion.radius is not None and motion.radius >= arm.length:
        raise ProblemError(
            f"radius = {motion.radius:g} m of a circle of '{arm.name}', an arm of "
            f"{arm.length:.2g} m; expected less"
        )
    search = _Search(plant.model, arm, q, motion)
    first = search.at(q)
    if first.margin > 1:
        return first
    best = first
    for pose in search.random_poses():
        if search.margin(pose) > best.margin:
            found = search.at(pose)
            if found.margin > best.margin:
                best = found
    return best


def place_of(model: mujoco.MjModel, data: mujoco.MjData, tool: RobotTool) -> Array:
    """Return the (3,) place of a tool, m."""
    places = {"site": data.site_xpos, "body": data.xpos, "geom": data.geom_xpos}[tool.kind]
    return np.array(places[frame_index(model, tool.frame, tool.kind)])


class _Search:
    """Poses of an arm in MuJoCo."""

    def __init__(
        self, model: mujoco.MjModel, arm: RobotLimb, q: Array, motion: MotionOptions
    ) -> None:
        self.model, self.arm, self.start = model, arm, q
        self.radius = RADIUS * arm.length if motion.radius is None else motion.radius
        self.frequency = FREQUENCY if motion.frequency is None else motion.frequency
        self.data = mujoco.MjData(model)
        joints = [model.joint(name) for name in arm.joints]
        self.places = np.array([int(each.qposadr[0]) for each in joints])
        self.dofs = np.array([int(each.dofadr[0]) for each in joints])
        ids = [int(each.id) for each in joints]
        limited = model.jnt_limited[ids].astype(bool)
        spans = np.c_[q[self.places] - TURN, q[self.places] + TURN]
        self.limited = limited
        self.low, self.high = np.where(limited[:, None], model.jnt_range[ids], spans).T
        self.frame = frame_index(model, arm.tool.frame, arm.tool.kind)
        self.touching = self._touching(q)
        self.J = np.zeros((3, model.nv))

    def random_poses(self) -> Iterator[Array]:
        """Yield poses of the arm inside the ranges of its joints."""
        rng = np.random.default_rng(SEED)
        for _ in range(SAMPLES):
            q, inside = self.start.copy(), rng.uniform(OFF_ENDS, 1 - OFF_ENDS, len(self.places))
            q[self.places] = self.low + inside * (self.high - self.low)
            yield q

    def at(self, q: Array) -> Workplace:
        """Return the workplace of a pose, with its best circle."""
        axes, best, load = self.axes, ("", -np.inf), 0.0
        for plane in combinations(axes, 2):
            poses = self._circle(q, plane)
            margin = min((self.margin(*each) for each in poses), default=-1.0)
            if margin > best[1]:
                best = ("".join(plane), margin)
                load = max((self._load(*each)[0] for each in poses), default=0.0)
        drawn, margin = best[0] or axes, float(best[1])
        return Workplace(q, axes, drawn, self.radius, self.frequency, margin, load)

    @cached_property
    def axes(self) -> str:
        """The world axes along which the tool can move, in most poses; two of them in a plane."""
        spreads = np.zeros((3, 3))
        for q in islice(self.random_poses(), PROBED):
            J = self._jacobian(q)
            spreads += J @ J.T
        if np.linalg.eigvalsh(spreads)[0] > 1e-9 * np.trace(spreads):
            return AXES
        least = int(np.argmin(np.diag(spreads)))
        return AXES.replace(AXES[least], "")

    def _jacobian(self, q: Array) -> Array:
        """Return (3, k) of the tool by the arm's joints."""
        self.data.qpos = q
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        calls = {"site": mujoco.mj_jacSite, "body": mujoco.mj_jacBody, "geom": mujoco.mj_jacGeom}
        calls[self.arm.tool.kind](self.model, self.data, self.J, None, self.frame)
        return self.J[:, self.dofs]

    def _circle(self, q: Array, plane: Sequence[str]) -> list[tuple[Array, Array]]:
        """Return poses (nq,) and rates (k, 2) on a circle from the tool, at rest first; or none."""
        rows = [AXES.index(axis) for axis in self.axes]
        first, second = (AXES.index(axis) for axis in plane)
        self._jacobian(q)
        start, now = place_of(self.model, self.data, self.arm.tool), q.copy()
        radius, rate = self.radius, 2 * np.pi * self.frequency
        poses = [(q, np.zeros((len(self.dofs), 2)))]
        for angle in 2 * np.pi * np.arange(1, PLACES) / PLACES:
            s, c = radius * np.sin(angle), radius * np.cos(angle)
            target, motion = start.copy(), np.zeros((3, 2))
            target[[first, second]] += s, radius - c
            motion[[first, second]] = [[rate * c, -(rate**2) * s], [rate * s, rate**2 * c]]
            for _ in range(NEWTON):
                J = self._jacobian(now)[rows]
                error = (target - place_of(self.model, self.data, self.arm.tool))[rows]
                if np.linalg.norm(error) < CLOSE * self.arm.length:
                    break
                now[self.places] += np.linalg.lstsq(J, error, rcond=1e-3)[0]
            else:
                return []
            rates = np.linalg.lstsq(self._jacobian(now)[rows], motion[rows], rcond=1e-3)[0]
            poses.append((now.copy(), rates.astype(np.float64)))
        return poses

    def margin(self, q: Array, rates: Array | None = None) -> float:
        """Return the least margin at a pose, as a share of what is required.

        Args:
            q: (nq,) pose.
            rates: (k, 2) velocity and acceleration of the arm's joints; at rest by default.
        """
        rates = np.zeros((len(self.dofs), 2)) if rates is None else rates
        J = self._jacobian(q)[[AXES.index(axis) for axis in self.axes]]
        movable = np.linalg.svd(J, compute_uv=False).min() / (MOVABLE * self.arm.length)
        inside = np.minimum(q[self.places] - self.low, self.high - q[self.places])
        width = np.maximum(self.high - self.low, 1e-12)
        ends = np.where(self.limited, inside / (OFF_ENDS * width), np.inf).min()
        free = 1e3 if self._touching(q) <= self.touching else -1.0
        load, off = self._load(q, rates)
        return float(min(movable, ends, CARRIED / max(load, 1e-12), off / OFF_TARGETS, free))

    def _touching(self, q: Array) -> set[tuple[int, int]]:
        """Return the pairs of shapes that touch."""
        self.data.qpos = q
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_collision(self.model, self.data)
        contacts = [self.data.contact[k] for k in range(self.data.ncon)]
        return {(int(c.geom[0]), int(c.geom[1])) for c in contacts if c.dist < 0}

    def _load(self, q: Array, rates: Array) -> tuple[float, float]:
        """Return the largest share of an actuator's force, and how far targets are off their ends.

        The forces carry the arm and accelerate it; the targets are those of servos, as shares of
        their ranges.
        """
        model, data = self.model, self.data
        acceleration = np.zeros(model.nv)
        data.qpos, data.qvel, data.ctrl[:] = q, 0.0, 0.0
        data.qvel[self.dofs], acceleration[self.dofs] = rates.T
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        needed = np.zeros(model.nv)
        mujoco.mj_mulM(model, data, needed, acceleration)
        needed += data.qfrc_bias - data.qfrc_passive
        moment = np.zeros((model.nu, model.nv))
        mujoco.mju_sparse2dense(
            moment, data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind
        )
        acting = np.flatnonzero(np.abs(moment[:, self.dofs]).max(axis=1) > 0)
        force = np.linalg.lstsq(moment[acting][:, self.dofs].T, needed[self.dofs], rcond=1e-9)[0]
        pairs = [*zip(acting.tolist(), force, strict=True)]
        load = max((abs(f) / self._limit(k) for k, f in pairs), default=0.0)
        return float(load), float(min((self._off(k, f) for k, f in pairs), default=np.inf))

    def _off(self, actuator: int, force: float) -> float:
        """Return how far the target of a servo with this force is off the ends of its range."""
        model, data = self.model, self.data
        affine = model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_AFFINE
        gain = model.actuator_gainprm[actuator, 0]
        if not affine or not model.actuator_ctrllimited[actuator] or not gain:
            return np.inf
        state = [1.0, data.actuator_length[actuator], data.actuator_velocity[actuator]]
        target = (force - model.actuator_biasprm[actuator, :3] @ state) / gain
        low, high = model.actuator_ctrlrange[actuator]
        return float(min(target - low, high - target) / max(high - low, 1e-12))

    def _limit(self, actuator: int) -> float:
        """Return the largest force of an actuator, N or N m."""
        model = self.model
        limits = [np.inf]
        if model.actuator_forcelimited[actuator]:
            limits.append(float(np.abs(model.actuator_forcerange[actuator]).max()))
        motor = model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_NONE
        if motor and model.actuator_ctrllimited[actuator]:
            gain = abs(model.actuator_gainprm[actuator, 0])
            limits.append(float(gain * np.abs(model.actuator_ctrlrange[actuator]).max()))
        joint = model.actuator_trnid[actuator, 0]
        if model.actuator_trntype[actuator] == mujoco.mjtTrn.mjTRN_JOINT:
            gear = max(abs(model.actuator_gear[actuator, 0]), 1e-12)
            if model.jnt_actfrclimited[joint]:
                limits.append(float(np.abs(model.jnt_actfrcrange[joint]).max()) / gear)
        return max(min(limits), 1e-12)
