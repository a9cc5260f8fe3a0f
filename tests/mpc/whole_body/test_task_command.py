"""Tasks beside walking: their references reach every sample of a plan, and the law follows it."""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.control import FrameTask
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.errors import ShapeError, UnknownNameError

N, H, T = 10, 0.02, 0.34
HAND = FrameTask("trunk", kind="body", name="hand", orientation="", kp=100.0)
HEAD = FrameTask("trunk", kind="body", name="head", position="", orientation="z")
STILL = np.zeros(18)


def flat(values):
    """Return numbers as an array (n,)."""
    return np.array(values).ravel()


@pytest.fixture(scope="module")
def whole():
    system = mb.read_mjcf(models.path("quadruped"))
    feet = [mb.Contact(name, friction=0.6, sides=4) for name in ("FL", "FR", "RL", "RR")]
    q0 = system.tree.keyframes["stand"]
    return mpc.whole_body_mpc(system, N, H, feet, q0=q0, tasks=[HAND, HEAD])


def circle(t):
    """Return a place that differs at each time, and its rate."""
    return {"position": [np.cos(3 * t), np.sin(3 * t), t], "velocity": [0.0, 3 * np.cos(t), 1.0]}


def samples(whole, command):
    """Return p of all samples (N + 1, np)."""
    q0 = whole.u0[:19]
    ref = whole.references(q0, STILL, command, STILL, whole.u0, 0.0, T, whole.z0)[2]
    return np.array(ref).reshape(N + 1, -1)


@pytest.mark.long
def test_each_sample_has_rates_of_its_time_and_positions_half_an_interval_ahead(whole):
    P = samples(whole, mpc.task_command(whole, T, [0.1, 0, 0], {"hand": circle}))
    places = slot_slices(whole.plan.ocp.slots)
    for k in range(N + 1):
        time = T + H + k * H
        for name, value in (circle(time) | {"position": circle(time + H / 2)["position"]}).items():
            np.testing.assert_allclose(P[k, places[f"hand.{name}"]], value, atol=1e-12)


def test_what_is_not_given_is_held_as_at_the_start(whole):
    P = samples(whole, mpc.task_command(whole, T, [0, 0, 0], {"hand": circle}))
    places, q0 = slot_slices(whole.plan.ocp.slots), whole.u0[:19]
    held = HEAD.hold_reference(whole.law.system, q0)
    for name, value in held.items():
        assert np.ptp(P[:, places[f"head.{name}"]], axis=0).max() == 0
        np.testing.assert_allclose(P[0, places[f"head.{name}"]], flat(value), atol=1e-12)


def test_references_of_tasks_leave_those_of_the_walk_as_they_are(whole):
    """A command of speed is the same beside any reference of a hand."""
    places = slot_slices(whole.plan.ocp.slots)
    of_hand = np.zeros(sum(slot.size for slot in whole.plan.ocp.slots))
    for name, place in places.items():
        of_hand[place] = name.startswith("hand.")
    given = [
        samples(whole, mpc.task_command(whole, T, [0.1, 0, 0.2], refs))
        for refs in ({}, {"hand": circle})
    ]
    assert np.abs(given[0] - given[1])[:, of_hand > 0].max() > 0.1
    np.testing.assert_array_equal(given[0][:, of_hand == 0], given[1][:, of_hand == 0])


def test_a_plan_moves_the_hand_towards_its_reference(whole):
    """Ahead and down, as far as half of the horizon allows it."""
    q0, frame = whole.u0[:19], whole.law.system.frame("trunk", "body")
    start = flat(frame.pose(q0)[0])
    for way in ([0.02, 0.0, 0.0], [0.0, 0.0, -0.02]):
        goal = {"position": start + way}
        command = mpc.task_command(whole, T, [0, 0, 0], {"hand": lambda _, goal=goal: goal})
        ref, z = samples(whole, command).ravel(), whole.plan.controller.z0
        for _ in range(4):
            solved = whole.plan.function(q=q0, v=STILL, ref=ref, z=z)
            z = solved["z_next"]
        assert int(solved["status"]) == 0
        X = flat(solved["plan"])[: 37 * N].reshape(N, 37)
        moved = flat(frame.pose(X[-1, :19])[0]) - start
        assert moved @ way > 0.3 * np.dot(way, way)


def test_the_law_has_the_tasks_and_follows_the_plan_with_them(whole):
    ref, _ = whole.follow(whole.u0, 0.0, T)
    place = whole.law.reference_slices["hand.position"]
    start = flat(whole.law.system.frame("trunk", "body").pose(whole.u0[:19])[0])
    np.testing.assert_allclose(flat(ref)[place], start, atol=1e-9)


def test_what_is_no_command_is_refused(whole):
    with pytest.raises(UnknownNameError, match="hands"):
        mpc.task_command(whole, T, [0, 0, 0], {"hands": circle})
    with pytest.raises(UnknownNameError, match=r"hand\.place"):
        mpc.task_command(whole, T, [0, 0, 0], {"hand": lambda _: {"place": [0, 0, 0]}})
    with pytest.raises(ShapeError, match=r"hand\.position"):
        mpc.task_command(whole, T, [0, 0, 0], {"hand": lambda _: {"position": [0, 0]}})
    with pytest.raises(ShapeError, match="walk"):
        mpc.task_command(whole, T, [0, 0], {})
