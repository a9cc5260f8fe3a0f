"""Mechanisms given by equations: one for each kind of constraint that a formulation may meet.

Lengths and masses are arbitrary on purpose: unequal, none of them one.
"""

import casadi as ca

import mbcasadi as mb

GRAVITY = 9.81


def _symbols(n: int) -> tuple[ca.SX, ca.SX]:
    return ca.SX.sym("q", n), ca.SX.sym("v", n)


def chained_particles() -> mb.System:
    """Two particles on two rods; the rows say it twice, once as their sum and once not at all."""
    q, v = _symbols(4)
    p_1, p_2 = q[:2], q[2:]
    rods = ca.vertcat(ca.sumsqr(p_1) - 1.3**2, ca.sumsqr(p_2 - p_1) - 0.8**2)
    phi = ca.vertcat(rods, 0.7 * rods[0] - 1.9 * rods[1], ca.SX(0), 3 * rods[1])
    kinetic = 0.6 * ca.sumsqr(v[:2]) + 0.9 * ca.sumsqr(v[2:])
    potential = GRAVITY * (1.2 * q[1] + 1.8 * q[3])
    return mb.from_lagrangian(q, v, kinetic=kinetic, potential=potential, phi=phi)


def double_pendulum() -> mb.System:
    """No constraint at all: f_c is zero."""
    q, v = _symbols(2)
    rates = v[0] ** 2 + 0.7 * v[1] ** 2 + 1.1 * ca.cos(q[0] - q[1]) * v[0] * v[1]
    potential = -GRAVITY * (1.7 * ca.cos(q[0]) + 0.6 * ca.cos(q[1]))
    return mb.from_lagrangian(q, v, kinetic=rates, potential=potential)


def driven_truss() -> mb.System:
    """Two particles on four bars, one of them of changing length: no freedom is left."""
    q, v = _symbols(4)
    t = ca.SX.sym("t")
    p_1, p_2 = q[:2], q[2:]
    bar = ca.sumsqr(p_1) - (1.2 + 0.2 * ca.sin(2 * t)) ** 2
    others = [
        ca.sumsqr(p_1 - ca.vertcat(1.5, 0)) - 1.1**2,
        ca.sumsqr(p_2 - p_1) - 1.4**2,
        ca.sumsqr(p_2 - ca.vertcat(1.5, 0)) - 1.6**2,
    ]
    phi = ca.vertcat(bar, *others, 2 * bar - others[1])
    kinetic = 0.4 * ca.sumsqr(v[:2]) + 1.1 * ca.sumsqr(v[2:])
    potential = GRAVITY * (0.8 * q[1] + 2.2 * q[3])
    return mb.from_lagrangian(q, v, kinetic=kinetic, potential=potential, phi=phi, t=t)


def moving_pendulum() -> mb.System:
    """A double pendulum whose pivot moves and whose first rod grows; a row repeats, rheonomic."""
    q, v = _symbols(4)
    t = ca.SX.sym("t")
    p_1, p_2 = q[:2], q[2:]
    pivot = ca.vertcat(0.3 * ca.sin(3 * t), 0.1 * t)
    rod = ca.sumsqr(p_1 - pivot) - (1 + 0.2 * ca.cos(t)) ** 2
    phi = ca.vertcat(rod, ca.sumsqr(p_2 - p_1) - 0.7**2, (2 + ca.sin(t)) * rod)
    kinetic = 0.5 * ca.sumsqr(v[:2]) + 0.8 * ca.sumsqr(v[2:])
    potential = GRAVITY * (q[1] + 1.6 * q[3])
    return mb.from_lagrangian(q, v, kinetic=kinetic, potential=potential, phi=phi, t=t)


def knife_edge_on_a_turntable() -> mb.System:
    """A sledge that cannot slip sideways on a table that turns: `A v + a0 = 0`, a0 ≠ 0.

    Relative to the table, the edge moves with (dx/dt + W y, dy/dt - W x).
    """
    q, v = _symbols(3)
    t = ca.SX.sym("t")
    rate = 0.9 + 0.4 * ca.sin(2 * t)
    s, c = ca.sin(q[2]), ca.cos(q[2])
    A = ca.horzcat(s, -c, 0)
    a0 = rate * (s * q[1] + c * q[0])
    ahead = ca.vertcat(v[0] - 0.2 * s * v[2], v[1] + 0.2 * c * v[2])  # centre of mass
    kinetic = 0.8 * ca.sumsqr(ahead) + 0.05 * v[2] ** 2
    both = {"A": ca.vertcat(A, -2 * A), "a0": ca.vertcat(a0, -2 * a0)}
    return mb.from_lagrangian(q, v, kinetic=kinetic, t=t, **both)


def rolling_disc() -> mb.System:
    """A disc that rolls and leans on a plane: (x, y) of the contact, yaw, lean, spin.

    `dx/dt = r cos(yaw) d(spin)/dt`, `dy/dt = r sin(yaw) d(spin)/dt`: not integrable.
    """
    q, v = _symbols(5)
    radius, mass = 0.4, 1.5
    yaw, lean = q[2], q[3]
    ahead = ca.vertcat(ca.cos(yaw), ca.sin(yaw), 0)
    right = ca.vertcat(ca.sin(yaw), -ca.cos(yaw), 0)
    up = ca.vertcat(0, 0, ca.cos(lean)) + ca.sin(lean) * right  # from the contact to the centre
    axle = ca.cross(up, ahead)
    centre = ca.vertcat(q[0], q[1], 0) + radius * up
    turning = ca.vertcat(0, 0, v[2]) + v[3] * ahead + v[4] * axle
    across = ca.dot(turning, ahead) ** 2 + ca.dot(turning, up) ** 2
    inertia = mass * radius**2 / 4 * (across + 2 * ca.dot(turning, axle) ** 2)
    kinetic = (mass * ca.sumsqr(ca.jtimes(centre, q, v)) + inertia) / 2
    rolling = ca.vertcat(
        ca.horzcat(1, 0, 0, 0, -radius * ca.cos(yaw)), ca.horzcat(0, 1, 0, 0, -radius * ca.sin(yaw))
    )
    return mb.from_lagrangian(
        q, v, kinetic=kinetic, potential=mass * GRAVITY * centre[2], A=rolling
    )


def climbing_particle() -> mb.System:
    """A particle that climbs as fast as it travels, `ẋ² + ẏ² = s(t)² ż²`: rows nonlinear in v.

    The constraint of Appell and Hamel, with a slope s that changes; a second row repeats it.
    """
    q, v = _symbols(3)
    t = ca.SX.sym("t")
    slope = 1 + 0.2 * ca.sin(2 * t)
    climb = v[0] ** 2 + v[1] ** 2 - slope**2 * v[2] ** 2
    psi = ca.vertcat(climb, (1.5 + ca.sin(q[0])) * climb)
    kinetic = 0.7 * ca.sumsqr(v) + 0.2 * (v[0] * ca.cos(q[1]) + v[2]) ** 2
    return mb.from_lagrangian(q, v, kinetic=kinetic, potential=GRAVITY * 1.4 * q[2], psi=psi, t=t)


def elastic_slider_crank() -> mb.System:
    """A slider-crank whose rod stretches (u) and bends (w): q = (crank, rod, slider, u, w)."""
    q, v = _symbols(5)
    stretch, bend = q[3], q[4]
    along = ca.vertcat(ca.cos(q[1]), -ca.sin(q[1]))
    across = ca.vertcat(ca.sin(q[1]), ca.cos(q[1]))
    pin = 0.3 * ca.vertcat(ca.cos(q[0]), ca.sin(q[0]))
    kinetic, height = 0.5 * 0.4 * v[2] ** 2, 0.0
    for share, mass in ((0.0, 0.5), (0.25, 0.2), (0.5, 0.2), (0.75, 0.2)):
        point = pin + share * (0.7 + stretch) * along + ca.sin(ca.pi * share) * bend * across
        kinetic += mass / 2 * ca.sumsqr(ca.jtimes(point, q, v))
        height += mass * point[1]
    elastic = 2e4 / 2 * stretch**2 + 300 / 2 * bend**2  # N/m
    closure = pin + (0.7 + stretch) * along - ca.vertcat(q[2], 0)
    return mb.from_lagrangian(
        q, v, kinetic=kinetic, potential=elastic + GRAVITY * height, phi=closure
    )


def top_in_euler_parameters() -> mb.System:
    """A rigid body held at one point, with the four Euler parameters as coordinates.

    `T = m |dp/dt|²/2 + 2 (G de/dt)ᵀ J (G de/dt)`: M vanishes along e, where only the row
    `eᵀ e = 1` holds the motion; the paper's own case of a semidefinite M [A16, section 1].
    """
    q, v = _symbols(7)
    w, x, y, z = ca.vertsplit(q[3:])
    G = ca.vertcat(ca.horzcat(-x, w, z, -y), ca.horzcat(-y, -z, w, x), ca.horzcat(-z, y, -x, w))
    E = ca.vertcat(ca.horzcat(-x, w, -z, y), ca.horzcat(-y, z, w, -x), ca.horzcat(-z, -y, x, w))
    rotation = E @ G.T
    omega = 2 * G @ v[3:]
    inertia = ca.diag(ca.vertcat(0.02, 0.03, 0.05))
    kinetic = (1.2 * ca.sumsqr(v[:3]) + omega.T @ inertia @ omega) / 2
    held = q[:3] + rotation @ ca.vertcat(0.1, -0.2, 0.3)
    phi = ca.vertcat((ca.sumsqr(q[3:]) - 1) / 2, held)
    return mb.from_lagrangian(
        q, v, kinetic=kinetic, potential=1.2 * GRAVITY * q[2], phi=phi, name="top"
    )
