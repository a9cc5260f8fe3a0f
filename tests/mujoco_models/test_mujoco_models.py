"""The models compile without a warning and start in a state that their constraints allow."""

import mujoco
import numpy as np
import pytest

import mujoco_models

# Text holds 16 digits; a pose composed of a dozen transforms rounds at a few 1e-16 m.
CLOSED = 1e-12
SMALLEST_SINGULAR_VALUE = 1e-9

RANK_AND_ROWS = {
    "arm_gripper": (5, 7),
    "cooperating_arms": (2, 3),
    "five_bar": (2, 3),
    "four_bar": (2, 3),
    "particle_on_circle": (2, 3),
    "prr_arm": (2, 3),
    "slider_crank": (2, 3),
    "spatial_loop": (3, 6),
}


def states(model: mujoco.MjModel) -> list[np.ndarray]:
    """Return `qpos0` and the configuration of each key frame."""
    return [model.qpos0, *(model.key_qpos[k] for k in range(model.nkey))]


def equality_rows(model: mujoco.MjModel, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return residual (ne,) and Jacobian (ne, nv) of the equality constraints at `q`."""
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    jacobian = np.array(data.efc_J).reshape(data.nefc, model.nv)[: data.ne]
    return np.array(data.efc_pos[: data.ne]), jacobian


@pytest.fixture(params=mujoco_models.names())
def model(request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]) -> mujoco.MjModel:
    compiled = mujoco.MjModel.from_xml_path(str(mujoco_models.path(request.param)))
    printed = capfd.readouterr()
    assert "warning" not in (printed.out + printed.err).lower()
    return compiled


def test_every_model_has_the_name_of_its_file_and_needs_no_mesh(model: mujoco.MjModel) -> None:
    assert model.names[: model.names.index(b"\0")].decode() in mujoco_models.names()
    assert model.nmesh == 0


def test_every_moving_body_has_mass_and_a_positive_definite_inertia(
    model: mujoco.MjModel,
) -> None:
    data = mujoco.MjData(model)
    for q in states(model):
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        inertia = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, inertia)
        assert np.linalg.eigvalsh(inertia).min() > 0
    principal = model.body_inertia[1:]
    moving = model.body_weldid[1:] > 0
    assert (model.body_mass[1:][moving] > 0).all()
    assert (principal[moving] > 0).all()
    # No rigid body has a principal moment above the sum of the other two.
    assert (2 * principal.max(axis=1) <= principal.sum(axis=1) * (1 + CLOSED))[moving].all()


def test_loops_are_closed_at_the_authored_pose_and_at_every_key_frame(
    model: mujoco.MjModel,
) -> None:
    for q in states(model):
        residual, _ = equality_rows(model, q)
        assert np.abs(residual).max(initial=0) < CLOSED


def test_every_motor_has_limits(model: mujoco.MjModel) -> None:
    assert model.actuator_ctrllimited.all()
    assert (model.actuator_ctrlrange[:, 0] < model.actuator_ctrlrange[:, 1]).all()


@pytest.mark.parametrize("name", sorted(RANK_AND_ROWS))
def test_the_equality_rows_are_redundant_as_the_file_says(name: str) -> None:
    model = mujoco.MjModel.from_xml_path(str(mujoco_models.path(name)))
    rank, rows = RANK_AND_ROWS[name]
    for q in states(model):
        _, jacobian = equality_rows(model, q)
        values = np.linalg.svd(jacobian, compute_uv=False)
        assert jacobian.shape[0] == rows
        assert (values > SMALLEST_SINGULAR_VALUE).sum() == rank


def test_the_slider_crank_loses_one_more_rank_where_its_crank_stands_upright() -> None:
    model = mujoco.MjModel.from_xml_path(str(mujoco_models.path("slider_crank")))
    residual, jacobian = equality_rows(model, np.array([np.pi / 2, 0.0, np.pi / 2]))
    assert np.abs(residual).max() < CLOSED
    assert np.linalg.matrix_rank(jacobian, tol=SMALLEST_SINGULAR_VALUE) == 1


def test_bennetts_loop_keeps_moving_and_keeps_its_rank() -> None:
    """A Newton walk along the null space, all the way through 200 small steps."""
    model = mujoco.MjModel.from_xml_path(str(mujoco_models.path("spatial_loop")))
    q, last = model.qpos0.copy(), None
    for _ in range(200):
        for _ in range(8):
            residual, jacobian = equality_rows(model, q)
            q = q - np.linalg.pinv(jacobian, rcond=SMALLEST_SINGULAR_VALUE) @ residual
        residual, jacobian = equality_rows(model, q)
        assert np.abs(residual).max() < CLOSED
        assert np.linalg.matrix_rank(jacobian, tol=SMALLEST_SINGULAR_VALUE) == 3
        along = np.linalg.svd(jacobian)[2][-1]
        along = along if last is None or along @ last > 0 else -along
        q, last = q + 0.05 * along, along
    assert np.abs(q - model.qpos0).max() > np.pi


@pytest.mark.parametrize(("name", "points"), [("quadruped", 4), ("humanoid", 8)])
def test_legged_models_stand_with_their_soles_on_the_floor(name: str, points: int) -> None:
    model = mujoco.MjModel.from_xml_path(str(mujoco_models.path(name)))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key("stand").id)
    mujoco.mj_kinematics(model, data)
    soles = [g for g in range(model.ngeom) if model.geom_contype[g]]
    height = data.geom_xpos[soles, 2] - model.geom_size[soles, 0]
    assert len(soles) == points
    assert np.abs(height).max() < CLOSED


def test_the_quadruped_weighs_what_its_maker_says() -> None:
    # 15 kg with battery, to the half kilogram that the data sheet leaves open.
    model = mujoco.MjModel.from_xml_path(str(mujoco_models.path("quadruped")))
    assert abs(model.body_mass.sum() - 15.0) < 0.5


def test_an_unknown_model_is_answered_with_the_list_of_names() -> None:
    with pytest.raises(KeyError, match="four_bar"):
        mujoco_models.path("five_legs")
