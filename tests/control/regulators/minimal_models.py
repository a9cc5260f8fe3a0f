"""Models in as few coordinates as there are freedoms, derived by hand, of the files' mechanisms.

Loops are closed by geometry on paper (two circles meet), so nothing here has a constraint, and
nothing of the package is used. Masses, inertias, damping and rotor inertias are MuJoCo's.
"""

from dataclasses import dataclass

import casadi as ca
import mujoco
import numpy as np

from mbcasadi import models

GRAVITY = 9.81


@dataclass(frozen=True)
class Minimal:
    """`dx/dt = dfdx x + dfdu δu`, `x = (δy, δẏ)`, and how all joints follow: `δq = J δy`."""

    dfdx: np.ndarray
    dfdu: np.ndarray
    J: np.ndarray
    left: np.ndarray  # what is not at rest, in the rates of x

    @property
    def T(self):
        """(2 nv, 2 ny) `(δq, δv) = T x`."""
        return np.kron(np.eye(2), self.J)


def compile_model(name):
    return mujoco.MjModel.from_xml_path(str(models.path(name)))


def about_y(model, body):
    """Return mass, centre of mass (x, z) in the body frame, and the inertia about y."""
    k = model.body(body).id
    rotate = np.zeros(9)
    mujoco.mju_quat2Mat(rotate, model.body_iquat[k])
    axes = rotate.reshape(3, 3)
    return model.body_mass[k], model.body_ipos[k][[0, 2]], (axes[1] ** 2) @ model.body_inertia[k]


def rotate(angle, x):
    """Return x turned from the x-axis towards the z-axis."""
    c, s = ca.cos(angle), ca.sin(angle)
    return ca.vertcat(c * x[0] - s * x[1], s * x[0] + c * x[1])


def angle_from(x, y):
    """Return the angle from x to y."""
    return ca.atan2(x[0] * y[1] - x[1] * y[0], x[0] * y[0] + x[1] * y[1])


def apex(start, end, side):
    """Return the tip of the triangle with two equal sides on the left of start → end."""
    along = end - start
    length = ca.norm_2(along)
    across = ca.vertcat(-along[1], along[0]) / length
    return (start + end) / 2 + ca.sqrt(side**2 - length**2 / 4) * across


def minimal(model, y, poses, q, u_0):
    """Return the linear model at y = 0 under u_0, from Lagrange's equations in y.

    `poses` holds place and angle of each body's frame as functions of y, `q` all joints.
    """
    rate, u = ca.SX.sym("rate", y.numel()), ca.SX.sym("u", model.nu)
    J = ca.jacobian(q, y)
    joint_rate = J @ rate
    kinetic = ca.sum1(ca.DM(model.dof_armature) * joint_rate**2) / 2
    potential = ca.SX(0)
    for body, (place, angle) in poses.items():
        mass, centre, inertia = about_y(model, body)
        at = place + rotate(angle, centre)
        speed, spin = ca.jtimes(at, y, rate), ca.jtimes(angle, y, rate)
        kinetic += (mass * ca.sumsqr(speed) + inertia * spin**2) / 2
        potential += GRAVITY * mass * at[1]
    momentum = ca.gradient(kinetic, rate)
    motors = np.zeros((model.nv, model.nu))
    motors[model.jnt_dofadr[model.actuator_trnid[:, 0]], np.arange(model.nu)] = 1.0
    force = J.T @ (ca.DM(motors) @ u - ca.DM(model.dof_damping) * joint_rate)
    force += ca.gradient(kinetic - potential, y) - ca.jtimes(momentum, y, rate)
    flow = ca.vertcat(rate, ca.solve(ca.jacobian(momentum, rate), force))
    x = ca.vertcat(y, rate)
    out = ca.Function("out", [x, u], [ca.jacobian(flow, x), ca.jacobian(flow, u), J, flow])
    dfdx, dfdu, J_0, remainder = (np.array(e) for e in out(np.zeros(x.numel()), u_0))
    return Minimal(dfdx, dfdu, J_0, remainder)


def pendulum_on_four_bar(u_0):
    """y: angle of the crank, angle of the pendulum from upright."""
    y = ca.SX.sym("y", 2)
    ground, coupler_arm, rocker_arm = ca.DM([0.2, 0]), ca.DM([0.15, 0.2]), ca.DM([-0.15, 0.2])
    pin = rotate(y[0], ca.DM([-0.1, 0]))
    meet = apex(pin, ground, 0.25)
    coupler, rocker = angle_from(coupler_arm, meet - pin), angle_from(rocker_arm, meet - ground)
    poses = {
        "crank": (ca.SX(2, 1), y[0]),
        "coupler": (pin, coupler),
        "pendulum": (pin + rotate(coupler, ca.DM([0.3, 0.4])), y[1]),
        "rocker": (ground, rocker),
    }
    q = ca.vertcat(y[0], coupler - y[0], y[1] - coupler, rocker)
    return minimal(compile_model("pendulum_on_four_bar"), y, poses, q, u_0)


def planar_biped(u_0):
    """y: place of the hip, lean of the trunk; feet where they are pinned."""
    y = ca.SX.sym("y", 3)
    hip = ca.vertcat(y[0], 0.76 + y[1])
    poses, q = {"trunk": (hip, y[2])}, [y]
    legs = {"left": ((0.065, -0.42), (-0.255, -0.34)), "right": ((0.255, -0.34), (-0.065, -0.42))}
    for side, (thigh, shank) in legs.items():
        foot = ca.DM(thigh) + ca.DM(shank) + ca.DM([0, 0.76])
        knee = apex(hip, foot, 0.425)
        upper, lower = angle_from(ca.DM(thigh), knee - hip), angle_from(ca.DM(shank), foot - knee)
        poses[f"{side}_thigh"], poses[f"{side}_shank"] = (hip, upper), (knee, lower)
        q += [upper - y[2], lower - upper]
    return minimal(compile_model("planar_biped"), y, poses, ca.vertcat(*q), u_0)


def cart_pole(u_0):
    """y: place of the cart, lean of the pole; the linear equations of the textbooks.

    (M + m) ẍ + m l θ̈ + b ẋ = u,    m l ẍ + (I + m l²) θ̈ + d θ̇ - m g l θ = 0
    """
    model = compile_model("cart_pole")
    M = model.body("carriage").mass[0] + model.body("deck").mass[0]
    m, (_, length), inertia = about_y(model, "pole")
    b, d = model.joint("carriage").damping[0], model.joint("pole").damping[0]
    mass = np.array([[M + m, m * length], [m * length, inertia + m * length**2]])
    stiffness = np.diag([0.0, -m * GRAVITY * length])
    dfdx = np.block(
        [
            [np.zeros((2, 2)), np.eye(2)],
            [-np.linalg.solve(mass, stiffness), -np.linalg.solve(mass, np.diag([b, d]))],
        ]
    )
    dfdu = np.vstack([np.zeros((2, 1)), np.linalg.solve(mass, [[1.0], [0.0]])])
    J = np.array([[1.0, 0], [1, 0], [0, 0], [0, 0], [0, 1]])  # carriage, deck x, z, lean, pole
    return Minimal(dfdx, dfdu, J, np.array(u_0))
