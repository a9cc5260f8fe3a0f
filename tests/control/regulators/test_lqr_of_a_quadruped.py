"""A regulator with quaternions, redundant motors and contacts: the C against MuJoCo."""

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.regulators import feedback, lqr
from mbcasadi.validation import validate

FEET = ("FL", "FR", "RL", "RR")
HEAVIER = {"mass": 0.1}


def quadruped_on_its_feet():
    """Return the linear system of the quadruped, feet as rows where an equilibrium has them."""
    robot = mb.read_mjcf(models.path("quadruped"))
    contacts = [mb.Contact(foot, friction=0.6) for foot in FEET]
    pose = mb.equilibrium(robot, robot.tree.keyframes["stand"], contacts=contacts)
    q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    points = [robot.frame(foot).pose for foot in FEET]
    away = ca.vertcat(*(point(q)[0] - point(pose.q)[0] for point in points))
    return mb.linearize(robot.with_rows(q, v, phi=away), pose.q, None, pose.u)


def test_a_quadruped_with_a_floating_trunk_stands_on_contacts():
    """Quaternions, 12 redundant motors, 12 rows; the law believes in pinned feet."""
    linear = quadruped_on_its_feet()
    law = lqr(linear, np.repeat([100.0, 1.0], linear.system.nv), 1e-2)
    forward_and_aside = np.r_[20.0, 30.0, np.zeros(16)]  # N

    def away(law, duration):
        report = validate(
            law,
            models.path("quadruped"),
            duration,
            q0=linear.q,
            perturb=HEAVIER,
            disturbance=lambda t: forward_and_aside * (0.5 <= t < 0.7),
            delay=1,
        )
        return np.abs(report.runs[0].recording.q - linear.q)[:, :7]  # place and quaternion

    assert away(feedback(linear, np.zeros((12, 12))), 1.0).max() > 0.1
    distance = away(law, 2.0)
    assert 3e-3 < distance.max() < 0.015
    assert distance[-1].max() < 3e-3
