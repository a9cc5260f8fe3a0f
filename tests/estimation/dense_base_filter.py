"""The base filter in NumPy: maps of errors by differences of the exact error, dense algebra.

Written from the definitions; of the package only kinematics are used.
"""

from copy import copy
from typing import NamedTuple

import numpy as np
from estimation.drawn_walk import gammas, skew
from scipy.spatial.transform import Rotation

G = np.array([0.0, 0.0, -9.81])
N = 27  # errors: θ, ν, β_g, β_a, four times η, π
STEP = 1e-5


class State(NamedTuple):
    """Mean and covariance in a memory."""

    R: np.ndarray
    v: np.ndarray
    p: np.ndarray
    b_g: np.ndarray
    b_a: np.ndarray
    places: np.ndarray
    P: np.ndarray


def state_of(z):
    x, entries = z[:28], iter(z[28 : 28 + N * (N + 1) // 2])
    P = np.zeros((N, N))
    for j in range(N):
        for i in range(j, N):
            P[i, j] = P[j, i] = next(entries)
    R = Rotation.from_quat(x[:4], scalar_first=True).as_matrix()
    return State(R, x[4:7], x[7:10], x[10:13], x[13:16], x[16:28].reshape(4, 3), P)


def exponential(phi):
    """Rotations (..., 3, 3) of rotation vectors."""
    return np.eye(3) + skew(phi) @ gammas(phi)[0]


def logarithm(R):
    """Rotation vectors of (..., 3, 3)."""
    return Rotation.from_matrix(R.reshape(-1, 3, 3)).as_rotvec().reshape(R.shape[:-1])


def times(A, x):
    """A (..., 3, 3) by vectors x (..., 3)."""
    return (A @ x[..., None])[..., 0]


def each_way(scale=STEP):
    """Steps (2 N, N) along each error, there and back."""
    return scale * np.vstack([np.eye(N), -np.eye(N)])


def slopes(ends):
    """Derivatives (m, N) of values (2 N, m) at the ends of `each_way`."""
    return ((ends[:N] - ends[N:]) / (2 * STEP)).T


class DenseFilter:
    """A filter with the state and covariance `s`; its maps take many states side by side."""

    def __init__(self, state, footing, imu, sight, encoders):
        self.s, self.footing, self.imu, self.encoders = state, footing, imu, encoders
        self.stood, self.sight = np.zeros(4), sight

    @staticmethod
    def plus(s, e):
        """The state with errors e (..., N)."""
        E, J = exponential(e[..., :3]), gammas(e[..., :3])[0]
        eta, p = e[..., 12:24].reshape(*e.shape[:-1], 4, 3), skew(e[..., :3]) @ s.p
        places = s.places @ np.swapaxes(E, -1, -2) + eta @ np.swapaxes(J, -1, -2)
        return s._replace(
            R=E @ s.R, v=E @ s.v + times(J, e[..., 3:6]), p=s.p + p + e[..., 24:],
            b_g=s.b_g + e[..., 6:9], b_a=s.b_a + e[..., 9:12], places=places,
        )  # fmt: skip

    @staticmethod
    def minus(a, s):
        """The errors (..., N) of a beside s."""
        E = a.R @ np.swapaxes(s.R, -1, -2)
        theta = logarithm(E)
        back = np.linalg.inv(gammas(theta)[0])
        eta = (a.places - s.places @ np.swapaxes(E, -1, -2)) @ np.swapaxes(back, -1, -2)
        nu = times(back, a.v - times(E, s.v))
        pi = a.p - s.p - times(skew(theta), a.p)
        parts = [theta, nu, a.b_g - s.b_g, a.b_a - s.b_a, eta.reshape(*E.shape[:-2], 12), pi]
        return np.concatenate(parts, -1)

    @staticmethod
    def moved(s, gyro, force, dt):
        phi, f = (gyro - s.b_g) * dt, force - s.b_a
        first, second = gammas(phi)
        shift = s.v * dt + times(s.R @ second, f) * dt**2 + G * dt**2 / 2
        return s._replace(
            R=s.R @ exponential(phi), v=s.v + times(s.R @ first, f) * dt + G * dt,
            p=s.p + shift, places=s.places - shift[..., None, :],
        )  # fmt: skip

    def tick(self, y, on, dt):
        s, imu = self.s, self.imu
        new = self.moved(s, y[:3], y[3:6], dt)
        F = slopes(self.minus(self.moved(self.plus(s, each_way()), y[:3], y[3:6], dt), new))
        G_w, K_w = np.zeros((N, 3)), np.zeros((N, 3))  # to first order in dt, as white noise is
        G_w[:3], G_w[3:6], K_w[3:6] = np.eye(3), skew(new.v), np.eye(3)
        G_w[24:], K_w[24:] = skew(new.p), np.eye(3) * dt / 2
        for k, d in enumerate(new.places):
            G_w[12 + 3 * k : 15 + 3 * k], K_w[12 + 3 * k : 15 + 3 * k] = (
                skew(d),
                -np.eye(3) * dt / 2,
            )
        B = np.hstack([imu.gyro_noise * G_w, imu.accelerometer_noise * K_w])
        Q = B @ B.T
        Q[6:9, 6:9] += imu.gyro_walk**2 * np.eye(3)
        Q[9:12, 9:12] += imu.accelerometer_walk**2 * np.eye(3)
        for k in range(4):
            growth = 1 + (self.footing.landing - 1) * np.exp(-self.stood[k] / self.footing.settling)
            own = np.array([self.footing.slip, self.footing.slip, self.footing.sink]) * growth
            Q[12 + 3 * k : 15 + 3 * k, 12 + 3 * k : 15 + 3 * k] += np.diag(own**2)
        P = F @ s.P @ F.T + Q * dt
        h, J = (np.array(x) for x in self.sight(y[6:18]))
        seen = h.reshape(4, 3) @ new.R.T
        Bn = [new.R @ J[3 * k : 3 * k + 3] * self.encoders.noise for k in range(4)]
        noise = [b @ b.T + self.footing.place_noise**2 * np.eye(3) for b in Bn]
        used = [k for k in range(4) if on[k] and self.stood[k] > 0]
        rows = [12 + 3 * k + i for k in used for i in range(3)]
        H = -np.eye(N)[rows]
        r = np.concatenate([np.zeros(0), *(seen[k] - new.places[k] for k in used)])
        e = np.zeros(N)
        if used:
            S = H @ P @ H.T
            for place, k in enumerate(used):
                S[3 * place : 3 * place + 3, 3 * place : 3 * place + 3] += noise[k]
            K = np.linalg.solve(S, H @ P).T
            e, P = K @ r, P - K @ S @ K.T
        places = np.array([new.places[k] if k in used else seen[k] for k in range(4)])
        for k in set(range(4)) - set(used):
            own = slice(12 + 3 * k, 15 + 3 * k)
            P[own, :], P[:, own], e[own] = 0, 0, 0
            P[own, own] = noise[k]
        base = new._replace(places=places)
        after, jacobian = self.plus(base, -e), np.zeros((N, N))
        back = self.reset_by(e, base.p)
        jacobian[:] = back
        self.s = after._replace(P=jacobian @ P @ jacobian.T)
        self.stood = np.where(on, self.stood + dt, 0.0)

    @staticmethod
    def reset_by(e, p):
        """`1 - ad_e / 2` with the bracket of two motions; the error of p itself stays."""
        A = np.eye(N)
        half = skew(e[:3]) / 2
        A[:3, :3] -= half
        for first in (3, 12, 15, 18, 21):
            own = slice(first, first + 3)
            A[own, own] -= half
            A[own, :3] -= skew(e[own]) / 2
        after = p - e[24:] - np.cross(e[:3], p)
        A[24:, :3] = skew(after) @ A[:3, :3] - skew(p)
        return A

    def fix(self, y, tau, noise, spot, motion):
        """Correct by a pose (7,) of age tau.

        Args:
            y, tau: sample and age, s.
            noise: standard deviations of position and rotation.
            spot: function of tau: place, rotation and J (6, m) of the frame in the IMU's axes.
            motion: rate and force that were read.
        """
        s, place, rotation, J = self.s, *spot(tau)
        measured = Rotation.from_quat(y[3:], scalar_first=True).as_matrix()

        def innovation(state):
            w, f = motion[0] - state.b_g, motion[1] - state.b_a
            first, second = gammas(w * tau)
            R = state.R @ exponential(-w * tau)
            v = state.v - times(R @ first, f) * tau - G * tau
            p = state.p - v * tau - times(R @ second, f) * tau**2 - G * tau**2 / 2
            turn = logarithm(R @ rotation @ measured.T)
            return np.concatenate([p + R @ place - y[:3], turn], -1)

        r, H = innovation(s), slopes(innovation(self.plus(s, each_way())))
        R = s.R @ exponential((s.b_g - motion[0]) * tau)
        B = np.kron(np.eye(2), R) @ J * self.encoders.noise
        S = H @ s.P @ H.T + np.diag(np.repeat(np.square(noise), 3)) + B @ B.T
        K = np.linalg.solve(S, H @ s.P).T
        e, P, after = K @ r, s.P - K @ S @ K.T, self.plus(s, -(K @ r))
        back = slopes(self.minus(after, self._true(s, e + each_way())))
        self.s = after._replace(P=back @ P @ back.T)

    @staticmethod
    def _true(s, e):
        """The truth (..., ) of an estimate s with errors e (..., N)."""
        E, J = np.swapaxes(exponential(e[..., :3]), -1, -2), gammas(e[..., :3])[0]
        eta = e[..., 12:24].reshape(*e.shape[:-1], 4, 3) @ np.swapaxes(J, -1, -2)
        return s._replace(
            R=E @ s.R, v=times(E, s.v - times(J, e[..., 3:6])), b_g=s.b_g - e[..., 6:9],
            b_a=s.b_a - e[..., 9:12], p=s.p - skew(e[..., :3]) @ s.p - e[..., 24:],
            places=(s.places - eta) @ np.swapaxes(E, -1, -2),
        )  # fmt: skip

    def copied(self):
        """A filter that goes its own way."""
        return copy(self)
