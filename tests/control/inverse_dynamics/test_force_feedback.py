"""Measured contact forces: the integral in closed form, loads that grow, masks by touch-down."""

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.mechanisms_of_control import feet, system_of
from support.refusals import refused

import mbcasadi as mb
from mbcasadi.codegen import export_c
from mbcasadi.control import (
    ForceFeedback,
    FrameTask,
    InverseDynamicsQP,
    LoadRamp,
    PostureTask,
    touch_down,
)
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError

H, GAIN, LIMIT, PRESS = 1e-3, 20.0, 8.0, 30.0
FEEDBACK = ForceFeedback(LIMIT, GAIN)
PLUNGER = """
<mujoco><option gravity="0 0 0"/>
  <worldbody><body name="rod"><joint name="x" type="slide" axis="-1 0 0"/>
    <joint name="y" type="slide" axis="0 1 0"/>
    <geom size=".1" mass="2"/><site name="tip"/></body></worldbody>
  <actuator><motor joint="x" ctrlrange="-35 35"/><motor joint="y" ctrlrange="-35 35"/></actuator>
</mujoco>
"""


def plunger(weight=(1.0, 0.0, 0.0), feedback=FEEDBACK, text=PLUNGER, **options):
    wall = Contact("tip", normal=(1, 0, 0), friction=0.5)
    options |= {"force_weight": weight, "force_reference": True, "force_feedback": feedback}
    tasks = [PostureTask(["y"], weight=1e-3)]
    return InverseDynamicsQP(mb.read_mjcf(text), tasks, [wall], period=H, **options)


def asked(law, force=PRESS):
    ref = law.reference_at(np.zeros(2))
    ref[law.reference_slices["force"]] = [force, 0.0, 0.0]
    return ref


def integral(law, z):
    names = law.controller.inputs[-1].components
    return np.array(z).ravel()[[name.startswith("force_integral") for name in names]]


def run(law, ticks, lost, force=PRESS, mask=1):
    """Return integrals and planned forces, where the wall feels less than the motors push."""
    z, integrals, planned, still = law.z0, [], [], np.zeros(2)
    for _ in range(ticks):
        given = {"mask": [mask], "z": z}
        plan = law.solve(still, still, asked(law, force), **given).contact_forces[0]
        felt = [plan[0] - lost, 0.0, 0.0]
        got = law.solve(still, still, asked(law, force), f_measured=felt, **given)
        assert got.status == 0
        integrals.append(integral(law, z))
        planned.append(plan)
        z = got.z_next
    return np.array(integrals), np.array(planned)


def test_the_error_fades_as_the_recursion_says():
    law, lost = plunger(), 3.0
    integrals, planned = run(law, 150, lost)
    k = np.arange(150)
    expected = lost * (1 - (1 - GAIN * H) ** k)
    assert_allclose(integrals[:, 0], expected, atol=1e-4)
    assert_allclose(planned[:, 0], PRESS + expected, atol=1e-3)
    assert np.all(integrals[:, 1:] == 0)  # no weight, no integral


@pytest.mark.long
def test_the_integral_keeps_to_its_limit_and_does_not_wind_up_at_a_motors_limit():
    integrals, _ = run(plunger(), 700, 20.0, force=20.0)
    assert integrals[-1, 0] == pytest.approx(LIMIT)
    integrals, planned = run(plunger(), 400, 20.0, force=32.0)
    assert planned[-1, 0] == pytest.approx(35.0, abs=1e-3)  # all that the motor gives
    assert integrals[-1, 0] < 3.5
    integrals, _ = run(plunger(), 20, 5.0, mask=0)
    assert np.all(integrals == 0)


FINGERS = """<body><joint name="finger" type="slide" axis="0 1 0"/>
    <geom size=".1" mass=".1"/></body>
  <body><joint name="thumb" type="slide" axis="0 1 0" stiffness="1" springref="1"/>
    <geom size=".1" mass=".1"/></body></body></worldbody>
  <equality><joint joint1="finger" joint2="{}"/></equality>
  <actuator><motor joint="finger" ctrlrange="-1 1"/>"""


@pytest.mark.parametrize(("joined", "grows"), [("thumb", 1.0), ("y", 0.0)])
def test_only_motors_that_can_press_on_the_contact_pause_its_integral(joined, grows):
    """A finger's motor at its bound counts where a coupling joins it with the contact."""
    text = PLUNGER.replace("</body></worldbody>\n  <actuator>", FINGERS.format(joined))
    weight = {"torque_weight": (1.0, 1e-7, 1e-7), "torque_reference": True}
    law, q, lost = plunger(text=text, **weight), np.zeros(4), 3.0
    forces = {"force": [PRESS, 0.0, 0.0], "torque": [20.0, 0.0, 0.0]}
    got = law.solve(q, q, law.reference_at(q, forces), f_measured=[PRESS - lost, 0.0, 0.0])
    assert got.status == 0
    assert got.p[0] == pytest.approx(1.0)
    assert integral(law, got.z_next)[0] == pytest.approx(grows * lost * GAIN * H)


def test_a_contact_that_is_off_forgets_and_a_bad_measurement_pauses():
    law = plunger()
    names = list(law.controller.inputs[-1].components)
    z = np.array(law.z0)
    z[names.index("force_integral.tip.n")] = 2.0
    state = (np.zeros(2), np.zeros(2), asked(law))
    bad = law.solve(*state, z=z, f_measured=[np.nan, 0.0, 0.0])
    assert bad.status == 3
    assert integral(law, bad.z_next)[0] == 2.0
    off = law.solve(*state, mask=[0], z=z, f_measured=[0.0, 0.0, 0.0])
    assert integral(law, off.z_next)[0] == 0.0


def test_weights_by_component_leave_the_others_alone():
    tangents = {}
    for weight in (0.0, 1.0):
        law = plunger(weight=(1.0, weight, 0.0), feedback=None)
        ref = asked(law)
        ref[law.reference_slices["force"]] = [PRESS, 9.0, 4.0]
        n, *tangents[weight] = law.solve(np.zeros(2), np.zeros(2), ref).contact_forces[0]
        assert n == pytest.approx(PRESS, rel=1e-3)
    assert tangents[0.0] == pytest.approx([0.0, 0.0], abs=1e-3)
    assert tangents[1.0] == pytest.approx([9.0, 0.0], rel=1e-3, abs=1e-3)  # nothing moves along z


def test_a_feedback_without_a_reference_or_too_fast_is_refused():
    with pytest.raises(ProblemError, match="without a reference"):
        InverseDynamicsQP(mb.read_mjcf(PLUNGER), [PostureTask()], force_feedback=ForceFeedback(1.0))
    with pytest.raises(ProblemError, match="expected at most"):
        plunger(feedback=ForceFeedback(LIMIT, 200.0), delay=1)
    refused(ProblemError, "three for n", lambda: plunger(weight=(1.0, 2.0)))
    refused(ProblemError, "limit", lambda: ForceFeedback(0.0))


TICK, TICKS, LOAD = 2e-3, 20, 80.0
RAMP = LoadRamp(duration=TICKS * TICK, force=LOAD)


@pytest.fixture(scope="module")
def ramp_law():
    tasks = [FrameTask("trunk", kind="body", kp=100.0), PostureTask(weight=1e-3)]
    return InverseDynamicsQP(system_of("quadruped"), tasks, feet(), load_ramp=RAMP, period=TICK)


def ticks(ramp_law, masks, function=None):
    """Return statuses, shares in z and forces of a robot that is held still."""
    q = np.array(ramp_law.system.tree.keyframes["stand"])
    z, shares, forces = ramp_law.z0, [], []
    names = ramp_law.controller.inputs[-1].components
    places = [i for i, name in enumerate(names) if name.startswith("unloaded.")]
    for mask in masks:
        got = ramp_law.solve(q, np.zeros(18), mask=mask, z=z)
        assert got.status == 0
        shares.append(z[places])
        forces.append(got.contact_forces[:, 0])
        z = got.z_next
    return np.array(shares), np.array(forces)


def test_a_foot_takes_its_load_in_a_straight_line(ramp_law):
    masks = [(1, 1, 1, 1)] * 3 + [(0, 1, 1, 1)] * 2 + [(1, 1, 1, 1)] * (TICKS + 5)
    shares, forces = ticks(ramp_law, masks)
    assert np.all(shares[:4] == 0.0)  # all are loaded at first
    switched = forces[5:, 0]
    bound = LOAD * np.arange(TICKS) / TICKS
    assert np.all(switched[:TICKS] <= bound + 1e-6)
    early = slice(1, 6)  # where the foot would carry more
    assert_allclose(switched[early], bound[early], rtol=1e-5)
    assert switched[-1] == pytest.approx(forces[0, 0], rel=1e-4)
    assert_allclose(shares[5:, 0], np.maximum(1 - np.arange(TICKS + 5) / TICKS, 0), atol=1e-9)
    assert np.all(shares[:, 1:] == 0.0)


def masks_of(function, schedule, force):
    z, masks = np.array([1.0, 0.0]), []
    for stands, newton in zip(schedule, force, strict=True):
        found = function(schedule=stands, normal_force=newton, z=z)
        masks.append(int(found["mask"]))
        z = found["z_next"]
    return masks


def test_a_contact_is_used_where_it_is_measured(tmp_path):
    function = touch_down(["foot"], on_force=10.0, off_force=5.0)
    compiled = export_c(function, tmp_path / "ramp_law").load(flags=("-O0",))
    cases = {
        "stands, with a weak moment and a loss": (
            [1] * 6,
            [50, 7, 4, 7, 12, 6],
            [1, 1, 0, 0, 1, 1],
        ),
        "late touch-down": ([1, 0, 0, 1, 1, 1], [50, 30, 0, 0, 0, 20], [1, 0, 0, 0, 0, 1]),
        "early touch-down": ([1, 0, 0, 0, 0, 1], [50, 30, 0, 0, 20, 40], [1, 0, 0, 0, 1, 1]),
        "no sensor": ([1, 1, 0], [np.nan, 50, np.nan], [0, 1, 0]),
    }
    for name, (schedule, force, expected) in cases.items():
        for either in (function, compiled):
            assert masks_of(either, schedule, force) == expected, name


def test_several_contacts_are_independent():
    one, three = touch_down(["a"], 10.0, 5.0), touch_down(["a", "b", "c"], 10.0, 5.0)
    rng = np.random.default_rng(3)
    schedule, force = rng.integers(0, 2, (3, 50)), 20 * rng.random((3, 50))
    z, together = np.r_[np.ones(3), np.zeros(3)], []
    for k in range(50):
        found = three(schedule=schedule[:, k], normal_force=force[:, k], z=z)
        together.append(np.array(found["mask"]).ravel())
        z = found["z_next"]
    for i in range(3):
        assert masks_of(one, schedule[i], force[i]) == [int(mask[i]) for mask in together]
    assert isinstance(three, ca.Function)


def test_impossible_ramps_and_thresholds_are_refused():
    refused(ProblemError, "duration", lambda: LoadRamp(0.0, 10.0))
    with pytest.raises(ProblemError, match="off_force <= on_force"):
        touch_down(["foot"], on_force=5.0, off_force=10.0)
    refused(ProblemError, "0 contacts", lambda: touch_down([], on_force=5.0, off_force=1.0))
