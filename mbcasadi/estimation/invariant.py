"""Mean and error of an IMU that walks: the right-invariant filter of [Hartley et al. 2020].

The estimate is the IMU's rotation R, velocity v and position p in the world, the places
`ρ_i = d_i - p` of landmarks as seen from it and the rotations R_i of soles, all in world axes, and
both biases. Errors are those of the group, from the left:

    R̂ = Exp(θ) R     v̂ = Exp(θ) v + ν     ρ̂_i = Exp(θ) ρ_i + η_i     R̂_i = Exp(χ_i + θ) R_i
    b̂ = b + β        p̂ = Exp(θ) p + π

to first order in θ. Passive joints (`noise.PassiveJoint`) have the errors of their positions and of
their rates. Without bias errors their motion depends on no estimate (it is group affine),

    ν⁺ = ν + [g]× θ dt     η_i⁺ = η_i - ν dt - ½ [g]× θ dt²     χ_i⁺ = χ_i

so yaw and position, which nothing observes, are never seen by mistake. With `ρ_i` in place of `d_i`
[ibid.] a landmark is measured by its own entries alone, `R h(q) = ρ_i`, `H = -1` there: one that
is forgotten costs two assignments, and no difference of large numbers is taken.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.estimation.landmarks import Landmark
from mbcasadi.estimation.noise import PassiveJoint
from mbcasadi.estimation.rotations import product
from mbcasadi.spatial.integrals import integrals
from mbcasadi.spatial.quaternion_columns import column_of, matrix_of, quat_of
from mbcasadi.spatial.quaternions import exponential
from mbcasadi.spatial.vectors import entries

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Mean:
    """The estimate: quaternion, v, p, both biases, places and quaternions of landmarks.

    `turns` has one column for each sole, `passive` the positions of passive joints beside their
    rests, then their rates.
    """

    quat: ca.SX
    v: ca.SX
    p: ca.SX
    b_g: ca.SX
    b_a: ca.SX
    places: tuple[ca.SX, ...]
    turns: tuple[ca.SX, ...]
    passive: ca.SX

    @property
    def column(self) -> ca.SX:
        """All entries."""
        fixed = (self.quat, self.v, self.p, self.b_g, self.b_a)
        return ca.vertcat(*fixed, *self.places, *self.turns, self.passive)

    @property
    def R(self) -> ca.SX:  # the symbol
        """(3, 3) rotation of the IMU."""
        return matrix_of(quat_of(self.quat))


@dataclass(frozen=True)
class Layout:
    """Places of the errors, (n,), and of the estimate.

    The errors are θ, ν, β_g, β_a, then η_i and χ_i of each landmark, positions and rates of passive
    joints, then π.

    Attributes:
        landmarks: in the order of the contacts.
        passive: joints without an encoder that loops leave free.
    """

    landmarks: tuple[Landmark, ...]
    passive: tuple[PassiveJoint, ...] = ()

    @property
    def first(self) -> tuple[int, ...]:
        """First error of each landmark."""
        sizes = [landmark.size for landmark in self.landmarks]
        return tuple(12 + int(n) for n in np.cumsum([0, *sizes])[:-1])

    @property
    def n(self) -> int:
        """Number of errors."""
        return 15 + sum(each.size for each in self.landmarks) + 2 * len(self.passive)

    @property
    def bent(self) -> list[int]:
        """Errors of the positions of passive joints."""
        first = self.n - 3 - 2 * len(self.passive)
        return list(range(first, first + len(self.passive)))

    @property
    def bending(self) -> list[int]:
        """Errors of their rates."""
        return [k + len(self.passive) for k in self.bent]

    @property
    def size(self) -> int:
        """Number of entries of the estimate."""
        soles = sum(landmark.sole for landmark in self.landmarks)
        return 16 + 3 * len(self.landmarks) + 4 * soles + 2 * len(self.passive)

    def rows(self, i: int) -> list[int]:
        """Errors of a landmark."""
        return list(range(self.first[i], self.first[i] + self.landmarks[i].size))

    def mean(self, x: ca.SX) -> Mean:
        """Return the estimate of its entries."""
        count, soles = len(self.landmarks), sum(each.sole for each in self.landmarks)
        places = tuple(x[16 + 3 * i : 19 + 3 * i] for i in range(count))
        behind = 16 + 3 * count
        turns = tuple(x[behind + 4 * k : behind + 4 * k + 4] for k in range(soles))
        passive = x[behind + 4 * soles :, 0]
        return Mean(x[:4], x[4:7], x[7:10], x[10:13], x[13:16], places, turns, passive)

    def sole(self, i: int) -> int:
        """Place of a sole among the soles."""
        return sum(each.sole for each in self.landmarks[:i])


THETA, NU, BETA_G, BETA_A = slice(0, 3), slice(3, 6), slice(6, 9), slice(9, 12)
"""Places of the first errors."""


@dataclass(frozen=True)
class Motion:
    """What moves a landmark while its ball rolls.

    Attributes:
        rate: (3,) ω of the foot's body, world axes, rad/s.
        velocity: (3,) of the ball's centre, world axes.
        J: (3, m) of it by the rates of the joints with encoders, world axes.
        J_passive: (3, k) by those of passive joints.
        rate_noise: standard deviation of the rates of joints with encoders.
    """

    rate: ca.SX
    velocity: ca.SX
    J: ca.SX
    J_passive: ca.SX
    rate_noise: float


@dataclass(frozen=True)
class Densities:
    """Noise of a tick: densities of the IMU, covariances of the landmarks in a second.

    Attributes:
        gyro, accelerometer, gyro_walk, accelerometer_walk: densities; the first two are numbers or
            expressions.
        landmarks: (3, 3) or (6, 6) of each.
    """

    gyro: ca.SX
    accelerometer: ca.SX
    gyro_walk: float
    accelerometer_walk: float
    landmarks: Sequence[ca.SX]


@dataclass(frozen=True)
class Propagation:
    """The estimate after a tick, the map F of the errors, and the covariance Q that noise adds."""

    mean: Mean
    F: ca.SX
    Q: ca.SX


def passive_motion(layout: Layout, dt: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the motion Φ (2k, 2k) of passive joints over a tick, and the covariance Q it adds.

    Φ is that of a critically damped spring, and `Q = P - Φ P Φᵀ` with the stationary covariance
    P = diag(σ², σ² ω²).
    """
    k = len(layout.passive)
    w = ca.SX(ca.DM([joint.bandwidth for joint in layout.passive]))
    P = ca.SX(ca.diag(ca.DM(passive_deviations(layout)) ** 2))
    decay = ca.exp(-w * dt)
    blocks = [[decay * (1 + w * dt), decay * dt], [-decay * w**2 * dt, decay * (1 - w * dt)]]
    Phi = ca.blockcat([[ca.diag(x) for x in row] for row in blocks]) if k else ca.SX(0, 0)
    return Phi, P - Phi @ P @ Phi.T


def passive_deviations(layout: Layout) -> list[float]:
    """Return the stationary deviations (2k,) of positions and rates of passive joints."""
    positions = [joint.deviation for joint in layout.passive]
    return [*positions, *(joint.deviation * joint.bandwidth for joint in layout.passive)]


def propagate(
    layout: Layout,
    mean: Mean,
    sample: tuple[ca.SX, ca.SX],
    dt: ca.SX,
    gravity: Array,
    rolling: Mapping[int, Motion],
    noise: Densities,
) -> Propagation:
    """Return the motion over a tick with the IMU's mean rate and mean specific force.

    Args:
        layout: of the errors.
        mean: the estimate before.
        sample: (3,) rate, rad/s, and (3,) specific force, m/s², in the IMU's axes.
        dt: s.
        gravity: (3,) m/s².
        rolling: of landmarks that roll.
        noise: of this tick.
    """
    rate, force = sample[0] - mean.b_g, sample[1] - mean.b_a
    phi, R, g = rate * dt, mean.R, ca.DM(gravity)
    by = integrals(phi)
    gained, fallen = R @ by.first @ force * dt + g * dt, R @ by.second @ force * dt**2
    v = mean.v + gained
    shift = mean.v * dt + fallen + g * dt**2 / 2
    turned = product(quat_of(mean.quat), exponential(entries(phi)))
    places = list[ca.SX]()
    for i in range(len(layout.landmarks)):
        place = mean.places[i] - shift
        if i in rolling:
            place += rolling[i].velocity * dt
        places.append(place)
    moved = replace(
        mean, quat=column_of(turned), v=v, p=mean.p + shift, places=tuple(places),
        passive=passive_motion(layout, dt)[0] @ mean.passive,
    )  # fmt: skip
    F = _map(layout, moved, (R, by.first, by.second, force), dt, g, rolling)
    return Propagation(moved, F, _added(layout, moved, dt, rolling, noise))


def _map(
    layout: Layout,
    mean: Mean,
    turned: tuple[ca.SX, ca.SX, ca.SX, ca.SX],
    dt: ca.SX,
    g: ca.DM,
    rolling: Mapping[int, Motion],
) -> ca.SX:
    """Return F (n, n) of the errors."""
    R, first, second, force = turned
    W = R @ first * dt  # θ by an error of the rate
    V, S = W, R @ second * dt**2  # ν and shift by an error of the specific force
    late = R @ ca.skew(force) * (dt**2 / 2)  # force that an error of the rate has turned
    half, pi = ca.sparsify(ca.skew(g)) * (dt**2 / 2), layout.n - 3
    F = ca.SX.eye(layout.n)
    F[THETA, BETA_G] = -W
    F[NU, THETA] = ca.sparsify(ca.skew(g)) * dt
    F[NU, BETA_G] = late - ca.skew(mean.v) @ W
    F[NU, BETA_A] = -V
    for i, landmark in enumerate(layout.landmarks):
        at = layout.first[i]
        place = slice(at, at + 3)
        F[place, THETA], F[place, NU] = -half, -dt * ca.SX.eye(3)
        F[place, BETA_G] = -ca.skew(mean.places[i]) @ W
        F[place, BETA_A] = S
        if i in rolling:
            n = ca.sparsify(ca.DM(ca.skew(ca.DM(landmark.radius * landmark.normal))))
            F[place, THETA] += ca.skew(rolling[i].rate) @ n * dt
            F[place, BETA_G] += n @ W
            F[place, layout.bending] = -dt * n @ rolling[i].J_passive
        if landmark.sole:
            F[at + 3 : at + 6, BETA_G] = W
    own = [*layout.bent, *layout.bending]
    F[own, own] = passive_motion(layout, dt)[0]
    F[pi:, THETA], F[pi:, NU] = half, dt * ca.SX.eye(3)
    F[pi:, BETA_G] = -ca.skew(mean.p) @ W
    F[pi:, BETA_A] = -S
    return F


def _added(
    layout: Layout, mean: Mean, dt: ca.SX, rolling: Mapping[int, Motion], noise: Densities
) -> ca.SX:
    """Return Q (n, n): what white noise of the sensors and of the feet adds."""
    n, one = layout.n, ca.SX.eye(3)
    G, K = ca.SX(n, 3), ca.SX(n, 3)  # by noise of the rate and of the specific force
    G[THETA, :], G[NU, :], K[NU, :] = one, ca.skew(mean.v), one
    G[n - 3 :, :], K[n - 3 :, :] = ca.skew(mean.p), one * (dt / 2)
    extra, walks = ca.SX(n, n), (noise.gyro_walk**2 * one, noise.accelerometer_walk**2 * one)
    others = ca.SX(2 * len(layout.passive) + 3, 2 * len(layout.passive) + 3)
    blocks = [ca.SX(6, 6), *walks, *noise.landmarks, others]
    for i, landmark in enumerate(layout.landmarks):
        at = layout.first[i]
        place = slice(at, at + 3)
        G[place, :], K[place, :] = ca.skew(mean.places[i]), -one * (dt / 2)
        if landmark.sole:
            G[at + 3 : at + 6, :] = -one
        if i in rolling:
            arm = ca.DM(ca.skew(ca.DM(landmark.radius * landmark.normal)))
            G[place, :] -= arm
            B = arm @ rolling[i].J * (dt * rolling[i].rate_noise)
            extra[place, place] = B @ B.T
    own = [*layout.bent, *layout.bending]
    extra[own, own] = passive_motion(layout, dt)[1]
    white = noise.gyro**2 * (G @ G.T) + noise.accelerometer**2 * (K @ K.T)
    white += ca.diagcat(*blocks)
    return white * dt + extra
