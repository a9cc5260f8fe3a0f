"""Feet land beside each other, and not across."""

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.two_feet import LEGS, MODEL

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.mpc.legged.gait import swing_path
from mbcasadi.mpc.whole_body.defaults import SWING_FORCE, default_stepping, swing_mass
from mbcasadi.mpc.whole_body.foot_clearance import CLEARANCE, apart, foot_clearances
from mbcasadi.mpc.whole_body.horizon_references import HorizonReferences

H, N, GAIT = 0.02, 10, mpc.Gait(0.4, 0.6, (0.0, 0.5), start=0.1)
LEFT_SWINGS = 0.1 + 0.24 + H
GAP = 0.2  # m, between the points of the two feet

SOLES = np.array([[0.1, 0.1, -0.1, -0.1] * 2, [0.14, 0.06, 0.14, 0.06, -0.06, -0.14, -0.06, -0.14]])
FEET = ((0, 1, 2, 3), (4, 5, 6, 7))


def landed(shift, yaw=0.0, standing=(0.0,) * 4 + (1.0,) * 4):
    """Return where contacts land (2, 8) whose left foot would land off its place by a shift."""
    turn = Rotation.from_euler("z", yaw).as_matrix()[:2, :2]
    places = np.vstack([turn @ SOLES, np.zeros(8)])
    targets = [ca.SX(ca.DM([*turn @ (SOLES[:, i] + (i < 4) * shift), 0.0])) for i in range(8)]
    found = apart(
        foot_clearances(SOLES, FEET), targets, ca.SX(ca.DM(places)), ca.SX(ca.DM(standing)), yaw
    )
    return turn.T @ np.hstack([np.array(ca.DM(each)) for each in found])[:2]


@pytest.mark.parametrize("yaw", [0.0, 1.2])
@pytest.mark.parametrize("across", [-0.3, -0.09])
def test_a_foot_lands_no_nearer_than_a_share_of_the_gap_and_keeps_its_shape(yaw, across):
    found = landed(np.array([0.05, across]), yaw)
    gap = SOLES[1, :4].min() - SOLES[1, 4:].max()
    np.testing.assert_allclose(found[1, :4].min() - SOLES[1, 4:].max(), CLEARANCE * gap, atol=1e-12)
    np.testing.assert_allclose(np.diff(found[:, :4]), np.diff(SOLES[:, :4]), atol=1e-12)
    np.testing.assert_allclose(found[0, :4], SOLES[0, :4] + 0.05, atol=1e-12)
    np.testing.assert_allclose(found[:, 4:], SOLES[:, 4:], atol=1e-12)


def test_feet_that_are_far_enough_or_beside_a_foot_in_the_air_land_where_they_would():
    for shift, standing in (((0.2, 0.3), (0,) * 4 + (1,) * 4), ((0.0, -0.3), (0,) * 8)):
        found = landed(np.array(shift), standing=standing)
        np.testing.assert_allclose(found[:, :4], SOLES[:, :4] + np.array(shift)[:, None])


def test_only_feet_side_by_side_have_a_clearance():
    corners = np.array([[0.2, 0.2, -0.2, -0.2], [0.1, -0.1, 0.1, -0.1]])
    pairs = foot_clearances(corners, ((0,), (1,), (2,), (3,)))
    assert {(pair.lands, pair.stands) for pair in pairs} == {
        ((0,), (1,)), ((1,), (0,)), ((2,), (3,)), ((3,), (2,)),
    }  # fmt: skip
    assert {pair.side for pair in pairs if pair.lands in ((0,), (2,))} == {1}


@pytest.fixture(scope="module")
def walker():
    """Return references of a robot on two feet, and slices of p."""
    system = mb.read_mjcf(MODEL)
    feet = [mb.Contact(f"foot_{name}", friction=0.6) for name in LEGS]
    q0 = np.array(system.tree.q0)
    touching = mb.with_contacts(system, feet, q0).with_mask()
    parts = [mpc.Cost(Q=np.ones(2 * system.nv)), mpc.SwingFeet(feet, [1.0, 1.0, 1.0])]
    ocp = mpc.optimal_control_problem(touching, N, H, parts, step=mpc.SemiImplicitStep())
    stepping = mpc.SwingParameters(height=0.05, feedback=0.1, reach=10.0, max_drift=10.0)
    refs = HorizonReferences(ocp, touching, feet, GAIT, stepping, q0, 0, 0.2)
    return refs, slot_slices(ocp.slots), q0


def test_a_base_pushed_over_its_standing_foot_does_not_cross_its_legs(walker):
    """Pushed to the right, the left foot would land right of the right one."""
    refs, places, q0 = walker
    function, nv = refs.function("references"), refs.system.nv
    ends = []
    for speed in (0.0, -1.5):
        v = np.zeros(nv)
        v[1] = speed
        ref, _ = function(q0, v, [0, 0, 0], np.zeros(nv), LEFT_SWINGS, refs.z0)
        last = round((0.16 - H) / H) - 1  # the sample before the left foot lands
        ends.append(ref.full().reshape(N + 1, -1)[last, places["feet"]].reshape(2, 3)[0, 1])
    share = (last * H + H) / 0.16
    along = share**3 * (10 - 15 * share + 6 * share**2)
    assert ends[0] == pytest.approx(GAP / 2)
    target = -GAP / 2 + CLEARANCE * GAP
    assert ends[1] == pytest.approx(GAP / 2 + along * (target - GAP / 2))


def test_heavy_legs_swing_as_high_as_a_share_of_the_weight_throws_them():
    """A leg that is a slide of 0.3 kg, with a rotor of 0.1 kg; light ones swing by the height."""
    system = mb.read_mjcf(MODEL)
    feet, q0 = [mb.Contact(f"foot_{name}") for name in LEGS], np.array(system.tree.q0)
    in_turn, jump = mpc.Gait(0.25, 0.6, (0.0, 0.5)), mpc.Gait(0.25, 0.6, (0.0, 0.0))
    assert swing_mass(system, feet, q0, in_turn) == pytest.approx(0.4)
    assert swing_mass(system, feet, q0, jump) == pytest.approx(0.8)
    weight = 4.6 * 9.81
    for gait, mass in ((in_turn, 0.4), (jump, 0.8)):
        swing = default_stepping(system, feet, q0, gait, 0.3).height
        s = ca.SX.sym("s")
        z = swing_path(s, ca.DM.zeros(3), ca.DM.zeros(3), swing, 0.1).acceleration[2]
        top = abs(float(ca.Function("z", [s], [z])(0.5)))
        assert mass * top == pytest.approx(SWING_FORCE * weight)
    slow = default_stepping(system, feet, q0, mpc.Gait(4.0, 0.5, (0.0, 0.5)), 0.3)
    assert slow.height == pytest.approx(0.2 * 0.3)
