"""Two arms take a bar and carry it: rows change, the C is the same [L15].

Before the grasp the servo constraints are the poses of both hands, six rows for six motors; after
it that of the bar. The mask selects the passive constraints, the slice `off` of the reference the
servo rows that are not enforced.

You will see the deviation from the paths in MuJoCo, with 10 % more mass, a push on the bar, a
delay, and a mask that changes 20 ms after the grasp.
"""

import sys

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.laws import Law, servo_control, servo_rows
from mbcasadi.plots import save_figure
from mbcasadi.validation import Run, ScenarioOptions, validate

MODEL, SIDES = models.path("two_arm_carry"), ("left", "right")
GRASP, LATE, DURATION, WAY = 1.0, 0.02, 4.0, 3.0  # s
AT_BAR = np.array([-0.32, 0.42, 0.0, 0.32, 0.42, 0.0])  # m, m, rad of both hands
AWAY = np.array([-0.08, 0.06, 0.2, 0.08, 0.06, -0.2])  # of the hands from there at the start
LIFT = np.array([0.03, 0.08, 0.08])  # m, m, rad of the bar, and back again
PUSH, PUSHED = -10.0, (2.0, 2.3)  # N on the bar along z; s


def carrying_law(system: mb.System) -> tuple[Law, np.ndarray]:
    """Return the law with the rows of both hands and the bar, and a pose with the hands away."""
    q, v, y = (ca.SX.sym(name, 9) for name in ("q", "v", "y"))
    left, right = (system.frame(f"{side}_hand").pose(q)[0] for side in SIDES)
    angles = ca.sum1(q[:3]), ca.sum1(q[3:6]) - np.pi
    hands = ca.vertcat(left[0], left[2], angles[0], right[0], right[2], angles[1])
    names = [f"{part}_{axis}" for part in (*SIDES, "bar") for axis in ("x", "z", "angle")]
    rows = servo_rows(system, q, v, phi=ca.vertcat(hands, q[6:]) - y, y=y, names=names)
    start = mb.assemble(system.with_rows(q, v, phi=hands - (AT_BAR + AWAY)), system.tree.q0)
    return servo_control(system, rows, baumgarte=mb.Baumgarte(20.0, 20.0)), start  # 1/s


def reference(law: Law, t: float) -> np.ndarray:
    """Return the paths, without a jump of the speed, and which rows are off."""
    part = min(t / GRASP, 1.0)
    rates = 6 * part * (part - 1) / GRASP, (12 * part - 6) * (part < 1) / GRASP**2
    hands = np.outer([(1 - part) ** 2 * (1 + 2 * part), *rates], AWAY)  # what is left of the way
    rate, later = 2 * np.pi / WAY, max(t - GRASP - LATE, 0.0)
    rise = [1 - np.cos(rate * later), rate * np.sin(rate * later), rate**2 * np.cos(rate * later)]
    paths = np.hstack([hands, np.outer(rise, LIFT / 2)])
    paths[0] += [*AT_BAR, 0, 0.42, 0]
    off = np.repeat([t >= GRASP + LATE, t < GRASP + LATE], [6, 3])
    return law.reference(y=paths[0], ydot=paths[1], yddot=paths[2], off=off)


def main(figure: str | None = None) -> Run:
    """Return the run."""
    system = mb.read_mjcf(MODEL, switchable=True)
    law, start = carrying_law(system)
    scenario = ScenarioOptions(
        mask=lambda t: [1, 0, 0] if t < GRASP + LATE else [0, 1, 1],
        switch=lambda t: {f"{side}_grasp": t >= GRASP for side in SIDES} | {"stand": t < GRASP},
    )
    options = {
        "reference": lambda t: reference(law, t),
        "disturbance": lambda t: [0] * 7 + [PUSH * (PUSHED[0] <= t < PUSHED[1]), 0],
    }
    options |= {"q0": start, "perturb": {"mass": 0.1}, "delay": 1}
    run = validate(law, MODEL, DURATION, scenario=scenario, **options).runs[0]
    for row in run.tracking:
        print(f"{row.name}: off by {1e3 * row.rms:.2f} rms, {1e3 * row.peak:.2f} at most; mm, mrad")
    print(f"a tick takes {1e6 * run.metric('time.median'):.1f} µs")
    if figure is not None:
        r = run.recording
        motors = {name: (r.t, r.u[:, i]) for i, name in enumerate(["upper", "lower", "hand"])}
        save_figure(figure, {"height, m": {"bar": (r.t, r.q[:, 7])}, "left arm, N m": motors})
    return run


if __name__ == "__main__":
    main(*sys.argv[1:])
