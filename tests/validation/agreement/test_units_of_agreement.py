"""The comparison with MuJoCo has no unit: a micrometre is judged as a metre is.

Models are converted number by number, and MuJoCo itself says that they are the same mechanism.
"""

import copy
from functools import cache
from operator import attrgetter

import mujoco
import numpy as np
import pytest
from support.model_units import configuration_in, coordinate_sizes, in_units
from support.unit_cases import CASES
from support.unit_systems import SI, Units

from mbcasadi import models
from mbcasadi.system import read_mjcf
from mbcasadi.validation.agreement import agreement_with_mujoco, judge, quantities
from mbcasadi.validation.agreement.mujoco_values import random_draw, sample_at
from mbcasadi.validation.agreement.sizes import measure_sizes

MM_G_S = Units(m=1e3, kg=1e3)
KM_T_MIN = Units(m=1e-3, kg=1e-3, s=1 / 60)
# Of 1e-6 m and 1e6 m; the masses keep the inertias above MuJoCo's smallest number
MICROMETRE, MEGAMETRE = Units(m=1e-6, kg=1e9), Units(m=1e6)
OTHERS = (KM_T_MIN, MICROMETRE)  # of all cases; some are looked at in the others too
FEW = {"states": 3, "frames": 1}

PLANTED = 1e-6  # relative, in one number
ROUNDING = 1e-11  # a tenth of what agrees; measured 2e-12


def changed(model, change):
    """Return a copy with one number changed."""
    new = copy.copy(model)
    change(new)
    return new


@cache
def model_in(name, units):
    """Return a case, or a model of the package, in other units."""
    if name in CASES:
        return in_units(mujoco.MjModel.from_xml_string(CASES[name]), units)
    return in_units(mujoco.MjModel.from_xml_path(str(models.path(name))), units)


@cache
def system_in(name, units):
    return read_mjcf(model_in(name, units))


def judged(name, units):
    """Return the comparison of a right model."""
    return judge(agreement_with_mujoco(system_in(name, units), model_in(name, units), **FEW))


def errors(name, units, change):
    """Return the errors of the system of a model beside a MuJoCo that has another number."""
    wrong = changed(model_in(name, units), change)
    entries = agreement_with_mujoco(system_in(name, units), wrong, **FEW)
    return {entry.quantity: entry.error for entry in entries}


def assert_same_mechanism(model, new, u):
    """Assert that MuJoCo's own forces of the two are the same."""
    rng, size = np.random.default_rng(5), coordinate_sizes(model, u)
    q, v = np.array(model.qpos0), rng.normal(size=model.nv)
    mujoco.mj_integratePos(model, q, rng.normal(size=model.nv), 1.0)
    act, found = rng.normal(size=model.na), []
    ctrl = np.full(model.nu, 0.1)
    for each, position, rate in (
        (model, q, v),
        (new, configuration_in(model, q, u), v * size / u.s),
    ):
        data = mujoco.MjData(each)
        data.qpos, data.qvel, data.act, data.ctrl = position, rate, act, ctrl
        mujoco.mj_forward(each, data)
        mujoco.mj_energyVel(each, data)
        found.append((data.energy[1], data.qfrc_smooth.copy()))
    (energy, force), (other_energy, other_force) = found
    np.testing.assert_allclose(other_energy, energy * u.torque, rtol=1e-10)
    scale = np.abs(force).max() + energy  # SI: the force of a mechanism without forces is rounding
    np.testing.assert_allclose(other_force * size / u.torque / scale, force / scale, atol=1e-10)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.every(5)
def test_a_right_model_agrees_in_all_units(name):
    for units in (SI, *OTHERS):
        new = model_in(name, units)
        assert_same_mechanism(model_in(name, SI), new, units)
        entries = agreement_with_mujoco(system_in(name, units), new, **FEW)
        assert judge(entries).passed, (units, judge(entries))
        worst = max(entries, key=lambda entry: entry.error)
        assert worst.error < ROUNDING, (units, worst)


@pytest.mark.parametrize("name", ["weld", "joint couplings", "no gravity, servo"])
def test_natural_sizes_are_those_of_the_units(name):
    model = mujoco.MjModel.from_xml_string(CASES[name])

    def measured(u):
        new, size = in_units(model, u), coordinate_sizes(model, u)
        sizes = measure_sizes(new)
        s = sample_at(new, sizes, random_draw(new, sizes, np.random.default_rng(1)))
        rows = s.sizes.rows / (u.m if name == "weld" else 1.0)
        return {
            "velocity": s.v / size * u.s,
            "force": quantities.size_of_force(s) * size / u.torque,
            "energy": quantities.size_of_energy(s) / u.torque,
            "actuation": quantities.size_of_actuation(s) * size[:, None] / u.torque,
            "frame": quantities.size_of_motion(s, 2)[:3] / u.m * u.s**2,
            "residual": rows[:3],
            "residual bias": quantities.size_of_constraint_bias(s)[:3] / s.sizes.rows[:3] * u.s**2,
        }

    expected = measured(SI)
    assert expected["energy"] > 0.1
    for units in OTHERS:
        for key, value in measured(units).items():
            np.testing.assert_allclose(value, expected[key], rtol=1e-9, err_msg=key)


def scale_mass(model):
    model.body_mass[1:] *= 1 + PLANTED * np.arange(1, model.nbody)


def scaled(field, index=slice(None)):
    """Return a change of some numbers of a field."""

    def change(model):
        attrgetter(field)(model)[index] *= 1 + PLANTED

    change.__name__ = field
    return change


FORCES, ENERGIES = {"bias_force", "gravity_force"}, {"kinetic_energy", "potential_energy"}
ROWS = {"constraint", "constraint_jacobian", "constraint_bias"}
PLANTS = [
    ("free and ball joints", scale_mass, {"mass_matrix", *FORCES, *ENERGIES}),
    ("several joints", scaled("body_inertia", -1), {"mass_matrix", "bias_force", "kinetic_energy"}),
    ("several joints", scaled("opt.gravity"), {*FORCES, "potential_energy"}),
    ("springs", scaled("jnt_stiffness"), {"passive_force", "potential_energy"}),
    ("armature", scaled("dof_armature"), {"mass_matrix", "kinetic_energy"}),
    ("weld", scaled("eq_data", np.s_[0, :3]), ROWS),
    ("joint couplings", scaled("eq_data", (0, 1)), {"constraint", "constraint_jacobian"}),
    ("tendons", scaled("wrap_prm", 0), {"mass_matrix", "passive_force", *ENERGIES}),
    ("sites", scaled("site_pos"), {"actuation", "actuator_force", "actuator_bias"}),
    ("activation states", scaled("actuator_gainprm", (0, 0)), {"actuation", "actuator_force"}),
    ("activation states", scaled("actuator_dynprm", (2, 0)), {"act_dot"}),
    ("no gravity", scale_mass, {"mass_matrix", "bias_force", "kinetic_energy"}),
    ("no gravity, servo", scaled("dof_damping"), {"passive_force"}),
    ("no gravity, servo", scaled("actuator_biasprm", (0, 2)), {"actuator_force", "actuator_bias"}),
    ("no gravity, servo", scaled("actuator_gainprm", (0, 0)), {"actuation", "actuator_force"}),
    ("no gravity, dampers", scaled("dof_damping"), {"passive_force"}),
]


@pytest.mark.parametrize(
    ("name", "plant", "expected"), PLANTS, ids=[f"{n}: {p.__name__}" for n, p, _ in PLANTS]
)
@pytest.mark.every(5)
def test_one_wrong_number_gives_the_same_errors_in_all_units(name, plant, expected):
    reference = errors(name, SI, plant)
    wrong = {quantity for quantity, error in reference.items() if error > 1e-10}
    if expected & {"mass_matrix", "bias_force", "passive_force"}:
        expected = expected | {"regressor"}  # which is made of the same numbers
    assert {quantity for quantity in wrong if ":" not in quantity} == expected
    assert max(reference.values()) > PLANTED / 10
    for units in (KM_T_MIN, MICROMETRE, MEGAMETRE):
        found = errors(name, units, plant)
        assert found.keys() == reference.keys()
        for quantity, error in reference.items():
            assert found[quantity] == pytest.approx(error, rel=1e-3, abs=ROUNDING), quantity


@pytest.mark.parametrize("name", ["four_bar", "planar_3rrr", "quadruped"])
@pytest.mark.every(3)
def test_a_packaged_model_is_judged_alike_in_all_units(name):
    reference = errors(name, SI, scale_mass)
    assert reference["mass_matrix"] > 1e-10
    for units in (MM_G_S, KM_T_MIN):
        assert judged(name, units).passed
        found = errors(name, units, scale_mass)
        for quantity, error in reference.items():
            assert found[quantity] == pytest.approx(error, rel=1e-3, abs=ROUNDING), quantity


def test_a_turned_site_far_from_the_origin_is_found():
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><body pos="1e5 0 0"><joint axis="0 1 0"/><geom size=".1" pos=".2 0 0"/>'
        '<site name="s" pos=".1 0 0" quat="1 .1 .2 .3"/></body></worldbody></mujoco>'
    )

    def turn(new):
        new.site_quat[0] += PLANTED * np.array([0.0, 1.0, 0.0, 0.0])

    right, wrong = (
        agreement_with_mujoco(read_mjcf(model), each, **FEW)
        for each in (model, changed(model, turn))
    )
    assert judge(right).passed
    assert {entry.quantity: entry.error for entry in wrong}["site 's': pose"] > PLANTED / 10
