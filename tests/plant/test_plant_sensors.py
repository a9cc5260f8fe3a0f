"""Readings and external wrenches of the plant."""

import numpy as np
import pytest
from support.sensor_models import LOOP

from mbcasadi.errors import UnknownNameError
from mbcasadi.plant import Plant

BALL = """
<mujoco>
  <worldbody>
    <geom type="plane" size="1 1 .1"/>
    <body name="ball" pos="0 0 .099">
      <freejoint/><geom size=".1" mass="2"/><site name="top" pos="0 0 .1"/>
    </body>
  </worldbody>
  <sensor><accelerometer site="top"/></sensor>
</mujoco>
"""


def test_a_ball_on_the_ground_is_carried_by_its_contact():
    plant = Plant(BALL)
    for _ in range(400):
        plant.step([])
    plant.measure([])
    assert plant.wrenches.shape == (6, 2)
    assert np.allclose(plant.wrenches[:, 1], [0, 0, 2 * 9.81, 0, 0, 0], atol=1e-2)
    assert np.allclose(plant.applied_wrenches, plant.wrenches, atol=1e-12)
    assert np.allclose(plant.sensor("sensor0"), [0, 0, 9.81], atol=1e-2)


def test_a_force_on_a_body_has_its_moment_about_the_bodys_origin():
    plant = Plant(LOOP)
    plant.apply_body_forces({"coupler": [1.0, 0.0, 0.0]})
    plant.measure([0.0])
    wrench = plant.applied_wrenches[:, 2]
    assert np.allclose(wrench, [1, 0, 0, 0, -0.5, 0])  # half a metre below the origin
    assert np.abs(plant.wrenches - plant.applied_wrenches).max() > 1.0  # the pin


def test_an_unknown_sensor_is_named_with_the_valid_ones():
    with pytest.raises(UnknownNameError, match=r"unknown sensor 'nose'.*turning"):
        Plant(LOOP).sensor("nose")
