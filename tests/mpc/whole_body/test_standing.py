"""A robot with a gait stands while it has no command, walks with one, and stands again."""

import numpy as np
import pytest
from support.small_walker import LEGS, small_walker, standing_pose

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.whole_body.horizon_references import HorizonReferences
from mbcasadi.mpc.whole_body.standing import WalkTimes
from mbcasadi.validation import ReportOptions, ScenarioOptions, outer_law

H, N, STILL = 0.02, 10, np.zeros(18)
GAIT = mpc.trot(0.4, duty=0.6)
STANDING = mpc.Standing(least=0.02, rest=0.2, push=0.4)


@pytest.fixture(scope="module")
def walker():
    """Return references of the small walker that stands by itself, its pose, slices of p."""
    system = mb.read_mjcf(small_walker())
    q0, feet = standing_pose(system), [mb.Contact(name, friction=0.6) for name in LEGS]
    touching = mb.with_contacts(system, feet, q0).with_mask()
    parts = [mpc.Cost(Q=np.ones(36)), mpc.SwingFeet(feet, np.ones(3)), WalkTimes()]
    ocp = mpc.optimal_control_problem(touching, N, H, parts, step=mpc.SemiImplicitStep())
    stepping = mpc.SwingParameters(height=0.05, feedback=0.1, reach=10.0, max_drift=10.0)
    refs = HorizonReferences(ocp, touching, feet, GAIT, stepping, q0, 1, 0.2, standing=STANDING)
    return refs, refs.function("references"), q0, slot_slices(ocp.slots)


def masks(walker, command, steps, v=STILL, z=None):
    """Return which feet stand at the first sample of each plan, all masks, and the last z."""
    refs, function, q0, slices = walker
    z, on, later = refs.z0 if z is None else z, [], []
    for k in range(steps):
        ref, z = function(q0, v, command(k * H), STILL, k * H, z)
        p = ref.full().reshape(N + 1, -1)
        on.append(p[0, slices["mask"]][:4])
        later.append(p[:, slices["mask"]][:, :4])
    return np.array(on, dtype=bool), np.array(later, dtype=bool), z


def test_it_walks_from_a_command_on_and_stands_after_a_time_without_one(walker):
    on, later, _ = masks(walker, lambda t: [0.3 * (0.5 <= t < 1.3), 0, 0], 120)
    walks = np.flatnonzero(~on.all(axis=1))
    lifts = (
        0.5 + H + N // 2 * H + (GAIT.duty - 0.5) * GAIT.period
    )  # FR and RL have half a stride less to stand
    assert walks[0] * H + H == pytest.approx(lifts, abs=2 * H)
    landed = (1.3 + H + N // 2 * H + STANDING.rest + GAIT.flight) / H
    assert walks[-1] <= landed + 1
    assert walks[-1] >= 1.3 / H  # not before the command has been away for a while
    for k in range(119):  # only a moment at which a plan acts changes what the plan before knew
        if np.any(on[k + 1] != later[k][1]):
            assert abs(k * H - 0.5) < 0.1 or abs(k * H - 1.5) < 0.1
    turn, _, _ = masks(walker, lambda t: [0, 0, 0.3 * (t > 0.1)], 40)
    assert not turn.all()
    little, _, _ = masks(walker, lambda _: [0.015, 0, 0], 60)
    assert little.all()


def test_a_push_makes_it_step(walker):
    v = STILL.copy()
    v[1] = 0.5
    on, _, _ = masks(walker, lambda _: [0, 0, 0], 30, v=v)
    assert not on.all()
    v[1] = 0.3
    on, _, _ = masks(walker, lambda _: [0, 0, 0], 30, v=v)
    assert on.all()


def test_while_it_stands_its_goal_is_over_its_feet(walker):
    refs, function, q0, slices = walker
    ref, z = function(q0, STILL, [0, 0, 0], STILL, 1.0, refs.z0)
    goal = ref.full().reshape(N + 1, -1)[:, slices["setpoint.q"]]
    np.testing.assert_allclose(goal, np.tile(q0, (N + 1, 1)), atol=1e-9)
    z = z.full().ravel()
    z[12:15] += [0.05, -0.02, 0.1]  # where the goal was
    ref, z = function(q0, STILL, [0, 0, 0], STILL, 1.0, z)
    goal = ref.full().reshape(N + 1, -1)[:, slices["setpoint.q"]]
    np.testing.assert_allclose(goal, np.tile(q0, (N + 1, 1)), atol=1e-9)
    np.testing.assert_allclose(z.full().ravel()[12:14], q0[:2], atol=1e-9)


@pytest.mark.parametrize("bad", [{"least": 0.0}, {"rest": -1.0}, {"push": np.nan}])
def test_bad_numbers_are_refused(bad):
    with pytest.raises(ProblemError, match=next(iter(bad))):
        mpc.Standing(**bad)


@pytest.mark.long
def test_a_quadruped_stands_walks_and_stands_without_sagging():
    """10 % heavier, plans one plan late, controls one tick late."""
    path = models.path("quadruped")
    system = mb.read_mjcf(path)
    stand = np.array(system.tree.keyframes["stand"], dtype=float)
    feet = [mb.Contact(name, friction=0.6, sides=4) for name in LEGS]
    gait, options = mpc.trot(0.4, duty=0.55), mpc.WholeBodyOptions(standing=mpc.Standing())
    whole = mpc.whole_body_mpc(system, 15, 0.02, feet, gait=gait, q0=stand, options=options)
    plant = {
        "perturb": {"mass": 0.1},
        "delay": 1,
        "q0": stand,
        "report": ReportOptions(explain=False),
    }
    with outer_law(whole.plan, whole, lambda t: [0.5 * (2.0 <= t < 3.5), 0, 0]) as outer:
        above = ScenarioOptions(outer=outer)
        found = mb.validate(whole.law, path, 5.6, scenario=above, **plant).runs[0].recording
        assert np.mean(np.ravel(outer.record["status"]) <= 1) == 1
    t, loaded = found.t, found.contact_normal > 1.0
    walks = (t > 2.7) & (t < 3.5)
    assert found.v[walks, 0].mean() == pytest.approx(0.5, abs=0.05)
    for begin, end in ((1.6, 2.0), (5.2, 5.6)):  # it has learned what it weighs
        rests = (t > begin) & (t < end)
        assert loaded[rests].all()
        assert np.abs(found.q[rests, 2] - stand[2]).max() < 1e-3
        assert np.abs(found.v[rests, :3]).max() < 5e-3
    assert found.q[-1, 0] > 0.6
