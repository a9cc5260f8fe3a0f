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
RULE = FeltContacts(((0,), (1,), (2,), (3,)), 10.0, 1.0, 0.5, 0.2, 0.05, 0.003)


HIGH = 0.08  # m, of swings
STOOD = np.ones(4)


def felt(t, forces, down=STOOD, rule=RULE, gait=GAIT, above=0.0):
    """Return which contacts are down at a plan, and which stand in it 30 ms ahead.

    `above` are their heights over the ground.
    """
    n = np.zeros(12)
    n[::3] = forces
    known = rule.felt(
        Walk(gait, 0.0, None), ca.SX(t), ca.SX(ca.DM(n)), ca.SX(ca.DM(down)), above * ca.SX.ones(4)
    )
    later = gait.on_ground(ca.SX(t + 0.03))
    on = [known.down, known.on_later(later, 0.03, 1)]
    return [np.array(ca.DM(part)).ravel().tolist() for part in on]


def stands(t, forces, planned):
    """Return which contacts stand at a tick of the law."""
    n = np.zeros(12)
    n[::3] = forces
    on = RULE.stands(Walk(GAIT, 0.0, None), ca.SX(t), ca.SX(ca.DM(n)), ca.SX(ca.DM(planned)))
    return np.array(ca.DM(on)).ravel().tolist()


def test_a_foot_that_touches_early_stands_until_its_swing_would_end():
    swung = [0, 1, 1, 0]
    assert felt(EARLY, [0, 50, 50, 0], swung) == [[0, 1, 1, 0], [0, 1, 1, 0]]
    assert felt(EARLY, [20, 50, 50, 0], swung) == [[1, 1, 1, 0], [1, 1, 1, 0]]
    assert felt(EARLY, [0, 50, 50, 0], [1, 1, 1, 0]) == [[1, 1, 1, 0], [1, 1, 1, 0]]  # it bounces
    assert felt(0.28, [20, 50, 50, 0]) == [[0, 1, 1, 0], [0, 1, 1, 0]]  # it has just left


def test_a_foot_that_is_late_does_not_stand_yet():
    flown = [1, 0, 0, 1]
    assert felt(LATE, [50, 50, 50, 50], flown)[0] == [1, 1, 1, 1]
    assert felt(LATE, [50, 5, 50, 50], flown, above=-0.01) == [[1, 0, 1, 1], [0, 0, 1, 0]]
    assert felt(LATE, [50, 5, 50, 50], flown, above=0.01)[1] == [0, 1, 1, 0]  # it bounces
    assert felt(0.1, [0, 50, 50, 50])[0] == [1, 0, 0, 1]  # unloaded in the middle of its stance


def test_the_law_lets_a_foot_stand_that_touches_before_its_plan_knows():
    assert stands(EARLY, [50, 50, 50, 0], [0, 1, 1, 0]) == [1, 1, 1, 0]
    assert stands(EARLY, [0, 50, 50, 0], [1, 1, 1, 0]) == [1, 1, 1, 0]  # its plan knows it
    assert stands(LATE, [50, 50, 0, 50], [1, 0, 0, 1]) == [1, 1, 0, 1]  # RL is late, FR was


def test_a_sole_that_touches_with_an_edge_swings_on():
    sole, gait = replace(RULE, feet=((0, 1, 2, 3),)), replace(GAIT, offsets=(0.0,) * 4)
    swung = np.zeros(4)
    assert felt(EARLY, [30, 30, 0, 0], swung, sole, gait)[0] == [0, 0, 0, 0]
    assert felt(EARLY, [30, 30, 5, 5], swung, sole, gait)[0] == [1, 1, 1, 1]


@pytest.fixture(scope="module")
def walker():
    system = mb.read_mjcf(small_walker())
    q0 = standing_pose(system)
    feet = [mb.Contact(name, friction=0.6, sides=4) for name in LEGS]
    options = mpc.WholeBodyOptions(touch_down=mpc.TouchDown(), swing_height=HIGH)
    return mpc.whole_body_mpc(system, N, H, feet, gait=GAIT, q0=q0, options=options), feet, q0


def test_forces_of_the_rule_are_shares_of_the_weight(walker):
    whole, feet, _ = walker
    system = whole.law.system
    weight = 9.81 * sum(body.mass for body in system.tree.bodies)
    rule = felt_contacts(mpc.TouchDown(), system, feet, 0.3)
    assert rule.on_force == pytest.approx(0.1 * weight / 4)
    assert rule.feet == ((0,), (1,), (2,), (3,))
    assert felt_contacts(mpc.TouchDown(on_force=7.0), system, feet, 0.3).on_force == 7.0


def state(whole, down):
    """Return z of a plan with other feet down."""
    z = whole.z0.copy()
    z[15:19] = down
    return z


def test_the_plan_and_the_law_that_follows_it_have_the_same_feet_down(walker):
    whole, feet, q0 = walker
    forces = np.zeros(12)
    forces[[0, 3, 6]] = 40.0  # FL is early, RR in the air
    given = {"q": q0, "v": np.zeros(18), "command": np.zeros(3), "plan": whole.u0, "t": EARLY}
    known = whole.references(**given, z=state(whole, [0, 1, 1, 0]), f_measured=forces)
    assert np.array(known["z_next"]).ravel()[15:19].tolist() == [1, 1, 1, 0]
    ocp = whole.plan.ocp
    places = slot_slices(ocp.slots)
    masks = np.array(known["ref"]).reshape(N + 1, -1)[:, places["mask"]]
    on = [np.array(contacts_on(ocp.system, feet, ca.DM(row))).ravel() for row in masks]
    assert [row[0] for row in on] == [1] * (N + 1)
    assert [row[3] for row in on] == [0, 0, 1, 1, 1, 1]  # it lands at 0.4 s
    plan = whole.u0.copy()
    plan[-4 * N :] = np.ravel(on[:N])
    _, mask = whole.follow(plan, H, EARLY + 2 * H, np.zeros(12))
    assert np.array(mask).ravel()[:4].tolist() == [1, 1, 1, 0]


def test_a_foot_that_touches_is_at_rest_when_the_next_plan_acts(walker):
    """The plan that acts takes it to swing; the law lets it stand."""
    whole, _, q0 = walker
    system, speeds = whole.law.system, []
    plan, v = whole.u0.copy(), np.zeros(18)
    plan[-4 * N :] = np.tile([0, 1, 1, 0], N)
    v[6:9] = 1.0  # the joints of FL, rad/s
    given = {"q": q0, "v": v, "command": np.zeros(3), "plan": plan, "t": EARLY}
    for normal in (0.0, 40.0):
        forces = np.zeros(12)
        forces[[0, 3, 6]] = normal, 40.0, 40.0
        first = whole.references(**given, z=state(whole, [0, 1, 1, 0]), f_measured=forces)
        q, rates = np.array(first["first_q"]), np.array(first["first_v"])
        speeds.append(np.linalg.norm(np.array(system.frame("FL").velocity(q, rates))[:3]))
    assert speeds[0] > 0.1
    assert speeds[1] < 0.1 * speeds[0]


def test_a_plan_moves_as_its_own_feet_stand_whatever_the_gait_says(walker):
    """Its references are those of a plan by the gait only where the feet are the same."""
    whole, _, _ = walker
    plan, forces = whole.u0.copy(), np.zeros(12)
    plan[-4 * N :] = np.tile([1, 1, 1, 1], N)
    ref, _ = whole.follow(plan, 0.0, EARLY, forces)
    at_rest = slot_slices(whole.law.slots)
    accelerations = [part for name, part in at_rest.items() if name.endswith(".a")]
    assert accelerations
    for part in accelerations:
        assert np.abs(np.array(ref)[part]).max() < 1e-6
    plan[-4 * N :] = np.tile([0, 1, 1, 0], N)
    ref, _ = whole.follow(plan, 0.0, EARLY, forces)
    assert max(np.abs(np.array(ref)[part]).max() for part in accelerations) > 1.0


def test_a_late_foot_swings_down_and_lands_in_the_plan(walker):
    whole, feet, q0 = walker
    forces = np.zeros(12)
    forces[[0, 6, 9]] = 40.0  # FR should stand since 0.2 s
    given = {"q": q0, "v": np.zeros(18), "command": np.zeros(3), "plan": whole.u0, "t": LATE}
    z = state(whole, [1, 0, 1, 1])
    z[5] += 0.01  # FR is below the ground that it left
    ref = whole.references(**given, z=z, f_measured=forces)["ref"]
    ocp = whole.plan.ocp
    places = slot_slices(ocp.slots)
    P = np.array(ref).reshape(N + 1, -1)
    on = [np.array(contacts_on(ocp.system, feet, ca.DM(p[places["mask"]]))).ravel()[1] for p in P]
    assert on == [0, 0, 1, 1, 1, 1]
    assert P[:, places["landing"]][:, 1].tolist() == [0, 0, 1, 0, 0, 0]
    heights = P[:, places["feet"]][:, 5]
    np.testing.assert_allclose(heights[1] - heights[0], -0.2 * H)
    assert P[2, places["ground"]][1] == pytest.approx(-0.2 * 3 * H, abs=1e-9)


def test_feet_swing_as_high_as_the_options_say(walker):
    whole, _, q0 = walker
    given = {"q": q0, "v": np.zeros(18), "command": np.zeros(3), "plan": whole.u0, "t": 0.32 - H}
    z = state(whole, [0, 1, 1, 0])
    ref = whole.references(**given, z=z, f_measured=np.zeros(12))["ref"]
    place = slot_slices(whole.plan.ocp.slots)["feet"]
    height = np.array(ref).reshape(N + 1, -1)[0, place][2] - z[2]
    assert height == pytest.approx(HIGH, abs=0.02 * 0.3)  # it ends below the ground
