"""A biped recovers from a push: MPC with the friction cones of its feet.

The robot of example 21 stands on contacts. Its regulator assumes pins: after a push of a third of
its weight for 0.2 s it would pull a foot down, the foot lifts or slips, and it falls; at 1 kHz it
withstands one of the two pushes. So does an MPC with torque limits alone. With the friction cone
and a least load of both feet among its rows, the MPC bends the trunk instead and recovers. The
plant is 10 % heavier and acts one tick late, which only the MPCs take into account.

You will see the hip and the trunk under these laws, pushed from both sides.
"""

import re
import sys
from dataclasses import replace

import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.regulators import lqr
from mbcasadi.mpc import LinearOptions, friction_output, linear_mpc
from mbcasadi.plots import curves_of, save_figure
from mbcasadi.validation import ReportOptions, Run

MODEL = models.path("planar_biped")
PERIOD, HORIZON, DURATION = 0.01, 30, 3.0  # s, samples, s
PUSHES, PUSHED = (220, -220), (0.5, 0.7)  # N on the trunk; s
WEIGHTS, EFFORT = [10.0, 0.1], 1e-4  # 1/rad² or 1/m², per s; 1/(N m)²
FEET, FRICTION, LEAST = ("left_foot", "right_foot"), 0.5, 40.0  # 0.9 in the plant; N on each
FALLEN = 0.3  # m that the hip has come down
SOLE = r'\g<0><geom type="sphere" size="0.02" \1 mass="0" contype="1" friction="0.9"/>'


def on_contacts() -> str:
    """Return the model with spheres on a floor in place of the pins."""
    text = re.sub(r"<connect ([^>]*)/>", r'<connect \1 active="false"/>', MODEL.read_text())
    text = re.sub(r'<site name="\w+_foot" (pos="[^"]*")/>', SOLE, text)
    floor = '<geom name="floor" type="plane"'
    return text.replace(floor, f'{floor} pos="0 0 -0.02" conaffinity="1" friction="0.9"')


def outcome(run: Run) -> str:
    """Return how it ended; how a fallen robot lies is a matter of rounding errors."""
    x, z, lean = np.abs(run.recording.q[:, :3] - run.recording.q[0, :3]).T
    if z.max() > FALLEN:
        return "falls"
    at_most = f"hip {1e3 * x.max():.0f} mm, lean {1e3 * lean.max():.0f} mrad at most"
    return f"ends {1e3 * x[-1]:.0f} mm off; {at_most}"


def main(figure: str | None = None) -> dict[str, dict[str, object]]:
    """Return the runs by law and push: t, hip, lean, and the run."""
    system, runs = mb.read_mjcf(MODEL), {}
    held = mb.equilibrium(system)
    linear, weights = mb.linearize(system, held), (np.repeat(WEIGHTS, system.nv), EFFORT)
    feet = [friction_output(linear, foot, foot, FRICTION, min_force=LEAST) for foot in FEET]
    free = LinearOptions(HORIZON, *weights, period=PERIOD, delay=1)
    laws = {
        "LQR": lqr(linear, *weights, options=mb.control.LawOptions(PERIOD)),
        "LQR at 1 kHz": lqr(linear, *weights, options=mb.control.LawOptions(1e-3)),
        "MPC, torques": linear_mpc(linear, free),
        "MPC, torques and feet": linear_mpc(linear, replace(free, outputs=feet)),
    }
    options = {"perturb": {"mass": 0.1}, "delay": 1, "report": ReportOptions(explain=False)}
    for name, law in laws.items():
        hold = law.reference(setpoint_q=held.q, setpoint_u=held.u) if "MPC" in name else None
        for force in PUSHES:
            options["disturbance"] = lambda t, force=force: [force * (0.5 <= t < 0.7)] + [0] * 6
            run = mb.validate(law, on_contacts(), DURATION, reference=hold, **options).runs[0]
            print(f"{name}, {force:+.0f} N: {outcome(run)};\n  {run.in_words}")
            t, x = run.recording.t, 1e3 * run.recording.q
            runs[f"{name}, {force:+.0f} N"] = {"t": t, "hip": x[:, 0], "lean": x[:, 2], "run": run}
    if figure is not None:
        subplots = curves_of(runs, {"hip forward, mm": "hip", "lean, mrad": "lean"})
        save_figure(figure, subplots, limits=dict.fromkeys(subplots, (-200, 200)), marks=PUSHED)
    return runs


if __name__ == "__main__":
    main(*sys.argv[1:])
