"""Limits as entries of `tuning`: as a controller that was built with them."""

import numpy as np
import pytest
from loop_force_problem import law_of as law_of_loops
from loop_force_problem import states as loop_states
from loop_force_problem import twice_pinned_four_bar
from test_distance_limits import ARM

import mbcasadi as mb
from mbcasadi.codegen import export_c
from mbcasadi.control import (
    ActuatorLimits,
    DistanceLimits,
    InverseDynamicsQP,
    JointLimits,
    PostureTask,
)
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
    "lines and power": (
        {"shoulder.stall_force": 5.0, "shoulder.no_load_speed": 3.0, "wrist.power": 1.5},
        {"stall": (5.0, 90.0, 90.0), "speeds": (3.0, 50.0, 50.0), "power": (90.0, 90.0, 1.5)},
    ),
}
OF_MOTORS = (".force.", ".stall_force", ".no_load_speed", ".power")


def law_of(text=RANGED, speed=4.0, margin=0.0, stall=90.0, speeds=50.0, power=90.0, **options):
    system = mb.read_mjcf(text)
    # The names of motors are those of their joints.
    return InverseDynamicsQP(
        system,
        [PostureTask(kp=100.0)],
        joint_limits=JointLimits(("shoulder",), velocity=speed, braking=20.0),
        distance_limits=DistanceLimits(10.0, margin, bodies=("hand",)),
        actuator_limits=ActuatorLimits(stall_force=stall, no_load_speed=speeds, power=power),
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
        f"{names[own]}{rest}" if any(kind in rest for kind in OF_MOTORS) else f"{own}{rest}": x
        for key, x in tuning.items()
        for own, rest in [(key.split(".")[0], key[key.index(".") :])]
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
        {f"{motor}.no_load_speed": 0.0},
        {f"{motor}.power": -1.0},
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


def test_ranges_of_loop_forces_and_rates_of_motors_are_tuned_too():
    """A four-bar with two pins: ranges that are narrowed, then a rate that holds the motor."""
    mechanism = twice_pinned_four_bar(), ("crank",)
    wide, narrow = (np.tile([[-x, x]], (6, 1)) for x in (50.0, 0.7))
    rate = {"actuator_limits": ActuatorLimits(rate=1e3)}
    law = law_of_loops(mechanism, wide, tunable=("limits",), **rate)
    built = law_of_loops(mechanism, narrow, **rate)
    tuning = {
        f"{pin}.loop_force.{axis}.{end}": sign * 0.7
        for pin in ("pin", "pin_2")
        for axis in "xyz"
        for end, sign in (("lower", -1), ("upper", 1))
    }
    verdicts = set()
    for q, v in loop_states(mechanism[0], np.random.default_rng(4), 12):
        ours, expected = law.solve(q, v, tuning=tuning), built.solve(q, v)
        verdicts.add(expected.status)
        assert ours.status == expected.status
        if expected.solved:
            np.testing.assert_allclose(ours.p, expected.p, rtol=0, atol=1e-6)
            assert np.abs(ours.lam).max() <= 0.7 + 1e-6
        first = law.solve(q, v)
        then = law.solve(q, v, z=first.z_next, tuning={"crank.rate": 0.0})
        assert then.status == 0
        np.testing.assert_allclose(then.p, first.p, rtol=0, atol=1e-9)
    assert verdicts == {Status.SOLVED, Status.INFEASIBLE}
    crossed = {"pin.loop_force.x.lower": 1.0, "pin.loop_force.x.upper": 0.0}
    assert law.solve(q, v, tuning=crossed).status == Status.BAD_INPUT
