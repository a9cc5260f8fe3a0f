"""A held body in Euler parameters (M is singular) and chained particles: closed forms."""

from dataclasses import dataclass

import casadi as ca
import numpy as np

import mbcasadi as mb
from campaign.mechanics import Array, Mechanics, Numbers
from campaign.units import Units

GRAVITY = 9.81  # m/s²


class Flat(Mechanics):
    """Coordinates whose rates are their derivatives."""

    def integrate(self, q: Array, dv: Array) -> Array:
        return q + dv

    def difference(self, q0: Array, q1: Array) -> Array:
        return q1 - q0


@dataclass(frozen=True)
class HeldBody:
    """A rigid body held at the point `arm` of its axes, by Euler parameters w x y z."""

    mass: float
    inertia: Array
    arm: Array
    gravity: float
    motors: int


def held_body(size: float, units: Units, motors: int) -> HeldBody:
    """Return a body of a size in metres, with torques about its first `motors` axes."""
    length, mass = size * units.length, 1.2 * size * units.mass
    inertia = mass * length**2 * np.array([0.02, 0.03, 0.045])
    arm = length * np.array([0.1, -0.2, 0.3])
    return HeldBody(mass, inertia, arm, GRAVITY * units.acceleration, motors)


def held_body_system(body: HeldBody, name: str) -> mb.System:
    """Return the body as a `System`: rows `eᵀe = 1`, thrice of it, and the held point."""
    q, v = ca.SX.sym("q", 7), ca.SX.sym("v", 7)
    w, x, y, z = ca.vertsplit(q[3:])
    G = ca.vertcat(ca.horzcat(-x, w, z, -y), ca.horzcat(-y, -z, w, x), ca.horzcat(-z, y, -x, w))
    E = ca.vertcat(ca.horzcat(-x, w, -z, y), ca.horzcat(-y, z, w, -x), ca.horzcat(-z, -y, x, w))
    omega = 2 * G @ v[3:]
    kinetic = (body.mass * ca.sumsqr(v[:3]) + ca.dot(omega, ca.DM(body.inertia) * omega)) / 2
    unit = (ca.sumsqr(q[3:]) - 1) / 2
    phi = ca.vertcat(unit, 3 * unit, q[:3] + E @ (G.T @ ca.DM(body.arm)))
    B = ca.vertcat(ca.SX(3, body.motors), 2 * G.T[:, : body.motors])
    return mb.from_lagrangian(
        q, v, kinetic=kinetic, potential=body.mass * body.gravity * q[2], B=B, phi=phi, name=name
    )


def forms(e: Array) -> tuple[Array, Array]:
    """Return E(e), G(e) with `R = E Gᵀ`, `ω = 2 G ė` in body axes."""
    w, x, y, z = e
    E = np.array([[-x, w, -z, y], [-y, z, w, -x], [-z, -y, x, w]])
    G = np.array([[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]])
    return E, G


class HeldBodyMechanics(Flat):
    """The held body by NumPy, in numbers of any kind."""

    nq = nv = 7

    def __init__(self, body: HeldBody) -> None:
        self.body, self.nu = body, body.motors

    def residual(self, q: Array, on: Array) -> Array:
        E, G = forms(q[3:])
        unit = (q[3:] @ q[3:] - 1) / 2
        phi = np.concatenate([[unit, 3 * unit], q[:3] + E @ (G.T @ self.body.arm)])
        return phi[np.asarray(on) > 0.5]

    def rows(self, q: Array, on: Array) -> Array:
        E, G = forms(q[3:])
        A = np.zeros((5, 7), q.dtype)
        A[0, 3:], A[1, 3:] = q[3:], 3 * q[3:]
        A[2:, :3] = np.eye(3)
        for k, direction in enumerate(np.eye(4)):
            dE, dG = forms(direction)
            A[2:, 3 + k] = dE @ (G.T @ self.body.arm) + E @ (dG.T @ self.body.arm)
        return A[np.asarray(on) > 0.5]

    def numbers(self, q: Array, v: Array, on: Array) -> Numbers:
        body = self.body
        _, G = forms(q[3:])
        dE, dG = forms(v[3:])
        J = np.diag(body.inertia)
        M = np.zeros((7, 7), q.dtype)
        M[:3, :3], M[3:, 3:] = body.mass * np.eye(3), 4 * G.T @ J @ G
        f = np.concatenate([[0, 0, -body.mass * body.gravity], -8 * dG.T @ J @ G @ v[3:]])
        B = np.vstack([np.zeros((3, body.motors)), 2 * G.T[:, : body.motors]])
        rate = v[3:] @ v[3:]
        c = np.concatenate([[rate, 3 * rate], 2 * dE @ (dG.T @ body.arm)])
        on = np.asarray(on)
        return Numbers(M, f, B, self.rows(q, on), c[on > 0.5])


@dataclass(frozen=True)
class Particles:
    """A chain of particles in the plane on rods from the origin; forces on the last one."""

    masses: Array
    rods: Array
    gravity: float


def particles(size: float, units: Units, rng: np.random.Generator, count: int = 3) -> Particles:
    """Return a chain of a size in metres."""
    masses = rng.uniform(0.4, 2.0, count) * size * units.mass
    rods = rng.uniform(0.6, 1.4, count) * size * units.length
    return Particles(masses, rods, GRAVITY * units.acceleration)


def particles_system(chain: Particles, name: str) -> mb.System:
    """Return the chain as a `System`; its rows repeat: their sums, and a row of zeros."""
    n = len(chain.masses)
    q, v = ca.SX.sym("q", 2 * n), ca.SX.sym("v", 2 * n)
    at = [ca.SX(2, 1), *ca.vertsplit(q, 2)]
    rods = ca.vertcat(
        *(ca.sumsqr(b - a) - r**2 for a, b, r in zip(at, at[1:], chain.rods, strict=False))
    )
    phi = ca.vertcat(rods, 0.7 * rods[0] - 1.9 * rods[1], ca.SX(0), 3 * rods[1])
    masses = np.repeat(chain.masses, 2)
    kinetic = ca.dot(ca.DM(masses), v**2) / 2
    potential = chain.gravity * ca.dot(ca.DM(chain.masses), q[1::2])
    B = np.zeros((2 * n, 2))
    B[-2:] = np.eye(2)
    return mb.from_lagrangian(
        q, v, kinetic=kinetic, potential=potential, B=ca.DM(B), phi=phi, name=name
    )


class ParticlesMechanics(Flat):
    """The chain by NumPy, in numbers of any kind."""

    def __init__(self, chain: Particles) -> None:
        self.chain = chain
        self.nq = self.nv = 2 * len(chain.masses)
        self.nu = 2
        n = len(chain.masses)
        self.combine = np.vstack([np.eye(n), np.zeros((3, n))])
        self.combine[n, :2], self.combine[n + 2, 1] = (0.7, -1.9), 3.0

    def _spans(self, q: Array) -> Array:
        return np.diff(np.vstack([np.zeros(2), q.reshape(-1, 2)]), axis=0)

    def residual(self, q: Array, on: Array) -> Array:
        phi = np.sum(self._spans(q) ** 2, axis=1) - self.chain.rods**2
        return (self.combine @ phi)[np.asarray(on) > 0.5]

    def rows(self, q: Array, on: Array) -> Array:
        spans = self._spans(q)
        A = np.zeros((len(spans), self.nv), q.dtype)
        for k, span in enumerate(spans):
            A[k, 2 * k : 2 * k + 2] = 2 * span
            if k:
                A[k, 2 * k - 2 : 2 * k] = -2 * span
        return (self.combine @ A)[np.asarray(on) > 0.5]

    def numbers(self, q: Array, v: Array, on: Array) -> Numbers:
        masses = np.repeat(self.chain.masses, 2)
        f = np.zeros(self.nv)
        f[1::2] = -self.chain.gravity * self.chain.masses
        B = np.zeros((self.nv, 2))
        B[-2:] = np.eye(2)
        c = self.combine @ (2 * np.sum(self._spans(v) ** 2, axis=1))
        on = np.asarray(on)
        return Numbers(np.diag(masses), f, B, self.rows(q, on), c[on > 0.5])
