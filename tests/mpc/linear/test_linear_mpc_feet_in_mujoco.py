"""A biped on contacts is pushed in MuJoCo: with cones in its linear MPC the feet slip less."""

import re

import numpy as np

from mbcasadi import models
from mbcasadi.control.regulators import equilibrium, linearize
from mbcasadi.mpc import LinearOptions, friction_output, linear_mpc
from mbcasadi.system import read_mjcf
from mbcasadi.validation import validate

MODEL = models.path("planar_biped")
FLOOR, COUNTED_ON = 0.35, 0.28  # friction of the plant, and of the law
PUSH, PUSHED = 190.0, (0.3, 0.5)  # N on the trunk; s
DURATION = 1.6  # s
SOLE = (
    r'\g<0><geom type="sphere" size="0.02" \1 mass="0" contype="1" '
    f'friction="{FLOOR}"/>'
)


def on_contacts():
    """Return the file with spheres on a floor in place of the pins."""
    text = re.sub(r"<connect ([^>]*)/>", r'<connect \1 active="false"/>', MODEL.read_text())
    text = re.sub(r'<site name="\w+_foot" (pos="[^"]*")/>', SOLE, text)
    floor = '<geom name="floor" type="plane"'
    return text.replace(floor, f'{floor} pos="0 0 -0.02" conaffinity="1" friction="{FLOOR}"')


def push(t):
    return PUSH * (PUSHED[0] <= t < PUSHED[1]) * np.eye(7)[0]


def test_feet_slip_less_where_the_law_keeps_their_forces_inside_the_cones():
    """Mass 10 % off, one tick of delay; the hip stands where the feet slid to in the end."""
    system = read_mjcf(MODEL)
    held = equilibrium(system)
    linear = linearize(system, held)
    cones = [
        friction_output(linear, foot, foot, COUNTED_ON, min_force=20.0)
        for foot in ("left_foot", "right_foot")
    ]
    slid = []
    for outputs in ([], cones):
        mpc = linear_mpc(
            linear,
            LinearOptions(
                15, np.repeat([10.0, 0.1], 7), 1e-4, period=0.01, outputs=outputs, delay=1
            ),
        )
        report = validate(
            mpc,
            on_contacts(),
            DURATION,
            reference=mpc.reference(setpoint_q=held.q, setpoint_u=held.u),
            perturb={"mass": 0.1},
            disturbance=push,
            delay=1,
        )
        recording = report.runs[0].recording
        assert not np.any(recording.status)
        assert np.abs(recording.q[:, 0] - held.q[0]).max() > 0.03
        slid.append(abs(recording.q[-1, 0] - held.q[0]))
    free, inside = slid
    assert free > 0.01
    assert inside < 0.008
