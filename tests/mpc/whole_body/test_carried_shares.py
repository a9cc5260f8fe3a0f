"""A torso above the base counts as the base does; legs go where their feet do."""

import mujoco
import numpy as np
import pytest
from support.two_feet import LEGS, MODEL

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.mpc.whole_body.default_cost import (
    BASE,
    BASE_RATES,
    JOINT_RATES,
    JOINTS,
    carried_shares,
)

TORSO = """<body name="torso" pos="0 0 .1"><joint name="waist" axis="0 1 0"/>
  <geom type="box" size=".1 .1 .2" pos="0 0 .2" mass="3"/>
  <body name="hand" pos="0 .2 .3"><joint name="wrist" axis="1 0 0"/>
    <geom type="sphere" size=".01" pos="0 0 -.1" mass=".02"/></body></body>"""
WITH_TORSO = MODEL.replace("\n</body></worldbody>", f"{TORSO}</body></worldbody>")


@pytest.fixture(scope="module")
def robot():
    system = mb.read_mjcf(WITH_TORSO)
    return system, [mb.Contact(f"foot_{name}", friction=0.6) for name in LEGS]


def test_a_share_is_the_inertia_that_a_joint_carries_by_that_about_the_base(robot):
    system, feet = robot
    q0 = np.array(system.tree.q0)
    model = mujoco.MjModel.from_xml_string(WITH_TORSO)
    data = mujoco.MjData(model)
    data.qpos[:] = q0
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    waist, wrist = (model.joint(name).dofadr[0] for name in ("waist", "wrist"))
    about = np.diag(M)[3:6].mean()
    shares = carried_shares(system, feet, q0)
    assert shares[waist] == pytest.approx(M[waist, waist] / about)
    assert shares[wrist] == pytest.approx(M[wrist, wrist] / about)
    assert 0.2 < shares[waist] < 1
    assert shares[wrist] < 1e-3
    legs = [
        model.joint(f"{name}_{joint}").dofadr[0] for name in LEGS for joint in ("roll", "pitch")
    ]
    assert not shares[legs].any()


def test_the_default_cost_of_joints_follows_their_shares(robot):
    system, feet = robot
    q0 = np.array(system.tree.q0)
    cost = next(part for part in mpc.default_cost(system, feet, q0) if isinstance(part, mpc.Cost))
    shares, nv = carried_shares(system, feet, q0), system.nv
    length, g = 0.3, 9.81
    joints = np.arange(6, nv)
    np.testing.assert_allclose(cost.Q[joints], (JOINTS + BASE[3] * shares)[joints])
    rates = (JOINT_RATES + BASE_RATES[3] * shares)[joints] * length / g
    np.testing.assert_allclose(cost.Q[nv + joints], rates)
    np.testing.assert_allclose(cost.Q[3:6], BASE[3:])
