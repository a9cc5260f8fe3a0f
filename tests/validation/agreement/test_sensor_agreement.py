"""The check of a model judges its sensors."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from support.sensor_models import EVERY_SENSOR, LOOP

from mbcasadi.system import read_mjcf
from mbcasadi.validation.agreement import agreement_with_mujoco


@pytest.fixture(scope="module")
def system():
    return read_mjcf(EVERY_SENSOR)


def test_every_sensor_with_a_function_is_compared_and_agrees(system):
    model = mujoco.MjModel.from_xml_string(EVERY_SENSOR)
    entries = agreement_with_mujoco(system, model, states=1, frames=0)
    entries = [e for e in entries if e.quantity.startswith("sensor ")]
    assert len(entries) == len(system.sensor_names) > 60
    assert [e.quantity for e in entries if not e.agrees] == []


WRONG = {
    "framelinvel": {"reference": None},
    "magnetometer": {"field": np.array([0.1, -0.5, 0.1])},
    "force": {"cutoff": 3.0, "cut": "both"},
    "framequat": {"reference": None},
}
"""What is measured against the world, in another field, or with another cutoff."""


def test_wrong_sensors_differ_and_are_named(system):
    model = mujoco.MjModel.from_xml_string(EVERY_SENSOR)
    sensors, names = list(system.sensors), set()
    for kind, change in WRONG.items():
        attribute = next(iter(change))
        has = [i for i, s in enumerate(sensors) if s.kind == kind]
        place = [i for i in has if getattr(sensors[i], attribute) is not None][-1]
        sensors[place] = replace(sensors[place], **change)
        names.add(f"sensor '{sensors[place].name}': {kind}")
    wrong = replace(system, sensors=tuple(sensors), _cache={**system._cache})
    wrong._cache.pop("sensor_data", None)
    entries = agreement_with_mujoco(wrong, model, states=1, frames=0)
    differing = {e.quantity for e in entries if not e.agrees and e.quantity.startswith("sensor")}
    assert differing == names


def test_readings_with_a_memory_are_compared_at_the_instant():
    xml = LOOP.replace('<gyro name="turning"', '<gyro name="turning" delay=".01" nsample="20"')
    model = mujoco.MjModel.from_xml_string(xml)
    entries = agreement_with_mujoco(read_mjcf(xml), model, states=2, frames=0)
    assert all(e.agrees for e in entries if "turning" in e.quantity)
    assert any("turning" in e.quantity for e in entries)


def test_sensors_of_limits_are_compared_where_the_limits_are_passed():
    xml = (
        '<mujoco><worldbody><body><joint name="h" axis="0 1 0" range="-1 1" limited="true"/>'
        '<geom size=".1" pos="0 0 .2"/></body></worldbody><sensor><jointlimitfrc name="end" '
        'joint="h"/><jointpos joint="h"/></sensor></mujoco>'
    )
    system, model = read_mjcf(xml), mujoco.MjModel.from_xml_string(xml)
    entries = {e.quantity: e for e in agreement_with_mujoco(system, model, states=10, frames=0)}
    assert entries["sensor 'end': jointlimitfrc"].agrees
    clipped = tuple(replace(s, cutoff=1e-3, cut="both") for s in system.sensors[:1])
    wrong = replace(system, sensors=(*clipped, *system.sensors[1:]), _cache={})
    entries = {e.quantity: e for e in agreement_with_mujoco(wrong, model, states=10, frames=0)}
    assert not entries["sensor 'end': jointlimitfrc"].agrees
