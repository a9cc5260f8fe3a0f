"""A05's force laws in closed loop: generated C, MuJoCo as plant, heavier bodies, a push."""

from dataclasses import replace

import numpy as np
import pytest
from a05_mechanisms import model_text, system_of
from a05_runs import HEAVIER, push, sway_reference

from mbcasadi.control.laws import (
    ForceGains,
    constraint_force_control,
    hybrid_motion_force_control,
    joint_coordinates,
)
from mbcasadi.plant import Plant
from mbcasadi.validation import validate


def pressing_run(gains, duration=2.0, **more):
    """Return the run of an arm that slides along a surface and presses on it with 50 N."""
    system = system_of("prr_arm")
    theta = joint_coordinates(system, ("tip", "q1"))
    gains = replace(gains or ForceGains(), rows=("surface.2",))
    law = hybrid_motion_force_control(system, theta, gains, kp=400.0)
    return validate(
        law,
        model_text("prr_arm"),
        duration,
        reference=sway_reference(law, (0.2, 1.4), (0.15, 0.0), 2.0, force_lam=50.0),
        disturbance=push(0, 40.0, 4, 0.9, 1.0),
        perturb=HEAVIER,
        **more,
    ).runs[0]


def surface_force(run):
    """Return the multiplier of the vertical row, N: the pin's force on q1, which only it moves."""
    return run.recording.equality_force[:, 0]


def test_measured_force_holds_fifty_newtons_where_feedforward_does_not():
    settled = slice(300, None)
    feedforward, fed_back = pressing_run(None), pressing_run(ForceGains(0.5, 50.0))
    misses = [
        np.sqrt(np.mean((surface_force(r)[settled] - 50) ** 2)) / 50
        for r in (feedforward, fed_back)
    ]
    assert misses[0] > 0.05
    assert misses[1] < 0.02
    ours, theirs = feedforward.recording.q, fed_back.recording.q
    np.testing.assert_allclose(ours, theirs, atol=2e-4)  # the motion does not see the force loop
    for run in (feedforward, fed_back):
        assert run.metric("tracking.rms_share") < 0.03
        assert run.metric("status.solved") == 1


@pytest.mark.parametrize(
    ("gain", "late", "holds"), [(0.9, 0, True), (1.1, 0, False), (0.9, 1, True)]
)
def test_the_sampled_force_loop_holds_below_a_gain_of_one_only(gain, late, holds):
    run = pressing_run(ForceGains(gain, allow_unstable=True), 0.6, delay=late)
    miss = np.abs(surface_force(run)[100:] - 50)
    if holds:
        assert miss.max() < 25
        assert run.metric("torque.saturated") == 0
    else:
        assert miss.max() > 100
        assert run.metric("torque.saturated") > 0.3


def test_a_force_law_alone_holds_the_pin_while_the_mechanism_swings_as_it_likes():
    system = system_of("slider_crank_driven")
    lam = np.array([0.0, 0.0, 30.0])  # N, of the pin
    law = constraint_force_control(system, ForceGains(0.5, 50.0))
    run = validate(
        law,
        model_text("slider_crank_driven"),
        0.9,
        reference=law.reference(force_lam=lam),
        disturbance=push(1, 3.0, 3, 0.3, 0.35),
        perturb=HEAVIER,
    ).runs[0]
    free = Plant(model_text("slider_crank_driven"), perturb=HEAVIER)
    swing = []
    for t in run.recording.t:
        swing.append(free.q)
        free.apply_force(push(1, 3.0, 3, 0.3, 0.35)(t))
        free.step(np.zeros(3), 2)
    swing = np.array(swing)
    assert np.ptp(swing[:, 0]) > 0.5
    np.testing.assert_allclose(run.recording.q, swing, atol=0.01)
    rows = system.constraint_jacobian.map(len(swing))(run.recording.q.T).full()
    A = rows.reshape(3, -1, 3).transpose(1, 0, 2)
    desired = np.einsum("tij,i->tj", A, lam)
    miss = np.linalg.norm(run.recording.equality_force - desired, axis=1)[50:]
    assert np.median(miss) < 0.02 * np.median(np.linalg.norm(desired, axis=1))


def test_the_force_comes_back_at_once_after_a_demand_that_saturates():
    """Three times the reachable force is desired for 0.5 s; the integral does not wind up."""
    system = system_of("prr_arm")
    theta = joint_coordinates(system, ("tip", "q1"))
    law = hybrid_motion_force_control(
        system, theta, ForceGains(0.3, 50.0, rows=("surface.2",)), kp=400.0
    )

    def reference(t):
        force = 450.0 if 0.2 <= t < 0.4 else 50.0
        return law.reference(theta_q=(0.2, 1.4), force_lam=force)

    run = validate(law, model_text("prr_arm"), 0.8, reference=reference, perturb=HEAVIER).runs[0]
    t, force = run.recording.t, surface_force(run)
    assert run.recording.u[(t > 0.25) & (t < 0.4)].max() >= 150
    integral = np.abs(run.recording.z[:, 0])
    assert integral.max() < 60  # 50 1/s times 0.2 s times 100 N and more would be 1000
    after = (t > 0.6) & (t < 0.8)
    np.testing.assert_allclose(force[after], 50.0, rtol=0.1)
