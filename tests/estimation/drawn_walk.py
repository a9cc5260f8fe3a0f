"""A robot whose legs follow a given motion of its base, with noise as the estimator expects it.

Written in NumPy from the definitions; of the package only the kinematics of the model is used.
All runs of a batch go side by side: arrays (runs, ...).
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

import mbcasadi as mb
from mbcasadi.estimation import Encoders, Footing, Imu, PassiveJoint

G = np.array([0.0, 0.0, -9.81])


@dataclass
class DrawnWalk:
    """A batch of runs: truth, and what the sensors read.

    Attributes:
        R, v, p: (runs, 3, 3), (runs, 3), (runs, 3) of the IMU.
        b_g, b_a: (runs, 3) biases.
        d: (runs, feet, 3) places of the feet, m.
        joints: (runs, m).
        legs: joints that put the feet where they stand.
        springs: joints that move by themselves, as `PassiveJoint` says.
        bending: (runs, springs, 2) their positions beside their rests, and rates.
    """

    system: mb.System
    feet: list[str]
    imu: Imu
    encoders: Encoders
    footing: Footing
    dt: float
    rng: np.random.Generator
    R: np.ndarray
    v: np.ndarray
    p: np.ndarray
    b_g: np.ndarray
    b_a: np.ndarray
    d: np.ndarray
    joints: np.ndarray
    stood: np.ndarray
    legs: list[int]
    springs: dict[int, PassiveJoint]
    bending: np.ndarray
    gait: float = 0.4

    def __post_init__(self):
        q = ca.SX.sym("q", self.system.nq - 7)
        full = ca.vertcat(0, 0, 0, 1, 0, 0, 0, q)
        p_I, R_I = self.system.frame(self.imu.frame).pose(full)
        h = [R_I.T @ (self.system.frame(f).pose(full)[0] - p_I) for f in self.feet]
        h = ca.vertcat(*h)
        self.sight = ca.Function("sight", [q], [h, ca.jacobian(h, q)]).map(len(self.v))
        self.t = 0.0

    @property
    def runs(self):
        return len(self.v)

    def stance(self, t):
        """Feet that stand at t, s: a trot with overlaps."""
        phase = (t / self.gait + np.array([0, 0.5, 0.5, 0])) % 1
        return (phase < 0.6) | (t < 1.0)

    def motion(self, t):
        """Rotation and velocity of the IMU at t, s: smooth, with no period of the gait."""
        ramp = np.clip(t - 0.5, 0, 1)
        angles = ramp * np.array(
            [0.5 * np.sin(0.7 * t), 0.12 * np.sin(3.1 * t + 1), 0.12 * np.sin(4.3 * t)]
        )
        v = ramp * np.array([0.4 * np.sin(1.3 * t), 0.3 * np.sin(1.9 * t), 0.15 * np.sin(6 * t)])
        return Rotation.from_euler("ZYX", angles).as_matrix(), v

    def step(self):
        """Return y (runs, ny) and mask (feet,) of the next tick."""
        dt, rng = self.dt, self.rng
        R0, v0 = self.motion(self.t)
        R1, v1 = self.motion(self.t + dt)
        phi = Rotation.from_matrix(R0.T @ R1).as_rotvec()
        first, second = gammas(phi)
        force = np.linalg.solve(R0 @ first * dt, v1 - v0 - G * dt)
        self.p = self.p + self.v * dt + R0 @ second @ force * dt**2 + G * dt**2 / 2
        self.v, self.R = np.tile(v1, (self.runs, 1)), np.tile(R1, (self.runs, 1, 1))
        self.t += dt
        white = rng.standard_normal((2, self.runs, 3)) / np.sqrt(dt)
        gyro = phi / dt + self.b_g + self.imu.gyro_noise * white[0]
        accelerometer = force + self.b_a + self.imu.accelerometer_noise * white[1]
        walks = rng.standard_normal((2, self.runs, 3)) * np.sqrt(dt)
        self.b_g = self.b_g + self.imu.gyro_walk * walks[0]
        self.b_a = self.b_a + self.imu.accelerometer_walk * walks[1]
        on = self.stance(self.t)
        self._move_feet(on)
        y = [gyro, accelerometer, self.joints + self.encoders.noise * self._normal(self.joints)]
        if self.encoders.rate_noise is not None:
            y.append(np.zeros_like(self.joints))
        return np.hstack(y), on

    def _normal(self, like):
        return self.rng.standard_normal(like.shape)

    def _move_feet(self, on):
        """Let feet that stand slip as expected, others go to where they swing; solve the legs."""
        fresh = np.exp(-self.stood / self.footing.settling)
        growth = 1 + (self.footing.landing - 1) * fresh
        density = growth[:, None] * [self.footing.slip, self.footing.slip, self.footing.sink]
        slip = self._normal(self.d) * density[None] * np.sqrt(self.dt)
        home = self.p[:, None, :] + self.home[None]
        home[:, :, 2] = 0.0
        home = home + 0.15 * self.v[:, None, :] * [1, 1, 0] + [0, 0, 0.05]
        swing = self.d + (home - self.d) * min(1.0, 15 * self.dt)
        self.d = np.where(on[None, :, None], self.d + slip * (self.stood > 0)[None, :, None], swing)
        self.stood = np.where(on, self.stood + self.dt, 0.0)
        places = self.d + self.footing.place_noise * self._normal(self.d)
        goal = np.einsum("rji,rfj->rfi", self.R, places - self.p[:, None, :])
        goal = goal.reshape(self.runs, -1)
        m = self.joints.shape[1]
        for k, (joint, spring) in enumerate(self.springs.items()):
            w, dt = spring.bandwidth, self.dt
            A = np.array([[0, 1], [-(w**2), -2 * w]])
            P = np.diag([spring.deviation**2, (spring.deviation * w) ** 2])
            F = expm(A * dt)
            noise = self.rng.multivariate_normal([0, 0], P - F @ P @ F.T, self.runs)
            self.bending[:, k] = self.bending[:, k] @ F.T + noise
            self.joints[:, joint] = spring.rest + self.bending[:, k, 0]
        for _ in range(4):
            h, J = self.sight(self.joints.T)
            h, J = np.array(h).T, np.array(J).reshape(-1, self.runs, m).transpose(1, 0, 2)
            self.joints[:, self.legs] += np.linalg.solve(
                J[:, :, self.legs], (goal - h)[:, :, None]
            )[:, :, 0]


def drawn_walk(
    system, feet, q0, imu, encoders, footing, *, runs, dt, seed, biased=True, springs=()
):
    """Return a batch that stands at a pose, with biases drawn; springs by their joint."""
    rng = np.random.default_rng(seed)
    q = ca.DM(q0)
    p_I = np.array(system.frame(imu.frame).pose(q)[0]).ravel()
    d = np.array([np.array(system.frame(f).pose(q)[0]).ravel() for f in feet])
    R = np.array(system.frame(imu.frame).pose(q)[1])
    normal = rng.standard_normal((2, runs, 3)) * biased
    walk = DrawnWalk(
        system, feet, imu, encoders, footing, dt, rng,
        R=np.tile(R, (runs, 1, 1)), v=np.zeros((runs, 3)), p=np.tile(p_I, (runs, 1)),
        b_g=imu.gyro_bias * normal[0], b_a=imu.accelerometer_bias * normal[1],
        d=np.tile(d, (runs, 1, 1)), joints=np.tile(q0[7:], (runs, 1)), stood=np.zeros(len(feet)),
        legs=[k for k in range(len(q0) - 7) if k not in springs], springs=dict(springs),
        bending=np.array([
            rng.normal(0, [s.deviation, s.deviation * s.bandwidth], (runs, 2))
            for s in dict(springs).values()
        ]).reshape(-1, runs, 2).swapaxes(0, 1),
    )  # fmt: skip
    walk.home = d - p_I
    return walk


def gammas(phi):
    """Return Γ_1 and Γ_2 (..., 3, 3) of rotation vectors (..., 3), by their series."""
    K = skew(phi)
    first, second, term = np.zeros(K.shape), np.zeros(K.shape), np.broadcast_to(np.eye(3), K.shape)
    factorial = 1.0
    for k in range(20):
        if not np.any(np.abs(term) > 1e-20):
            break
        factorial = factorial * (k + 1)
        first += term / factorial
        second += term / (factorial * (k + 2))
        term = term @ K
    return first, second


def skew(a):
    """The matrix of a cross product, (..., 3, 3)."""
    x, y, z = np.moveaxis(np.asarray(a), -1, 0)
    o = np.zeros_like(x)
    return np.stack([o, -z, y, z, o, -x, -y, x, o], -1).reshape(*np.shape(x), 3, 3)
