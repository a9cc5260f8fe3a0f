"""A Kalman filter on sensors of the model."""

import casadi as ca
import numpy as np
import pytest
from support.sensor_models import LOOP

import mbcasadi as mb
from mbcasadi.control.regulators import encoders, kalman, sensor_output
from mbcasadi.errors import ProblemError, UnknownNameError


@pytest.fixture(scope="module")
def system():
    return mb.read_mjcf(LOOP)


def test_a_gyro_and_an_encoder_make_the_state_known(system):
    linear = mb.linearize(system, mb.equilibrium(system))
    gyro = sensor_output(system, ["turning"])
    C = linear.output_matrix(gyro)
    assert np.abs(C[1]).max() > 0.1  # the rate of the plane's normal
    assert np.abs(C[[0, 2]]).max() < 1e-12
    noise = np.repeat([0.0, 1.0], system.nv)
    angle = encoders(system, ["crank"])
    both = kalman(linear, _stack(system, angle, gyro), noise, 1e-4, period=1e-3)
    alone = kalman(linear, angle, noise, 1e-4, period=1e-3)
    assert np.trace(both.gains.after) < 0.5 * np.trace(alone.gains.after)


def _stack(system, first, second):
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    y = ca.vertcat(first(q, v), second(q, v)[1])
    return ca.Function("y", [q, v], [y], ["q", "v"], ["y"])


@pytest.mark.parametrize("name", ["felt", "force", "drive"])
def test_what_reads_more_than_the_state_is_no_output(system, name):
    with pytest.raises(ProblemError, match=f"sensor '{name}'.*more than q and v"):
        sensor_output(system, [name])


def test_outputs_need_a_known_sensor(system):
    with pytest.raises(UnknownNameError, match="unknown sensor"):
        sensor_output(system, ["nose"])
    with pytest.raises(ProblemError, match="nothing is measured"):
        sensor_output(system, [])
