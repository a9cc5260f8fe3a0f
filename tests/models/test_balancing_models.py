"""The models that regulators balance: rank, weight, and what makes each of them worth balancing."""

import mujoco
import numpy as np
import pytest

from mbcasadi import models

SMALLEST_SINGULAR_VALUE = 1e-9
RANK_AND_ROWS = {"cart_pole": (3, 6), "pendulum_on_four_bar": (2, 3), "planar_biped": (4, 6)}


def compiled(name):
    return mujoco.MjModel.from_xml_path(str(models.path(name)))


def rows(model, data):
    """Return the Jacobian of the equality rows at the state of `data`."""
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    mujoco.mj_forward(model, data)
    return np.array(data.efc_J).reshape(-1, model.nv)[: data.ne]


@pytest.mark.parametrize("name", sorted(RANK_AND_ROWS))
def test_the_equality_rows_are_redundant_as_the_file_says(name):
    model = compiled(name)
    values = np.linalg.svd(rows(model, mujoco.MjData(model)), compute_uv=False)
    rank, count = RANK_AND_ROWS[name]
    assert values.size == min(count, model.nv)
    assert (values > SMALLEST_SINGULAR_VALUE).sum() == rank


def test_the_biped_has_the_weight_and_the_legs_of_its_tables():
    model = compiled("planar_biped")
    assert model.body_mass.sum() == pytest.approx(65.0)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    for side in ("left", "right"):
        hip, knee = data.body(f"{side}_thigh").xpos, data.body(f"{side}_shank").xpos
        foot = data.site(f"{side}_foot").xpos
        for length in (np.linalg.norm(knee - hip), np.linalg.norm(foot - knee)):
            assert length == pytest.approx(0.425)
            assert length / 1.73 == pytest.approx(0.2455, abs=2e-3)
        assert foot[2] == pytest.approx(0.0, abs=1e-12)


def test_the_tracer_moves_level_so_that_it_can_carry_a_pendulum_like_a_cart():
    """Over half a radian of the crank to each side; the pendulum's hinge is there."""
    model = compiled("pendulum_on_four_bar")
    data = mujoco.MjData(model)
    places = []
    for crank in np.linspace(-0.5, 0.5, 21):
        data.qpos[:] = [crank, -2 / 3 * crank, 0, crank / 3]
        for _ in range(20):  # close the loop with the crank held
            free = rows(model, data)[:, 1:]
            step = -np.linalg.pinv(free, SMALLEST_SINGULAR_VALUE) @ data.efc_pos[: data.ne]
            data.qpos[1:] += step
        assert np.abs(data.efc_pos[: data.ne]).max() < 1e-12
        places.append(data.site("tracer").xpos.copy())
    x, _, z = np.array(places).T
    assert np.ptp(x) > 0.12
    assert np.ptp(z) < 0.005 * np.ptp(x)
