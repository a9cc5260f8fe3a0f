"""One regulator moves two arms, grasps a bar, and lifts it [A16, eq. 21].

All nine coordinates are pulled towards their goals. When the hands close, three freedoms are lost
and three joints become dependent: only a mask changes, the C is the same. With σ above 1 (Theorem
2) the friction of the law exceeds its spring: the bar creeps away from where it was grasped.

You will see the distance of the bar from its goal in MuJoCo, under σ = 0.5 and σ = 1.5.
"""

import sys
import warnings

import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.laws import DryFriction, LawOptions, dependent_regulation
from mbcasadi.plots import save_figure
from mbcasadi.validation import ReportOptions, Run, ScenarioOptions, validate

MODEL = models.path("two_arm_carry")
GRASPS = ("left_grasp", "right_grasp")
GRASP, DURATION = 1.0, 3.0  # s
STARTS = {0.5: "apart", 1.5: "grasp"}  # σ → where the arms start
KP = (60.0, 20.0, 1.5) * 2 + (100.0, 100.0, 10.0)  # N m/rad, N/m
KD = (8.0, 3.0, 0.15) * 2 + (40.0, 40.0, 3.0)  # N m s/rad, N s/m
LIFT = (0.03, 0.06, 0.10)  # m, m, rad of the bar
PUSH, PUSHED = -8.0, (1.5, 1.7)  # N on the bar along z; s


def poses(system: mb.System) -> dict[str, np.ndarray]:
    """Return the poses at the start, in the grasp, and with the bar lifted."""
    grasp = np.array(system.tree.q0)
    apart = grasp + np.array([0.25, -0.2, 0.3, -0.25, 0.2, -0.3, 0, 0, 0])
    bar_first, carried = np.diag([1.0] * 6 + [1e6] * 3), np.repeat([0, 1, 1], 6)
    lifted = mb.assemble(system, grasp + np.r_[np.zeros(6), LIFT], mask=carried, metric=bar_first)
    return {"apart": apart, "grasp": grasp, "lifted": lifted}


def run(system: mb.System, pose: dict[str, np.ndarray], sigma: float) -> Run:
    """Return the closed loop with masses 10 % above those of the law's model, and a push."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # σ = 1.5 warns that it will stick
        friction = DryFriction(sigma=sigma, rest_speed=0.02)
        tick = LawOptions(5e-4)
        law = dependent_regulation(system, kp=KP, kd=KD, options=tick, friction=friction)
    scenario = ScenarioOptions(
        mask=lambda t: [t < GRASP, t >= GRASP, t >= GRASP],
        switch=lambda t: dict.fromkeys(GRASPS, t >= GRASP) | {"stand": t < GRASP},
    )
    options = {
        "reference": lambda t: pose["grasp" if t < GRASP else "lifted"],
        "disturbance": lambda t: [0] * 7 + [PUSH * (PUSHED[0] <= t < PUSHED[1]), 0],
        "report": ReportOptions(explain=False),
    }
    errors = {"q0": pose[STARTS[sigma]], "perturb": {"mass": 0.1}}
    return validate(law, MODEL, DURATION, scenario=scenario, **options, **errors).runs[0]


def main(figure: str | None = None) -> dict[float, Run]:
    """Return the run under each σ."""
    system = mb.read_mjcf(MODEL, switchable=True)
    pose, runs = poses(system), {}
    for sigma in STARTS:
        runs[sigma] = run(system, pose, sigma)
        off = runs[sigma].recording.q[-1] - pose["lifted"]
        place, tick = 1e3 * np.hypot(*off[6:8]), 1e6 * runs[sigma].metric("time.median")
        print(f"σ = {sigma}: the bar ends {place:.1f} mm and {off[8]:.4f} rad off, ", end="")
        print(f"joints by {np.abs(off[:6]).max():.4f} rad; a tick takes {tick:.1f} µs")
    if figure is not None:
        records = {f"σ = {sigma}": each.recording for sigma, each in runs.items()}
        height = {name: (each.t, each.q[:, 7]) for name, each in records.items()}
        motor = {name: (each.t, each.u[:, 0]) for name, each in records.items()}
        save_figure(figure, {"height of the bar, m": height, "left shoulder, N m": motor})
    return runs


if __name__ == "__main__":
    main(*sys.argv[1:])
