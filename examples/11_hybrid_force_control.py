"""An arm slides along a surface and presses with 50 N [A05, §7.3].

The motors' force splits: one part moves the arm, the other only presses. The accuracy of
feedforward is that of the masses, which are wrong by 10 % here. PI on the measured force removes
the error. It measures the effect of the last control, so its gain G_F must stay below one; above,
the loop diverges, and such gains are refused unless `allow_unstable=True`.

You will see the force with feedforward and with PI, and the same motion in both runs.
"""

import sys

import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.laws import ForceGains, hybrid_motion_force_control, joint_coordinates
from mbcasadi.plots import save_figure

MODEL = models.path("prr_arm")
WANTED = 50.0  # N, the surface pushes the tip upwards
DURATION, SETTLED = 3.0, 0.3  # s
PUSH, FROM, TO = 40.0, 1.5, 1.6  # N on the base; s
DIVERGES = "G_F = 1.1"
SURFACE = ("surface.2",)  # the row whose multiplier is the press
GAINS = {
    "feedforward": ForceGains(rows=SURFACE),
    "PI, G_F = 0.5": ForceGains(0.5, 50.0, rows=SURFACE),
    DIVERGES: ForceGains(1.1, allow_unstable=True, rows=SURFACE),
}


def run(system: mb.System, gains: ForceGains) -> mb.validation.Run:
    """Return the closed loop with these gains."""
    theta = joint_coordinates(system, ("tip", "q1"))
    law = hybrid_motion_force_control(system, theta, gains, kp=400.0)

    def reference(t: float) -> np.ndarray:
        sway = 0.15 * np.array([1 - np.cos(np.pi * t), np.pi * np.sin(np.pi * t)])
        bend = 0.15 * np.pi**2 * np.cos(np.pi * t)
        return law.reference(
            theta_q=(0.2 + sway[0], 1.4), theta_v=(sway[1], 0), theta_a=(bend, 0), force_lam=WANTED
        )

    def push(t: float) -> list[float]:
        return [PUSH if FROM <= t < TO else 0.0, 0.0, 0.0, 0.0]

    report = mb.validate(
        law, MODEL, DURATION, reference=reference, disturbance=push, perturb={"mass": 0.1}
    )
    return report.runs[0]


def main(figure: str | None = None) -> dict[str, dict[str, float]]:
    """Return the figures of each run."""
    system, found, force, tip = mb.read_mjcf(MODEL), {}, {}, {}
    for name, gains in GAINS.items():
        one = run(system, gains)
        t, pressed = one.recording.t, one.recording.equality_force[:, 0]  # only it lifts the base
        if name != DIVERGES:
            force[name], tip[name] = (t, pressed), (t, 1e3 * one.recording.monitor["error"][:, 0])
        miss = pressed[t > SETTLED] - WANTED
        found[name] = {
            "RMS force error, %": float(100 * np.sqrt(np.mean(miss**2)) / WANTED),
            "RMS error of the tip, mm": 1e3 * one.tracking[0].rms,
            "ticks at a limit, %": 100 * one.metric("torque.saturated"),
            "one tick, µs": 1e6 * one.metric("time.median"),
        }
        print(f"{name:14}", ", ".join(f"{k} {v:.2g}" for k, v in found[name].items()))
    if figure is not None:
        save_figure(figure, {"force on the surface, N": force, "error of the tip, mm": tip})
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
