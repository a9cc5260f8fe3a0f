"""Feet of a plan that is to cross them stay apart."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.two_feet import LEGS, MODEL

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.mpc.whole_body.defaults import LANDING_PRICE, SOLE_PRICE
from mbcasadi.mpc.whole_body.feet_apart import KEPT, FeetApart
from mbcasadi.mpc.whole_body.foot_clearance import CLEARANCE

N, H, CROSSES = 4, 0.05, -0.9  # samples, s, roll of the left leg, rad
GAP = 0.2  # m, between the two lines from heel to toe
STEP, HEIGHT = 1e-6, 0.3  # rad or m; m, of the base over its feet
SITE = '<site name="foot_{0}" pos="0 0 -.3"/>'
LINE = '<site name="{0}0" pos="-.05 0 -.3"/><site name="{0}1" pos=".05 0 -.3"/>'
POINTS = [f"foot_{leg}" for leg in LEGS]
ENDS = [f"{leg}{k}" for leg in LEGS for k in (0, 1)]
SOLES = MODEL.replace("<option", '<option gravity="0 0 0"')
for leg in LEGS:
    SOLES = SOLES.replace(SITE.format(leg), SITE.format(leg) + LINE.format(leg))


def problem(names, apart):
    """Return the problem of a robot in the air whose feet are to stay apart, and its pose."""
    system = mb.read_mjcf(SOLES)
    feet, q0 = [mb.Contact(name, friction=0.6) for name in names], np.array(system.tree.q0)
    touching = mb.with_contacts(system, feet, q0)
    touching = touching.with_mask(np.zeros(touching.nc))
    weights = np.concatenate([np.full(system.nv, 50.0), np.full(system.nv, 0.1)])
    parts = [mpc.Cost(Q=weights, R=1e-4 * np.ones(system.nu), Q_end=weights)]
    parts += [FeetApart(feet, q0, 1e3)] if apart else []
    ocp = mpc.optimal_control_problem(touching, N, H, parts, step=mpc.SemiImplicitStep())
    return ocp, touching, q0


def distances(system, q, names):
    """Return the distances of the left feet from the right ones across the heading of the base."""
    heading = Rotation.from_quat(q[3:7], scalar_first=True).as_matrix()[:2, 0]
    places = [system.frame(name, "site").pose(q)[0].full()[:2, 0] for name in names]
    left, right = np.split(np.array(places) @ [-heading[1], heading[0]], 2)
    return np.subtract.outer(left, right).ravel() / np.linalg.norm(heading)


@pytest.mark.parametrize(
    ("names", "apart", "yaw"), [(ENDS, True, 1.2), (POINTS, True, 0.0), (ENDS, False, 0.0)]
)
def test_feet_that_are_to_cross_stop_at_their_clearance(names, apart, yaw):
    """Without the row they come nearer."""
    ocp, system, q0 = problem(names, apart)
    q0[3:7] = Rotation.from_euler("z", yaw).as_quat(scalar_first=True)
    start, goal = np.concatenate([q0, np.zeros(system.nv)]), q0.copy()
    goal[7] = CROSSES
    found = mpc.ocp_solver(ocp, "ipopt").solve(start, ocp.parameters(setpoint_q=goal))
    assert found.solved
    kept = np.array([distances(system, q, names).min() for q in found.x[:, : system.nq]])
    assert kept[0] == pytest.approx(GAP)
    if apart:
        assert kept.min() == pytest.approx(KEPT * CLEARANCE * GAP, abs=1e-5)
    else:
        assert kept.min() < 0.5 * CLEARANCE * GAP


def test_rows_and_their_slopes_are_those_of_the_distances():
    """In a pose that leans, by small motions of all coordinates."""
    ocp, system, q0 = problem(ENDS, apart=True)
    q0[3:7] = Rotation.from_euler("ZYX", [0.7, 0.3, -0.2]).as_quat(scalar_first=True)
    q0[7:9] = 0.2, -0.4
    x, p = np.concatenate([q0, np.zeros(system.nv)]), ocp.parameters()[0]
    rows = [k for k, name in enumerate(ocp.labels["path"]) if name.startswith("distance of")]

    def values(way):
        moved = ocp.motion.moved(x, np.concatenate([way, np.zeros(system.nv)]))
        return ocp.path(moved, np.zeros(ocp.nu), p).full().ravel()[rows]

    here = values(np.zeros(system.nv))
    np.testing.assert_allclose(here, distances(system, q0, ENDS), atol=1e-12)
    steps = STEP * np.eye(system.nv)
    slopes = np.array([(values(way) - values(-way)) / (2 * STEP) for way in steps]).T
    found = ocp.motion.path_slopes(x, p).full()[rows, : system.nv]
    np.testing.assert_allclose(found, slopes, atol=1e-8)


def test_points_of_a_robot_on_four_have_no_row():
    system = mb.read_mjcf(mb.models.path("quadruped"))
    stand = np.array(system.tree.keyframes["stand"])
    feet = [mb.Contact(name, friction=0.6) for name in ("FL", "FR", "RL", "RR")]
    whole = mpc.whole_body_mpc(system, 2, 0.02, feet, gait=mpc.trot(0.4), q0=stand)
    assert "distance of" not in " ".join(whole.plan.ocp.labels["path"])


@pytest.mark.parametrize(
    ("names", "offsets", "price"),
    [(ENDS, (0.0, 0.0, 0.5, 0.5), SOLE_PRICE), (POINTS, (0.0, 0.5), LANDING_PRICE)],
)
def test_plans_of_a_gait_on_two_feet_have_the_row_and_soles_the_higher_price(names, offsets, price):
    system = mb.read_mjcf(SOLES.replace(' gravity="0 0 0"', ""))
    feet, gait = [mb.Contact(name, friction=0.6) for name in names], mpc.Gait(0.4, 0.6, offsets)
    q0 = np.array(system.tree.q0)
    ocp = mpc.whole_body_mpc(system, 3, 0.02, feet, gait=gait, q0=q0).plan.ocp
    labels = ocp.labels["path"]
    assert f"distance of {names[0]} and {names[-1]}" in labels
    landing = next(k for k, name in enumerate(labels) if name.startswith("landing height"))
    assert np.max(ocp.path_penalties[landing]) * HEIGHT == pytest.approx(price)
