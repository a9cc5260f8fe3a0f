"""An arm follows its path and presses with 50 N, decoupled [A10, §5].

With eq. 47 alone the accuracy of the force is that of the model, whose masses are 10 % too small.
A proportional and integral loop on the measured force [A05, eq. 52] removes the error; the
measurement is one sample late, so G_F stays below one. The tip's path is the same in both runs. The
paper's motors have no limits: the plant's are raised.

You will see the force with and without feedback, and the tip's error, which is the same twice.
"""

import sys
from functools import partial

import casadi as ca
import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import laws
from mbcasadi.plots import curves_of, save_figure
from mbcasadi.validation import ReportOptions

WANTED, STRONG = 50.0, 400.0  # N the surface pushes; N and N m the motors have
DURATION, SETTLED = 7.2, 2.0  # s; the path leaves the arm's reach after 7.36 s
GAINS = {"eq. 47 alone": (), "and PI": (0.5, 100.0)}  # G_F, G_I in 1/s


def plant() -> mujoco.MjModel:
    """Return the arm with strong motors."""
    spec = mujoco.MjSpec.from_file(str(models.path("prr_arm")))
    for motor in spec.actuators:
        motor.ctrlrange = (-STRONG, STRONG)
    return spec.compile()


def reference(law: laws.Law, t: float) -> np.ndarray:
    """Return the path of A10, section 5, and the force."""
    size, mean, w = np.array([[0.3, np.pi / 6], [0.5, np.pi / 12], [0.6 * np.pi, np.pi]])
    wave, rate = size * np.sin(w * t), size * w * np.cos(w * t)
    path = {"theta_q": mean + wave, "theta_v": rate, "theta_a": -(w**2) * wave}
    return law.reference(**path, force_lam=WANTED)


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray | float]]:
    """Return of each run: t, force, error of θ, and the RMS of the force's error in per cent."""
    model, found, q = plant(), {}, ca.SX.sym("q", 4)
    system = mb.read_mjcf(model)
    place = ca.Function("theta", [q], [ca.vertcat(q[3], q[1] + q[2] + np.pi / 2)])
    theta = laws.function_coordinates(system, place, names=("tip", "lean"), units=("m", "rad"))
    tip, lean = 0.4, np.pi / 12 + 0.2  # m, rad: beside the path, with the elbow below the base
    q2 = -np.arccos(tip - np.sin(lean))
    q3 = lean - np.pi / 2 - q2
    options = {
        "q0": [-np.sin(q2) - np.sin(q2 + q3), q2, q3, tip],
        "perturb": {"mass": 0.1},
        "disturbance": lambda t: [8.0 * (3.0 <= t < 4.0), 0, 0, 0],  # N on the base
        "report": ReportOptions(explain=False),
    }
    for name, gains in GAINS.items():
        force = laws.ForceGains(*gains, rows=("surface.2",))
        law = laws.quasi_velocity_force(system, theta, kp=3.0, kd=5.0, gains=force)
        report = mb.validate(law, model, DURATION, reference=partial(reference, law), **options)
        run = report.runs[0]
        force = run.recording.equality_force[:, 0]  # on the base's vertical slide: the surface's
        off = (force - WANTED)[run.recording.t > SETTLED] / WANTED
        rms, largest = 100 * np.sqrt(np.mean(off**2)), 100 * np.abs(off).max()
        error = run.recording.monitor["error"][:, :2]
        found[name] = {"t": run.recording.t, "force": force, "tip": error, "rms": rms}
        print(f"{name}: force off by {rms:.2f} % RMS, {largest:.1f} % at most, after {SETTLED:g} s")
    apart = np.abs(found["and PI"]["tip"] - found["eq. 47 alone"]["tip"]).max()
    print(f"the tip's paths differ by {1e3 * apart:.2f} mm or mrad at most")
    print(f"one tick {1e6 * run.metric('time.median'):.1f} µs")
    if figure is not None:
        save_figure(figure, curves_of(found, {"force on the surface, N": "force"}))
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
