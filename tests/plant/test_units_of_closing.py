"""A plant is closed to the same share of its extent in all units."""

import mujoco
import numpy as np
import pytest
from support.model_units import coordinate_sizes, in_units
from support.unit_systems import Units

from mbcasadi import models
from mbcasadi.plant.equalities import close_equalities

SIZES = {"micrometres": 1e-6, "metres": 1.0, "thousands of kilometres": 1e6}
SHARE = 1e-10  # of the extent


@pytest.mark.parametrize("length", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("name", ["four_bar", "planar_3rrr", "planar_biped"])
def test_a_plant_closes_and_moves_the_same_way_in_all_units(name, length):
    reference = mujoco.MjModel.from_xml_path(str(models.path(name)))
    units = Units(m=length, kg=1.0, s=1.0)
    model, size = in_units(reference, units), coordinate_sizes(reference, units)
    rng = np.random.default_rng(0)
    dq, v = 1e-2 * rng.standard_normal(model.nv), rng.standard_normal(model.nv)
    states = []
    for each, scale in ((reference, np.ones(model.nv)), (model, size)):
        data = mujoco.MjData(each)
        mujoco.mj_integratePos(each, data.qpos, dq * scale, 1.0)
        data.qvel[:] = v * scale
        close_equalities(each, data)
        mujoco.mj_forward(each, data)
        assert np.abs(data.efc_pos[: data.ne]).max() < SHARE * each.stat.extent
        assert np.abs(data.efc_vel[: data.ne]).max() < 1e-9 * each.stat.extent
        moved = np.zeros(model.nv)
        mujoco.mj_differentiatePos(each, moved, 1.0, each.qpos0, data.qpos)
        states.append(np.concatenate([moved / scale, data.qvel / scale]))
    np.testing.assert_allclose(states[1], states[0], atol=1e-8)
