"""L15's laws in MuJoCo as C, and servo rows as a task of the inverse dynamics."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from l15_mechanisms import SIGNALS, bar_path, bar_rows, masses, robots, wide_limits
from manifold_states import manifold_states
from numpy.testing import assert_allclose

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import InverseDynamicsQP, PostureTask, ServoTask
from mbcasadi.control.laws import LawOptions, servo_control, servo_rows
from mbcasadi.errors import ProblemError
from mbcasadi.validation import ScenarioOptions, validate

SPRINGS = models.path("two_mass_spring")
ROBOTS = models.path("cooperating_arms")
FRICTION = 3.0  # N m
GAP, RATE, GAIN = 0.005, 0.02, 6.0  # m, m/s, 1/s


def spring_run(baumgarte, duration=1.5, **more):
    system = mb.read_mjcf(SPRINGS)
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    rows = servo_rows(system, q, v, phi=masses.gap(q), names=("gap",), units=("m",))
    law = servo_control(
        system, rows, baumgarte=baumgarte, options=LawOptions(ctrl_limits=[[-200.0, 200.0]])
    )
    start = {"q0": [0.0, 2 * masses.REST_LENGTH + GAP], "v0": [0.0, RATE]}
    record = validate(law, SPRINGS, duration, reference=law.reference(), **start, **more)
    r = record.runs[0].recording
    return r.t, r.q[:, 1] - r.q[:, 0] - 2 * masses.REST_LENGTH


def test_as_printed_the_gap_of_two_masses_drifts_linearly_in_mujoco():
    """(47): `φ̈ = 0`, but for a control that is held: late by half a period against the spring."""
    t, gap = spring_run(None)
    m1, m2 = masses.MASSES
    late = 0.5e-3 * masses.STIFFNESS * (1 / m1 + 1 / m2) * RATE  # m/s²
    assert_allclose(gap, GAP + RATE * t - late * t**2 / 2, atol=2e-5)
    assert gap[-1] > 6 * GAP


def test_stabilised_the_gap_closes_as_a_critically_damped_spring_in_mujoco():
    t, gap = spring_run(mb.Baumgarte(GAIN, GAIN))
    assert_allclose(gap, (GAP + (RATE + GAIN * GAP) * t) * np.exp(-GAIN * t), atol=2e-4)


@pytest.mark.long
def test_stabilised_the_gap_survives_pushes_and_masses_it_does_not_know():
    """Masses off by up to 10 % each, 3 N on the second for a fifth of a second."""
    wrong = {"perturb": {"mass": 0.1}, "scenario": ScenarioOptions(seed=2)}
    wrong["disturbance"] = lambda t: [0.0, 3.0 * (0.3 <= t < 0.5)]
    _, drifted = spring_run(None, **wrong)
    _, gap = spring_run(mb.Baumgarte(20.0, 20.0), **wrong)
    assert np.abs(drifted[-300:]).max() > 0.05
    assert np.abs(gap[-300:]).max() < 0.01


def stiff_bearing_run(known):
    """Return the largest error of the bar after the start, m or rad, in MuJoCo.

    The third joint has dry friction, known to the law or not.
    """
    arms = mb.read_mjcf(ROBOTS)
    q, v, y = (ca.SX.sym(name, size) for name, size in (("q", 5), ("v", 5), ("y", 3)))
    p, _ = arms.frame("bar").pose(q)
    phi = ca.vertcat(p[0], p[2], ca.sum1(q[:3])) - y
    bearing = ca.Function(
        "bearing", [q, v], [-FRICTION * ca.vertcat(0, 0, ca.tanh(v[2] / 0.02), 0, 0)]
    )
    rates = {"baumgarte": mb.Baumgarte(8.0, 8.0), "f_nonideal": bearing if known else None}
    law = servo_control(arms, servo_rows(arms, q, v, phi=phi, y=y), **rates)
    plant = mujoco.MjSpec.from_file(str(ROBOTS))
    plant.joint("joint3").frictionloss = FRICTION
    path = lambda t: law.reference(**dict(zip(SIGNALS, bar_path(t), strict=True)))  # noqa: E731
    coarse = ScenarioOptions(timestep=1e-3)
    run = validate(law, plant, 1.2, reference=path, scenario=coarse).runs[0]
    return np.abs(run.recording.monitor["error"][500:]).max()


@pytest.mark.long
def test_friction_that_the_law_knows_of_leaves_the_bar_on_its_path_in_mujoco():
    unknown, known = stiff_bearing_run(False), stiff_bearing_run(True)
    assert unknown > 3e-3
    assert known < 0.2 * unknown


KP, KD = 16.0, 6.0
H = 1e-3  # s, of central differences
SKATE = """
<mujoco><option gravity="0 0 0"/>
  <worldbody><body>
    <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
    <joint name="turn" axis="0 0 1"/><geom size=".1 .05 .05" type="box" mass="2"/></body>
  </worldbody>
  <actuator><motor joint="x"/><motor joint="y"/><motor joint="turn"/></actuator></mujoco>
"""


def test_two_robots_keep_a_bar_on_its_path_as_well_as_a_posture_of_less_weight_allows():
    """`e = bar - y` obeys `ë + 6 ė + 16 e = 0`, e by a formula of its own."""
    arms = robots.system()
    task = ServoTask(bar_rows(arms), name="bar", kp=KP, kd=KD)
    # Six motors, three coordinates: weights below 1e-7 are lost in the digits of the cost.
    law = InverseDynamicsQP(
        arms, [task, PostureTask(weight=1e-5)], ctrl_limits=wide_limits(arms), torque_weight=1e-5
    )
    q_sym = ca.SX.sym("q", 5)
    bar = ca.Function("bar", [q_sym], [robots.bar_pose(q_sym)])
    qs, vs = manifold_states(arms, 10, 1, centre=robots.START)
    rng = np.random.default_rng(2)
    for q, v in zip(qs.T, vs.T, strict=True):
        held = law.reference_at(q)
        present = np.array(bar(q)).ravel()
        assert_allclose(held[law.reference_slices["bar.y"]], present, atol=1e-12)
        moving = present + 0.1 * rng.standard_normal(3), *rng.standard_normal((2, 3))
        ref = held.copy()
        for name, value in zip(("y", "ydot", "yddot"), moving, strict=True):
            ref[law.reference_slices[f"bar.{name}"]] = value
        solution = law.solve(q, v, ref)
        assert solution.status == 0

        def error(t, a=solution.a, q=q, v=v, moving=moving):
            place = q + t * v + t**2 / 2 * a
            y = moving[0] + t * moving[1] + t**2 / 2 * moving[2]
            return np.array(bar(place)).ravel() - y

        back, now, ahead = error(-H), error(0.0), error(H)
        law_of_error = (ahead - 2 * now + back) / H**2 + KD * (ahead - back) / (2 * H) + KP * now
        assert_allclose(law_of_error, 0, atol=1e-4 * (1 + np.abs(solution.a).max()))


def test_a_skate_stops_slipping_sideways_at_the_rate_of_its_gain():
    """A row of velocities alone: its rate decays by kd, whatever kp is."""
    system = mb.read_mjcf(SKATE)
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    sideways = ca.horzcat(-ca.sin(q[2]), ca.cos(q[2]), 0)
    rows = servo_rows(system, q, v, A=sideways, a0=ca.SX(1, 1), names=["slip"], units=["m/s"])
    law = InverseDynamicsQP(system, [ServoTask(rows, kp=50.0, kd=KD)], torque_weight=1e-9)
    assert law.nref == 0
    rng = np.random.default_rng(3)

    def slip(place, speed):
        return -np.sin(place[2]) * speed[0] + np.cos(place[2]) * speed[1]

    for _ in range(10):
        q, v = rng.standard_normal((2, 3))
        a = law.solve(q, v).a
        ends = [slip(q + t * v, v + t * a) for t in (-H, H)]
        rate = (ends[1] - ends[0]) / (2 * H)
        assert rate == pytest.approx(-KD * slip(q, v), abs=1e-5 * (1 + np.abs(a).max()))


def test_a_reference_at_rest_is_found_where_the_rows_are_no_lines_in_y():
    system = mb.read_mjcf(SKATE)
    q, v, y = ca.SX.sym("q", 3), ca.SX.sym("v", 3), ca.SX.sym("y", 2)
    rows = servo_rows(system, q, v, phi=ca.vertcat(q[0] ** 2 - y[0] ** 2, q[1] - y[1]), y=y)
    held = ServoTask(rows).hold_reference(system, np.array([0.7, 0.4, 0.1]))
    assert held["y"][0] ** 2 == pytest.approx(0.49)
    assert held["y"][1] == pytest.approx(0.4)


def test_rows_of_another_system_are_refused():
    task = ServoTask(bar_rows(robots.system()))
    with pytest.raises(ProblemError, match="take 5 coordinates"):
        InverseDynamicsQP(mb.read_mjcf(SKATE), [task])
