"""What every law shares: guard, limits, states, names; and computed torque as the plainest one."""

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.controller_cases import counting_law
from support.refusals import refused

import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.control import PostureTask, with_fallback
from mbcasadi.control.laws import computed_torque
from mbcasadi.system import read_mjcf

ROUNDING = 1e-12
four_bar = pytest.fixture(scope="module")(lambda: read_mjcf(models.path("four_bar")))


def weight_on_crank():
    """Motor torque that holds the four-bar where it is authored, by MuJoCo's virtual work."""
    model = mujoco.MjModel.from_xml_path(str(models.path("four_bar")))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    A = data.efc_J.reshape(-1, model.nv)[: data.ne]
    free = np.linalg.svd(A)[2][-1]  # the one motion of the loop
    return data.qfrc_bias @ free / free[0]


def outputs_of(law, q, v, ref, z):
    names = law.function.name_out()
    return dict(zip(names, (np.array(x).ravel() for x in law.function(q, v, ref, z)), strict=True))


def test_states_go_on_and_others_keep_their_value(four_bar):
    law = counting_law(four_bar)
    out = outputs_of(law, four_bar.tree.q0, np.zeros(3), [-4.0], law.controller.z0)
    assert_array_equal(out["z_next"][:3], [3.0, 7.0, 8.0])


def test_a_control_beyond_its_limits_is_clipped_and_flagged(four_bar):
    law = counting_law(four_bar)
    out = outputs_of(law, four_bar.tree.q0, np.zeros(3), [50.0], law.controller.z0)
    assert (out["u"], out["status"]) == (2.0, 1.0)
    inside = outputs_of(law, four_bar.tree.q0, np.zeros(3), [-5.0], law.controller.z0)
    assert inside["status"] == 0
    assert_allclose(inside["u"], -5.0 + np.log(95.0))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
@pytest.mark.parametrize("where", ["q", "v", "ref", "z"])
def test_bad_input_gives_a_status_and_a_bounded_output(four_bar, where, bad):
    law = counting_law(four_bar)
    values = {"q": four_bar.tree.q0, "v": np.zeros(3), "ref": [0.0], "z": law.controller.z0}
    values[where] = np.array(values[where], dtype=float)
    values[where][0] = bad
    out = outputs_of(law, **values)
    assert out["status"] == 3.0
    assert_allclose(out["u"], weight_on_crank(), rtol=1e-5)
    assert_array_equal(out["z_next"][:3], law.controller.z0[:3])
    zero = with_fallback(law, "zero")
    values["z"] = values["z"][:3]
    assert outputs_of(zero, **values)["u"] == 0.0


def test_broken_arithmetic_gives_the_safe_output(four_bar):
    law = counting_law(four_bar)
    out = outputs_of(law, four_bar.tree.q0, np.zeros(3), [-200.0], law.controller.z0)  # log(-100)
    assert out["status"] == 4.0
    assert_allclose(out["u"], weight_on_crank(), rtol=1e-5)


def test_the_reference_is_filled_by_name(four_bar):
    law = computed_torque(four_bar, PostureTask(joints=("crank",)))
    assert_array_equal(law.reference(posture_v=2.0), [0.0, 2.0, 0.0])
    refused(err.UnknownNameError, r"'posture_w'.*'posture.q'", lambda: law.reference(posture_w=1.0))
    with pytest.raises(err.ShapeError, match="posture_q has 2 entries, expected 1"):
        law.reference(posture_q=[1.0, 2.0])


def test_a_motion_that_no_motor_gives_has_a_status_of_its_own():
    system = read_mjcf(models.path("cart_pole"))
    passive = system.tree.joints[1].name
    law = computed_torque(system, PostureTask(joints=(system.tree.joints[0].name, passive)))
    lift = np.zeros(6)
    lift[4:] = [1.0, 20.0]
    _, _, status, _, missing = law.function(system.tree.q0, np.zeros(system.nv), lift, [])
    assert float(status) == 2
    assert np.abs(np.array(missing)).max() > 0.1
