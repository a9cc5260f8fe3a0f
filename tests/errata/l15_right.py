"""L15: equations that hold as printed, evaluated."""

import numpy as np

from .coordinated import B, instants, loop_rows, pose, servo_rows
from .family import kkt, state
from .finding import confirmed
from .l15_motion import LENGTH, MASSES, K, servo_force, spring_force
from .mechanisms import GRAVITY, five_links
from .numerics import Array, error, partials, pinv, power, rate

S = state(15)


@confirmed("L15", "(8), (9), (11)-(15)")
def udwadia_kalaba() -> float:
    """ideal force, non-ideal force and motion; the work of both is that of the prescribed force"""
    applied, b = S.f - S.h, -S.Adot @ S.v
    root, inverse = power(S.M, 0.5), power(S.M, -0.5)
    Bh = S.A @ inverse
    ideal = root @ pinv(Bh) @ (b - S.A @ np.linalg.solve(S.M, applied))
    c = np.linspace(-1, 2, len(S.v))
    other = root @ (np.eye(len(c)) - pinv(Bh) @ Bh) @ inverse @ c
    a = np.linalg.solve(S.M, applied + ideal + other)
    w = S.P @ np.arange(1.0, 6.0)
    gaps = (
        error(ideal, S.f_c),
        error(np.linalg.solve(S.M, applied + ideal), S.a),
        error(a, kkt(S.M, S.A, applied + c, -b)[0]),
        error(S.A @ a, b),
        error(w @ (ideal + other), w @ c),
    )
    return max(gaps)


@confirmed("L15", "(24)-(28), (31)-(33), (35)")
def weighted_rows() -> float:
    """`C = A M^{-1/2}`; the control of (35) meets the servo rows, repeated ones too"""
    rng = np.random.default_rng(1)
    b, inputs = -S.Adot @ S.v, rng.normal(size=(len(S.v), 4))
    C, B_bar = S.A @ power(S.M, -0.5), power(S.M, -0.5) @ inputs
    a = power(S.M, -0.5) @ (S.f - S.h)
    u = pinv(C @ B_bar) @ (b - C @ a) + (np.eye(4) - pinv(C @ B_bar) @ C @ B_bar) @ np.ones(4)
    motion = a + B_bar @ u
    gaps = (
        error(C @ motion, b),
        error(S.A @ np.linalg.solve(S.M, S.f - S.h + inputs @ u), b),
        error(S.A @ pinv(S.A) @ b, b),
        error(C @ (a + pinv(C) @ (b - C @ a)), b),
    )
    return max(gaps)


@confirmed("L15", "(36)-(38), (40)-(47)")
def two_masses() -> float:
    """energy, forces and control of the two masses: `ẍ1 = ẍ2`"""
    x = np.array([0.1, 1.2])
    force = rate_of_potential(x)
    C, B_bar = np.array([[-1.0, 1.0]]) @ np.diag(MASSES**-0.5), np.array([MASSES[0] ** -0.5, 0.0])
    a = MASSES**-0.5 * spring_force(x)
    u = -float((C @ a)[0]) / float((C @ B_bar)[0])
    motion = (spring_force(x) + np.array([servo_force(x), 0.0])) / MASSES
    gaps = (error(force, spring_force(x)), error(u, servo_force(x)), error(motion[0], motion[1]))
    return max(gaps)


def rate_of_potential(x: Array) -> Array:
    """Return minus the gradient of the spring's energy (36)."""
    return -partials(lambda y: np.array(K * (y[1] - y[0] - LENGTH) ** 2 / 2), x)


@confirmed("L15", "(52), (53), (A2)-(A4)")
def closed_forms() -> float:
    """M, C, G of five unequal links, from differences of positions; `Ṁ - 2 C` skew"""
    rng = np.random.default_rng(2)
    m, inertia, length = rng.uniform(0.5, 2, size=(3, 5))
    q, v = rng.normal(size=(2, 5))
    bodies = five_links(m, inertia, length)
    beyond = np.cumsum(m[::-1])[::-1] - m  # mass of the links after each
    outer = np.maximum.outer(np.arange(5), np.arange(5))
    weight = (m / 2 + beyond)[outer] * np.outer(length, length)
    turned = q[:, None] - q[None, :]
    M = weight * np.cos(turned)
    np.fill_diagonal(M, (m / 4 + beyond) * length**2 + inertia)
    C = weight * np.sin(turned) * v
    G = (m / 2 + beyond) * GRAVITY * length * np.cos(q)
    Mdot = rate(bodies.M, q, v)
    gaps = (
        error(M, bodies.M(q)),
        error(C @ v + G, bodies.bias(q, v)),
        error(G, bodies.gravity(q)),
        error(Mdot - 2 * C, -(Mdot - 2 * C).T),
    )
    return max(gaps)


@confirmed("L15", "(54), (60)-(63), (65)-(68)")
def rows() -> float:
    """rows of the loop and of the load, along the prescribed motion"""
    x = instants()[11]
    t, one = np.array([x.t]), np.ones(1)
    a = rate(lambda s: rate(lambda t: pose(t[0]), s, one), t, one)

    def ends(q: Array) -> Array:
        return np.array([np.cos(q).sum() - 3, np.sin(q).sum()])

    def load(q: Array) -> Array:
        half = np.array([1.0, 1.0, 0.5, 0.0, 0.0])
        return np.array([half @ np.cos(q), half @ np.sin(q), q[2]])

    gaps = (
        error(ends(x.q), 0.0),
        error(load(x.q), [1.5, (1 - np.cos(x.t)) / 2, 0.0]),
        error(partials(ends, x.q), loop_rows(x.q)),
        error(partials(load, x.q), servo_rows(x.q)),
        error(x.A @ a, x.b),
        error(x.A_s @ a, x.b_s),
    )
    return max(gaps)


@confirmed("L15", "(69), (70)")
def motors() -> float:
    """`Bᵀ v` is the rate of each joint, from its base outwards"""
    v = np.array([0.2, 0.7, -0.5, 0.1, 0.4])
    relative = [v[0], v[1] - v[0], v[2] - v[1], v[2] - v[3], v[3] - v[4], v[4]]
    return error(B.T @ v, np.array(relative))


READ = "(1)-(4), (6), (7), (10), (17)-(19), (23), (48)-(50), (55)-(57)"
