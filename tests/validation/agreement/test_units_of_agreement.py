"""The comparison with MuJoCo has no unit: a micrometre is judged as a metre is.

Models are converted number by number, and MuJoCo itself says that they are the same mechanism.
"""

import copy
from collections.abc import Callable

import mujoco
import numpy as np
import pytest
from support.hard_cases import ACTUATORS, EQUALITIES, HARD_CASES, JOINTS, TENDONS, arm, mjcf
from support.model_units import configuration_in, coordinate_sizes, in_units
from support.unit_systems import SI, Units

from mbcasadi import models
from mbcasadi.system import read_mjcf
from mbcasadi.validation.agreement import compare, judge

MM_G_S = Units(m=1e3, kg=1e3)
KM_T_MIN = Units(m=1e-3, kg=1e-3, s=1 / 60)
# Of 1e-6 m and 1e6 m; the masses keep the inertias above MuJoCo's smallest number
MICROMETRE, MEGAMETRE = Units(m=1e-6, kg=1e9), Units(m=1e6)
OTHERS = (MM_G_S, KM_T_MIN, MICROMETRE, MEGAMETRE)
FEW = {"states": 3, "frames": 1}

PLANTED = 1e-6  # relative, in one number
ROUNDING = 1e-11  # a tenth of what agrees; measured 2e-12

WITHOUT_GRAVITY = '<option gravity="0 0 0"/>'
CASES = {
    "free and ball joints": JOINTS["free and ball joints on two trees"],
    "several joints": JOINTS["several joints on one body"],
    "springs": JOINTS["joint ref and springref"],
    "weld": EQUALITIES["weld with anchor, relpose and torquescale"],
    "joint couplings": EQUALITIES["joint couplings"],
    "tendon couplings": EQUALITIES["tendon couplings"],
    "repeated and empty rows": EQUALITIES["repeated and empty rows"],
    "tendons": TENDONS["fixed tendons with spring, dead band, damper and armature"],
    "sites": ACTUATORS["sites"],
    "servos on a ball joint": ACTUATORS["servos on a ball joint"],
    "activation states": ACTUATORS["activation states"],
    "ranges": ACTUATORS["force ranges of joints and tendons"],
    "compensation": HARD_CASES["gravity compensation"],
    "no gravity": mjcf(arm(), option=WITHOUT_GRAVITY),
    "no gravity, servo": mjcf(
        arm('<joint name="a" axis="0 1 0" damping=".3"/>', '<joint name="b" type="slide"/>'),
        '<actuator><position joint="b" kp="20" kv="2"/><motor joint="a" ctrlrange="-2 3"/>'
        "</actuator>",
        WITHOUT_GRAVITY,
    ),
    "no gravity, dampers": mjcf(
        arm('<joint name="a" axis="0 1 0" damping=".3"/>', '<joint name="b" damping="2"/>'),
        '<actuator><motor joint="a"/></actuator>',
        WITHOUT_GRAVITY,
    ),
    "linear rows": mjcf(
        '<body><joint name="a" type="slide"/><geom size=".1"/></body>'
        '<body pos="1 0 0"><joint name="b" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body>',
        '<equality><joint joint1="a" joint2="b" polycoef="0 .3 0 0 0"/></equality>',
        WITHOUT_GRAVITY,
    ),
    "slides only": mjcf(
        '<body><joint type="slide" stiffness="7"/><geom size=".1" mass="2"/>'
        '<body><joint type="slide" axis="1 1 0"/><geom size=".1" mass="1"/></body></body>'
    ),
}


def changed(model: mujoco.MjModel, change: Callable[[mujoco.MjModel], None]) -> mujoco.MjModel:
    """Return a copy with one number changed."""
    new = copy.copy(model)
    change(new)
    return new


def errors(model: mujoco.MjModel, wrong: mujoco.MjModel) -> dict[str, float]:
    """Return the errors of the system of a wrong model."""
    entries = compare(read_mjcf(wrong), model, **FEW)
    return {entry.quantity: entry.error for entry in entries}


def assert_same_mechanism(model: mujoco.MjModel, new: mujoco.MjModel, u: Units) -> None:
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
def test_a_right_model_agrees_in_all_units(name: str) -> None:
    model = mujoco.MjModel.from_xml_string(CASES[name])
    for units in (SI, *OTHERS):
        new = in_units(model, units)
        assert_same_mechanism(model, new, units)
        entries = compare(read_mjcf(new), new, **FEW)
        assert judge(entries).passed, (units, judge(entries))
        worst = max(entries, key=lambda entry: entry.error)
        assert worst.error < ROUNDING, (units, worst)


def scale_mass(model: mujoco.MjModel) -> None:
    model.body_mass[1:] *= 1 + PLANTED * np.arange(1, model.nbody)


def scale_inertia(model: mujoco.MjModel) -> None:
    model.body_inertia[-1] *= 1 + PLANTED


def scale_gravity(model: mujoco.MjModel) -> None:
    model.opt.gravity *= 1 + PLANTED


def scale_stiffness(model: mujoco.MjModel) -> None:
    model.jnt_stiffness[:] *= 1 + PLANTED


def scale_damping(model: mujoco.MjModel) -> None:
    model.dof_damping[:] *= 1 + PLANTED


def scale_anchor(model: mujoco.MjModel) -> None:
    model.eq_data[0, :3] *= 1 + PLANTED


def scale_coupling(model: mujoco.MjModel) -> None:
    model.eq_data[0, 1] *= 1 + PLANTED


def scale_coefficient(model: mujoco.MjModel) -> None:
    model.wrap_prm[0] *= 1 + PLANTED


def scale_site(model: mujoco.MjModel) -> None:
    model.site_pos[:] *= 1 + PLANTED


def scale_gain(model: mujoco.MjModel) -> None:
    model.actuator_gainprm[0, 0] *= 1 + PLANTED


def scale_bias(model: mujoco.MjModel) -> None:
    model.actuator_biasprm[0, 2] *= 1 + PLANTED


def scale_time(model: mujoco.MjModel) -> None:
    model.actuator_dynprm[2, 0] *= 1 + PLANTED


FORCES, ENERGIES = {"bias_force", "gravity_force"}, {"kinetic_energy", "potential_energy"}
ROWS = {"constraint", "constraint_jacobian", "constraint_bias"}
PLANTS = [
    ("free and ball joints", scale_mass, {"mass_matrix", *FORCES, *ENERGIES}),
    ("several joints", scale_inertia, {"mass_matrix", "bias_force", "kinetic_energy"}),
    ("several joints", scale_gravity, {*FORCES, "potential_energy"}),
    ("springs", scale_stiffness, {"passive_force", "potential_energy"}),
    ("weld", scale_anchor, ROWS),
    ("joint couplings", scale_coupling, {"constraint", "constraint_jacobian"}),
    ("tendons", scale_coefficient, {"mass_matrix", "passive_force", *ENERGIES}),
    ("sites", scale_site, {"actuation", "actuator_force", "actuator_bias"}),
    ("activation states", scale_gain, {"actuation", "actuator_force"}),
    ("activation states", scale_time, {"act_dot"}),
    ("no gravity", scale_mass, {"mass_matrix", "bias_force", "kinetic_energy"}),
    ("no gravity, servo", scale_damping, {"passive_force"}),
    ("no gravity, servo", scale_bias, {"actuator_force", "actuator_bias"}),
    ("no gravity, servo", scale_gain, {"actuation", "actuator_force"}),
    ("no gravity, dampers", scale_damping, {"passive_force"}),
]


@pytest.mark.parametrize(
    ("name", "plant", "expected"), PLANTS, ids=[f"{n}: {p.__name__}" for n, p, _ in PLANTS]
)
def test_one_wrong_number_gives_the_same_errors_in_all_units(
    name: str, plant: Callable[[mujoco.MjModel], None], expected: set[str]
) -> None:
    model = mujoco.MjModel.from_xml_string(CASES[name])
    reference = errors(model, changed(model, plant))
    wrong = {quantity for quantity, error in reference.items() if error > 1e-10}
    assert {quantity for quantity in wrong if ":" not in quantity} == expected
    assert max(reference.values()) > PLANTED / 10
    for units in (KM_T_MIN, MICROMETRE, MEGAMETRE):
        new = in_units(model, units)
        found = errors(new, changed(new, plant))
        assert found.keys() == reference.keys()
        for quantity, error in reference.items():
            assert found[quantity] == pytest.approx(error, rel=1e-3, abs=ROUNDING), quantity


@pytest.mark.parametrize("name", ["four_bar", "planar_3rrr", "quadruped"])
def test_a_packaged_model_is_judged_alike_in_all_units(name: str) -> None:
    model = mujoco.MjModel.from_xml_path(str(models.path(name)))
    reference = errors(model, changed(model, scale_mass))
    assert reference["mass_matrix"] > 1e-10
    for units in (MM_G_S, KM_T_MIN):
        new = in_units(model, units)
        assert judge(compare(read_mjcf(new), new, **FEW)).passed
        found = errors(new, changed(new, scale_mass))
        for quantity, error in reference.items():
            assert found[quantity] == pytest.approx(error, rel=1e-3, abs=ROUNDING), quantity
