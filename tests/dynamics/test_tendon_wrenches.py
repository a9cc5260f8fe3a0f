"""Spatial tendons on bodies: MuJoCo's external wrenches, duality, and what sensors read."""

from dataclasses import replace
from functools import cache

import casadi as ca
import mujoco
import numpy as np
import pytest
from support.compiled import compiled
from support.hard_cases import mjcf
from support.sensor_models import wild_state
from support.spatial_tendons import CASES, WORLD, WRAPPING, WRAPS, spatial

from mbcasadi.dynamics import constraint_wrenches, predicted_readings, tendon_wrenches, wrench_force
from mbcasadi.mjcf.compat import counts_spatial_tendons
from mbcasadi.plant import Plant, applied_wrenches, external_wrenches
from mbcasadi.system import read_mjcf
from mbcasadi.validation.agreement import agreement_with_mujoco

AGREES = 1e-9  # relative to the largest entry
DUAL = 1e-11
DIFFERENCE = 1e-6  # relative, of central differences
STEP = 1e-6

CRANE = (
    '<body name="post" pos="0 0 .3"><geom size=".1"/><site name="p" pos=".1 0 0"/></body>'
    '<body name="base" pos=".2 0 0"><joint name="yaw" type="ball"/><geom size=".1" mass="2"/>'
    '<site name="b" pos="0 .1 0"/><body name="cab" pos="0 0 .4"><geom size=".1" mass="1"/>'
    '<site name="k" pos=".1 .2 .1" euler="10 20 30"/><body name="boom" pos=".1 0 0">'
    '<joint name="lift" axis="0 1 .2" actuatorfrclimited="true" actuatorfrcrange="-.1 .1"/>'
    '<geom size=".1" pos=".5 0 0" mass=".5"/><site name="o" pos=".9 .1 0" euler="30 0 5"/>'
    '</body></body></body><site name="w" pos="1 2 1"/>'
)
HOIST = mjcf(
    CRANE,
    "<tendon>"
    + spatial("line", "p b k o /2 w k p w", 'stiffness="30" damping="2" springlength=".1"')
    + spatial("stay", "w o", 'armature="1" limited="true" range="0 1.2" frictionloss="2"')
    + '<fixed name="pair" stiffness="3"><joint joint="lift" coef="2"/></fixed></tendon>'
    '<actuator><motor tendon="line" gear="2"/><position tendon="stay" kp="9" armature=".5" '
    'damping=".2"/></actuator><sensor><force name="neck" site="k"/><torque site="k"/>'
    '<force name="tip" site="o"/><accelerometer site="o"/></sensor>',
    '<option><flag contact="disable"/></option>',
)
"""Tendons between welded bodies, on static ones, on joints that clip; welded bodies have sensors.
"""

pytestmark = pytest.mark.skipif(
    not counts_spatial_tendons(), reason="MuJoCo before 3.14 counts no forces of tendons"
)
ALL_CASES = {"crane": HOIST} | CASES


@cache
def system_of(xml):
    """Return the system of a model, with the Functions that were made of it."""
    return read_mjcf(xml)


def inputs(function, data):
    """Return MuJoCo's numbers in the order of a Function's inputs."""
    numbers = {"q": data.qpos, "v": data.qvel, "a": data.qacc, "u": data.ctrl, "act": data.act}
    return [numbers[name] for name in function.name_in()]


@pytest.mark.parametrize("xml", [pytest.param(xml, id=name) for name, xml in ALL_CASES.items()])
def test_external_wrenches_of_mujoco_are_those_of_all_forces_of_tendons(xml):
    model, system = mujoco.MjModel.from_xml_string(xml), system_of(xml)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    ours, largest = tendon_wrenches(system), 0.0
    for seed in range(5):
        data = wild_state(model, np.random.default_rng(seed))
        wrenches = ours(*inputs(ours, data)).full()
        if system.nc:
            wrenches += constraint_wrenches(system)(data.qpos, data.efc_force[: data.ne]).full()
        total = external_wrenches(model, data)
        wrenches += applied_wrenches(model, data)
        assert np.abs(wrenches - total).max() < AGREES * np.abs(total).max()
        largest = max(largest, np.abs(total - applied_wrenches(model, data)).max())
    assert largest > 1.0


def test_wrenches_are_dual_to_rows_around_geoms_and_pulleys():
    """`Σ J_bᵀ w_b = Jᵀ F`, all passive force being that of tendons."""
    rng, system = np.random.default_rng(0), system_of(WRAPPING)
    ours, on_joints = tendon_wrenches(system), wrench_force(system)
    for _ in range(5):
        q = system.integrate(system.tree.q0, 0.5 * rng.normal(size=system.nv))
        v, a = rng.normal(size=(2, system.nv))
        expected = system.passive_force(q, v)
        assert float(ca.norm_inf(expected)) > 1.0
        error = float(ca.norm_inf(on_joints(q, ours(q, v, a)) - expected))
        assert error < DUAL * float(ca.norm_inf(expected))


def test_multipliers_of_couplings_act_along_spatial_tendons_only():
    """`Σ J_bᵀ w_b = Aᵀ lam` without the row of the fixed tendon, `2 q0` in `0.3 x + 0.2 x²`."""
    system, rng = system_of(CASES["equalities"]), np.random.default_rng(0)
    q, lam = rng.normal(size=system.nq), 10.0 * rng.normal(size=system.nc)
    expected = (system.constraint_jacobian(q).T @ lam).full().ravel()
    expected[0] += 2.0 * (0.3 + 0.4 * 2.0 * q[0]) * lam[1]
    own = wrench_force(system)(q, constraint_wrenches(system)(q, lam)).full().ravel()
    assert np.abs(own - expected).max() < DUAL
    assert np.abs(own).max() > 0.1


@pytest.mark.parametrize("jacobian", ["dense", "sparse"])
def test_limits_and_friction_of_a_spatial_tendon_are_applied_to_its_bodies(jacobian):
    tight = 'limited="true" range=".1 .4" frictionloss="2"'
    fixed = '<fixed frictionloss="2"><joint joint="h" coef="2"/></fixed>'
    tendons = spatial("t", WRAPS["pulleys"], tight) + spatial("r", "a s m", tight) + fixed
    option = f'<option jacobian="{jacobian}"/>'
    model = mujoco.MjModel.from_xml_string(mjcf(WORLD, f"<tendon>{tendons}</tendon>", option))
    for seed in range(4):
        data = wild_state(model, np.random.default_rng(seed))
        total = external_wrenches(model, data)
        assert np.abs(total).max() > 100.0
        assert np.abs(applied_wrenches(model, data) - total).max() < AGREES * np.abs(total).max()


def test_what_a_tendon_pulls_reads_as_predicted():
    system, plant, rng = system_of(HOIST), Plant(HOIST), np.random.default_rng(0)
    predicted = predicted_readings(system, derivatives=False)
    limited = 0
    for _ in range(4):
        start = plant.integrate(None, 0.6 * rng.normal(size=plant.nv))
        plant.reset(start, rng.normal(size=plant.nv))
        measured = plant.measure([1.5, -0.7])
        limited += np.count_nonzero(
            plant.data.efc_type == mujoco.mjtConstraint.mjCNSTR_LIMIT_TENDON
        )
        given = (measured.q, measured.v, np.zeros(plant.nv), measured.u)
        y, a, _ = predicted(*given, plant.applied_wrenches)
        expected = np.array(plant.data.sensordata)
        assert np.abs(y.full().ravel() - expected).max() < AGREES * np.abs(expected).max()
        assert np.abs(a.full().ravel() - measured.a).max() < AGREES * np.abs(measured.a).max()
    assert limited


def test_derivatives_are_differences_and_generated_c_is_the_function(tmp_path):
    system, rng = system_of(HOIST), np.random.default_rng(2)
    ours, nv = tendon_wrenches(system), system.nv
    q = system.integrate(system.tree.q0, 0.4 * rng.normal(size=nv)).full().ravel()
    point = [q, *rng.normal(size=(2, nv)), rng.normal(size=2)]
    direction = [rng.normal(size=np.shape(x)) for x in point]
    slope = ours.forward(1)(*point, ours(*point), *direction).full()
    ends = [
        ours(*(x + s * d for x, d in zip(point, direction, strict=True))).full()
        for s in (STEP, -STEP)
    ]
    expected = (ends[0] - ends[1]) / (2 * STEP)
    assert np.abs(slope - expected).max() < DIFFERENCE * np.abs(expected).max()
    value = ours(*point).full()
    error = np.abs(compiled(ours, tmp_path)(*point).full() - value).max()
    assert error < DUAL * np.abs(value).max()


def test_the_check_of_a_model_compares_the_wrenches_and_finds_wrong_ones():
    model, system = mujoco.MjModel.from_xml_string(HOIST), system_of(HOIST)
    system = replace(system, _cache={**system._cache})  # a wrong Function stays here
    for stiffness, agrees in (("30", True), ("31", False)):
        other = HOIST.replace('stiffness="30"', f'stiffness="{stiffness}"')
        system._cache["tendon_wrenches"] = tendon_wrenches(read_mjcf(other))
        entries = agreement_with_mujoco(system, model, states=2, frames=0)
        assert {e.agrees for e in entries if e.quantity == "tendon_wrenches"} == {agrees}
        assert all(e.agrees for e in entries if e.quantity != "tendon_wrenches")
