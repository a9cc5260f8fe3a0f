"""L15's laws as generated C: the same numbers, safe whatever comes in, and in MuJoCo."""

import casadi as ca
import mujoco
import numpy as np
from l15_mechanisms import bar_path, masses

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.laws import LawOptions, servo_control, servo_rows
from mbcasadi.validation import ScenarioOptions, validate

STATES, SAME = 1000, 1e-12
TORQUE = 60.0  # N m
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
    np.testing.assert_allclose(gap, GAP + RATE * t - late * t**2 / 2, atol=2e-5)
    assert gap[-1] > 6 * GAP


def test_stabilised_the_gap_closes_as_a_critically_damped_spring_in_mujoco():
    t, gap = spring_run(mb.Baumgarte(GAIN, GAIN))
    np.testing.assert_allclose(gap, (GAP + (RATE + GAIN * GAP) * t) * np.exp(-GAIN * t), atol=2e-4)


def test_stabilised_the_gap_survives_pushes_and_masses_it_does_not_know():
    """Masses off by up to 10 % each, 3 N on the second for a fifth of a second."""
    wrong = {"perturb": {"mass": 0.1}, "scenario": ScenarioOptions(seed=2)}
    wrong["disturbance"] = lambda t: [0.0, 3.0 * (0.3 <= t < 0.5)]
    _, drifted = spring_run(None, **wrong)
    _, gap = spring_run(mb.Baumgarte(20.0, 20.0), **wrong)
    assert np.abs(drifted[-300:]).max() > 0.05
    assert np.abs(gap[-300:]).max() < 0.01


def stiff_bearing_run(known):
    """The five-link robots in MuJoCo with dry friction in the third joint, known to the law or not.

    Return the largest error of the bar after the start, m or rad.
    """
    arms = mb.read_mjcf(ROBOTS)
    q, v, y = (ca.SX.sym(name, size) for name, size in (("q", 5), ("v", 5), ("y", 3)))
    p, _ = arms.frame("bar").pose(q)
    phi = ca.vertcat(p[0], p[2], ca.sum1(q[:3])) - y
    C = -FRICTION * ca.vertcat(0, 0, ca.tanh(v[2] / 0.02), 0, 0)
    law = servo_control(
        arms,
        servo_rows(arms, q, v, phi=phi, y=y),
        baumgarte=mb.Baumgarte(8.0, 8.0),
        f_nonideal=ca.Function("bearing", [q, v], [C]) if known else None,
    )
    plant = mujoco.MjSpec.from_file(str(ROBOTS))
    plant.joint("joint3").frictionloss = FRICTION
    run = validate(
        law,
        plant,
        2.0,
        reference=lambda t: law.reference(
            **dict(zip(("y", "ydot", "yddot"), bar_path(t), strict=True))
        ),
        scenario=ScenarioOptions(timestep=1e-3),
    ).runs[0]
    return np.abs(run.recording.monitor["error"][500:]).max()


def test_friction_that_the_law_knows_of_leaves_the_bar_on_its_path_in_mujoco():
    unknown, known = stiff_bearing_run(False), stiff_bearing_run(True)
    assert unknown > 3e-3
    assert known < 0.2 * unknown
