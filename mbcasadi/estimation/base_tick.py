"""One tick of the base estimator, as expressions: guard, prediction, correction, output."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import casadi as ca
import numpy as np
import scipy
from numpy.typing import NDArray

from mbcasadi.description import Contact
from mbcasadi.description.status import Flag
from mbcasadi.estimation.base_output import BaseState, base_state, imu_quat
from mbcasadi.estimation.covariance import bounded, congruence, packed, packed_size, unpacked
from mbcasadi.estimation.invariant import (
    Densities,
    Layout,
    Mean,
    Motion,
    corrected,
    propagate,
    reset_map,
)
from mbcasadi.estimation.joints import Joints, joints_of, rate_gains
from mbcasadi.estimation.landmark_update import (
    Seen,
    Update,
    seen_from,
    set_landmarks,
    update_by_landmarks,
)
from mbcasadi.estimation.landmarks import FREE_Q, Mounting, Sight, mounting, sight
from mbcasadi.estimation.memory import Memory
from mbcasadi.estimation.noise import Encoders, Footing, Imu, Start
from mbcasadi.estimation.rotations import column_of, matrix_of, product, quat_of, turn_between
from mbcasadi.qp.input_guard import MASK_ON
from mbcasadi.system import System

Array = NDArray[np.float64]

OUTAGE = 0.05
"""s for which the last valid sample of an IMU stands for those that are missing."""

OUTAGE_NOISE = (1.0, 20.0)
"""Densities while samples are missing: rad/s/√Hz, m/s²/√Hz."""

DOUBTED = 0.02
"""s without a foot that fits, while feet stand, from which the estimate is doubted."""

DOUBT_NOISE = (0.3, 5.0)
"""Densities that are added to those of the IMU while the estimate is doubted."""

ADRIFT = 0.5
"""s without a foot that stands from which the estimate drifts."""

LARGEST = {"tilt": 1.0, "speed": 30.0, "gyro": 1.0, "force": 10.0, "place": 3.0, "position": 1e4}
"""Bounds of standard deviations: rad, m/s, rad/s, m/s², m, m."""

FARTHEST = {"speed": 1e3, "position": 1e7, "gyro": 5.0, "force": 50.0, "place": 1e2}
"""Bounds of the estimate, in the same units."""

LONGEST = 0.1
"""s, the largest dt of a tick."""

LARGEST_MEMORY = 1e15
"""Sum of the absolute entries of a memory that is sound."""


class Sample(NamedTuple):
    """The IMU's sample that is used: rate, force, and how it came about."""

    rate: ca.SX
    force: ca.SX
    valid: ca.SX
    missing: ca.SX


class Outcome(NamedTuple):
    """A tick: estimate, covariance, which landmarks were used, and the times without them."""

    mean: Mean
    P: ca.SX
    update: Update
    stands: list[ca.SX]
    lost: ca.SX
    doubt: ca.SX


@dataclass(frozen=True)
class BaseTick:
    """The tick of an estimator of a base; see `base_estimator`."""

    system: System
    contacts: tuple[Contact, ...]
    layout: Layout
    imu: Imu
    encoders: Encoders
    footing: Footing
    start: Start
    period: float

    @property
    def joints(self) -> int:
        """Number of encoders."""
        return self.system.nq - FREE_Q

    @property
    def gravity(self) -> Array:
        """(3,) m/s²."""
        assert self.system.tree is not None
        return np.asarray(self.system.tree.gravity, dtype=float)

    @cached_property
    def memory(self) -> Memory:
        """What is remembered from tick to tick."""
        count = len(self.layout.landmarks)
        return Memory(
            {
                "x": self.layout.size,
                "P": packed_size(self.layout.n),
                "stood": count,
                "mean": sum(landmark.size for landmark in self.layout.landmarks),
                "joint": self.joints,
                "joint_rate": self.joints,
                "gyro": 3,
                "force": 3,
                "missing": 1,
                "lost": 1,
                "doubt": 1,
                "started": 1,
            }
        )

    def function(self, name: str) -> ca.Function:
        """Return (y, valid, mask, dt, z) → (q, v, z_next, covariance, status, flags, residual)."""
        m, rated = self.joints, self.encoders.rate_noise is not None
        y = ca.SX.sym("y", 6 + m + m * rated)
        valid, mask = ca.SX.sym("valid", 1 + m), ca.SX.sym("mask", len(self.contacts))
        dt_in, z = ca.SX.sym("dt"), ca.SX.sym("z", self.memory.size)
        dt = ca.if_else(ca.logic_and(dt_in > 0, dt_in <= LONGEST), dt_in, self.period)
        z0 = self.memory_at(self._rest)
        sound = self._is_sound(z)
        before = self.memory.split(ca.if_else(sound, z, z0))
        outputs = self._outputs(y, valid, mask, dt, before)
        finite = ca.sum1(ca.fabs(ca.vertcat(*outputs.values()))) <= LARGEST_MEMORY
        state = self.memory.split(ca.SX(z0))
        rest = {"q": ca.DM(self._rest), "v": ca.DM.zeros(self.system.nv), "z_next": z0}
        rest["covariance"] = ca.vec(self._base(state).covariance)
        rest |= {"status": ca.DM(4), "flags": ca.DM(0)}
        rest["residual"] = ca.DM.zeros(len(self.layout.landmarks))
        outputs["status"] = ca.if_else(sound, outputs["status"], 4)
        outputs = {k: ca.densify(ca.if_else(finite, x, rest[k])) for k, x in outputs.items()}
        inputs = {"y": y, "valid": valid, "mask": mask, "dt": dt_in, "z": z}
        outputs["covariance"] = ca.reshape(outputs["covariance"], 12, 12)
        return ca.Function(
            name, [*inputs.values()], [*outputs.values()], [*inputs], [*outputs], {"cse": True}
        )

    @cached_property
    def _rest(self) -> Array:
        """(nq,) pose at which an estimator without a memory starts."""
        from mbcasadi.system.coordinates import start_pose

        return start_pose(self.system)

    def _is_sound(self, z: ca.SX) -> ca.SX:
        parts = self.memory.split(z)
        quat = ca.sumsqr(parts["x"][:4])
        unit = ca.logic_and(quat > 0.5, quat < 2.0)
        return ca.logic_and(unit, ca.sum1(ca.fabs(z)) <= LARGEST_MEMORY)

    def _outputs(
        self, y: ca.SX, valid: ca.SX, mask: ca.SX, dt: ca.SX, before: dict[str, ca.SX]
    ) -> dict[str, ca.SX]:
        """Return all outputs of a tick from a sound memory."""
        m, started = self.joints, before["started"] > MASK_ON
        sample = self._sample(y, valid, before, dt)
        read = [ca.logic_and(valid[1 + k] > MASK_ON, _is_number(y[6 + k])) for k in range(m)]
        if self.encoders.rate_noise is not None:
            read = [ca.logic_and(ok, _is_number(y[6 + m + k])) for k, ok in enumerate(read)]
        joints = joints_of(
            self.encoders,
            self.period,
            (y[6 : 6 + m], y[6 + m :]),
            ca.vertcat(ca.SX(0, 1), *read),
            (before["joint"], before["joint_rate"]),
            started,
            dt,
        )
        outcome = self._estimate(sample, joints, ca.vertcat(ca.SX(0, 1), *read), mask, dt, before)
        parts = {
            "x": outcome.mean.column,
            "P": packed(outcome.P),
            "stood": ca.vertcat(*outcome.stands),
            "mean": ca.vertcat(*outcome.update.means),
            "joint": joints.filtered,
            "joint_rate": joints.rate,
            "gyro": sample.rate,
            "force": sample.force,
            "missing": sample.missing,
            "lost": outcome.lost,
            "doubt": outcome.doubt,
            "started": ca.logic_or(started, sample.valid),
        }
        base = self._base(parts, joints, dt)
        status = ca.if_else(outcome.lost > ADRIFT, 1, 0)
        status = ca.if_else(outcome.doubt > DOUBTED, 2, status)
        status = ca.if_else(sample.valid, status, 3)
        update = outcome.update
        gated = [
            ca.logic_and(stands > self.period / 2, ca.logic_not(used))
            for stands, used in zip(before_all(before), update.used, strict=True)
        ]
        rejected = ca.sum1(ca.vertcat(*(g * (d > 0) for g, d in zip(gated, update.distances, strict=True)))) > 0
        return {
            "q": ca.vertcat(base.pose, joints.q),
            "v": ca.vertcat(base.velocity, joints.rate),
            "z_next": self.memory.join(parts),
            "covariance": ca.vec(base.covariance),
            "status": status,
            "flags": Flag.GATED * rejected,
            "residual": ca.vertcat(*update.distances),
        }

    def _sample(self, y: ca.SX, valid: ca.SX, before: dict[str, ca.SX], dt: ca.SX) -> Sample:
        """Return the IMU's sample, or what stands for it."""
        imu, own = self.imu, y[:6]
        ok = valid[0] > MASK_ON
        for k in range(6):
            limit = imu.gyro_range if k < 3 else imu.accelerometer_range
            ok = ca.logic_and(ok, ca.fabs(own[k]) <= limit)  # false for NaN
        missing = before["missing"]
        mean = self.layout.mean(before["x"])
        still = mean.R.T @ ca.DM(-self.gravity) + mean.b_a
        held = missing <= OUTAGE
        rate = ca.if_else(ok, own[:3], ca.if_else(held, before["gyro"], mean.b_g))
        force = ca.if_else(ok, own[3:], ca.if_else(held, before["force"], still))
        return Sample(rate, force, ok, ca.if_else(ok, 0, ca.fmin(missing + dt, 1e3)))

    def _estimate(
        self,
        sample: Sample,
        joints: Joints,
        read: ca.SX,
        mask: ca.SX,
        dt: ca.SX,
        before: dict[str, ca.SX],
    ) -> Outcome:
        """Return the estimate after prediction and correction."""
        layout, started = self.layout, before["started"] > MASK_ON
        at, sights = self._kinematics(joints.q)
        mean = self._levelled(layout.mean(before["x"]), sample, started)
        P = unpacked(before["P"], layout.n)
        shares = [ca.mmin(ca.vertcat(*(mask[i] for i in mark.members))) for mark in layout.landmarks]
        on = [
            ca.logic_and(share > MASK_ON, _all_read(s, read))
            for share, s in zip(shares, sights, strict=True)
        ]
        noise = self._densities(sample, before, shares)
        turning = mean.R @ (sample.rate - mean.b_g)
        rolling = {
            i: Motion(
                turning + mean.R @ s.J[3:, :] @ joints.rate, mean.R @ s.J[3:, :], self._rate_noise
            )
            for i, s in enumerate(sights)
            if layout.landmarks[i].rolls
        }
        moved = propagate(
            layout, mean, (sample.rate, sample.force), dt, self.gravity, rolling, noise
        )
        F, Q = moved.F, moved.Q
        P = congruence(F, P) + Q
        seen = [self._seen(s, k, moved.mean) for k, s in enumerate(sights)]
        stood = [ca.logic_and(s > 0, o) for s, o in zip(ca.vertsplit(before["stood"]), on, strict=True)]
        update = update_by_landmarks(
            layout, moved.mean, P, seen, self._feet(sights), stood, self._split(before["mean"]),
            self.footing.false_alarm,
        )  # fmt: skip
        mean = set_landmarks(layout, moved.mean, seen, update.used)
        mean = self._limited(corrected(layout, mean, update.e))
        any_used = ca.sum1(ca.vertcat(*update.used)) > 0
        any_stands = ca.sum1(ca.vertcat(*stood)) > 0
        lost = ca.if_else(any_used, 0, ca.fmin(before["lost"] + dt, 1e3))
        failing = ca.logic_and(any_stands, ca.logic_not(any_used))
        doubt = ca.if_else(any_used, 0, ca.fmin(before["doubt"] + dt * failing, 1e3))
        stands = [
            ca.if_else(o, ca.fmin(s + dt, 1e3), 0)
            for s, o in zip(ca.vertsplit(before["stood"]), on, strict=True)
        ]
        P = congruence(reset_map(layout, update.e), update.P)
        return Outcome(mean, bounded(P, self._largest), update, stands, lost, doubt)

    def _levelled(self, mean: Mean, sample: Sample, started: ca.SX) -> Mean:
        """Return the estimate, at the first tick with roll and pitch of the accelerometer."""
        up = -self.gravity / np.linalg.norm(self.gravity)
        size = ca.norm_2(sample.force)
        g = float(np.linalg.norm(self.gravity))
        sensible = ca.logic_and(size > g / 2, size < 3 * g / 2)
        direction = mean.R @ sample.force / ca.fmax(size, g / 2)
        turn = turn_between(direction, ca.SX(ca.DM(up)))
        chosen = ca.logic_and(ca.logic_not(started), ca.logic_and(sensible, sample.valid))
        level = column_of(product(turn, quat_of(mean.quat)))
        return replace(mean, quat=ca.if_else(chosen, level, mean.quat))

    def _densities(
        self, sample: Sample, before: dict[str, ca.SX], shares: Sequence[ca.SX]
    ) -> Densities:
        imu, footing = self.imu, self.footing
        doubted = before["doubt"] > DOUBTED
        gyro, force = (
            ca.if_else(sample.valid, own, out) + ca.if_else(doubted, doubt, 0)
            for own, out, doubt in zip(
                (imu.gyro_noise, imu.accelerometer_noise), OUTAGE_NOISE, DOUBT_NOISE, strict=True
            )
        )
        covariances = []
        for k, landmark in enumerate(self.layout.landmarks):
            fresh = ca.exp(-before["stood"][k] / footing.settling)
            growth = (1 + (footing.landing - 1) * fresh) / ca.fmax(shares[k], MASK_ON)
            across = np.outer(landmark.normal, landmark.normal)
            own = footing.slip**2 * (np.eye(3) - across) + footing.sink**2 * across
            own = scipy.linalg.block_diag(own, footing.turn**2 * np.eye(landmark.size - 3))
            covariances.append(ca.sparsify(ca.DM(own)) * growth**2)
        return Densities(gyro, force, imu.gyro_walk, imu.accelerometer_walk, covariances)

    def _seen(self, s: Sight, k: int, mean: Mean) -> Seen:
        landmark, footing = self.layout.landmarks[k], self.footing
        N = [footing.place_noise**2] * 3 + [footing.turn_noise**2] * 3
        rotation = s.rotation if landmark.sole else None
        B = s.J[: landmark.size, :] * self.encoders.noise
        return seen_from(s.place, rotation, B, ca.SX(ca.DM(N[: landmark.size])), mean)

    def _split(self, rows: ca.SX) -> list[ca.SX]:
        """Return the rows of each landmark."""
        ends = np.cumsum([0, *(landmark.size for landmark in self.layout.landmarks)])
        return [rows[int(a) : int(b)] for a, b in itertools.pairwise(ends)]

    def _feet(self, sights: Sequence[Sight]) -> list[list[int]]:
        """Return groups of landmarks whose places depend on the same encoders."""
        groups = list[tuple[set[int], list[int]]]()
        for k, s in enumerate(sights):
            columns = set(s.J.sparsity().get_triplet()[1])
            joined = [g for g in groups if g[0] & columns]
            groups = [g for g in groups if not g[0] & columns]
            members = sorted([k, *(i for g in joined for i in g[1])])
            groups.append((columns.union(*(g[0] for g in joined)), members))
        return [members for _, members in groups]

    def _kinematics(self, q_joints: ca.SX) -> tuple[Mounting, list[Sight]]:
        """Return the IMU in the base and each landmark from the IMU."""
        q = ca.vertcat(ca.SX(ca.DM([0, 0, 0, 1, 0, 0, 0])), q_joints)
        at = mounting(self.system, self.imu, q)
        return at, [sight(mark, at, q) for mark in self.layout.landmarks]

    @property
    def _rate_noise(self) -> float:
        known = self.encoders.rate_noise
        return rate_gains(self.encoders, self.period).rate if known is None else known

    @cached_property
    def _largest(self) -> Array:
        """(n,) bounds of standard deviations."""
        soles = [[LARGEST["place"]] * 3 + [LARGEST["tilt"]] * 3 for _ in self.layout.landmarks]
        own = [x for mark, x in zip(self.layout.landmarks, soles, strict=True) for x in x[: mark.size]]
        names = ("tilt", "speed", "gyro", "force")
        yaw = [x for name in names for x in [LARGEST[name]] * 3]
        return np.array([*yaw, *own, *[LARGEST["position"]] * 3])

    def _limited(self, mean: Mean) -> Mean:
        """Return the estimate within bounds that nothing sensible reaches."""

        def inside(x: ca.SX, name: str) -> ca.SX:
            return ca.fmax(ca.fmin(x, FARTHEST[name]), -FARTHEST[name])

        return replace(
            mean,
            v=inside(mean.v, "speed"),
            p=inside(mean.p, "position"),
            b_g=inside(mean.b_g, "gyro"),
            b_a=inside(mean.b_a, "force"),
            places=tuple(inside(place, "place") for place in mean.places),
        )

    def _base(
        self, parts: dict[str, ca.SX], joints: Joints | None = None, dt: ca.SX | None = None
    ) -> BaseState:
        """Return the base of a memory."""
        q = parts["joint"] if joints is None else joints.q
        mean, P = self.layout.mean(parts["x"]), unpacked(parts["P"], self.layout.n)
        at = self._kinematics(q)[0]
        white = self.imu.gyro_noise**2 / (self.period if dt is None else dt)
        variance = (ca.SX(white), ca.SX(self._rate_noise**2))
        rate = parts["gyro"] - mean.b_g
        return base_state(self.layout, mean, P, at, rate, parts["joint_rate"], variance)

    def memory_at(self, q: Array) -> ca.DM:
        """Return the memory (nz,) of an estimator that starts at rest at a pose.

        Args:
            q: (nq,) pose.
        """
        at, sights = self._kinematics(ca.SX(ca.DM(q[FREE_Q:])))
        R_B = matrix_of(quat_of(ca.SX(ca.DM(q[3:7]))))
        quat = product(quat_of(ca.SX(ca.DM(q[3:7]))), imu_quat(at))
        mean = Mean(
            quat=column_of(quat),
            v=ca.SX(3, 1),
            p=ca.DM(q[:3]) + R_B @ at.place,
            b_g=ca.SX(3, 1),
            b_a=ca.SX(3, 1),
            places=(),
            turns=(),
        )
        places = tuple(mean.R @ s.place for s in sights)
        seen = [self._seen(s, k, mean) for k, s in enumerate(sights)]
        mean = replace(mean, places=places, turns=tuple(s.quat for s in seen if s.quat is not None))
        count = len(sights)
        parts = {
            "x": mean.column,
            "P": packed(ca.SX(ca.DM(self._first_covariance))),
            "stood": ca.SX(count, 1),
            "mean": ca.SX(self.memory.sizes["mean"], 1),
            "joint": ca.SX(ca.DM(q[FREE_Q:])),
            "joint_rate": ca.SX(self.joints, 1),
            "gyro": ca.SX(3, 1),
            "force": mean.R.T @ ca.DM(-self.gravity),
            **{key: ca.SX(1, 1) for key in ("missing", "lost", "doubt", "started")},
        }
        return ca.evalf(self.memory.join({k: ca.densify(x) for k, x in parts.items()}))

    @cached_property
    def _first_covariance(self) -> Array:
        start, up = self.start, self.gravity / np.linalg.norm(self.gravity)
        n, yaw = self.layout.n, np.outer(up, up)
        P = np.eye(n)
        P[:3, :3] = start.tilt**2 * (np.eye(3) - yaw) + start.heading**2 * yaw
        P[3:6, 3:6] *= start.speed**2
        P[6:9, 6:9] *= self.imu.gyro_bias**2
        P[9:12, 9:12] *= self.imu.accelerometer_bias**2
        P[n - 3 :, n - 3 :] *= start.position**2
        return P


def before_all(before: dict[str, ca.SX]) -> list[ca.SX]:
    """Return for how long each landmark stood before, s."""
    return ca.vertsplit(before["stood"])


def _is_number(x: ca.SX) -> ca.SX:
    return ca.fabs(x) <= 1e6  # false for NaN


def _all_read(s: Sight, read: ca.SX) -> ca.SX:
    """Return whether all encoders of a landmark have been read."""
    columns = sorted(set(s.J.sparsity().get_triplet()[1]))
    return ca.SX(1) if not columns else ca.mmin(ca.vertcat(*(read[c] for c in columns)))
