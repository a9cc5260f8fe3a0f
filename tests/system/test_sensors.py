"""Sensors as Functions read what MuJoCo's sensors read."""

from dataclasses import replace

import casadi as ca
import mujoco
import numpy as np
import pytest
from support.compiled import compiled
from support.sensor_models import EVERY_SENSOR, LOOP, sensed, wild_state

import mbcasadi as mb
from mbcasadi.errors import ProblemError, UnknownNameError, UnsupportedFeatureError
from mbcasadi.system import read_mjcf

EXACT = 1e-10  # relative to the largest component; rounding of wrenches of 1e3 N and more
DERIVATIVE = 1e-6
WITHOUT = {
    "rangefinder",
    "insidesite",
    "geomdist",
    "contact",
    "torque",  # of the world
}


@pytest.fixture(scope="module")
def model():
    return mujoco.MjModel.from_xml_string(EVERY_SENSOR)


@pytest.fixture(scope="module")
def system():
    return read_mjcf(EVERY_SENSOR)


@pytest.fixture(scope="module")
def all_readings(system):
    return system.sensor_data


def _column(function, inputs):
    return function(*(inputs[name] for name in function.name_in())).full().ravel()


def _split(system, y):
    """Return the readings by sensor."""
    usable = [s for s in system.sensors if s.name in system.sensor_names]
    ends = np.cumsum([s.size for s in usable])
    return zip(usable, np.split(y, ends[:-1]), strict=True)


@pytest.mark.parametrize("seed", range(6))
def test_every_kind_reads_what_mujoco_reads_under_contacts_loops_and_pushes(
    system, model, all_readings, seed
):
    data = wild_state(model, np.random.default_rng(seed))
    assert data.ne == 13  # connect, weld, connect, joint
    for sensor, y in _split(system, _column(all_readings, sensed(model, data))):
        expected = data.sensordata[sensor.address : sensor.address + sensor.size]
        largest = np.abs(expected).max() or 1.0
        assert np.abs(y - expected).max() <= EXACT * largest, f"{sensor.name}: {sensor.kind}"


def test_some_state_has_contacts_and_some_reading_is_cut_off(system, model):
    states = [wild_state(model, np.random.default_rng(seed)) for seed in range(6)]
    assert any(data.ncon for data in states)
    cut = system.sensor("cut3")
    readings = np.array([_column(cut, sensed(model, data)) for data in states])
    assert np.abs(readings).max() == 4.0
    assert readings.min() == -4.0


def test_each_sensor_alone_reads_its_part_of_the_column(system, model, all_readings):
    inputs = sensed(model, wild_state(model, np.random.default_rng(3)))
    parts = list(_split(system, _column(all_readings, inputs)))
    for sensor, expected in parts[::6]:
        function = system.sensor(sensor.name)
        assert function.name_in() == ["q", "v", "a", "u", "act", "wrenches", "solver", "t"]
        assert np.array_equal(_column(function, inputs), expected)


def test_what_is_no_smooth_function_is_listed_and_refused_by_name(system):
    kinds = {s.kind for s in system.sensors if s.refusal}
    assert kinds == WITHOUT
    listed = " ".join(item.feature for item in system.coverage.by("plant only"))
    assert all(f": {kind}" in listed for kind in WITHOUT)
    with pytest.raises(UnsupportedFeatureError, match=r"'con' \(contact\).*read it from the plant"):
        system.sensor("con")
    with pytest.raises(UnknownNameError, match="unknown sensor 'nose'"):
        system.sensor("nose")


def test_a_system_without_bodies_has_no_sensors():
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    system = mb.from_lagrangian(q, v, kinetic=v**2, potential=q**2)
    assert system.sensor_names == ()
    with pytest.raises(ProblemError, match="given by equations"):
        system.subtree("world")
    assert float(system.total_energy(2.0, 3.0)) == 13.0


def test_derivatives_are_those_of_differences(system, model, all_readings):
    """Along a random direction of all inputs, at a state where no reading is at its cutoff."""
    rng = np.random.default_rng(1)
    inputs = sensed(model, wild_state(model, rng))
    chosen = [s for s, _ in _split(system, np.zeros(all_readings.size1_out(0)))]
    smooth = np.concatenate([np.full(s.size, s.cut == "none") for s in chosen]).astype(bool)
    point = [np.array(inputs[name], dtype=float) for name in all_readings.name_in()]
    direction = [rng.normal(size=np.shape(x)) for x in point]
    forward = all_readings.forward(1)
    slope = forward(*point, all_readings(*point), *direction).full().ravel()
    step = 1e-6
    ends = [
        all_readings(*(x + sign * step * d for x, d in zip(point, direction, strict=True)))
        for sign in (1, -1)
    ]
    difference = (ends[0] - ends[1]).full().ravel() / (2 * step)
    error = np.abs(slope - difference) / np.maximum(np.abs(slope), 1.0)
    scale = np.maximum(1.0, np.abs(all_readings(*point).full().ravel()))
    assert np.all(np.abs(slope[smooth]).max() > 1.0)
    assert (error / scale)[smooth].max() < DERIVATIVE


def test_generated_c_reads_the_same(model, tmp_path):
    system = read_mjcf(LOOP)
    function, loop = system.sensor_data, mujoco.MjModel.from_xml_string(LOOP)
    inputs = sensed(loop, wild_state(loop, np.random.default_rng(0)))
    values = _column(function, inputs)
    assert np.abs(values).max() > 10
    read = _column(compiled(function, tmp_path), inputs)
    assert np.allclose(read, values, rtol=1e-13, atol=1e-12)


def test_a_sensor_with_a_delay_reads_the_instant_and_says_so():
    xml = LOOP.replace('<gyro name="turning"', '<gyro name="turning" delay=".01" nsample="20"')
    xml = xml.replace('<force name="force"', '<force name="force" noise=".1"')
    system, model = read_mjcf(xml), mujoco.MjModel.from_xml_string(xml)
    instant = mujoco.MjModel.from_xml_string(LOOP)
    data = wild_state(instant, np.random.default_rng(0))
    y = _column(system.sensor("turning"), sensed(instant, data))
    assert np.abs(y - data.sensor("turning").data).max() < 1e-12
    listed = [item.feature for item in system.coverage.by("plant only")]
    assert {"sensor 'turning': delay", "sensor 'turning': nsample", "sensor 'force': noise"} <= {
        *listed
    }
    assert model.sensor_delay.max() > 0


def test_subtrees_have_the_mass_flow_of_mujoco(system, model):
    data = wild_state(model, np.random.default_rng(2))
    mujoco.mj_subtreeVel(model, data)
    for body in ("world", "trunk", "arm", "shelf"):
        i = model.body(body).id
        p, velocity, momentum = (
            x.full().ravel() for x in system.subtree(body)(data.qpos, data.qvel)
        )
        assert np.allclose(p, data.subtree_com[i], rtol=0, atol=1e-12)
        assert np.allclose(velocity, data.subtree_linvel[i], rtol=0, atol=1e-12)
        assert np.allclose(momentum[:3], model.body_subtreemass[i] * velocity, atol=1e-12)
        assert np.allclose(momentum[3:], data.subtree_angmom[i], rtol=0, atol=1e-11)
    with pytest.raises(UnknownNameError, match="unknown body 'leg'"):
        system.subtree("leg")


def test_a_fixed_camera_is_a_frame(system, model):
    data = wild_state(model, np.random.default_rng(2))
    frame, i = system.frame("eye", "camera"), model.camera("eye").id
    p, R = frame.pose(data.qpos)
    assert np.allclose(p.full().ravel(), data.cam_xpos[i], atol=1e-13)
    assert np.allclose(R.full().ravel(), data.cam_xmat[i], atol=1e-13)
    J = np.zeros((6, model.nv))
    mujoco.mj_jac(model, data, J[:3], J[3:], data.cam_xpos[i], model.camera("eye").bodyid[0])
    assert np.allclose(frame.jacobian(data.qpos).full(), J, atol=1e-12)


@pytest.mark.parametrize("mode", ["track", "trackcom", "targetbody", "targetbodycom"])
def test_a_camera_that_follows_is_no_frame_and_its_sensors_say_why(mode):
    target = 'target="shelf"' if "target" in mode else ""
    xml = EVERY_SENSOR.replace('<camera name="eye"', f'<camera name="eye" mode="{mode}" {target}')
    system = read_mjcf(xml)
    with pytest.raises(UnknownNameError, match="unknown camera 'eye'"):
        system.frame("eye", "camera")
    refused = {s.kind for s in system.sensors if "camera 'eye'" in s.refusal}
    assert refused == {"camprojection", "framequat", "framezaxis", "framelinacc"}


def test_total_energy_is_that_of_mujoco_without_compensation():
    xml = EVERY_SENSOR.replace('gravcomp=".3"', "")
    system, model = read_mjcf(xml), mujoco.MjModel.from_xml_string(xml)
    model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    data = wild_state(model, np.random.default_rng(4))
    energy = float(system.total_energy(data.qpos, data.qvel))
    assert abs(energy - data.energy.sum()) < 1e-10 * abs(data.energy).sum()


def test_a_refused_member_refuses_the_sensor_that_rests_on_it(system):
    refused = replace(
        system.coverage.items[0],
        feature="actuator 'x': odd",
        treatment="refused",
        member="actuator_force",
        advice="remove it",
    )
    items = (*system.coverage.items, refused)
    broken = replace(system, coverage=replace(system.coverage, items=items), _cache={})
    name = next(s.name for s in system.sensors if s.kind == "jointactuatorfrc")
    assert name in system.sensor_names
    assert name not in broken.sensor_names
    with pytest.raises(UnsupportedFeatureError, match="odd: remove it"):
        broken.sensor(name)


AT_LIMITS = """
<mujoco><worldbody><geom type="plane" size="2 2 .1"/>
<body pos="0 0 .09"><freejoint/><geom size=".1" mass="2"/>
<site name="under" type="box" size=".1 .1 .05" pos="0 0 -.1"/>
<site name="above" pos="0 0 .5"/></body>
<body pos="1 0 1"><joint name="h" axis="0 1 0" range="-20 20" limited="true" margin=".02"/>
<geom size=".1" pos="0 0 .2"/><body pos="0 0 .3"><joint name="s" type="slide"/><geom size=".1"/>
</body></body></worldbody><tendon><fixed name="t" limited="true" range="-.02 .02">
<joint joint="s" coef="1"/></fixed></tendon><sensor>{}</sensor></mujoco>
"""
READ_FROM_THE_SOLVER = {
    "joint_pos": '<jointlimitpos name="joint_pos" joint="h"/>',
    "joint_vel": '<jointlimitvel name="joint_vel" joint="h"/>',
    "tendon_pos": '<tendonlimitpos name="tendon_pos" tendon="t"/>',
    "tendon_frc": '<tendonlimitfrc name="tendon_frc" tendon="t"/>',
    "joint_frc": '<jointlimitfrc name="joint_frc" joint="h" cutoff="5"/>',
    "tendon_vel": '<tendonlimitvel name="tendon_vel" tendon="t" cutoff=".2"/>',
    "touched": '<touch name="touched" site="under"/>',
    "cut": '<touch name="cut" site="under" cutoff="3"/>',
    "untouched": '<touch name="untouched" site="above"/>',
}


def test_what_the_solver_did_is_read_from_the_plant():
    xml = AT_LIMITS.format("".join(READ_FROM_THE_SOLVER.values()))
    system, model = read_mjcf(xml), mujoco.MjModel.from_xml_string(xml)
    data, largest = mujoco.MjData(model), np.zeros(model.nsensordata)
    for side in (1, -1):
        data.qpos[7:] = 0.5 * side, 0.1 * side
        data.qvel[6:] = 0.4 * side, 0.3 * side
        mujoco.mj_forward(model, data)
        y = _column(system.sensor_data, sensed(model, data))
        assert y == pytest.approx(data.sensordata, abs=EXACT)
        largest = np.maximum(largest, np.abs(y))
    read = dict(zip(READ_FROM_THE_SOLVER, largest, strict=True))
    assert read.pop("untouched") == 0.0
    assert (read["cut"], read["joint_frc"], read["tendon_vel"]) == (3.0, 5.0, 0.2)
    assert min(read.values()) > 0.05
    data.qpos[7:] = 0.0  # away from all limits
    mujoco.mj_forward(model, data)
    assert _column(system.sensor("joint_pos"), sensed(model, data)) == 0.0
    assert "solver" not in read_mjcf(AT_LIMITS.format("")).sensor_data.name_in()
