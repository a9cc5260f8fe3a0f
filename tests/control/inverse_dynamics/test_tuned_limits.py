"""Limits as entries of `tuning`: as a controller that was built with them."""

import numpy as np
import pytest
from test_distance_limits import ARM

import mbcasadi as mb
from mbcasadi.codegen import export_c
from mbcasadi.control import DistanceLimits, InverseDynamicsQP, JointLimits, PostureTask
from mbcasadi.description.status import Status

RANGED = ARM.replace('name="shoulder"', 'name="shoulder" limited="true" range="-90 90"')
NARROW = ARM.replace('name="shoulder"', 'name="shoulder" limited="true" range="-30 60"')

WIDE = {"speed": 4.0, "margin": 0.0}
TUNED = {
    "ranges": (
        {"shoulder.range.lower": np.deg2rad(-30), "shoulder.range.upper": np.deg2rad(60)},
        {"text": NARROW},
    ),
    "speed": ({"shoulder.speed": 0.7}, {"speed": 0.7}),
    "margin": ({"distances.margin": 0.15}, {"margin": 0.15}),
    "forces": (
        {"shoulder.force.lower": -3.0, "shoulder.force.upper": 2.0, "elbow.force.upper": 1.0},
        {"force_limits": [[-3, 2], [-40, 1], [-40, 40]]},
    ),
}


def law_of(text=RANGED, speed=4.0, margin=0.0, **options):
    system = mb.read_mjcf(text)
    # The names of motors are those of their joints.
    return InverseDynamicsQP(
        system,
        [PostureTask(kp=100.0)],
        joint_limits=JointLimits(("shoulder",), velocity=speed, braking=20.0),
        distance_limits=DistanceLimits(10.0, margin, bodies=("hand",)),
        period=0.002,
        **options,
    )


ARM_NAMES = ("shoulder", "elbow", "wrist")


@pytest.fixture(scope="module")
def law():
    return law_of(tunable=("limits",), name="tuned")


def states(count):
    rng = np.random.default_rng(3)
    for _ in range(count):
        yield rng.uniform(-0.9, 0.9, 3), 2 * rng.standard_normal(3), 0.5 * rng.standard_normal(9)


def renamed(law, tuning):
    """Return entries with the names that the model's motors have."""
    names = dict(zip(ARM_NAMES, law.system.actuator_names, strict=True))
    return {
        key.replace(key.split(".")[0], names[key.split(".")[0]], 1) if ".force." in key else key: x
        for key, x in tuning.items()
    }


@pytest.mark.parametrize("name", TUNED)
def test_tuned_limits_are_those_of_a_controller_built_with_them(law, name):
    tuning, options = TUNED[name]
    built, differs, solved = law_of(**options), 0, 0
    for q, v, ref in states(60):
        tuned, expected = law.solve(q, v, ref, tuning=renamed(law, tuning)), built.solve(q, v, ref)
        assert tuned.status == expected.status
        if not expected.solved:
            continue
        solved += 1
        scale = np.abs(expected.p).max()
        np.testing.assert_allclose(tuned.p, expected.p, rtol=0, atol=1e-6 * scale)
        differs += np.abs(law.solve(q, v, ref).p - expected.p).max() > 1e-2 * scale
    assert solved >= 10
    assert differs >= 3


def test_limits_in_the_wrong_order_or_outside_those_built_are_bad_input(law):
    q, v, ref = next(states(1))
    motor = law.system.actuator_names[0]
    for wrong in (
        {"shoulder.range.lower": 0.5, "shoulder.range.upper": 0.4},
        {"shoulder.range.upper": 1.8},
        {"shoulder.speed": 5.0},
        {f"{motor}.force.lower": 1.0, f"{motor}.force.upper": 0.0},
        {"distances.margin": -0.1},
    ):
        assert law.solve(q, v, ref, tuning=wrong).status == Status.BAD_INPUT
    ends = law.controller.u_min, law.controller.u_max
    np.testing.assert_array_equal(ends, [[-40.0] * 3, [40.0] * 3])


def test_the_exported_law_takes_limits_as_the_function_does(law, tmp_path):
    compiled = export_c(law, tmp_path / "tuned").load()
    tuning = {key: x for change, _ in TUNED.values() for key, x in renamed(law, change).items()}
    values = [tuning.get(parameter.name, parameter.default) for parameter in law.tuning]
    for q, v, ref in states(20):
        given = {"q": q, "v": v, "ref": ref, "tuning": values, "mask": np.zeros(0), "z": law.z0}
        ours, theirs = law.function(**given), compiled(**given)
        assert float(ours["status"]) == float(theirs["status"])
        np.testing.assert_allclose(theirs["u"], ours["u"], rtol=0, atol=1e-6)
