"""Mechanisms, motions and references for the tests of A10's control laws."""

import functools

import casadi as ca
import numpy as np
from twins import prr_arm

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.law_interface.law import LawInputs
from mbcasadi.control.laws import (
    composite_error,
    function_coordinates,
    joint_coordinates,
    sampled_poses,
)
from mbcasadi.control.laws.quasi_velocity_tracking import motion_of

K_P, K_D = 3.0, 5.0  # 1/s  [A10, section 5]
STRONG = 1e5  # N and N m, limits that no test reaches


@functools.cache
def system_of(name):
    return mb.read_mjcf(models.path(name)) if name != "twin" else prr_arm.system()


def coordinates_of(name):
    """θ with as many entries as the mechanism has motions, or fewer: "open"."""
    system = system_of(name.removesuffix(" open"))
    if name == "twin":
        q = ca.SX.sym("q", 3)
        return function_coordinates(system, ca.Function("theta", [q], [theta_of(q)]))
    joints = {
        "five_bar": ("left_proximal", "right_proximal"),
        "prr_arm": ("tip", "q1"),
        "planar_3rrr": ("x", "y", "phi"),
        "planar_3rrr open": ("x", "proximal_a"),
    }
    return joint_coordinates(system, joints[name])


def theta_of(q):
    return prr_arm.minimal_coordinates(q)


def states(system, count, seed=0):
    """Closed poses and admissible velocities, one in each row."""
    start = prr_arm.START if system.tree is None else None
    q = sampled_poses(system, 2 * count, q0=start, spread=0.2, seed=seed)[:count]
    v = np.random.default_rng(seed).standard_normal((len(q), system.nv))
    for k, place in enumerate(q):
        A = system.constraint_jacobian(place).full()
        v[k] -= np.linalg.pinv(A, 1e-9) @ (A @ v[k])
    return q, v


def motion_fun(system, theta, kp=K_P, kd=K_D):
    """(q, v, ref) → s, s_dot, epsilon, force, a of the law's own equations."""
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    k = len(theta.names)
    ref = ca.SX.sym("ref", 3 * k)
    parts = {slot.name: ref[i * k : (i + 1) * k] for i, slot in enumerate(theta.slots)}
    at = LawInputs(q, v, parts, {}, ca.SX.ones(system.nc), ca.SX.zeros(system.nv))
    motion = motion_of(system, theta, kp, kd, 1e-6)(at)
    values = [motion.s, motion.s_dot, motion.epsilon, motion.force, motion.a]
    return ca.Function("motion", [q, v, ref], values)


def flat(*values):
    return [np.array(value).ravel() for value in values]


def on_rows(system, q):
    for _ in range(6):
        A = system.constraint_jacobian(q).full()
        q = q - np.linalg.pinv(A, 1e-9) @ system.constraint(q).full().ravel()
    return q


def swinging_reference(law, t, amplitude, start):
    swing = amplitude * np.array([np.sin(2 * t), 2 * np.cos(2 * t), -4 * np.sin(2 * t)])
    shape = np.linspace(1.0, -0.7, len(start))
    return law.reference(
        theta_q=start + swing[0] * shape, theta_v=swing[1] * shape, theta_a=swing[2] * shape
    )


def swing_of(law, start):
    return lambda t: swinging_reference(law, t, 0.1, start)


def run_of(system, law, q0, v0, duration, reference):
    """Motion under the law, evaluated at every instant; times, q, v and the references."""

    def force(t, q, v):
        u = law.function(q, v, reference(t), [])[0]
        return (system.actuation(q) @ u).full().ravel()  # motors without limits

    times = np.linspace(0, duration, 21)
    run = mb.simulate(system, q0, v0, duration, force=force, times=times, rtol=1e-8, atol=1e-10)
    refs = np.array([reference(t) for t in times])
    return times, run.q, run.v, refs


def length_of_error(system, theta, run):
    epsilon = composite_error(system, theta, kp=K_P).map(len(run[0]))
    return np.linalg.norm(epsilon(run[1].T, run[2].T, run[3].T).full(), axis=0)


def papers_reference(law, t):
    """θ_d of A10, section 5, with its rates."""
    wave, turn = 0.6 * np.pi, np.pi
    return law.reference(
        theta_q=[0.3 * np.sin(wave * t) + 0.5, np.pi / 6 * np.sin(turn * t) + np.pi / 12],
        theta_v=[0.3 * wave * np.cos(wave * t), np.pi / 6 * turn * np.cos(turn * t)],
        theta_a=[-0.3 * wave**2 * np.sin(wave * t), -np.pi / 6 * turn**2 * np.sin(turn * t)],
    )
