"""Regulators as generated C hold unstable mechanisms in MuJoCo, which knows none of our equations.

Each plant is 10 % heavier than the model, is pushed, and the control acts one tick late.
"""

import re

import casadi as ca
import numpy as np
import pytest
from support.lqr_problems import MODELS, at_rest, weights

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.regulators import feedback, lqr, pole_placement
from mbcasadi.validation import validate

HEAVIER = {"mass": 0.1}
PUSH = {  # which rate is pushed, and by how much, N or N m, from 0.5 to 0.6 s
    "cart_pole": (4, 0.1),
    "pendulum_on_four_bar": (2, 0.1),
    "planar_biped": (0, 60.0),
}
LARGEST = {"cart_pole": 0.1, "pendulum_on_four_bar": 0.4, "planar_biped": 0.06}  # m or rad, of q
AT_THE_END = {"cart_pole": 0.01, "pendulum_on_four_bar": 0.03, "planar_biped": 0.02}
FALLEN = 1.0  # rad or m


def push(name, nv):
    place, size = PUSH[name]
    return lambda t: size * (0.5 <= t < 0.6) * np.eye(nv)[place]


def run(name, law, model=None, duration=2.5):
    """Return the largest deviation of any coordinate, that at the end, and the run."""
    linear = at_rest(name)
    report = validate(
        law,
        models.path(name) if model is None else model,
        duration,
        perturb=HEAVIER,
        disturbance=push(name, linear.system.nv),
        delay=1,
    )
    record = report.runs[0]
    away = np.abs(record.recording.q - linear.q).max(axis=1)
    return away.max(), away[-1], record


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.every(3)
def test_the_regulator_holds_what_falls_without_it(name):
    linear = at_rest(name)
    nothing = feedback(linear, np.zeros((linear.nu, linear.nx)))
    fallen, _, record = run(name, nothing, duration=1.5)
    assert fallen > FALLEN
    assert "tracking.hold_share" in {v.metric for v in record.verdicts if not v.passed}
    largest, last, record = run(name, lqr(linear, *weights(linear)))
    assert record.passed
    assert 1e-3 < largest < LARGEST[name]
    assert last < AT_THE_END[name]
    assert record.metric("status.solved") == 1.0
    assert record.metric("closure.plant") < 1e-3
    assert np.isfinite(record.metric("time.median"))


@pytest.mark.long
def test_placed_poles_hold_the_pendulum_too():
    linear = at_rest("pendulum_on_four_bar")
    largest, last, _ = run("pendulum_on_four_bar", pole_placement(linear, [-4, -5, -6, -40]))
    assert largest < LARGEST["pendulum_on_four_bar"]
    assert last < AT_THE_END["pendulum_on_four_bar"]


def on_contacts():
    """Return the biped's file with spheres that touch the floor in place of the pins."""
    text = models.path("planar_biped").read_text()
    text = re.sub(r"<connect ([^>]*)/>", r'<connect \1 active="false"/>', text)
    text = re.sub(
        r'<site name="(\w+)_foot" (pos="[^"]*")/>',
        r'<site name="\1_foot" \2/><geom name="\1_sole" type="sphere" size="0.02" \2 mass="0" '
        'contype="1" friction="0.9"/>',
        text,
    )
    return text.replace(
        '<geom name="floor" type="plane"',
        '<geom name="floor" type="plane" pos="0 0 -0.02" conaffinity="1" friction="0.9"',
    )


@pytest.mark.long
def test_the_biped_stands_on_feet_that_only_touch_the_floor():
    """The law believes in pins; the floor only pushes, yields, and lets feet roll."""
    linear = at_rest("planar_biped")
    law = lqr(linear, *weights(linear))
    largest, last, record = run("planar_biped", law, on_contacts())
    assert largest < LARGEST["planar_biped"]
    assert last < 2 * AT_THE_END["planar_biped"]
    assert np.abs(record.recording.other_force).max() > 500.0  # N: the floor carries it
    assert record.metric("status.solved") == 1.0


FEET = ("FL", "FR", "RL", "RR")


def quadruped_on_its_feet():
    """Return the linear system of the quadruped, feet as rows where an equilibrium has them."""
    robot = mb.read_mjcf(models.path("quadruped"))
    contacts = [mb.Contact(foot, friction=0.6) for foot in FEET]
    pose = mb.equilibrium(robot, robot.tree.keyframes["stand"], contacts=contacts)
    q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    points = [robot.frame(foot).pose for foot in FEET]
    away = ca.vertcat(*(point(q)[0] - point(pose.q)[0] for point in points))
    return mb.linearize(robot.with_rows(q, v, phi=away), pose.q, None, pose.u)


@pytest.mark.long
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
