"""A parallel robot holds its tool: the response of three laws to one push.

PD with gravity compensation holds the tool with springs, whatever its inertia. Impedance with the
robot's own inertia does the same and damps the motions that the tool leaves free. With a chosen
inertia the tool behaves like a mass of 5 kg in every direction: this needs the push measured. In
the end the displacement of all three is force over stiffness, though the plant is 10 % heavier than
their model.

You will see the motion of the tool, and its deviation from the line of the push.
"""

import sys

import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import FrameTask, laws
from mbcasadi.plots import curves_of, save_figure

MODEL = models.path("planar_3rrr")
STIFFNESS, DAMPING = 400.0, 40.0  # N/m, N s/m
HEAVY = 5.0  # kg, the tool's inertia where it is chosen
PUSH = np.array([6.0, -3.0])  # N on the platform
FROM, DURATION = 0.2, 1.6  # s
X, Y = 6, 7  # the platform's places in q and v


def push(t: float) -> np.ndarray:
    """Return the force on the joints."""
    force = np.zeros(9)
    force[[X, Y]] = PUSH * (t >= FROM)
    return force


def robots() -> dict[str, laws.Law]:
    """Return the three laws."""
    system = mb.read_mjcf(MODEL)
    tool = FrameTask("tool", position="xy", orientation="")
    springs = {"stiffness": STIFFNESS, "damping": DAMPING}
    quiet = springs | {"joint_damping": 10.0}
    return {
        "PD, compensated": laws.gravity_compensated_pd(system, tool, **springs),
        "own inertia": laws.impedance_control(system, tool, **quiet),
        "5 kg, push measured": laws.impedance_control(system, tool, inertia=HEAVY, **quiet),
    }


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray | float]]:
    """Return of each law: t, the tool's shift (n, 2), mm, and the expected final shift."""
    found: dict[str, dict[str, np.ndarray | float]] = {}
    for name, law in robots().items():
        felt = "tool.measured" in law.reference_slices

        def reference(t: float, law: laws.Law = law, felt: bool = felt) -> np.ndarray:
            return law.reference(**({"tool_measured": push(t)[[X, Y]]} if felt else {}))

        options = {"reference": reference, "disturbance": push, "perturb": {"mass": 0.1}}
        run = mb.validate(law, MODEL, DURATION, **options).runs[0]
        shift = 1e3 * run.recording.q[:, [X, Y]]  # the tool rests at the origin
        along = PUSH / np.linalg.norm(PUSH)
        aside = float(np.abs(shift @ [-along[1], along[0]]).max())
        early = np.searchsorted(run.recording.t, FROM + 0.05)
        found[name] = {"t": run.recording.t, "shift": shift, "aside": aside}
        found[name] |= {"x": shift[:, 0], "y": shift[:, 1]}
        found[name] |= {"soon": float(shift[early] @ along), "end": shift[-1]}
        found[name]["tick"] = run.metric("time.median")
        print(f"{name:20}: {found[name]['soon']:5.2f} mm after 50 ms, in the end ", end="")
        print(f"({shift[-1, 0]:.2f}, {shift[-1, 1]:.2f}) mm; off the push's line by {aside:.2f} mm")
    print("force over stiffness:", 1e3 * PUSH / STIFFNESS, "mm")
    if figure is not None:
        save_figure(figure, curves_of(found, {"x of the tool, mm": "x", "y of the tool, mm": "y"}))
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
