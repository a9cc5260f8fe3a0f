"""An actuator without an equation gives no controller; MuJoCo says what it would miss.

Each model has a motor that could do the task, and a second actuator that pushes as well.
"""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.mjcf.compat import VERSION

HEAD = """<mujoco><option gravity="0 0 0" timestep=".01"/><worldbody>
<site name="anchor" pos="0 0 1"/>
<body><joint name="hinge" axis="0 1 0"/><geom type="capsule" size=".05" fromto="0 0 0 1 0 0"/>
<site name="tip" pos="1 0 0"/><site name="crank" pos=".3 0 0"/></body>
</worldbody>"""
CASES = {
    "slew rate": '<dcmotor name="odd" joint="hinge" resistance="2" motorconst=".1" input="pos" '
    'controller="3 0 .1 1 0 0"/>',
    "thermal": '<dcmotor name="odd" joint="hinge" resistance="2" motorconst=".5" '
    'thermal="2 3 0 .004 25 22"/>',
}


SERVO_MOTORS = pytest.mark.skipif(
    VERSION < (4, 0), reason="DC motors of MuJoCo before 4.0 have no position input"
)


def model_of(case: str) -> str:
    motor = '<motor name="motor" joint="hinge" ctrlrange="-100 100" ctrllimited="true"/>'
    return f"{HEAD}<actuator>{motor}{CASES[case]}</actuator></mujoco>"


def force_of_the_odd_actuator(xml: str) -> float:
    """Return the largest generalised force in a short run with the odd actuator commanded."""
    model = mujoco.MjModel.from_xml_string(xml)
    data, largest = mujoco.MjData(model), 0.0
    data.qpos[:], data.qvel[:] = 0.4, 0.3
    for _ in range(20):
        data.ctrl[:] = np.array([0.0, 1.0])[: model.nu]
        mujoco.mj_step(model, data)
        largest = max(largest, float(np.abs(data.qfrc_actuator).max()))
    return largest


@pytest.mark.parametrize(
    "case", [pytest.param("slew rate", marks=SERVO_MOTORS), pytest.param("thermal")]
)
def test_an_actuator_without_an_equation_gives_no_controller(case):
    xml = model_of(case)
    assert force_of_the_odd_actuator(xml) > 1e-3  # ignoring it would be wrong
    system = mb.read_mjcf(xml)
    with pytest.raises(UnsupportedFeatureError, match="'odd'"):
        mb.control.InverseDynamicsQP(system, [mb.control.PostureTask()])


@SERVO_MOTORS
def test_the_numbers_of_a_refused_actuator_are_unknown_but_its_ranges():
    system = mb.read_mjcf(model_of("slew rate"))
    odd = system.actuators[1]
    assert np.all(np.isnan([*odd.gain, *odd.bias, *odd.gear]))
    assert system.limits.ctrl[0].tolist() == [-100.0, 100.0]
