"""A robot that goes and turns as its command says, one that stands still, and one that drifts."""

from dataclasses import replace
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.mpc import WalkingPlanner, WholeBodyMPC
from mbcasadi.validation import Criteria
from mbcasadi.validation.closed_loop.outer_law import speeds_of
from mbcasadi.validation.metrics import judge
from mbcasadi.validation.metrics.command_metrics import command_metrics

WALKER = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 .1"/>
<body name="trunk" pos="0 0 1"><freejoint/><geom name="trunk" type="box" size=".3 .1 .1"/>
<body name="leg" pos="0 0 -.2"><joint name="knee" type="slide" axis="0 0 1" range="-1 1"/>
<geom name="foot" type="box" size=".2 .2 .3" pos="0 0 -.5" mass=".1"/></body></body></worldbody>
<actuator><motor joint="knee" ctrlrange="-1 1"/></actuator></mujoco>"""
SPEED, TURN, LAG, DURATION = np.array([0.4, 0.3]), 0.8, 0.2, 8.0
STEP = 1e-3
FIRST = 2.5  # rad, heading at the start


@pytest.fixture(scope="module")
def standing():
    def idle(*_):
        return np.zeros(1)

    return mb.validate(idle, WALKER, 0.004).runs[0]


def values(run, speed, turn, commands):
    """Return the metrics of a base with constant speeds in its own axes, and a turn."""
    t = np.arange(0.0, DURATION, STEP)
    heading = FIRST + turn * np.maximum(t - LAG, 0)
    c, s = np.cos(heading), np.sin(heading)
    moves = np.outer(t > LAG, speed) * STEP
    steps = np.c_[c * moves[:, 0] - s * moves[:, 1], s * moves[:, 0] + c * moves[:, 1]]
    q = np.zeros((len(t), 8))
    q[1:, :2], q[:, 2] = np.cumsum(steps, axis=0)[:-1], 1.0
    q[:, 3], q[:, 6] = np.cos(heading / 2), np.sin(heading / 2)
    recording = replace(run.recording, t=t, q=q, mocap=np.zeros((len(t), 0)))
    rows = command_metrics(recording, run.model, np.tile(commands, (len(t), 1)))
    return list(rows)


def verdicts(metrics):
    return {v.metric: v.passed for v in judge(metrics, Criteria(), True) if "command" in v.metric}


def test_the_way_in_the_axes_of_the_base_and_its_heading_are_compared_with_the_command(standing):
    found = values(standing, SPEED, TURN, [*SPEED, TURN])
    share, heading = (metric.value for metric in found)
    assert share == pytest.approx(LAG / DURATION, rel=1e-2)
    assert heading == pytest.approx(TURN * LAG, rel=1e-2)
    assert verdicts(found) == {"command.way_share": True, "command.heading": True}


@pytest.mark.parametrize(
    ("speed", "turn", "failed"),
    [
        ((0.0, 0.0), 0.0, {"command.way_share", "command.heading"}),  # it stands still
        ((0.4, -0.3), TURN, {"command.way_share"}),  # to the wrong side
        ((0.4, 0.3), -TURN, {"command.heading"}),
        ((0.3, 0.225), TURN, {"command.way_share"}),  # too slow
    ],
)
def test_what_does_not_follow_the_command_does_not_pass(standing, speed, turn, failed):
    found = verdicts(values(standing, speed, turn, [*SPEED, TURN]))
    assert {name for name, passed in found.items() if not passed} == failed


def test_without_a_way_only_the_heading_is_judged(standing):
    (heading,) = values(standing, (0.0, 0.0), 0.1, [0.0, 0.0, 0.0])
    assert heading.name == "command.heading"
    assert heading.value == pytest.approx(0.1 * (DURATION - LAG), rel=1e-2)


def test_commands_of_planners_that_name_no_speeds_are_not_judged():
    """A planner of one's own may be commanded three numbers that are a place."""
    function, zero = ca.Function("planner", [], []), np.zeros(0)
    placed = SimpleNamespace(function=function, z0=zero, u0=zero, every=1, delay=0)
    walking = SimpleNamespace(**vars(placed), speeds=slice(0, 3))
    assert speeds_of(placed) is None
    assert speeds_of(walking) == slice(0, 3)
    assert all(isinstance(kind.speeds, property) for kind in (WalkingPlanner, WholeBodyMPC))
