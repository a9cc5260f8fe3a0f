"""The activation after one period of control, against MuJoCo's integration of it."""

import casadi as ca
import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import mjcf
from mbcasadi.system.activation_step import activation_step
from mbcasadi.system.pulling_inputs import resting_state

PERIOD = 0.004
MODEL = f"""
<mujoco><option timestep="{PERIOD}"/><worldbody><body><joint name="j" axis="0 1 0" range="-90 90"/>
<geom size=".1" pos="0 0 -.3"/></body></worldbody><actuator>
<motor joint="j"/>
<general joint="j" dyntype="integrator" gainprm="3"/>
<general joint="j" dyntype="filter" dynprm=".02"/>
<general joint="j" dyntype="filterexact" dynprm=".02"/>
<muscle joint="j"/>
<general joint="j" dyntype="muscle" dynprm=".02 .05 .3" gainprm="3"/>
</actuator></mujoco>
"""


@pytest.fixture(scope="module")
def step():
    """Return MuJoCo's model, and (u, act) → (w, the control that leads to w)."""
    compiled = mujoco.MjModel.from_xml_string(MODEL)
    u, act = ca.SX.sym("u", compiled.nu), ca.SX.sym("act", compiled.na)
    actuators = mjcf.read(compiled).actuators
    at = activation_step(actuators, PERIOD, act, [ca.SX(0)] * compiled.nu)
    return compiled, ca.Function("step", [u, act], [at.after(u), at.control(at.after(u))])


def test_a_period_of_control_is_a_step_of_mujoco_and_has_its_inverse(step):
    compiled, function = step
    data, rng = mujoco.MjData(compiled), np.random.default_rng(2)
    for _ in range(12):
        u, act = rng.uniform(0, 1, compiled.nu), rng.uniform(0, 1, compiled.na)
        mujoco.mj_resetData(compiled, data)
        data.ctrl[:], data.act[:] = u, act
        mujoco.mj_step(compiled, data)
        assert np.abs(data.act - act).min() > 1e-6  # each one moves
        w, control = (value.full().ravel() for value in function(u, act))
        np.testing.assert_allclose(w, [u[0], *data.act], atol=1e-12)
        np.testing.assert_allclose(control, u, atol=1e-9)


def test_at_rest_what_pulls_is_kept_by_the_controls():
    motor = '<dcmotor joint="j" resistance="2" motorconst=".1" inductance="0 .01"/>'
    system = mb.read_mjcf(MODEL.replace("</actuator>", f"{motor}</actuator>"))
    w = np.linspace(0.2, 0.8, system.nu)
    q = np.zeros(system.nq)
    u, act = resting_state(system, w, q)
    state = q, np.zeros(system.nv), u
    np.testing.assert_allclose(system.act_dot(*state, act).full(), 0, atol=1e-12)
    for actuator, pulling in zip(system.actuators, w, strict=True):
        assert actuator.act is None or act[actuator.act] == pulling
