"""Forces on bodies act at their centres of mass, as MuJoCo itself maps them at each time step."""

import mujoco
import numpy as np
import pytest

from mbcasadi.errors import ProblemError, ShapeError, UnknownNameError
from mbcasadi.plant import Plant

ROUNDING = 1e-12  # rad and m, of 300 time steps
FORCE = np.array([3.0, -2.0, 1.0])  # N
STEPS, STEP = 300, 1e-3  # time steps, s
BOX = """
<mujoco model="box">
  <option timestep="0.001" integrator="Euler" gravity="0 0 0"/>
  <worldbody>
    <body name="shelf"><geom size="0.1"/></body>
    <body name="box" pos="0 0 1"><freejoint/>
      <inertial pos="0.3 0.1 -0.2" mass="4" diaginertia="0.1 0.2 0.3"/></body>
  </worldbody>
</mujoco>
"""
ARM = """
<mujoco model="arm">
  <option timestep="0.001" integrator="Euler"/>
  <worldbody>
    <body name="upper"><joint axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.04"/>
      <body name="lower" pos="0.5 0 0"><joint axis="0 1 1"/>
        <geom type="capsule" fromto="0 0 0 0.2 0.3 0" size="0.04"/></body></body>
  </worldbody>
</mujoco>
"""


def test_a_free_body_gains_the_impulse_over_its_mass_and_does_not_turn():
    plant = Plant(BOX)
    plant.apply_body_forces({"box": FORCE})
    plant.step(np.zeros(0), STEPS)
    impulse_over_mass = FORCE * STEPS * STEP / 4.0
    np.testing.assert_allclose(plant.v, [*impulse_over_mass, 0, 0, 0], atol=ROUNDING)
    plant.apply_body_forces({})
    plant.step(np.zeros(0), STEPS)
    np.testing.assert_allclose(plant.v, [*impulse_over_mass, 0, 0, 0], atol=ROUNDING)


def test_the_force_on_a_moving_link_is_that_of_a_separate_simulation_by_hand():
    plant, model = Plant(ARM), mujoco.MjModel.from_xml_string(ARM)
    data, link = mujoco.MjData(model), model.body("lower").id
    plant.apply_body_forces({"lower": FORCE})
    for _ in range(STEPS):
        plant.step(np.zeros(0))
        mujoco.mj_step1(model, data)
        data.qfrc_applied[:] = 0.0
        mujoco.mj_applyFT(
            model, data, FORCE, np.zeros(3), data.xipos[link], link, data.qfrc_applied
        )
        mujoco.mj_step2(model, data)
    assert np.abs(plant.q).min() > 0.1  # it has moved far: the Jacobian is another one
    np.testing.assert_allclose(plant.q, data.qpos, atol=ROUNDING)


def test_the_generalised_force_is_that_of_the_joints_and_of_the_jacobians():
    plant = Plant(ARM)
    plant.reset([0.3, -0.7])
    plant.apply_force([1.0, 2.0])
    plant.apply_body_forces({"lower": FORCE, "upper": -FORCE})
    expected = np.array([1.0, 2.0])
    for name, force in (("lower", FORCE), ("upper", -FORCE)):
        J = np.zeros((3, 2))
        mujoco.mj_jacBodyCom(plant.model, plant.data, J, None, plant.model.body(name).id)
        expected += J.T @ force
    np.testing.assert_allclose(plant.external_force, expected, rtol=1e-12)
    plant.reset()
    np.testing.assert_array_equal(plant.external_force, [0.0, 0.0])


def test_a_force_that_cannot_act_is_refused():
    plant = Plant(BOX)
    with pytest.raises(UnknownNameError, match=r"unknown body 'bxo'; valid: .*'box'.*did you mean"):
        plant.apply_body_forces({"bxo": FORCE})
    for name in ("shelf", "world"):
        with pytest.raises(ProblemError, match=r"fixed to the world.*expected one of 'box'"):
            plant.apply_body_forces({name: FORCE})
    for wrong in ([1.0, 2.0], [1.0, 2.0, np.nan], "left"):
        with pytest.raises(ShapeError, match="force on 'box'"):
            plant.apply_body_forces({"box": wrong})
    with pytest.raises(ProblemError, match="name of a body is 1; expected a text"):
        plant.apply_body_forces({1: FORCE})
