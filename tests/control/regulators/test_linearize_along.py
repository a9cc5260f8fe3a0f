"""Linear systems along motions: they carry a small deviation as the motion itself does."""

from itertools import pairwise

import numpy as np
import pytest
from linear_mechanisms import chart, state_of, system_of

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi.control.regulators import discretize_along, linearize_along

DEVIATION = 1e-6
PERIOD, STEPS = 1e-3, 100
LINEAR = 1e-4  # second order of the deviation, and third of the period over a hundred steps


def motion(system, q, v):
    times = PERIOD * np.arange(STEPS + 1)
    return mb.simulate(system, q, v, times[-1], "lagrange", times=times, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", ["cart_pole", "four_bar", "planar_3rrr", "spinning", "disc"])
def test_the_steps_carry_a_deviation_as_the_motion_does(name):
    system = system_of(name)
    q, v, _, _ = state_of(name)
    path = motion(system, q, v)
    along = linearize_along(system, path.q, path.v, np.zeros((STEPS + 1, system.nu)))
    x0 = DEVIATION * np.random.default_rng(0).standard_normal(along[0].nx)
    neighbour = motion(system, *chart(system, along[0], x0))
    deviation = along[-1].coordinates(neighbour.q[-1], neighbour.v[-1])
    x = x0
    for step in discretize_along(along, PERIOD):
        x = step.dfdx @ x
    change = np.linalg.norm(deviation - x0)
    assert change > 0.05 * np.linalg.norm(x0)  # there is something to predict
    assert np.linalg.norm(x - deviation) < LINEAR * np.linalg.norm(deviation)


def test_the_bases_turn_smoothly():
    system = system_of("planar_3rrr")
    q, v, _, _ = state_of("planar_3rrr")
    path = motion(system, q, v)
    along = linearize_along(system, path.q, path.v, np.zeros((STEPS + 1, system.nu)))
    for one, other in pairwise(along):
        assert np.abs(one.Z_v - other.Z_v).max() < 10 * PERIOD
        turn = one.to_eta @ other.Z_v
        np.testing.assert_allclose(turn, turn.T, atol=1e-12)  # nearest: no turn within the space


def test_a_motion_through_a_singular_pose_is_refused():
    system = system_of("slider_crank")
    angles = np.pi / 2 + np.array([-0.01, 0.0, 0.01])
    q = np.column_stack([angles, 2 * np.cos(angles), angles])
    with pytest.raises(err.ProblemError, match="from 2 to 1 at sample 1"):
        linearize_along(system, q, 0 * q, np.zeros((3, system.nu)))


def test_samples_of_a_wrong_shape_are_refused():
    system = system_of("cart_pole")
    with pytest.raises(err.ShapeError, match=r"u has shape \(3, 2\), expected \(3, 1\)"):
        linearize_along(system, np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((3, 2)))
