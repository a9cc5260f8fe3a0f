"""A quadruped lifts a foot and puts it down: modes of one law, with fades.

Numbers, contacts and references of inverse dynamics belong to modes; a state machine in the law's C
fades between them. The foot is unloaded before its contact is off, and loaded gently afterwards.
You will see how high the foot went, how it was loaded, and how long each mode lasted.
"""

import sys
from itertools import pairwise

import numpy as np

import mbcasadi as mb
from mbcasadi import control
from mbcasadi.control import ControlMode, FrameTask, LoadRamp, PostureTask, Transition
from mbcasadi.plots import save_figure

MODEL, FEET, PERIOD, DURATION = mb.models.path("quadruped"), ("FL", "FR", "RL", "RR"), 2e-3, 4.5
LEAN, HEIGHT = (-0.05, -0.04, 0.0), 0.06  # m, of the trunk from FL, of FL from the ground
FADE, LIGHT, HEAVY = 0.5, 2.0, 300.0  # s; N, the most that FL carries


def law_of(system: mb.System) -> control.InverseDynamicsQP:
    """Return a law of the trunk and of one foot, whose weight and load are tunable."""
    tasks = [
        FrameTask("trunk", kp=200.0, weight=10.0),
        FrameTask("FL", orientation="", kp=400.0, weight=0.0, name="foot"),
        PostureTask(kp=50.0, weight=1e-2),
    ]
    feet = [mb.Contact(name, friction=0.6) for name in FEET]
    options = {"load_ramp": LoadRamp(duration=0.2, force=100.0), "tunable": ("weights", "forces")}
    return control.InverseDynamicsQP(system, tasks, feet, period=PERIOD, **options)


def modes_of(trunk: np.ndarray, foot: np.ndarray) -> dict[str, ControlMode]:
    """Return the modes, from where trunk and foot are when all feet stand."""

    def mode(lean: float, height: float, load: float, stands: bool) -> ControlMode:
        weights = {f"foot.weight.{axis}": 0.0 if stands else 10.0 for axis in "xyz"}
        places = {"trunk.position": trunk + lean * np.array(LEAN)}
        places["foot.position"] = foot + np.array([0.0, 0.0, height])
        return ControlMode(weights | {"FL.max_force": load}, {"FL": stands}, places)

    return {
        "stand": mode(0.0, 0.0, HEAVY, True),
        "shift": mode(1.0, 0.0, HEAVY, True),
        "unload": mode(1.0, 0.0, LIGHT, False),
        "lift": mode(1.0, HEIGHT, LIGHT, False),
        "lower": mode(1.0, 0.0, LIGHT, False),
        "load": mode(1.0, 0.0, HEAVY, True),
    }


def main(figure: str | None = None) -> dict[str, object]:
    """Return the report, and the mode of each tick."""
    system = mb.read_mjcf(MODEL)
    q0 = system.tree.keyframes["stand"]
    law = law_of(system)
    modes = modes_of(q0[:3], np.array(system.frame("FL").pose(q0)[0]).ravel())
    names = [*modes, "stand"]
    steps = [Transition(a, b, after=0.7, fade=FADE) for a, b in pairwise(names)]
    whole = control.sequence(law, modes, steps)
    report = mb.validate(whole, MODEL, DURATION, q0=q0, reference=law.reference_at(q0))
    run, foot = report.runs[0].recording, system.frame("FL")
    height = np.array([float(foot.pose(q)[0][2]) for q in run.q])
    active, load = run.z[:, 0].astype(int), run.contact_normal[:, 0]
    lasted = {name: f"{PERIOD * np.sum(active == k):.1f}" for k, name in enumerate(modes)}
    print(f"foot lifted by {1e3 * np.ptp(height):.0f} mm; s in modes: {lasted}")
    if figure is not None:
        curves = {"height of the foot, m": height, "load of the foot, N": load, "mode": active}
        save_figure(figure, {name: {name: (run.t, y)} for name, y in curves.items()})
    return {"report": report, "height": height, "mode": active, "load": load}


if __name__ == "__main__":
    main(*sys.argv[1:])
