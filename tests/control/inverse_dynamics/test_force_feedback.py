"""Measured contact forces: the integral in closed form, its limits, and weights by component."""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.control import ForceFeedback, InverseDynamicsQP, PostureTask
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError

H, GAIN, LIMIT, PRESS = 1e-3, 20.0, 8.0, 30.0
FEEDBACK = ForceFeedback(LIMIT, GAIN)
PLUNGER = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody><body name="rod"><joint name="x" type="slide" axis="-1 0 0"/>
    <joint name="y" type="slide" axis="0 1 0"/>
    <geom size=".1" mass="2"/><site name="tip"/></body></worldbody>
  <actuator><motor joint="x" ctrlrange="-35 35"/><motor joint="y" ctrlrange="-35 35"/></actuator>
</mujoco>
"""


def plunger(weight=(1.0, 0.0, 0.0), feedback=FEEDBACK, **options):
    wall = Contact("tip", normal=(1, 0, 0), friction=0.5)
    return InverseDynamicsQP(
        mb.read_mjcf(PLUNGER),
        [PostureTask(["y"], weight=1e-3)],
        [wall],
        force_weight=weight,
        force_reference=True,
        force_feedback=feedback,
        period=H,
        **options,
    )


def asked(law, force=PRESS):
    ref = law.reference_at(np.zeros(2))
    ref[law.reference_slices["force"]] = [force, 0.0, 0.0]
    return ref


def integral(law, z):
    names = law.controller.inputs[-1].components
    return np.array(z).ravel()[[name.startswith("force_integral") for name in names]]


def run(law, ticks, lost, force=PRESS, mask=1):
    """Return integrals and planned forces, where the wall feels less than the motors push."""
    z, integrals, planned = law.z0, [], []
    for _ in range(ticks):
        plan = law.solve(
            np.zeros(2), np.zeros(2), asked(law, force), mask=[mask], z=z
        ).contact_forces[0]
        felt = [plan[0] - lost, 0.0, 0.0]
        got = law.solve(
            np.zeros(2), np.zeros(2), asked(law, force), mask=[mask], z=z, f_measured=felt
        )
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
    np.testing.assert_allclose(integrals[:, 0], expected, atol=1e-4)
    np.testing.assert_allclose(planned[:, 0], PRESS + expected, atol=1e-3)
    assert np.all(integrals[:, 1:] == 0)  # no weight, no integral


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
    law = InverseDynamicsQP(
        mb.read_mjcf(text),
        [PostureTask(["y"], weight=1e-3)],
        [Contact("tip", normal=(1, 0, 0), friction=0.5)],
        force_weight=(1.0, 0.0, 0.0),
        force_reference=True,
        force_feedback=FEEDBACK,
        torque_weight=(1.0, 1e-7, 1e-7),
        torque_reference=True,
        period=H,
    )
    q, lost = np.zeros(4), 3.0
    ref = law.reference_at(q)
    ref[law.reference_slices["force"]] = [PRESS, 0.0, 0.0]
    ref[law.reference_slices["torque"]] = [20.0, 0.0, 0.0]
    got = law.solve(q, q, ref, f_measured=[PRESS - lost, 0.0, 0.0])
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
    with pytest.raises(ProblemError, match="three for n"):
        plunger(weight=(1.0, 2.0))
    with pytest.raises(ProblemError, match="limit"):
        ForceFeedback(0.0)
