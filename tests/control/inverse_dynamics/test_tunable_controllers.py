"""Numbers as entries of `tuning`: as a controller that was built with them."""

from dataclasses import replace

import numpy as np
import pytest
from loop_force_problem import law_of as law_of_loops
from loop_force_problem import states as loop_states
from loop_force_problem import twice_pinned_four_bar
from numpy.testing import assert_allclose, assert_array_equal
from support.mechanisms_of_control import feet, stand, system_of
from test_distance_limits import PILLAR as ARM

import mbcasadi as mb
from mbcasadi.control import (
    ActuatorLimits,
    DistanceLimits,
    FrameTask,
    InverseDynamicsQP,
    JointLimits,
    PostureTask,
)
from mbcasadi.control.tick.tuning import TUNABLE
from mbcasadi.description.status import Status
from mbcasadi.errors import ProblemError, UnknownNameError

SAME = 1e-5
"""Relative: the weight of 1e-9 on torques is a share of the tasks' cost at the default weights."""

TASKS = [
    FrameTask("trunk", kind="body", kp=100.0, weight=100.0, name="base"),
    PostureTask(kp=50.0, weight=1.0),
]
SLOPE = (0.2, -0.1, 0.9)


def law_of(tasks=None, contacts=None, **options):
    tasks, contacts = tasks or TASKS, contacts or feet(min_force=1.0)
    return InverseDynamicsQP(system_of("quadruped"), tasks, contacts, torque_weight=1e-9, **options)


law = pytest.fixture(scope="module")(lambda: law_of(tunable=TUNABLE))


def changed(**fields):
    return [replace(foot, **fields) for foot in feet(min_force=1.0)]


CHANGES = {
    "gains": (
        {f"base.kp.{row}": 300.0 for row in ("x", "y", "z", "rx", "ry", "rz")}
        | {f"base.kd.{row}": 7.0 for row in ("x", "y", "z", "rx", "ry", "rz")},
        lambda: law_of([replace(TASKS[0], kp=300.0, kd=7.0), TASKS[1]]),
    ),
    "weights": (
        {
            f"posture.weight.{name}": 40.0
            for name in PostureTask().components(system_of("quadruped"))
        },
        lambda: law_of([TASKS[0], replace(TASKS[1], weight=40.0)]),
    ),
    "friction": (
        {f"{foot.frame}.friction": 0.05 for foot in feet()},
        lambda: law_of(contacts=changed(friction=0.05)),
    ),
    "forces": (
        {f"{foot.frame}.min_force": 8.0 for foot in feet()}
        | {f"{foot.frame}.max_force": 45.0 for foot in feet()},
        lambda: law_of(contacts=changed(min_force=8.0, max_force=45.0)),
    ),
    "normals": (
        {f"FL.normal.{axis}": value for axis, value in zip("xyz", SLOPE, strict=True)},
        lambda: law_of(
            contacts=[replace(feet(min_force=1.0)[0], normal=SLOPE), *feet(min_force=1.0)[1:]]
        ),
    ),
}


def states(law, count=4):
    rng = np.random.default_rng(6)
    for _ in range(count):
        q, v = stand(law.system, rng, spread=0.03, key="stand")
        ref = law.reference_at(law.system.tree.keyframes["stand"])
        ref[law.reference_slices["base.acceleration"]] = 2 * rng.standard_normal(3)
        yield q, v, ref


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.every(2)
def test_a_tuned_controller_is_the_one_built_with_these_values(law, name):
    tuning, build = CHANGES[name]
    assert assert_tuned(law, build(), states(law), tuning, SAME)[1]


def test_defaults_are_those_of_a_controller_without_tuning(law):
    fixed = law_of()
    assert "tuning" not in fixed.function.name_in()
    assert assert_tuned(law, fixed, states(law), {}, SAME) == (4, 0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"base.kp.x": np.nan},
        {"base.kp.x": -1.0},
        {"FL.friction": 0.0},
        {"FL.normal.x": 0.0, "FL.normal.y": 0.1, "FL.normal.z": 0.2},
        {"FL.min_force": 30.0, "FL.max_force": 20.0},
        {"posture.weight.FL_hip": np.inf},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_values_that_make_no_sense_are_bad_input(law, wrong):
    q, v, ref = next(states(law))
    values = [wrong.get(entry.name, entry.default) for entry in law.tuning]
    out = law.function(q=q, v=v, ref=ref, tuning=values, mask=np.ones(4), z=law.z0)
    u, limits = np.array(out["u"]).ravel(), law.system.limits.ctrl
    assert int(out["status"]) == Status.BAD_INPUT
    assert np.all((u >= limits[:, 0]) & (u <= limits[:, 1]))


def test_unknown_names_are_refused(law):
    with pytest.raises(ProblemError, match="'gains', 'weights', 'friction', 'forces', 'normals'"):
        law_of(tunable=("mass",))
    q, v, ref = next(states(law))
    with pytest.raises(UnknownNameError, match=r"entry of tuning 'base\.ki\.x'"):
        law.solve(q, v, ref, tuning={"base.ki.x": 1.0})


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


def law_of_arm(text=RANGED, speed=4.0, margin=0.0, stall=90.0, speeds=50.0, power=90.0, **options):
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
arm_law = pytest.fixture(scope="module")(lambda: law_of_arm(tunable=("limits",), name="tuned"))


def states_of_arm(count):
    rng = np.random.default_rng(3)
    for _ in range(count):
        yield rng.uniform(-0.9, 0.9, 3), 2 * rng.standard_normal(3), 0.5 * rng.standard_normal(9)


def renamed(arm_law, tuning):
    """Return entries with the names that the model's motors have."""
    names = dict(zip(ARM_NAMES, arm_law.system.actuator_names, strict=True))
    return {
        f"{names[own]}{rest}" if any(kind in rest for kind in OF_MOTORS) else f"{own}{rest}": x
        for key, x in tuning.items()
        for own, rest in [(key.split(".")[0], key[key.index(".") :])]
    }


@pytest.mark.parametrize("name", TUNED)
@pytest.mark.every(2)
def test_tuned_limits_are_those_of_a_controller_built_with_them(arm_law, name):
    tuning, options = TUNED[name]
    built = law_of_arm(**options)
    solved, moved = assert_tuned(arm_law, built, states_of_arm(60), renamed(arm_law, tuning), 1e-6)
    assert solved >= 10
    assert moved >= 3


def test_limits_in_the_wrong_order_or_outside_those_built_are_bad_input(arm_law):
    q, v, ref = next(states_of_arm(1))
    motor = arm_law.system.actuator_names[0]
    for wrong in (
        {"shoulder.range.lower": 0.5, "shoulder.range.upper": 0.4},
        {"shoulder.range.upper": 1.8},
        {"shoulder.speed": 5.0},
        {f"{motor}.force.lower": 1.0, f"{motor}.force.upper": 0.0},
        {f"{motor}.no_load_speed": 0.0},
        {f"{motor}.power": -1.0},
        {"distances.margin": -0.1},
    ):
        assert arm_law.solve(q, v, ref, tuning=wrong).status == Status.BAD_INPUT
    ends = arm_law.controller.u_min, arm_law.controller.u_max
    assert_array_equal(ends, [[-40.0] * 3, [40.0] * 3])


def test_ranges_of_loop_forces_and_rates_of_motors_are_tuned_too():
    """A four-bar with two pins: ranges that are narrowed, then a rate that holds the motor."""
    mechanism = twice_pinned_four_bar(), ("crank",)
    wide, narrow = (np.tile([[-x, x]], (6, 1)) for x in (50.0, 0.7))
    rate = {"actuator_limits": ActuatorLimits(rate=1e3)}
    arm_law = law_of_loops(mechanism, wide, tunable=("limits",), **rate)
    built = law_of_loops(mechanism, narrow, **rate)
    tuning = {
        f"{pin}.loop_force.{axis}.{end}": sign * 0.7
        for pin in ("pin", "pin_2")
        for axis in "xyz"
        for end, sign in (("lower", -1), ("upper", 1))
    }
    verdicts = set()
    for q, v in loop_states(mechanism[0], np.random.default_rng(4), 12):
        ours, expected = arm_law.solve(q, v, tuning=tuning), built.solve(q, v)
        verdicts.add(expected.status)
        assert ours.status == expected.status
        if expected.solved:
            assert_allclose(ours.p, expected.p, rtol=0, atol=1e-6)
            assert np.abs(ours.lam).max() <= 0.7 + 1e-6
        first = arm_law.solve(q, v)
        then = arm_law.solve(q, v, z=first.z_next, tuning={"crank.rate": 0.0})
        assert then.status == 0
        assert_allclose(then.p, first.p, rtol=0, atol=1e-9)
    assert verdicts == {Status.SOLVED, Status.INFEASIBLE}
    crossed = {"pin.loop_force.x.lower": 1.0, "pin.loop_force.x.upper": 0.0}
    assert arm_law.solve(q, v, tuning=crossed).status == Status.BAD_INPUT


def assert_tuned(law, built, states, tuning, same):
    """Assert that a law with these entries is the one built with them; return the solved and moved.

    `moved` are states in which the defaults give other forces by a hundredth.
    """
    solved = moved = 0
    for q, v, ref in states:
        tuned, expected = law.solve(q, v, ref, tuning=tuning), built.solve(q, v, ref)
        assert tuned.status == expected.status
        if not expected.solved:
            continue
        solved, scale = solved + 1, np.abs(expected.p).max()
        assert_allclose(tuned.p, expected.p, rtol=0, atol=same * scale)
        force = tuned.contact_forces
        size = same * np.abs(force).max(initial=0.0)
        assert_allclose(force, expected.contact_forces, rtol=0, atol=size)
        moved += np.abs(law.solve(q, v, ref).p - expected.p).max() > 1e-2 * scale
    return solved, moved
