"""One regulator moves two arms, grasps a bar during the run, and lifts it [A16, eq. 21].

All nine coordinates are pulled towards their goals; the constraints determine which of them can
move. When the hands close, three freedoms are lost and three joints become dependent: only a
mask changes, the C is the same. With σ above 1 (the paper's Theorem 2) the friction
of the law exceeds its spring: the bar creeps away from where it was grasped, the motors chatter.

You will see the distance of the bar from its goal in MuJoCo, with masses 10 % above those of the
law's model and a push on the bar, under σ = 0.5 and σ = 1.5.
"""

import warnings

import numpy as np
from panels import Panel, draw, figure_path

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.laws import dependent_regulation
from mbcasadi.validation import ScenarioOptions, validate

MODEL = models.path("two_arm_carry")
GRASPS = ("left_grasp", "right_grasp")
GRASP, DURATION = 1.0, 3.0  # s
STARTS = {0.5: "apart", 1.5: "grasp"}  # σ → where the arms start
BAR = slice(6, 9)  # x, z, angle
KP = (60.0, 20.0, 1.5) * 2 + (100.0, 100.0, 10.0)  # N m/rad, N/m
KD = (8.0, 3.0, 0.15) * 2 + (40.0, 40.0, 3.0)  # N m s/rad, N s/m
LIFT = (0.03, 0.06, 0.10)  # m, m, rad
PUSH, PUSHED = -8.0, (1.5, 1.7)  # N on the bar along z; s


def poses(system: mb.System) -> dict[str, np.ndarray]:
    """Return the poses at the start, in the grasp, and with the bar lifted."""
    grasp = np.array(system.tree.q0)
    apart = grasp + np.array([0.25, -0.2, 0.3, -0.25, 0.2, -0.3, 0, 0, 0])
    wish = grasp.copy()
    wish[BAR] += LIFT
    bar_first = np.diag([1.0] * 6 + [1e6] * 3)
    carried = np.repeat([0, 1, 1], 6)
    lifted = mb.assemble(system, wish, mask=carried, metric=bar_first)
    return {"apart": apart, "grasp": grasp, "lifted": lifted}


def main(figure: str | None = None) -> dict[float, mb.validation.Run]:
    """Return the run under each σ."""
    system = mb.read_mjcf(MODEL, switchable=True)
    pose, runs = poses(system), {}
    for sigma, start in STARTS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # σ = 1.5 warns that it will stick
            law = dependent_regulation(
                system, kp=KP, kd=KD, sigma=sigma, rest_speed=0.02, period=5e-4
            )
        report = validate(
            law,
            MODEL,
            DURATION,
            reference=lambda t: pose["grasp" if t < GRASP else "lifted"],
            scenario=ScenarioOptions(
                mask=lambda t: [t < GRASP, t >= GRASP, t >= GRASP],
                switch=lambda t: dict.fromkeys(GRASPS, t >= GRASP) | {"stand": t < GRASP},
            ),
            q0=pose[start],
            perturb={"mass": 0.1},
            disturbance=lambda t: [0] * 7 + [PUSH * (PUSHED[0] <= t < PUSHED[1]), 0],
        )
        run = runs[sigma] = report.runs[0]
        off = run.recording.q[-1] - pose["lifted"]
        print(
            f"σ = {sigma}: at the end the bar is off by {1e3 * np.hypot(*off[6:8]):.1f} mm and "
            f"{off[8]:.4f} rad, joints by {np.abs(off[:6]).max():.4f} rad; "
            f"a tick takes {1e6 * run.metric('time.median'):.1f} µs"
        )
    if figure is not None:
        draw(figure, drawn(runs, pose), columns=2, marks=[GRASP])
    return runs


def drawn(runs: dict[float, mb.validation.Run], pose: dict[str, np.ndarray]) -> list[Panel]:
    """Return the height of the bar and a torque."""
    records = {f"σ = {sigma}": run.recording for sigma, run in runs.items()}
    t = runs[0.5].recording.t
    height = {name: (t, r.q[:, 7]) for name, r in records.items()}
    height["goal"] = (t, np.where(t < GRASP, pose["grasp"][7], pose["lifted"][7]))
    torque = {name: (t, r.u[:, 0]) for name, r in records.items()}
    return [
        Panel("height of the bar, m", height, dashed=["goal"]),
        Panel("motor of the left shoulder, N m", torque),
    ]


if __name__ == "__main__":
    main(figure_path(__doc__))
