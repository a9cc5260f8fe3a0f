"""Offset-free MPC: no steady error under a force it does not know; with one once switched off."""

import numpy as np
import pytest
from support.linear_mpc_cases import MODEL, PERIOD, advance, at_rest, mechanism_options, recorded

import mbcasadi.errors as err
from mbcasadi import models, mpc
from mbcasadi.mpc.linear.disturbance import Estimation, augment_with_disturbance

HORIZON = 10
PLACE, WANTED = [[1.0, 0.0]], 0.5
FORCE, GAIN = 0.4, 1.15  # of the plant, which the model knows nothing of
OFF = np.zeros((2, 0))
SWITCHES = {"each state": (None, True), "the force": (MODEL.B, True), "off": (OFF, False)}
SETTLED = 1e-6


VARYING = mpc.LinearModel.of(
    np.tile(MODEL.A, (HORIZON, 1, 1)), np.tile(MODEL.B, (HORIZON, 1, 1)), PERIOD
)


def controller_of(model=MODEL, **options):
    names = ("tracked", "measured", "disturbances", "noise")
    estimated = {"tracked": PLACE, "noise": mpc.Noise(disturbance=10.0)}
    estimated |= {name: options.pop(name) for name in names if name in options}
    given = mpc.LinearOptions(HORIZON, [2.0, 0.1], 0.3, **{"u_bounds": [[-2.0, 2.0]]} | options)
    return mpc.offset_free_lti(model, given, **estimated)


def settle(law, gain=1.0, slip=0.0, y=lambda x: x):
    """Return the last state and status of a plant with a force, a gain and a slip of its own."""
    x, z, ref = np.zeros(2), law.controller.z0, law.reference(x=[WANTED, 0.0])
    for _ in range(400):
        u, z, status, *_ = (np.array(out).ravel() for out in law.function(y(x), ref, z))
        x = advance(x, gain * u + FORCE) + np.array([slip, 0.0])
    return x, status


@pytest.mark.parametrize("case", SWITCHES)
def test_an_unknown_force_leaves_no_offset_unless_switched_off(case):
    disturbances, vanishes = SWITCHES[case]
    x, status = settle(controller_of(disturbances=disturbances), GAIN)
    assert status == 0
    offset = abs(x[0] - WANTED)
    assert offset < SETTLED if vanishes else offset > 0.05


def test_any_error_of_the_model_vanishes_where_each_measured_number_has_a_disturbance():
    assert abs(settle(controller_of(), GAIN, slip=0.02)[0][0] - WANTED) < SETTLED
    assert abs(settle(controller_of(disturbances=MODEL.B), GAIN, slip=0.02)[0][0] - WANTED) > 1e-3


def test_the_place_alone_is_measured_and_the_rest_is_estimated():
    law = controller_of(measured=PLACE, disturbances=MODEL.B)
    assert law.function.numel_in("y") == 1
    x, _ = settle(law, GAIN, y=lambda x: x[:1])
    assert abs(x[0] - WANTED) < SETTLED


def test_the_target_is_a_steady_state_that_tracks_and_no_other_is_nearer():
    """Two controls, one tracked row: one freedom is left to the cost."""
    rng = np.random.default_rng(0)
    A, B, B_d = rng.standard_normal((3, 3)), rng.standard_normal((3, 2)), np.eye(3)
    model = mpc.LinearModel.of(A, B, PERIOD, rng.standard_normal(3))
    H = rng.standard_normal((1, 3))
    problem = mpc.linear_problem(model, mpc.LinearOptions(2, [3.0, 1.0, 2.0], [0.5, 0.7]))
    parts = augment_with_disturbance(problem, Estimation(np.eye(3), H, B_d, mpc.Noise(), None))
    W = np.diag([3.0, 1.0, 2.0, 0.5, 0.7])
    E = np.block([[A - np.eye(3), B], [H, np.zeros((1, 2))]])
    along = np.linalg.svd(E)[2][4:].T
    for _ in range(10):
        r, s, d = (rng.standard_normal(size) for size in (3, 2, 3))
        steady = parts.target @ np.concatenate([r, s, d]) + parts.target_0
        x, u = steady[:3], steady[3:]
        np.testing.assert_allclose(A @ x + B @ u + model.drift + B_d @ d, x, atol=1e-10)
        np.testing.assert_allclose(H @ x, H @ r, atol=1e-10)
        slope = along.T @ W @ (steady - np.concatenate([r, s]))
        assert np.abs(steady - np.concatenate([r, s])).max() > 0.1
        np.testing.assert_allclose(slope, 0, atol=1e-10)


WRONG = {
    "two rows, one control": ({"tracked": np.eye(2)}, err.ProblemError, "no steady state"),
    "unseen": ({"measured": PLACE}, err.ProblemError, "not observable"),
    "noise": ({"noise": mpc.Noise(measurement=0.0)}, err.ProblemError, "noise.measurement"),
    "a schedule": ({"preview": True}, err.ProblemError, "aims at one steady state"),
    "another period": ({"period": PERIOD}, err.ProblemError, "sample time of its own"),
    "varies": ({"model": VARYING}, err.ProblemError, "constant model"),
    "shape": ({"tracked": [[1.0, 0.0, 0.0]]}, err.ShapeError, "tracked has shape"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_makes_no_sense_is_refused_with_advice(case):
    options, kind, words = WRONG[case]
    with pytest.raises(kind, match=words):
        controller_of(**options)


@pytest.mark.long
def test_a_four_bar_keeps_its_pose_under_a_load_in_mujoco():
    linear, path, offsets = at_rest("four_bar"), models.path("four_bar"), {}
    crank = np.eye(2 * linear.system.nv)[:1]
    plant = {"perturb": {"mass": 0.1}, "disturbance": 0.2 * crank[0, :3], "delay": 1}
    for case, options in {"on": {}, "off": {"disturbances": np.zeros((linear.nx, 0))}}.items():
        given = mechanism_options(linear, 20, period=0.01)
        law = mpc.offset_free_mpc(linear, given, crank, **options)
        recording = recorded(law, linear, path, 2.0, **plant)
        offsets[case] = abs(recording.q[-1, 0] - linear.q[0])
        assert np.all(recording.status == 0)
    assert offsets["off"] > 0.02
    assert offsets["on"] < 1e-3
