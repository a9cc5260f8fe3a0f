"""Two quadrotors read, linearised about hover, and flown in MuJoCo by nonlinear MPC as C."""

import mujoco
import numpy as np
import pytest
from support.corpora import robot
from support.examples import example, shown

import mbcasadi as mb
from mbcasadi import models

STEP = 1e-6
HEAVIER = {"mass": 0.1}
CRAZYFLIE = {
    "size": 24.0,  # m: its moments of 1e-5 N m turn it slowly
    "ramp": 8.0,
    "period": 0.05,
    "horizon": 20,
    "weights": {"Q": [40, 40, 400, 1, 1, 1, 4, 4, 8, 1, 1, 1], "R": [10, 0.01, 0.01, 0.01]},
}


def assert_flown(found, speed, farthest):  # m/s, mm
    """Assert that all problems were solved, the speed was reached, and the path was kept."""
    run, record = found["run"], found["run"].recording
    assert not record.events
    assert np.all(record.status == 0)
    assert np.all((record.u >= run.controller.u_min) & (record.u <= run.controller.u_max))
    np.testing.assert_array_equal(record.u_applied[1:], record.u[:-1])  # one tick late
    fast = np.linalg.norm(record.v[:, :3], axis=1)
    assert fast[0] < 1e-6
    np.testing.assert_allclose(fast[len(fast) // 2 :], speed, rtol=0.02)
    x, y = record.q[:, 0], record.q[:, 1]
    assert np.count_nonzero(np.diff(np.sign(x))) == 2  # both loops, and back
    assert np.count_nonzero(np.diff(np.sign(y[1:-1]))) >= 3
    assert found["far"].max() < farthest


@pytest.mark.long
def test_a_quadrotor_of_our_own_flies_a_figure_of_eight(tmp_path):
    names, found = shown(38, tmp_path)
    assert_flown(found["as modelled"], names["SPEED"], 2.0)
    assert_flown(found["with errors"], names["SPEED"], 30.0)
    assert found["with errors"]["far"].max() > 5.0  # the error was there
    thrust = found["with errors"]["run"].recording.u.max()
    assert 4.9 < thrust < 5.4  # N of 6.5: it leans by 45 degrees, and is heavier


def test_a_crazyflie_flies_a_figure_of_eight(capsys):
    model, names = robot("men__bitcraze_crazyflie_2__cf2"), example(38)
    found = names["fly"](model, HEAVIER, **CRAZYFLIE)
    assert_flown(found, names["SPEED"], 80.0)
    lean = 1 - 2 * np.sum(found["run"].recording.q[:, 4:6] ** 2, axis=1)
    assert np.degrees(np.arccos(lean.min())) > 20  # the drag at 5 m/s is 0.29 of its weight
    assert "100 % solved" in capsys.readouterr().out


@pytest.mark.long
def test_a_quadrotor_learns_that_a_rotor_is_weak_in_wind(tmp_path):
    names, found = shown(44, tmp_path)
    late = {key: flight["far"][flight["t"] > names["SETTLED"]] for key, flight in found.items()}
    assert late["without"].max() > 30.0  # mm: the error was there
    assert late["with an observer"].max() < 0.4 * late["without"].max()
    for flight in found.values():
        assert np.all(flight["run"].recording.status == 0)


@pytest.mark.parametrize("name", ["quadrotor", "men__bitcraze_crazyflie_2__cf2"])
def test_linearised_at_hover_it_is_the_derivative_of_mujoco(name):
    path = models.path(name) if name == "quadrotor" else robot(name)
    system, plant = mb.read_mjcf(path), mujoco.MjModel.from_xml_path(str(path))
    held = mb.equilibrium(system)
    linear, data = mb.linearize(system, held), mujoco.MjData(plant)

    def acceleration(dq, v, du):
        data.qpos, data.qvel, data.ctrl = held.q, v, held.u + du
        mujoco.mj_integratePos(plant, data.qpos, dq, 1.0)
        mujoco.mj_forward(plant, data)
        return np.array(data.qacc)

    np.testing.assert_allclose(acceleration(*np.zeros((2, 6)), np.zeros(4)), 0, atol=1e-8)
    to_v = np.vstack([linear.to_dq, linear.to_dv])
    rows = linear.to_dv @ np.hstack([linear.dfdx @ np.linalg.inv(to_v), linear.dfdu])
    for k, found in enumerate(rows.T):
        step = np.zeros(16)
        step[k] = STEP
        up, down = (acceleration(*np.split(sign * step, [6, 12])) for sign in (1, -1))
        np.testing.assert_allclose(found, (up - down) / (2 * STEP), rtol=1e-6, atol=1e-6)
