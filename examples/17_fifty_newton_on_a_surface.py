"""An arm follows its path and presses with 50 N: motion and force are decoupled [A10, §5].

With eq. 47 alone the accuracy of the force is that of the model, whose masses are 10 % too small.
A proportional and integral loop on the measured force [A05, eq. 52] removes the error; the
measurement is one sample late, so G_F stays below one. The tip's path is the same in both runs. The
paper's motors have no limits: the plant's are raised.

You will see the force with and without feedback, and the tip's error, which is the same twice.
"""

import runpy
from pathlib import Path

import mujoco
import numpy as np
from panels import Panel, draw, figure_path

import mbcasadi as mb
from mbcasadi.control import laws

WANTED, STRONG = 50.0, 400.0  # N the surface pushes; N and N m the motors have
SETTLED = 2.0  # s
GAINS = {"eq. 47 alone": None, "and PI": laws.ForceGains(0.5, 100.0)}  # G_F, G_I in 1/s
PUSH, FROM, TO = 8.0, 3.0, 4.0  # N on the base; s
ARM = runpy.run_path(str(Path(__file__).with_name("16_an_error_that_decays_at_its_gain.py")))


def plant() -> mujoco.MjModel:
    """Return the arm with strong motors."""
    spec = mujoco.MjSpec.from_file(str(ARM["MODEL"]))
    for motor in spec.actuators:
        motor.ctrlrange = (-STRONG, STRONG)
    return spec.compile()


def push(t: float) -> np.ndarray:
    """Return the force on the joints, which is unknown to the law."""
    return np.array([PUSH if FROM <= t < TO else 0.0, 0.0, 0.0, 0.0])


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray | float]]:
    """Return of each run: t, force, error of θ, and the RMS of the force's error in per cent."""
    model = plant()
    system = mb.read_mjcf(model)
    theta, found = ARM["theta_of"](system), {}
    for name, gains in GAINS.items():
        law = laws.quasi_velocity_force(
            system, theta, ("surface.2",), kp=ARM["K_P"], kd=ARM["K_D"], gains=gains
        )
        q0 = ARM["start"](ARM["path"](law, 0.0)[:2] + ARM["OFFSET"])
        run = mb.validate(
            law,
            model,
            ARM["DURATION"],
            reference=lambda t, law=law: ARM["path"](law, t, force_lam=WANTED),
            q0=q0,
            perturb={"mass": 0.1},
            disturbance=push,
        ).runs[0]
        record = run.recording
        force = record.equality_force[:, 0]  # on the base's vertical slide: the surface's own
        off = (force - WANTED)[record.t > SETTLED] / WANTED
        rms, largest = 100 * np.sqrt(np.mean(off**2)), 100 * np.abs(off).max()
        tip = record.monitor["error"][:, :2]
        found[name] = {"t": record.t, "force": force, "tip": tip, "rms": rms, "max": largest}
        found[name]["tick"] = run.metric("time.median")
        print(f"{name}: force off by {rms:.2f} % RMS, {largest:.1f} % at most, after {SETTLED:g} s")
    apart = np.abs(found["and PI"]["tip"] - found["eq. 47 alone"]["tip"]).max()
    print(f"the tip's paths differ by {1e3 * apart:.2f} mm or mrad at most")
    print(f"one tick {1e6 * found['and PI']['tick']:.1f} µs")
    if figure is not None:
        draw(figure, drawn(found), columns=2)
    return found


def drawn(found: dict[str, dict[str, np.ndarray]]) -> list[Panel]:
    """Return the force and the tip's error of both runs."""
    force = {name: (run["t"], run["force"]) for name, run in found.items()}
    tip = {name: (run["t"], 1e3 * run["tip"][:, 0]) for name, run in found.items()}
    dashed = ["and PI"]
    return [
        Panel("force on the surface, N", force, limits=(30, 70)),
        Panel("error of the tip, mm", tip, dashed=dashed),
    ]


if __name__ == "__main__":
    main(figure_path(__doc__))
