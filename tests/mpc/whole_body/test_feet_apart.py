"""Soles of a plan that is to cross its feet stay apart."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.two_feet import LEGS, MODEL

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.mpc.whole_body.feet_apart import FeetApart
from mbcasadi.mpc.whole_body.foot_clearance import CLEARANCE

N, H, CROSSES = 4, 0.05, -0.9  # samples, s, roll of the left leg, rad
GAP = 0.2  # m, between the two lines from heel to toe
SITE = '<site name="foot_{0}" pos="0 0 -.3"/>'
LINE = '<site name="{0}0" pos="-.05 0 -.3"/><site name="{0}1" pos=".05 0 -.3"/>'
SOLES = MODEL.replace("<option", '<option gravity="0 0 0"')
for leg in LEGS:
    SOLES = SOLES.replace(SITE.format(leg), LINE.format(leg))


def problem(text, names, apart):
    """Return the problem of a robot in the air whose feet are to stay apart, and its pose."""
    system = mb.read_mjcf(text)
    feet, q0 = [mb.Contact(name, friction=0.6) for name in names], np.array(system.tree.q0)
    touching = mb.with_contacts(system, feet, q0)
    touching = touching.with_mask(np.zeros(touching.nc))
    weights = np.concatenate([np.full(system.nv, 50.0), np.full(system.nv, 0.1)])
    parts = [mpc.Cost(Q=weights, R=1e-4 * np.ones(system.nu), Q_end=weights)]
    parts += [FeetApart(feet, q0, 1e3)] if apart else []
    ocp = mpc.optimal_control_problem(touching, N, H, parts, step=mpc.SemiImplicitStep())
    return ocp, touching, q0


def distances(system, X):
    """Return the distance of the two feet across the heading of the base at each sample."""
    left, right = (system.frame(f"{name}0", "site") for name in LEGS)
    found = []
    for q in X[:, : system.nq]:
        heading = Rotation.from_quat(q[3:7], scalar_first=True).as_matrix()[:2, 0]
        way = (left.pose(q)[0] - right.pose(q)[0]).full().ravel()[:2]
        across = heading[0] * way[1] - heading[1] * way[0]
        found.append(across / np.linalg.norm(heading))
    return np.array(found)


@pytest.mark.parametrize(("apart", "yaw"), [(True, 1.2), (False, 0.0)])
def test_feet_that_are_to_cross_stop_at_their_clearance(apart, yaw):
    """Without the row they come nearer."""
    ocp, system, q0 = problem(SOLES, [f"{leg}{k}" for leg in LEGS for k in (0, 1)], apart)
    q0[3:7] = Rotation.from_euler("z", yaw).as_quat(scalar_first=True)
    start, goal = np.concatenate([q0, np.zeros(system.nv)]), q0.copy()
    goal[7] = CROSSES
    found = mpc.ocp_solver(ocp, "ipopt").solve(start, ocp.parameters(setpoint_q=goal))
    assert found.solved
    kept = distances(system, found.x)
    assert kept[0] == pytest.approx(GAP)
    if apart:
        assert kept.min() == pytest.approx(CLEARANCE * GAP, abs=1e-5)
    else:
        assert kept.min() < 0.5 * CLEARANCE * GAP


def test_feet_of_one_point_have_no_row():
    ocp, *_ = problem(MODEL, [f"foot_{leg}" for leg in LEGS], apart=True)
    plain, *_ = problem(MODEL, [f"foot_{leg}" for leg in LEGS], apart=False)
    assert ocp.path.size1_out(0) == plain.path.size1_out(0)


def test_plans_of_a_gait_on_soles_have_the_row():
    system = mb.read_mjcf(SOLES.replace(' gravity="0 0 0"', ""))
    feet = [mb.Contact(f"{leg}{k}", friction=0.6) for leg in LEGS for k in (0, 1)]
    gait = mpc.Gait(0.4, 0.6, (0.0, 0.0, 0.5, 0.5), start=0.1)
    whole = mpc.whole_body_mpc(system, 3, 0.02, feet, gait=gait, q0=np.array(system.tree.q0))
    assert "distance of left0 and right0" in " ".join(whole.plan.ocp.labels["path"])
