"""Predicted readings: rigid motion, forces of constraints on bodies, and MuJoCo's soft loops."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from support.sensor_models import EVERY_SENSOR, LOOP, wild_state

from mbcasadi.dynamics import constraint_wrenches, predicted_readings, tendon_wrenches, wrench_force
from mbcasadi.errors import ProblemError, UnknownNameError, UnsupportedFeatureError
from mbcasadi.mjcf.compat import counts_true_weld_torques
from mbcasadi.plant import Plant, applied_wrenches, external_wrenches, make_rigid
from mbcasadi.system import from_lagrangian, read_mjcf
from mbcasadi.validation.agreement import sensor_gaps

ROUNDING = 1e-11
NAMES = ("force", "torque", "felt")


@pytest.fixture(scope="module")
def loop():
    return read_mjcf(LOOP)


@pytest.fixture(scope="module")
def predicted(loop):
    return predicted_readings(loop, NAMES)


@pytest.mark.skipif(not counts_true_weld_torques(), reason="MuJoCo 3.14 counts welds as they act")
@pytest.mark.parametrize("seed", range(3))
def test_multipliers_and_tendons_act_on_bodies_as_mujoco_counts_them(seed):
    """External are pushes, contacts, spatial tendons, connect and weld: nothing else."""
    model, system = mujoco.MjModel.from_xml_string(EVERY_SENSOR), read_mjcf(EVERY_SENSOR)
    data = wild_state(model, np.random.default_rng(seed))
    own = constraint_wrenches(system)(data.qpos, data.efc_force[: data.ne]).full()
    pulled = tendon_wrenches(system)(data.qpos, data.qvel, data.qacc, data.ctrl, data.act).full()
    total = external_wrenches(model, data)
    assert np.abs(own).max() > 100
    assert np.abs(pulled).max() > 1
    error = np.abs(applied_wrenches(model, data) + own + pulled - total).max()
    assert error < ROUNDING * np.abs(total).max()


def test_wrenches_on_bodies_and_multipliers_of_rows_are_dual():
    """`Σ J_bᵀ w_b = Aᵀ lam`, the couplings of joints apart."""
    system, rng = read_mjcf(EVERY_SENSOR), np.random.default_rng(0)
    q = system.integrate(system.tree.q0, 0.5 * rng.normal(size=system.nv))
    lam = rng.normal(size=system.nc)
    lam[-1] = 0.0  # of the coupling
    f = wrench_force(system)(q, constraint_wrenches(system)(q, lam))
    expected = system.constraint_jacobian(q).T @ lam
    assert float(ca.norm_inf(f - expected)) < ROUNDING
    assert float(ca.norm_inf(expected)) > 1.0


def test_rigid_loops_read_as_predicted_and_soft_ones_nearly(loop):
    model = mujoco.MjModel.from_xml_string(LOOP)
    soft = {gap.sensor: gap.relative for gap in sensor_gaps(loop, model, states=4)}
    make_rigid(model)
    rigid = {gap.sensor: gap.relative for gap in sensor_gaps(loop, model, states=4)}
    assert set(soft) == set(NAMES)
    assert all(1e-3 < gap < 0.2 for gap in soft.values()), soft
    assert all(gap < 1e-3 for gap in rigid.values()), rigid  # MuJoCo's stiffest loop


def test_pushes_motors_and_joint_forces_enter_a_prediction(loop, predicted):
    plant, rng = Plant(LOOP, rigid=True), np.random.default_rng(0)
    plant.reset(0.3 * rng.normal(size=3), rng.normal(size=3))
    plant.apply_body_forces({"coupler": [3.0, 0.0, -5.0]})
    plant.apply_force([0.7, 0.2, -0.4])
    measured = plant.measure([2.0])
    inputs = (measured.q, measured.v, plant.data.qfrc_applied, [2.0], plant.applied_wrenches)
    y, a, _ = predicted(*inputs)
    expected = np.concatenate([plant.sensor(name) for name in NAMES])
    assert np.abs(y.full().ravel() - expected).max() < 1e-3 * np.abs(expected).max()
    assert np.allclose(a.full().ravel(), measured.a, rtol=0, atol=1e-3 * np.abs(measured.a).max())
    for i in (2, 3, 4):  # each of them matters
        without = list(inputs)
        without[i] = 0 * np.asarray(inputs[i])
        assert float(ca.norm_inf(predicted(*without)[0] - y)) > 0.1


def test_a_tree_reads_exactly_as_predicted():
    tree = LOOP.replace("<equality>", "<!--").replace("</equality>", "-->")
    gaps = sensor_gaps(read_mjcf(tree), mujoco.MjModel.from_xml_string(tree), states=3)
    assert len(gaps) == 3
    assert all(gap.relative < ROUNDING for gap in gaps)


def test_predictions_are_affine_in_pushes_with_the_implicit_derivative(loop, predicted):
    """The Jacobian goes through the motion: it is the difference of two pushes."""
    plant = Plant(LOOP)
    plant.reset([0.2, -0.1, 0.3], [1.0, 0.0, 0.0])
    q, v, rest = plant.q, plant.v, np.zeros((6, 4))
    wrenches = ca.MX.sym("wrenches", 6, 4)
    y = predicted(q, v, np.zeros(3), [0.0], wrenches)[0]
    slope = ca.Function("slope", [wrenches], [ca.jacobian(y, wrenches)])
    push = np.random.default_rng(0).normal(size=(6, 4))
    moved, still = (predicted(q, v, np.zeros(3), [0.0], w)[0] for w in (push, rest))
    step = slope(rest) @ ca.DM(push.ravel(order="F"))
    assert float(ca.norm_inf(step)) > 1.0
    assert float(ca.norm_inf(moved - still - step)) < 1e-10


def test_a_switched_loop_takes_its_mask():
    system = read_mjcf(LOOP, switchable=True)
    predicted = predicted_readings(system, ["felt"], derivatives=False)
    assert predicted.name_in() == ["q", "v", "f", "u", "wrenches", "mask"]
    zero = (np.zeros(3), np.zeros(3), np.zeros(3), [0.0], np.zeros((6, 4)))
    closed, opened = (predicted(*zero, mask)[0] for mask in (np.ones(3), np.zeros(3)))
    assert float(ca.norm_inf(closed - opened)) > 0.1


def test_what_has_no_sensors_is_said(loop):
    with pytest.raises(UnknownNameError, match="unknown sensor 'nose'"):
        predicted_readings(loop, ["nose"])
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    with pytest.raises(ProblemError, match="given by equations"):
        predicted_readings(from_lagrangian(q, v, kinetic=v**2))


def test_what_the_solver_did_is_not_predicted():
    system = read_mjcf(LOOP)
    assert "end" in system.sensor_names
    with pytest.raises(UnsupportedFeatureError, match=r"'end' \(jointlimitpos\) reads what MuJoCo"):
        predicted_readings(system, ["end"])
