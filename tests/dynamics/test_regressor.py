"""The regressor against MuJoCo's own equations of models whose parameters were edited."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from support.compiled import compiled
from support.parameter_tree import TREE

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.dynamics import linear_parameters, reference_regressor
from mbcasadi.errors import ProblemError, UnknownNameError, UnsupportedFeatureError
from mbcasadi.plant.model_attributes import forget_common_frames

EXACT = 1e-9  # relative to the largest force: rounding of MuJoCo and of ours
STEP, BY_DIFFERENCE = 1e-6, 1e-6

MODELS = [TREE, *(str(models.path(name)) for name in models.names())]


def name_of(source):
    return "tree" if source is TREE else source.rpartition("/")[2]


def compile_model(source):
    """Return a model whose masses can be edited: MuJoCo shortens that of a "simple" body."""
    read = mujoco.MjSpec
    spec = read.from_string(source) if source is TREE else read.from_file(source)
    for body in spec.bodies[1:]:
        if hasattr(body, "simple"):  # from 4.0 on
            body.simple = 0
    model = spec.compile()
    if np.any(model.body_simple[1:] * model.body_dofnum[1:]):
        pytest.skip(f"MuJoCo {mujoco.__version__} cannot edit a body with a diagonal mass matrix")
    return model


def randomise(model, theta, rng):
    """Give a model random bodies and joints; return θ by Steiner's theorem."""
    values = []
    forget_common_frames(model, 1, "inertia")
    for item in theta.items:
        if item.attribute == "mass":
            body = item.index
            model.body_mass[body] = rng.uniform(0.1, 2.0)
            model.body_ipos[body] = com = 0.3 * rng.standard_normal(3)
            model.body_iquat[body] = quat = np.linalg.qr(rng.standard_normal((4, 1)))[0].ravel()
            model.body_inertia[body] = rng.uniform(0.1, 0.2, 3)
            R = np.zeros(9)
            mujoco.mju_quat2Mat(R, quat)
            R, m = R.reshape(3, 3), model.body_mass[body]
            origin = R @ np.diag(model.body_inertia[body]) @ R.T
            origin += m * (com @ com * np.eye(3) - np.outer(com, com))
            values += [m, *(m * com), *np.diag(origin), origin[0, 1], origin[0, 2], origin[1, 2]]
        elif item.kind == "joint":
            dofs = model.dof_jntid == item.index
            values.append(rng.uniform(0.0, 0.5))
            getattr(model, f"dof_{item.attribute}")[dofs] = values[-1]
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return np.array(values)


def state(model, rng):
    data = mujoco.MjData(model)
    data.qpos = model.qpos0 + rng.standard_normal(model.nq)
    mujoco.mj_normalizeQuat(model, data.qpos)
    data.qvel = 3 * rng.standard_normal(model.nv)
    mujoco.mj_forward(model, data)
    return data


@pytest.mark.parametrize("source", MODELS, ids=name_of)
@pytest.mark.every(3)
def test_the_equations_are_those_of_mujoco_for_any_parameters(source):
    rng = np.random.default_rng(0)
    system, model = mb.read_mjcf(source), compile_model(source)
    theta, Y_of = linear_parameters(system), mb.regressor(system)
    for _ in range(3):
        values = randomise(model, theta, rng)
        data = state(model, rng)
        a, M = 5 * rng.standard_normal(model.nv), np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        expected = M @ a + data.qfrc_bias - data.qfrc_passive
        Y, rest = (x.full() for x in Y_of(data.qpos, data.qvel, a))
        error = np.abs(Y @ values + rest.ravel() - expected).max()
        assert error < EXACT * np.abs(expected).max()


def test_the_values_of_the_model_give_its_own_inverse_dynamics_and_reference_form():
    system, rng = mb.read_mjcf(TREE), np.random.default_rng(1)
    theta = linear_parameters(system)
    some = ["body:fore:*", "joint:*:damping"]
    q = system.tree.q0 + 0.5 * rng.standard_normal(system.nq)
    v, v_r, a = rng.standard_normal((3, system.nv))
    M, C = system.mass_matrix(q), system.coriolis_matrix(q, v)
    still = system.gravity_force(q) - system.passive_force(q, v)
    for patterns, values in ((["*"], theta.values), (some, linear_parameters(system, some).values)):
        for Y_of, rates, expected in (
            (mb.regressor(system, patterns), (v, a), mb.inverse_dynamics(system)(q, v, a)),
            (reference_regressor(system, patterns), (v, v_r, a), M @ a + C @ v_r + still),
        ):
            Y, rest = Y_of(q, *rates)
            difference = (Y @ values + rest - expected).full()
            assert np.abs(difference).max() < EXACT * np.abs(np.array(expected)).max()


def test_names_units_and_values_of_the_parameters():
    theta = linear_parameters(mb.read_mjcf(TREE), ["body:ball:*", "joint:slide:*", "joint:b*"])
    assert theta.names[:3] == ("body:ball:mass", "body:ball:first_moment.x", *theta.names[2:3])
    assert theta.names[4] == "body:ball:origin_inertia.xx"
    units = dict(zip(theta.names, theta.units, strict=True))
    assert units["body:ball:first_moment.z"] == "kg m"
    assert (units["joint:slide:armature"], units["joint:ball:damping"]) == ("kg", "N m s/rad")
    at = dict(zip(theta.names, theta.values, strict=True))
    assert at["body:ball:first_moment.x"] == pytest.approx(0.06)
    assert at["body:ball:origin_inertia.xx"] == pytest.approx(0.01 + 0.6 * (0.02**2 + 0.1**2))
    assert at["joint:slide:damping"] == 3.0


def test_physical_parameters_as_input_stay_in_the_rest_and_gravity_in_the_columns():
    names = ["gravity", "joint:shoulder:stiffness", "body:upper:gravcomp", "body:fore:mass"]
    system, rng = mb.read_mjcf(TREE, parameters=names), np.random.default_rng(2)
    patterns = ["body:base:*", "body:upper:*"]
    Y_of, theta = mb.regressor(system, patterns), linear_parameters(system, patterns)
    assert Y_of.name_in() == ["q", "v", "a", "p"]
    p = system.parameters.values * (1 + 0.3 * rng.uniform(-1, 1, len(system.parameters)))
    q, (v, a) = rng.standard_normal(system.nq), rng.standard_normal((2, system.nv))
    Y, rest = Y_of(q, v, a, p)
    expected = mb.inverse_dynamics(system)(q, v, a, p)
    assert np.abs((Y @ theta.values + rest - expected).full()).max() < EXACT * 100


def test_derivatives_and_generated_c(tmp_path):
    system, rng = mb.read_mjcf(models.path("five_bar")), np.random.default_rng(3)
    Y_of = mb.regressor(system)
    q, v, a = rng.standard_normal((3, system.nv))
    program = compiled(Y_of, tmp_path)
    for ours, theirs in zip(Y_of(q, v, a), program(q, v, a), strict=True):
        np.testing.assert_allclose(ours.full(), theirs.full(), rtol=0, atol=1e-13)
    slope = ca.Function(
        "slope", Y_of.sx_in(), [ca.jacobian(ca.vec(Y_of(*Y_of.sx_in())[0]), Y_of.sx_in()[0])]
    )
    for k, step in enumerate(STEP * np.eye(system.nq)):
        ends = [Y_of(q + s * step, v, a)[0].full().ravel(order="F") for s in (1, -1)]
        expected = (ends[0] - ends[1]) / (2 * STEP)
        found = slope(q, v, a).full()[:, k]
        assert np.abs(found - expected).max() < BY_DIFFERENCE * (1 + np.abs(expected).max())


def test_systems_without_such_parameters_are_refused():
    system = mb.read_mjcf(TREE)
    with pytest.raises(UnknownNameError, match="body:fore:mass"):
        mb.regressor(system, ["body:forre:mass"])
    q = ca.SX.sym("q")
    given = mb.from_equations(q, ca.SX.sym("v"), M=ca.SX(1), h=ca.SX(0))
    with pytest.raises(ProblemError, match="name no bodies"):
        linear_parameters(given)


IN_WATER = """<mujoco><option density="1000" viscosity="1"/><worldbody><body name="{name}">
<joint name="hinge" axis="0 1 0" damping=".1"/><geom type="box" size=".1 .2 .3" pos=".3 0 0"
  {shape}/></body></worldbody></mujoco>"""


def test_masses_of_bodies_that_meet_a_medium_as_their_inertia_boxes_are_refused():
    boxed = mb.read_mjcf(IN_WATER.format(name="fin", shape=""))
    for refused in (mb.regressor, mb.linear_parameters):
        with pytest.raises(UnsupportedFeatureError, match=r"'fin'.*inertia box.*ellipsoid"):
            refused(boxed)
    assert mb.linear_parameters(boxed, ["joint:*"]).values == pytest.approx([0.0, 0.1])
    shaped = mb.read_mjcf(IN_WATER.format(name="fin", shape='fluidshape="ellipsoid"'))
    theta = mb.linear_parameters(shaped).values
    q, v, a = [0.3], [2.0], [1.5]
    Y, y_0 = mb.regressor(shaped)(q, v, a)
    expected = shaped.mass_matrix(q) @ ca.DM(a) + shaped.bias_force(q, v)
    force = float(Y @ theta + y_0)
    assert force == pytest.approx(float(expected - shaped.passive_force(q, v)), rel=1e-12)
