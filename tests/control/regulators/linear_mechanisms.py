"""Mechanisms of the tests of linear models, with a state at rest and one in motion of each."""

from functools import cache

import casadi as ca
import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi import models

GRAVITY = 9.81
CHORDS = 8  # each gains the digits that a step of 3e-4 leaves
FEET = ("FL", "FR", "RL", "RR")
SPINNING = """
<mujoco><option gravity="0.3 -0.2 -9.81"/>
  <worldbody><body name="ship" pos="0.1 0.2 0.3" quat="0.8 0.2 -0.4 0.4">
      <freejoint/>
      <inertial pos="0.02 -0.03 0.01" mass="1.3" fullinertia="0.02 0.03 0.04 0.001 0.002 -0.001"/>
      <body name="arm" pos="0.2 0 0">
        <joint name="shoulder" type="ball" damping="0.02"/>
        <inertial pos="0.1 0 0.02" mass="0.4" diaginertia="0.001 0.004 0.004"/>
        <body name="wrist" pos="0.2 0 0">
          <joint name="wrist" axis="0 1 0" stiffness="1.5" springref="0.2"/>
          <inertial pos="0.05 0 0.01" mass="0.1" diaginertia="0.0002 0.0004 0.0004"/></body>
      </body></body></worldbody>
  <actuator><motor name="wrist" joint="wrist"/>
    <position name="twist" joint="shoulder" gear="1 0.3 0 0 0 0" kp="2" kv="0.1"/></actuator>
</mujoco>
"""


def cart_pole(copies=True):
    """A cart (x, z) on a rail with a uniform pole (θ from upright); the rail is said thrice."""
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    mass, pole, half, inertia = 1.2, 0.3, 0.45, 0.3 * 0.9**2 / 12
    tip = ca.vertcat(q[0] + half * ca.sin(q[2]), q[1] + half * ca.cos(q[2]))
    speed = ca.jtimes(tip, q, v)
    kinetic = (mass * ca.sumsqr(v[:2]) + pole * ca.sumsqr(speed) + inertia * v[2] ** 2) / 2
    potential = GRAVITY * (mass * q[1] + pole * tip[1])
    rail = q[1] - 0.2
    rows = ca.vertcat(rail, -3 * rail, ca.exp(q[0]) * rail) if copies else rail
    friction = ca.vertcat(-0.1 * v[0], 0, -0.02 * v[2])
    return mb.from_lagrangian(
        q,
        v,
        kinetic=kinetic,
        potential=potential,
        force=friction,
        B=[[1.0], [0.0], [0.0]],
        phi=rows,
        ctrl_range=[[-30.0, 30.0]],
        name="cart_pole",
    )


@cache
def standing_quadruped():
    """The quadruped with its feet pinned to the floor by four <connect>: 12 rows."""
    spec = mujoco.MjSpec.from_file(str(models.path("quadruped")))
    stand = np.array(spec.keys[0].qpos)
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:] = stand
    mujoco.mj_kinematics(model, data)
    for foot in FEET:
        spec.worldbody.add_site(name=f"floor_{foot}", pos=data.site(foot).xpos)
        spec.add_equality(
            name=f"pin_{foot}",
            type=mujoco.mjtEq.mjEQ_CONNECT,
            objtype=mujoco.mjtObj.mjOBJ_SITE,
            name1=foot,
            name2=f"floor_{foot}",
        )
    return mb.read_mjcf(spec.compile()), stand


def rolling_disc():
    """A disc that rolls on a plane: (x, y), yaw, lean, spin; torques on yaw and spin."""
    q, v = ca.SX.sym("q", 5), ca.SX.sym("v", 5)
    radius, mass = 0.4, 1.5
    yaw, lean = q[2], q[3]
    ahead = ca.vertcat(ca.cos(yaw), ca.sin(yaw), 0)
    right = ca.vertcat(ca.sin(yaw), -ca.cos(yaw), 0)
    up = ca.vertcat(0, 0, ca.cos(lean)) + ca.sin(lean) * right
    axle = ca.cross(up, ahead)
    centre = ca.vertcat(q[0], q[1], 0) + radius * up
    turning = ca.vertcat(0, 0, v[2]) + v[3] * ahead + v[4] * axle
    across = ca.dot(turning, ahead) ** 2 + ca.dot(turning, up) ** 2
    inertia = mass * radius**2 / 4 * (across + 2 * ca.dot(turning, axle) ** 2)
    kinetic = (mass * ca.sumsqr(ca.jtimes(centre, q, v)) + inertia) / 2
    rolling = ca.vertcat(
        ca.horzcat(1, 0, 0, 0, -radius * ca.cos(yaw)), ca.horzcat(0, 1, 0, 0, -radius * ca.sin(yaw))
    )
    B = np.zeros((5, 2))
    B[2, 0] = B[4, 1] = 1.0
    return mb.from_lagrangian(
        q, v, kinetic=kinetic, potential=mass * GRAVITY * centre[2], A=rolling, B=B, name="disc"
    )


def driven_pendulum():
    """Two particles on rods of changing length, the pivot moves: constraints of time and speed."""
    q, v, t = ca.SX.sym("q", 5), ca.SX.sym("v", 5), ca.SX.sym("t")
    p_1, p_2 = q[:2], q[2:4]
    rod = ca.sumsqr(p_1 - ca.vertcat(0.3 * ca.sin(3 * t), 0.1 * t)) - (1 + 0.2 * ca.cos(t)) ** 2
    phi = ca.vertcat(rod, ca.sumsqr(p_2 - p_1) - 0.7**2, (2 + ca.sin(t)) * rod)
    psi = v[4] * (1 + 0.3 * v[4] ** 2) - v[0] * ca.cos(q[4])  # nonlinear in v
    kinetic = 0.5 * ca.sumsqr(v[:2]) + 0.8 * ca.sumsqr(v[2:4]) + 0.3 * v[4] ** 2
    return mb.from_lagrangian(
        q,
        v,
        kinetic=kinetic,
        potential=GRAVITY * (q[1] + 1.6 * q[3]),
        B=np.eye(5)[:, :1],
        phi=phi,
        psi=psi,
        t=t,
    )


@cache
def system_of(name):
    if name == "standing_quadruped":
        return standing_quadruped()[0]
    builders = {
        "cart_pole": cart_pole,
        "disc": rolling_disc,
        "driven_pendulum": driven_pendulum,
        "spinning": lambda: mb.read_mjcf(SPINNING),
    }
    return builders[name]() if name in builders else mb.read_mjcf(models.path(name))


def initial_guess(name):
    system = system_of(name)
    if name == "cart_pole":
        return np.array([0.3, 0.2, 0.15])
    if name == "disc":
        return np.array([0.1, -0.2, 0.4, 0.2, 0.3])
    if name == "driven_pendulum":
        return np.array([0.4, -1.0, 0.8, -1.6, 0.3])
    if name == "standing_quadruped":
        return standing_quadruped()[1]
    return np.array(system.tree.q0)


@cache
def state_of(name, moving=True, t=0.2, seed=3):
    """Return (q, v, u, t) of a state on the manifold."""
    system, rng = system_of(name), np.random.default_rng(seed)
    spread = 0.02 if name == "standing_quadruped" else 0.1
    at = {"t": t}
    q = np.array(
        system.integrate(initial_guess(name), spread * rng.standard_normal(system.nv))
    ).ravel()
    v = rng.standard_normal(system.nv) * (0.7 if moving else 0.0)
    for _ in range(40 if system.nc else 0):
        A, _ = jacobians(system, q, v, t)
        phi = value(system.constraint, q, v, t).ravel()
        is_holonomic = holonomic_rows(system, q, t)
        step = -np.linalg.pinv(A[is_holonomic], 1e-8) @ phi[is_holonomic]
        q = np.array(system.integrate(q, step)).ravel()
        psi = value(system.constraint_rate, q, v, t).ravel()
        v = v - np.linalg.pinv(A, 1e-8) @ psi
    assert not at or np.isfinite(q).all()
    u = rng.uniform(-0.2, 0.2, system.nu)
    return q, v, u, t


def value(member, q, v, t):
    inputs = {"q": q, "v": v, "t": t}
    return np.array(member(**{n: inputs[n] for n in member.name_in()})[member.name_out(0)])


def jacobians(system, q, v, t):
    """Return A of all rows, and of phi alone."""
    A = value(system.constraint_jacobian, q, v, t) if system.nc else np.zeros((0, system.nv))
    return A, A[holonomic_rows(system, q, t)]


def holonomic_rows(system, q, t):
    """Return which rows hold for positions: those with a phi that moves."""
    if not system.nc:
        return np.zeros(0, dtype=bool)
    rng = np.random.default_rng(0)
    phi = value(system.constraint, q, None, t).ravel()
    neighbour = np.array(system.integrate(q, 0.3 * rng.standard_normal(system.nv))).ravel()
    return np.abs(value(system.constraint, neighbour, None, t).ravel() - phi) > 1e-9


def chart(system, linear, x):
    """Return the state (q, v) of coordinates x on the manifold itself, by chords."""
    xi, eta = x[: linear.n_q], x[linear.n_q :]
    is_holonomic = holonomic_rows(system, linear.q, linear.t)
    A, A_phi = jacobians(system, linear.q, linear.v, linear.t)
    size2 = system.scales.coordinates[:, None] ** 2  # across, in the metric of the bases
    across_q, across_v = size2 * _range(A_phi.T), size2 * _range(A.T)

    def pose(y):
        return np.array(system.integrate(linear.q, linear.Z_q @ xi + across_q @ y)).ravel()

    def velocity(y):
        return linear.v + linear.Z_v @ eta + across_v @ y

    y, z = np.zeros(across_q.shape[1]), np.zeros(across_v.shape[1])
    rows_q, rows_v = np.linalg.pinv(A_phi @ across_q), np.linalg.pinv(A @ across_v)
    for _ in range(CHORDS):
        y = y - rows_q @ _phi(system, pose(y), linear.t)[is_holonomic]
    for _ in range(CHORDS):
        z = z - rows_v @ _psi(system, pose(y), velocity(z), linear.t)
    return pose(y), velocity(z)


def _phi(system, q, t):
    return value(system.constraint, q, None, t).ravel() if system.nc else np.zeros(0)


def _psi(system, q, v, t):
    return value(system.constraint_rate, q, v, t).ravel() if system.nc else np.zeros(0)


def _range(columns):
    if columns.size == 0:
        return np.zeros((columns.shape[0], 0))
    U, s, _ = np.linalg.svd(columns, full_matrices=False)
    return U[:, s > 1e-7 * max(1.0, s[0])]


@cache
def chart_rate(system):
    """Return (base, q, v) → rate of `difference(base, q)` along v."""
    base, q = ca.SX.sym("base", system.nq), ca.SX.sym("q", system.nq)
    v = ca.SX.sym("v", system.nv)
    rate = ca.jtimes(system.difference(base, q), q, system.velocity_map(q) @ v)
    return ca.Function("chart_rate", [base, q, v], [ca.densify(rate)])


def field(system, dynamics, linear, x, u):
    """Return dx/dt of our own motion in the coordinates of a linear model."""
    q, v = chart(system, linear, x)
    inputs = {"q": q, "v": v, "t": linear.t, "mask": linear.mask}
    inputs["f"] = np.array(system.actuator_force(q, v, u)).ravel() if system.nu else 0 * v
    a = np.array(dynamics(**{n: inputs[n] for n in dynamics.name_in()})["a"]).ravel()
    rate = np.array(chart_rate(system)(linear.q, q, v)).ravel()
    return np.concatenate([linear.to_xi @ rate, linear.to_eta @ a])
