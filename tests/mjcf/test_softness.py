"""MuJoCo's soft rows as numbers, against its own reference accelerations and regularisation."""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.description.softness import soft_row

SLIP = 1e-3  # rad/s


@pytest.mark.parametrize(
    ("options", "softness"),
    [
        ("", ""),
        ("", 'solreffriction=".05 2" solimpfriction=".6 .8 .01"'),
        ("", 'solreffriction="1e-3 1" solimpfriction="0 1 0"'),
        ("<flag refsafe='disable'/>", 'solreffriction="1e-3 1"'),
        ("", 'solreffriction="-50 -70" solimpfriction=".7 .9 .1"'),
    ],
)
def test_the_slope_of_dry_friction_is_mujocos(options, softness):
    xml = f"""<mujoco><option timestep="1e-3">{options}</option><worldbody>
      <body><joint name="arm" axis="0 1 0" frictionloss="3" {softness}/>
        <geom type="capsule" fromto="0 0 0 .4 0 0" size=".04" mass="3"/>
        <body pos=".4 0 0"><joint name="hand" type="slide" frictionloss="2" {softness}/>
          <geom size=".03" mass=".1"/></body></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    data.qvel[:] = SLIP
    mujoco.mj_forward(model, data)
    assert np.all(data.efc_type == mujoco.mjtConstraint.mjCNSTR_FRICTION_DOF)
    slopes = [joint.friction_slope for joint in mb.read_mjcf(model).tree.joints]
    np.testing.assert_allclose(slopes, -data.efc_aref / (SLIP * data.efc_R), rtol=1e-9)


@pytest.mark.parametrize("solimp", [".6 .9 .1 .3 3", ".9 .5 .1 .7 2", ".6 .9 .1 .5 1"])
def test_the_impedance_along_a_violation_is_mujocos(solimp):
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><worldbody>
      <body><joint name="stop" type="slide" range="-1 0" limited="true" solimplimit="{solimp}"/>
        <geom size=".1"/></body></worldbody></mujoco>""")
    data, expected, actual = mujoco.MjData(model), [], []
    row = soft_row(model.jnt_solref[0], model.jnt_solimp[0], 0.0)
    for violation in (0.01, 0.03, 0.05, 0.09, 0.2):
        data.qpos[0] = violation
        mujoco.mj_forward(model, data)
        expected.append(data.efc_KBIP[0, 2])
        actual.append(row.impedance(violation))
    np.testing.assert_allclose(actual, expected, rtol=1e-12)
