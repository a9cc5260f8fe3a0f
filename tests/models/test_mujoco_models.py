"""The models compile without a warning and start in a state that their constraints allow."""

import mujoco
import numpy as np
import pytest

from mbcasadi import models

# Text holds 16 digits; a pose composed of a dozen transforms rounds at a few 1e-16 m.
CLOSED = 1e-12
SMALLEST_SINGULAR_VALUE = 1e-9

RANK_AND_ROWS = {
    "arm_gripper": (5, 7),
    "bricard": (5, 6),
    "cooperating_arms": (2, 3),
    "five_bar": (2, 3),
    "flexible_slider_crank": (2, 3),
    "four_bar": (2, 3),
    "parallelogram": (3, 6),
    "particle_on_circle": (2, 3),
    "planar_3rrr": (6, 9),
    "prr_arm": (2, 3),
    "slider_crank": (2, 3),
    "spatial_loop": (3, 6),
    "two_arm_carry": (3, 6),
}

# Mechanisms with one loop or several, or a switch, that nothing supports but their constraints.
SIMULATED = (
    "bricard",
    "five_bar",
    "flexible_slider_crank",
    "parallelogram",
    "particle_on_circle",
    "planar_3rrr",
    "prr_arm",
    "topology_switch",
)
DURATION = 2.0  # s
CHECKED = 20  # steps between checks
STIR = 0.5  # speed at the start along the freedom left; rad/s, m/s
GAP = 2e-3  # m, rad; how far MuJoCo's soft rows give way
SMALL_CHANGE = 2e-2  # of the energy, by the stiffness of soft rows


def null_direction(model: mujoco.MjModel) -> np.ndarray:
    """Return one unit velocity (nv,) that the equality constraints allow at `qpos0`.

    It is the projection of a fixed vector: signs and order of a null basis belong to LAPACK.
    """
    _, jacobian = equality_rows(model, model.qpos0)
    fixed = np.cos(np.arange(model.nv))
    inverse = np.linalg.pinv(jacobian, rcond=SMALLEST_SINGULAR_VALUE)
    along = fixed - inverse @ (jacobian @ fixed)
    return along / np.linalg.norm(along)


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


@pytest.fixture(params=models.names())
def model(request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]) -> mujoco.MjModel:
    compiled = mujoco.MjModel.from_xml_path(str(models.path(request.param)))
    printed = capfd.readouterr()
    assert "warning" not in (printed.out + printed.err).lower()
    return compiled


def test_every_model_has_the_name_of_its_file_and_needs_no_mesh(model: mujoco.MjModel) -> None:
    assert model.names[: model.names.index(b"\0")].decode() in models.names()
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
    model = mujoco.MjModel.from_xml_path(str(models.path(name)))
    rank, rows = RANK_AND_ROWS[name]
    for q in states(model):
        _, jacobian = equality_rows(model, q)
        values = np.linalg.svd(jacobian, compute_uv=False)
        assert jacobian.shape[0] == rows
        assert (values > SMALLEST_SINGULAR_VALUE).sum() == rank


def test_the_slider_crank_loses_one_more_rank_where_its_crank_stands_upright() -> None:
    model = mujoco.MjModel.from_xml_path(str(models.path("slider_crank")))
    residual, jacobian = equality_rows(model, np.array([np.pi / 2, 0.0, np.pi / 2]))
    assert np.abs(residual).max() < CLOSED
    assert np.linalg.matrix_rank(jacobian, tol=SMALLEST_SINGULAR_VALUE) == 1


@pytest.mark.parametrize(("name", "rank"), [("spatial_loop", 3), ("bricard", 5)])
@pytest.mark.every(2)
def test_an_overconstrained_loop_keeps_moving_and_keeps_its_rank(name: str, rank: int) -> None:
    """A Newton walk along the null space, all the way round in 200 small steps."""
    model = mujoco.MjModel.from_xml_path(str(models.path(name)))
    q, last, walk = model.qpos0.copy(), None, []
    for _ in range(200):
        for _ in range(8):
            residual, jacobian = equality_rows(model, q)
            q = q - np.linalg.pinv(jacobian, rcond=SMALLEST_SINGULAR_VALUE) @ residual
        residual, jacobian = equality_rows(model, q)
        assert np.abs(residual).max() < CLOSED
        assert np.linalg.matrix_rank(jacobian, tol=SMALLEST_SINGULAR_VALUE) == rank
        along = np.linalg.svd(jacobian)[2][-1]
        along = along if last is None or along @ last > 0 else -along
        q, last = q + 0.05 * along, along
        walk.append(q)
    assert np.ptp(walk, axis=0).max() > np.pi


def test_the_third_crank_of_the_parallelogram_is_redundant_everywhere() -> None:
    """Rank 3 of 6 rows and 4 coordinates on the whole circle, and 2 at the flat poses."""
    model = mujoco.MjModel.from_xml_path(str(models.path("parallelogram")))
    hanging = model.qpos0[0]
    for crank in np.linspace(-np.pi, np.pi, 25):
        q = np.array([crank, hanging - crank, crank, crank])
        residual, jacobian = equality_rows(model, q)
        assert np.abs(residual).max() < CLOSED
        flat = np.isclose(np.sin(crank), 0.0)
        expected = 2 if flat else 3
        assert np.linalg.matrix_rank(jacobian, tol=SMALLEST_SINGULAR_VALUE) == expected


def test_the_tips_meet_on_the_middle_plane_where_the_latch_closes_and_takes_energy() -> None:
    model = mujoco.MjModel.from_xml_path(str(models.path("topology_switch")))
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key("apart").id)
    left, right = model.site("left_tip").id, model.site("right_tip").id
    mujoco.mj_forward(model, data)
    start = data.energy.sum()
    while data.site_xpos[left, 0] < 0:
        mujoco.mj_step(model, data)
        assert data.time < 1.0
    before = data.energy.sum()
    assert abs(before - start) < SMALL_CHANGE * abs(start)  # nothing is lost in the swing
    np.testing.assert_allclose(data.site_xpos[left, 2], data.site_xpos[right, 2], atol=CLOSED)
    np.testing.assert_allclose(data.site_xpos[left, 0], -data.site_xpos[right, 0], atol=CLOSED)
    data.eq_active[model.eq("latch").id] = 1
    for _ in range(400):
        mujoco.mj_step(model, data)
    assert data.ne == 3
    assert np.linalg.norm(data.site_xpos[left] - data.site_xpos[right]) < GAP
    assert before - data.energy.sum() > 0.01


@pytest.mark.parametrize("name", SIMULATED)
def test_a_released_mechanism_stays_together_for_two_seconds_and_gains_no_energy(name: str) -> None:
    model = mujoco.MjModel.from_xml_path(str(models.path(name)))
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    data = mujoco.MjData(model)
    data.qvel[:] = STIR * null_direction(model)
    mujoco.mj_forward(model, data)
    start, highest, farthest = data.energy.sum(), -np.inf, 0.0
    for _ in range(round(DURATION / model.opt.timestep / CHECKED)):
        for _ in range(CHECKED):
            mujoco.mj_step(model, data)
        assert np.abs(data.efc_pos[: data.ne]).max(initial=0) < GAP
        highest = max(highest, data.energy.sum())
        farthest = max(farthest, np.abs(data.qpos - model.qpos0).max())
    assert not any(warning.number for warning in data.warning)
    assert np.isfinite(data.qpos).all()
    assert farthest > 0.1  # rad or m: it did move
    assert highest - start < SMALL_CHANGE * max(1.0, abs(start))


@pytest.mark.parametrize(("name", "points"), [("quadruped", 4), ("humanoid", 8)])
def test_legged_models_stand_with_their_soles_on_the_floor(name: str, points: int) -> None:
    model = mujoco.MjModel.from_xml_path(str(models.path(name)))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key("stand").id)
    mujoco.mj_kinematics(model, data)
    soles = [g for g in range(model.ngeom) if model.geom_contype[g]]
    height = data.geom_xpos[soles, 2] - model.geom_size[soles, 0]
    assert len(soles) == points
    assert np.abs(height).max() < CLOSED


def test_the_quadruped_weighs_what_its_maker_says() -> None:
    # 15 kg with battery, to the half kilogram that the data sheet leaves open.
    model = mujoco.MjModel.from_xml_path(str(models.path("quadruped")))
    assert abs(model.body_mass.sum() - 15.0) < 0.5


def test_an_unknown_model_is_answered_with_the_list_of_names() -> None:
    with pytest.raises(KeyError, match="four_bar"):
        models.path("five_legs")
