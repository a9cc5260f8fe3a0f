"""A planar biped without ankle motors stands in a stride by LQR.

With both feet pinned the legs are a loop through the ground: seven coordinates, six rows of rank 4,
three freedoms and four motors. Torques that only change internal forces do no work, and the
regulator never commands them. Three of the six modes on the manifold grow.
The law assumes pins. It also stands on feet that only touch the floor, as long as their forces
stay in the friction cones: the second plant has contacts in place of pins.

You will see hip and lean after a push of 60 N for 0.2 s, 10 % more mass and one tick of delay.
"""

import re
import sys

import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.regulators import feedback, lqr
from mbcasadi.plots import save_figure
from mbcasadi.validation import ReportOptions

MODEL = models.path("planar_biped")
DURATION = 3.0  # s
PUSH, PUSHED = 60.0, (0.5, 0.7)  # N on the trunk; s
PLACE, SPEED, TORQUE = 10.0, 0.1, 1e-4  # weights: 1/rad² or 1/m², per s, 1/(N m)²
SOLE = r'\g<0><geom type="sphere" size="0.02" \1 mass="0" contype="1" friction="0.9"/>'


def on_contacts() -> str:
    """Return the file with spheres on a floor in place of the pins."""
    text = re.sub(r"<connect ([^>]*)/>", r'<connect \1 active="false"/>', MODEL.read_text())
    text = re.sub(r'<site name="\w+_foot" (pos="[^"]*")/>', SOLE, text)
    floor = '<geom name="floor" type="plane"'
    return text.replace(floor, f'{floor} pos="0 0 -0.02" conaffinity="1" friction="0.9"')


def push(t: float) -> np.ndarray:
    """Return the force on the coordinates at time t."""
    return PUSH * (PUSHED[0] <= t < PUSHED[1]) * np.eye(7)[0]


def run(law: mb.control.laws.Law, model: object, duration: float) -> mb.validation.Recording:
    """Return the run in MuJoCo."""
    errors = {"perturb": {"mass": 0.1}, "disturbance": push, "delay": 1}
    once = ReportOptions(explain=False)
    return mb.validate(law, model, duration, report=once, **errors).runs[0].recording


def main(figure: str | None = None) -> dict[str, mb.validation.Recording]:
    """Return the runs on pins, on contacts, and on pins without feedback."""
    system = mb.read_mjcf(MODEL)
    held = mb.equilibrium(system)
    linear = mb.linearize(system, held)
    rates = np.sort(np.linalg.eigvals(linear.dfdx).real)
    print("holding torques", held.u.round(1), "N m; feet carry", held.lam[[2, 5]].round(), "N")
    print("modes that grow", rates[rates > 0].round(2), "1/s")
    law = lqr(linear, np.repeat([PLACE, SPEED], system.nv), TORQUE)
    nothing = feedback(linear, np.zeros((linear.nu, linear.nx)))
    runs = {
        "on pins": run(law, MODEL, DURATION),
        "on contacts": run(law, on_contacts(), DURATION),
        "no feedback": run(nothing, MODEL, 1.0),
    }
    said = "hip {:.0f} mm forward, {:.0f} mm down, lean {:.0f} mrad"
    for name, found in runs.items():
        away = 1e3 * np.abs(found.q[:, :3] - held.q[:3])
        print(f"{name}: {said.format(*away.max(axis=0))} at most; {said.format(*away[-1])} last")
    if figure is not None:
        titles = ("hip forward, mm", "hip up, mm", "lean, mrad")
        subplots = {
            title: {name: (run.t, 1e3 * run.q[:, i]) for name, run in runs.items()}
            for i, title in enumerate(titles)
        }
        save_figure(figure, subplots, limits=dict.fromkeys(titles, (-25, 25)))
    return runs


if __name__ == "__main__":
    main(*sys.argv[1:])
