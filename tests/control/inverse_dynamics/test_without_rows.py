"""Motors without ranges and no contacts: a QP without any row, in Python and in the exported C."""

import mujoco
import numpy as np
import pytest

from mbcasadi.codegen import export_c
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.description.status import Status
from mbcasadi.system import read_mjcf

ARM = """
<mujoco>
  <worldbody>
    <body><joint name="first" axis="0 1 0"/><geom size=".1" mass="1" pos="0 0 .3"/>
      <body pos="0 0 .5"><joint name="second" axis="0 1 0"/><geom size=".1" mass="2" pos="0 0 .3"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="first"/><motor joint="second"/></actuator>
</mujoco>
"""
KP, KD = 100.0, 20.0


@pytest.mark.parametrize("levels", [[], [["posture"]]])
def test_a_law_without_rows_is_exported_and_gives_the_torques_of_mujoco(tmp_path, levels):
    tasks = [PostureTask(kp=KP, kd=KD)]
    law = InverseDynamicsQP(read_mjcf(ARM), tasks, period=0.002, torque_weight=1e-9, levels=levels)
    assert law.row_names == ()
    exported = export_c(law, tmp_path / "law").load()
    model, rng = mujoco.MjModel.from_xml_string(ARM), np.random.default_rng(5)
    data, ref = mujoco.MjData(model), law.reference_at([0.3, -0.2])
    for _ in range(20):
        data.qpos, data.qvel = rng.uniform(-1, 1, (2, 2))
        data.qacc = KP * (np.array([0.3, -0.2]) - data.qpos) - KD * data.qvel
        mujoco.mj_inverse(model, data)
        for call in (law.function, exported):
            u, _, status, *_ = call(data.qpos, data.qvel, ref, [], law.z0)
            assert status == Status.SOLVED
            np.testing.assert_allclose(u.full().ravel(), data.qfrc_inverse, rtol=1e-6, atol=1e-6)
    u, _, status, *_ = exported([np.nan, 0], [0, 0], ref, [], law.z0)
    assert status == Status.BAD_INPUT
