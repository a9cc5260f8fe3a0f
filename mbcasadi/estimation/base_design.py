"""What a base estimator is made of: robot, landmarks, noise, and the layout of its memory."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Contact
from mbcasadi.estimation.base_output import BASE, BaseState, base_state
from mbcasadi.estimation.covariance import packed_size, unpacked
from mbcasadi.estimation.fixes import CERTAIN, HEADING, POSITION, Fix
from mbcasadi.estimation.invariant import Layout, Mean
from mbcasadi.estimation.joints import rate_deviation
from mbcasadi.estimation.landmark_update import Seen, seen_from
from mbcasadi.estimation.landmarks import Mounting, Sight, limbs_of, mounting, sight
from mbcasadi.estimation.linkage import Linkage, posed
from mbcasadi.estimation.memory import Memory
from mbcasadi.estimation.noise import Encoders, FirstEstimate, Footing, Imu
from mbcasadi.system import System
from mbcasadi.system.closing import CLOSING_STEPS

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BaseDesign:
    """The parts of an estimator of a base; see `base_estimator`.

    Attributes:
        q0: (nq,) pose at the start.
        likelihood: whether the log-density of the samples is an output.
    """

    system: System
    linkage: Linkage
    contacts: tuple[Contact, ...]
    layout: Layout
    imu: Imu
    encoders: Encoders
    footing: Footing
    fixes: tuple[Fix, ...]
    start: FirstEstimate
    q0: Array
    period: float
    likelihood: bool = False

    @property
    def joints(self) -> int:
        """Number of encoders."""
        return len(self.linkage.encoded)

    @property
    def rated(self) -> bool:
        """Whether encoders measure rates too."""
        return self.encoders.rate_noise is not None

    @property
    def fix_rows(self) -> list[tuple[int, ...]]:
        """Entries of y of each fix: behind those of the IMU and of the encoders."""
        first = 6 + self.joints * (1 + self.rated)
        ends = np.cumsum([first, *(fix.size for fix in self.fixes)]).tolist()
        return [tuple(range(a, b)) for a, b in itertools.pairwise(ends)]

    @property
    def ny(self) -> int:
        """Size of y."""
        return 6 + self.joints * (1 + self.rated) + sum(fix.size for fix in self.fixes)

    @property
    def late(self) -> tuple[int, ...]:
        """Fixes whose samples may be late."""
        return tuple(k for k, fix in enumerate(self.fixes) if fix.longest_delay)

    @property
    def known(self) -> tuple[bool, ...]:
        """Whether heading, height and horizontal position are known at the start."""
        given = (self.start.heading, self.start.position, self.start.position)
        seen = [any(fix.seen[k] for fix in self.fixes) for k in range(3)]
        return tuple(x is not None or not s for x, s in zip(given, seen, strict=True))

    @property
    def first_deviations(self) -> Array:
        """(4,) of the first heading, rad, and of x, y, z, m."""
        heading, height, place = self.known
        of_yaw = CERTAIN if heading else HEADING
        spread = [CERTAIN if known else POSITION for known in (place, place, height)]
        spread = spread if self.start.position is None else [self.start.position] * 3
        return np.array([of_yaw if self.start.heading is None else self.start.heading, *spread])

    @property
    def smooth_places(self) -> list[int]:
        """Coordinates behind the base whose smooth positions are kept: with passive joints."""
        return self.linkage.places(self.linkage.encoded) if self.layout.passive else []

    @property
    def covered(self) -> int:
        """Number of errors of which there is a covariance: those of base and passive joints."""
        return BASE + 2 * len(self.layout.passive)

    @property
    def gravity(self) -> Array:
        """(3,) m/s²."""
        assert self.system.tree is not None
        return np.asarray(self.system.tree.gravity, dtype=float)

    @cached_property
    def memory(self) -> Memory:
        """What is remembered from tick to tick."""
        count, fixes = len(self.layout.landmarks), len(self.fixes)
        return Memory(
            {
                "x": self.layout.size,
                "P": packed_size(self.layout.n),
                "stood": count,
                "mean": sum(landmark.size for landmark in self.layout.landmarks),
                "joint": self.joints,
                "joint_rate": self.joints,
                "follower": len(self.linkage.followers),
                "smooth": len(self.smooth_places),
                "gyro": 3,
                "changed": 3,
                "force": 3,
                "missing": 1,
                "lost": 1,
                "doubt": 1,
                "started": 1,
            }
            | ({"known": 3, "lapsed": fixes, "refused": fixes} if fixes else {})
        )

    @property
    def rate_noise(self) -> float:
        """Standard deviation of a joint's rate."""
        known = self.encoders.rate_noise
        return rate_deviation(self.encoders, self.period) if known is None else known

    def posture(
        self, measured: ca.SX, passive: ca.SX, followers: ca.SX, steps: int = CLOSING_STEPS
    ) -> ca.SX:
        """Return the coordinates (nq - 7,) of all joints.

        Args:
            measured: (m,) by encoders.
            passive: (2k,) of the estimate: positions of passive joints beside their rests first.
            followers: of the tick before.
            steps: of closing.
        """
        joints = self.layout.passive
        rests = ca.DM([0.0 if joint.rest is None else joint.rest for joint in joints])
        bent = rests + passive[: len(joints)]
        return self.linkage.closed(self.linkage.joined(measured, bent, followers), steps)

    def kinematics(self, q_joints: ca.SX) -> tuple[Mounting, list[Sight]]:
        """Return the IMU in the base and each landmark from the IMU, J by the chosen joints."""
        q = posed(q_joints)
        at = mounting(self.system, self.imu, q)
        sights = [sight(mark.frame, mark.above, at, q) for mark in self.layout.landmarks]
        slopes = [at.J, *(s.J for s in sights)]
        chosen = [ca.sparsify(self.linkage.by_rates(J, q_joints)) for J in slopes]
        at = at._replace(J=chosen[0])
        sights = [s._replace(J=J) for s, J in zip(sights, chosen[1:], strict=True)]
        return at, sights

    def spot(self, fix: Fix, q_joints: ca.SX) -> Sight:
        """Return the frame of a fix from the IMU, with J times the noise of the encoders."""
        q = posed(q_joints)
        frame = self.system.frame(fix.frame, fix.frame_kind)
        found = sight(frame, None, mounting(self.system, self.imu, q), q)
        J = self.linkage.by_rates(found.J, q_joints)
        return found._replace(J=self.encoders.noise * J[:, : self.joints])

    def seen(self, s: Sight, k: int, mean: Mean, smooth: Sight) -> Seen:
        """Return a landmark in world axes; its slopes by passive joints are those of `smooth`."""
        landmark, footing = self.layout.landmarks[k], self.footing
        N = [footing.place_noise**2] * 3 + [footing.turn_noise**2] * 3
        rotation = s.rotation if landmark.sole else None
        J = s.J[: landmark.size, :]
        by_passive = ca.sparsify(smooth.J[: landmark.size, self.joints :])
        slopes = (J[:, : self.joints] * self.encoders.noise, by_passive)
        return seen_from(s.place, rotation, slopes, ca.SX(ca.DM(N[: landmark.size])), mean)

    def split(self, rows: ca.SX) -> list[ca.SX]:
        """Return the rows of each landmark."""
        ends = np.cumsum([0, *(landmark.size for landmark in self.layout.landmarks)])
        return [rows[int(a) : int(b)] for a, b in itertools.pairwise(ends)]

    def base(self, parts: dict[str, ca.SX], q: ca.SX, dt: ca.SX) -> BaseState:
        """Return the base of a memory.

        Args:
            parts: of the memory.
            q: (m,) joints.
            dt: s.
        """
        mean, P = self.layout.mean(parts["x"]), unpacked(parts["P"], self.layout.n)
        at = self.kinematics(q)[0]
        variance = (self.imu.gyro_noise**2 / dt + parts["changed"], ca.SX(self.rate_noise**2))
        rate = parts["gyro"] - mean.b_g
        at = at._replace(J=at.J[:, : self.joints])  # no passive joint moves the IMU
        return base_state(self.layout, mean, P, at, rate, parts["joint_rate"], variance)

    def feet(self, sights: Sequence[Sight]) -> list[list[int]]:
        """Return groups of landmarks whose places depend on the same encoders."""
        return [members for _, members in limbs_of([s.J for s in sights])]
