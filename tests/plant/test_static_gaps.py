"""The gap that weight opens in soft loops is the one in which MuJoCo comes to rest."""

import mujoco
import numpy as np
import pytest

from mbcasadi import models
from mbcasadi.plant.equalities import close_equalities, closure_gap
from mbcasadi.plant.static_gaps import static_gap

AT_REST = 0.05  # share by which a linkage turns as its loop opens, which the estimate leaves out
HELD = 1e4  # armature, kg m²: a motor that does not move

PENDANT = """<mujoco><option timestep=".001"/><worldbody><body name="bob" pos="0 0 -.5">
<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
<joint type="slide" axis="0 0 1"/>
<geom size=".05" mass="3"/></body></worldbody><equality>
<connect body1="bob" anchor="0 0 0" solref="{time} 1" solimp="{solimp}"/></equality></mujoco>"""


def rest_gap(model, q, held=()):
    """Return the gap after MuJoCo has come to rest, with some dofs that do not move."""
    model.dof_armature[list(held)] = HELD
    model.dof_damping[:] += 1e-3
    model.opt.tolerance = 0.0  # costs are large beside those of light rods
    data = mujoco.MjData(model)
    data.qpos = q
    for _ in range(int(3.0 / model.opt.timestep)):
        mujoco.mj_step(model, data)
    assert np.abs(data.qacc).max() < 1e-3
    return closure_gap(model, data)


@pytest.mark.parametrize(
    "solimp",
    [".9 .95 .001 .5 2", ".5 .9 .02 .5 2", ".5 .9 .02 .3 3", ".2 .6 .05 .5 1", ".9 .9 0 .5 2"],
)
@pytest.mark.parametrize("time", [0.005, 0.02, 0.1])
def test_a_bob_hangs_as_low_as_its_constraint_is_soft(solimp, time):
    model = mujoco.MjModel.from_xml_string(PENDANT.format(time=time, solimp=solimp))
    assert static_gap(model, model.qpos0) == pytest.approx(rest_gap(model, model.qpos0), rel=2e-3)


@pytest.mark.parametrize("time", [0.02, 0.1])
def test_the_loop_of_a_linkage_opens_by_its_weight_while_the_motor_stands(time):
    model = mujoco.MjModel.from_xml_path(str(models.path("four_bar")))
    model.eq_solref[:, 0] = time
    model.eq_solimp[:] = [0.5, 0.9, 0.001, 0.5, 2]
    data = mujoco.MjData(model)
    data.qpos[0] = 0.7  # rods that stand upright carry nothing across
    close_equalities(model, data)
    held = np.unique(data.moment_colind)
    assert 0 < held.size < model.nv
    gap = static_gap(model, data.qpos)
    assert gap == pytest.approx(rest_gap(model, data.qpos, held), rel=AT_REST)


def test_a_model_without_loops_has_no_gap_and_is_not_changed():
    model = mujoco.MjModel.from_xml_string(PENDANT.format(time=0.02, solimp=".9 .95 .001"))
    jacobian = model.opt.jacobian
    model.eq_active0[:] = 0
    assert static_gap(model, model.qpos0) == 0.0
    assert model.opt.jacobian == jacobian
