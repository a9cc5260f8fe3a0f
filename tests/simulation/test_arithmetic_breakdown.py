"""A controller whose arithmetic breaks down in a simulation gives the safe output."""

import mujoco
import numpy as np
import pytest
from support.emergency_problems import ARM, acceleration, foreign, made, spoilt, with_fault

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.errors import ProblemError
from mbcasadi.simulation import ControlLoop
from mbcasadi.simulation.sampled_law import SampledController

REST = 1e-3  # rad/s²; gravity alone gives 20
MEASURED, BROKEN = np.array([0.3, -0.5]), np.array([100.0, 0.0])
STILL, NONE = np.zeros(2), np.zeros(0)


def loop(controller):
    reference = np.concatenate([MEASURED, np.zeros(4)])
    return SampledController(
        ControlLoop(controller, reference=lambda _: reference), mb.read_mjcf(ARM)
    )


@pytest.mark.parametrize("measured_first", [True, False])
def test_the_last_command_acts_for_ten_milliseconds_and_then_the_hold(measured_first):
    controller, model = loop(with_fault(made("law"))), mujoco.MjModel.from_xml_string(ARM)
    held, young = model.qpos0, 0
    if measured_first:
        held, young = MEASURED, 10
        last = [controller.control(0.0, MEASURED, STILL, NONE) for _ in range(3)][-1]
    for k in range(30):
        u = controller.control(0.0, BROKEN, STILL, NONE)
        if k < young:
            np.testing.assert_array_equal(u, last)
        else:
            assert np.abs(acceleration(model, held, u)).max() < REST
    assert np.all(np.isfinite(controller.control(0.0, MEASURED, STILL, NONE)))


def test_a_controller_made_by_hand_keeps_its_last_command_and_then_its_constant():
    by_hand = foreign()
    by_hand = type(by_hand)(**{**vars(by_hand), "function": spoilt(by_hand.function)})
    controller = loop(by_hand)
    np.testing.assert_allclose(controller.control(0.0, BROKEN, STILL, NONE), [0.7, -2.0])
    np.testing.assert_allclose(controller.control(0.0, STILL, STILL, NONE), [1.0, 1.0])
    for expected in (*2 * ([1.0, 1.0],), [0.7, -2.0]):  # two ticks of 5 ms
        np.testing.assert_allclose(controller.control(0.0, BROKEN, STILL, NONE), expected)


def test_a_controller_of_another_mechanism_is_refused_by_the_sizes_that_differ():
    one_motor = ARM.replace('<motor name="b" joint="b" ctrlrange="-9 9"/>', "")
    for source, words in ((one_motor, "other sizes of u"), (models.path("four_bar"), "sizes of q")):
        with pytest.raises(ProblemError, match=words):
            SampledController(ControlLoop(foreign()), mb.read_mjcf(source))
