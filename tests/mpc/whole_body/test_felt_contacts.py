"""Feet that touch before the gait says so, or not yet: what plan and law believe of them."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from support.small_walker import LEGS, small_walker, standing_pose

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.mpc.legged.gait import Walk
from mbcasadi.mpc.whole_body.contact_mask import contacts_on
from mbcasadi.mpc.whole_body.felt_contacts import FeltContacts, felt_contacts

GAIT = mpc.trot(0.4, duty=0.6, start=0.0)  # FL and RR stand until 0.24 s, FR and RL until 0.04 s
N, H = 5, 0.02
LATE, EARLY = 0.21, 0.35  # s: FR and RL land at 0.2, FL and RR at 0.4
RULE = FeltContacts(((0,), (1,), (2,), (3,)), 10.0, 1.0, 0.5, 0.2, 0.05)


def felt(t, forces, rule=RULE):
    """Return which contacts stand now, and 30 ms ahead."""
    n = np.zeros(12)
    n[::3] = forces
    now = rule.felt(Walk(GAIT, 0.0, None), ca.SX(t), ca.SX(ca.DM(n)))
    later = GAIT.on_ground(ca.SX(t + 0.03))
    on = [now.on_now(GAIT.on_ground(ca.SX(t))), now.on_later(later, 0.03, 1)]
    return [np.array(ca.DM(part)).ravel().tolist() for part in on]


def test_a_foot_that_touches_early_stands_until_its_swing_would_end():
    assert felt(EARLY, [0, 50, 50, 0]) == [[0, 1, 1, 0], [0, 1, 1, 0]]
    assert felt(EARLY, [20, 50, 50, 0]) == [[1, 1, 1, 0], [1, 1, 1, 0]]
    assert felt(0.28, [20, 50, 50, 0]) == [[0, 1, 1, 0], [0, 1, 1, 0]]  # it has just left


def test_a_foot_that_is_late_does_not_stand_yet():
    assert felt(LATE, [50, 50, 50, 50])[0] == [1, 1, 1, 1]
    assert felt(LATE, [50, 5, 50, 50]) == [[1, 0, 1, 1], [0, 0, 1, 0]]
    assert felt(0.1, [0, 50, 50, 50])[0] == [1, 0, 0, 1]  # unloaded in the middle of its stance


def test_a_sole_that_touches_with_an_edge_swings_on():
    sole = replace(RULE, feet=((0, 1, 2, 3),))
    gait = replace(GAIT, offsets=(0.0,) * 4)
    walk, n = Walk(gait, 0.0, None), ca.SX.zeros(12)
    n[0], n[3] = 30.0, 30.0
    assert not np.array(ca.DM(sole.felt(walk, ca.SX(0.35), n).early)).any()
    n[6], n[9] = 5.0, 5.0
    assert np.array(ca.DM(sole.felt(walk, ca.SX(0.35), n).early)).all()


@pytest.fixture(scope="module")
def walker():
    system = mb.read_mjcf(small_walker())
    q0 = standing_pose(system)
    feet = [mb.Contact(name, friction=0.6, sides=4) for name in LEGS]
    stepping = mpc.SwingParameters(touch_down=mpc.TouchDown())
    return mpc.whole_body_mpc(system, N, H, feet, gait=GAIT, q0=q0, stepping=stepping), feet, q0


def test_forces_of_the_rule_are_shares_of_the_weight(walker):
    whole, feet, _ = walker
    system = whole.law.system
    weight = 9.81 * sum(body.mass for body in system.tree.bodies)
    rule = felt_contacts(mpc.TouchDown(), system, feet)
    assert rule.on_force == pytest.approx(0.1 * weight / 4)
    assert rule.feet == ((0,), (1,), (2,), (3,))
    assert felt_contacts(mpc.TouchDown(on_force=7.0), system, feet).on_force == 7.0


def test_plan_and_law_believe_the_same_measurement(walker):
    whole, feet, q0 = walker
    forces = np.zeros(12)
    forces[[0, 3, 6]] = 40.0  # FL is early, RR in the air
    _, mask = whole.follow(whole.u0, 0.0, EARLY, forces)
    assert np.array(mask).ravel()[:4].tolist() == [1, 1, 1, 0]
    given = {"q": q0, "v": np.zeros(18), "command": np.zeros(3), "plan": whole.u0, "t": EARLY}
    ref = whole.references(**given, z=whole.z0, f_measured=forces)["ref"]
    ocp = whole.plan.ocp
    places = slot_slices(ocp.slots)
    masks = np.array(ref).reshape(N + 1, -1)[:, places["mask"]]
    on = [np.array(contacts_on(ocp.system, feet, ca.DM(row))).ravel() for row in masks]
    assert [row[0] for row in on] == [1] * (N + 1)
    assert [row[3] for row in on] == [0, 0, 1, 1, 1, 1]  # it lands at 0.4 s


def test_a_late_foot_swings_down_and_lands_in_the_plan(walker):
    whole, feet, q0 = walker
    forces = np.zeros(12)
    forces[[0, 6, 9]] = 40.0  # FR should stand since 0.2 s
    given = {"q": q0, "v": np.zeros(18), "command": np.zeros(3), "plan": whole.u0, "t": LATE}
    ref = whole.references(**given, z=whole.z0, f_measured=forces)["ref"]
    ocp = whole.plan.ocp
    places = slot_slices(ocp.slots)
    P = np.array(ref).reshape(N + 1, -1)
    on = [np.array(contacts_on(ocp.system, feet, ca.DM(p[places["mask"]]))).ravel()[1] for p in P]
    assert on == [0, 0, 1, 1, 1, 1]
    assert P[:, places["landing"]][:, 1].tolist() == [0, 0, 1, 0, 0, 0]
    heights = P[:, places["feet"]][:, 5]
    np.testing.assert_allclose(heights[1] - heights[0], -0.2 * H)
    assert P[2, places["ground"]][1] == pytest.approx(-0.2 * 3 * H, abs=1e-9)
