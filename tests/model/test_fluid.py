"""Fluid forces: MuJoCo's at any state, laws of drag, derivatives, and rest in the medium."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from support.compiled import compiled
from support.fluid_cases import AIR, BOXES, FLUID_CASES, MEDIUM, SHAPES, ellipsoid, swimmer
from support.hard_cases import mjcf

from mbcasadi import mjcf as reader
from mbcasadi import read_mjcf
from mbcasadi.model import passive_force

ROUNDING = 1e-12  # of the largest force at the state; forces of one state span 1e5
DIFFERENCE = 1e-6
STEP = 1e-6
SPEEDS = (1e-4, 1e-1, 1.0, 30.0)  # m/s, rad/s: crawling to wild
DENSITY, VISCOSITY, RADIUS = 3.0, 0.5, 0.2
WHOLE = ("boxes", "two ellipsoids on one body", "wing")


def model_of(case):
    return mujoco.MjModel.from_xml_string(FLUID_CASES[case])


def force_of(xml, *names):
    """Return (q, v) → f_passive and, by name, its Jacobians by q and v."""
    tree = reader.read(xml).tree
    q, v = ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv)
    f = passive_force(tree, q, v)
    return ca.Function("force", [q, v], [f, *(ca.jacobian(f, {"q": q, "v": v}[n]) for n in names)])


def state(model, rng, speed):
    q = np.array(model.qpos0)
    mujoco.mj_integratePos(model, q, rng.normal(size=model.nv), 1.0)
    return q, speed * rng.normal(size=model.nv)


@pytest.mark.parametrize("case", FLUID_CASES)
def test_fluid_forces_are_those_of_mujoco_at_any_speed(case):
    model, f = model_of(case), force_of(FLUID_CASES[case])
    data, rng = mujoco.MjData(model), np.random.default_rng(3)
    acts = 'spring="disable" damper' not in case
    for speed in SPEEDS:
        for _ in range(4):
            data.qpos, data.qvel = state(model, rng, speed)
            mujoco.mj_forward(model, data)
            assert np.any(data.qfrc_fluid) == acts
            error = np.abs(f(data.qpos, data.qvel).full()[:, 0] - data.qfrc_passive).max()
            assert error <= ROUNDING * np.abs(data.qfrc_passive).max(), (speed, error)


@pytest.mark.parametrize("case", WHOLE)
def test_derivatives_are_those_of_differences(case):
    model, f = model_of(case), force_of(FLUID_CASES[case], "q", "v")
    rng = np.random.default_rng(5)
    q, v = state(model, rng, 1.0)
    _, by_q, by_v = (x.full() for x in f(q, v))
    for jacobian, place in ((by_q, 0), (by_v, 1)):
        for k in range(jacobian.shape[1]):
            up, down = [q.copy(), v.copy()], [q.copy(), v.copy()]
            up[place][k] += STEP
            down[place][k] -= STEP
            slope = (f(*up)[0] - f(*down)[0]).full()[:, 0] / (2 * STEP)
            scale = max(np.abs(jacobian).max(), 1e-9)
            np.testing.assert_allclose(jacobian[:, k] / scale, slope / scale, atol=DIFFERENCE)


@pytest.mark.parametrize("shape", SHAPES)
def test_at_rest_in_the_wind_the_derivative_is_that_of_viscosity(shape):
    """A free body that drifts with the wind: no force, and no NaN in its derivatives."""
    body = f'<body><freejoint/>{ellipsoid(SHAPES[shape])}<geom size=".01"/></body>'
    f = force_of(mjcf(body, option=MEDIUM.format("")), "q", "v")
    thin = force_of(mjcf(body, option='<option viscosity=".3" wind="1.3 -.7 .4"/>'), "q", "v")
    q, v = [0.1, 0.2, 0.3, 0.5, 0.5, -0.5, 0.5], [1.3, -0.7, 0.4, 0, 0, 0]
    force, by_q, by_v = (x.full() for x in f(q, v))
    np.testing.assert_allclose(force, 0.0, atol=1e-15)
    for found, expected in zip((by_q, by_v), thin(q, v)[1:], strict=True):
        assert np.all(np.isfinite(found))
        np.testing.assert_allclose(found, expected.full(), atol=1e-12)
    assert np.linalg.norm(by_v) > 0


def test_still_bodies_in_still_air_have_finite_second_derivatives():
    for case in ("boxes in air", "ellipsoid"):
        tree = reader.read(FLUID_CASES[case]).tree
        q, v = ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv)
        power = ca.dot(v, passive_force(tree, q, v))
        x = ca.vertcat(q, v)
        hessian = ca.Function("H", [q, v], [ca.hessian(power, x)[0]])
        wind = np.zeros(tree.nv)
        wind[:3] = tree.fluid.wind
        assert np.all(np.isfinite(hessian(tree.q0, wind).full()))


def test_a_slow_sphere_meets_stokes_law():
    """F = -6 π η r v and N = -8 π η r³ w, the closed form of a sphere."""
    sphere = f'type="sphere" size="{RADIUS}"'
    body = f'<body><freejoint/><geom {sphere} fluidshape="ellipsoid"/></body>'
    f = force_of(mjcf(body, option=f'<option viscosity="{VISCOSITY}"/>'))
    v, w = np.array([0.3, -0.2, 0.1]), np.array([0.5, 0.2, -0.4])
    found = f([0, 0, 0, 1, 0, 0, 0], np.append(v, w)).full()[:, 0]
    expected = np.append(
        -6 * np.pi * VISCOSITY * RADIUS * v, -8 * np.pi * VISCOSITY * RADIUS**3 * w
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_box_of_a_box_is_the_box():
    """A box geom of uniform density has its own sides: ½ ρ A v² on each face."""
    sides = np.array([0.2, 0.3, 0.5])
    size = " ".join(str(s / 2) for s in sides)
    body = f'<body><freejoint/><geom type="box" size="{size}"/></body>'
    f = force_of(mjcf(body, option=f'<option density="{DENSITY}"/>'))
    for k in range(3):
        v = np.zeros(6)
        v[k] = -2.0
        area = np.prod(sides) / sides[k]
        found = f([0, 0, 0, 1, 0, 0, 0], v).full()[:, 0]
        np.testing.assert_allclose(found[k], 0.5 * DENSITY * area * 4.0, rtol=1e-9)


@pytest.mark.parametrize("case", ["boxes in air", "ellipsoid"])
def test_still_air_takes_energy_whatever_the_motion(case):
    xml = FLUID_CASES[case].replace('wind="1.3 -.7 .4"', "")
    model, f = mujoco.MjModel.from_xml_string(xml), force_of(xml)
    rng = np.random.default_rng(8)
    for _ in range(30):
        q, v = state(model, rng, 2.0)
        assert float(ca.dot(v, f(q, v))) < 0


def test_the_compiled_force_is_the_evaluated_one(tmp_path):
    system = read_mjcf(FLUID_CASES["wing"])
    c = compiled(system.passive_force, tmp_path)
    rng = np.random.default_rng(2)
    for speed in (0.0, 1.0):
        q, v = state(model_of("wing"), rng, speed)
        np.testing.assert_allclose(
            c(q, v).full(), system.passive_force(q, v).full(), rtol=1e-12, atol=1e-15
        )


def test_coverage_names_the_model_of_each_body():
    used = [item.feature for item in read_mjcf(FLUID_CASES["box"]).coverage.by("used")]
    assert "body 'trunk': fluid forces on its inertia box" in used
    assert "geom 'box': fluid forces on its ellipsoid" in used
    (boxes,) = [
        item.feature
        for item in read_mjcf(mjcf(BOXES, option=AIR)).coverage.by("used")
        if "fluid" in item.feature
    ]
    assert "'nothing'" not in boxes  # it has no mass
    still = read_mjcf(mjcf(swimmer(SHAPES["box"])))
    assert not [item for item in still.coverage.items if "fluid" in item.feature]
    assert still.tree.fluid is None
