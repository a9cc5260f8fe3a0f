"""Two arms reach for a bar, close their hands and carry it: rows change, the C is the same [L15].

Before the grasp the servo constraints are the poses of both hands, six rows for six motors; after
it that of the bar, three rows for six motors. The mask selects the passive constraints, the
slice `off` of the reference the servo rows that are not enforced.

You will see the deviation of hands and bar from their paths in MuJoCo, with masses 10 % above those
of the law's model, a push on the bar, one sample of delay, and a law whose mask changes 20 ms after
the grasp.
"""

import casadi as ca
import numpy as np
from panels import Panel, draw, figure_path

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.laws import Law, servo_control, servo_rows
from mbcasadi.validation import Run, ScenarioOptions, validate

MODEL = models.path("two_arm_carry")
GRASP, LATE, DURATION = 1.0, 0.02, 4.0  # s
RATE = 20.0  # 1/s, of both α and β
GRASPS = ("left_grasp", "right_grasp")
AT_BAR = np.array([-0.32, 0.42, 0.0, 0.32, 0.42, 0.0])  # m, m, rad of both hands
AWAY = np.array([-0.08, 0.06, 0.2, 0.08, 0.06, -0.2])  # of the hands from there at the start
LIFT = np.array([0.03, 0.08, 0.08])  # m, m, rad of the bar, and back again
PUSH, PUSHED = -10.0, (2.0, 2.3)  # N on the bar along z; s


def hands(system: mb.System, q: ca.SX) -> ca.SX:
    """Return (6, 1): x, z and angle of the left hand and of the right one."""
    left, right = (system.frame(f"{side}_hand").pose(q)[0] for side in ("left", "right"))
    turned = (ca.sum1(q[:3]), ca.sum1(q[3:6]) - np.pi)
    return ca.vertcat(left[0], left[2], turned[0], right[0], right[2], turned[1])


def carrying_law(system: mb.System) -> Law:
    """Return the law whose rows are left hand, right hand and bar, each (x, z, angle)."""
    q, v, y = (ca.SX.sym(name, 9) for name in ("q", "v", "y"))
    names = [f"{part}_{one}" for part in ("left", "right", "bar") for one in ("x", "z", "angle")]
    phi = ca.vertcat(hands(system, q), q[6:]) - y
    rows = servo_rows(system, q, v, phi=phi, y=y, names=names)
    return servo_control(system, rows, baumgarte=mb.Baumgarte(RATE, RATE))


def start(system: mb.System) -> np.ndarray:
    """Return the pose with the hands away from the bar."""
    q, v = ca.SX.sym("q", 9), ca.SX.sym("v", 9)
    reached = system.with_rows(q, v, phi=hands(system, q) - (AT_BAR + AWAY))
    return mb.assemble(reached, system.tree.q0)


def reference(law: Law, t: float) -> np.ndarray:
    """Return the paths, without a jump of the speed, and which rows are off."""
    part = min(t / GRASP, 1.0)
    left = (1 - part) ** 2 * (1 + 2 * part)  # share of the way that is left
    hands = [left, 6 * part * (part - 1) / GRASP, (12 * part - 6) * (part < 1) / GRASP**2]
    hands = [share * AWAY for share in hands]
    hands[0] = hands[0] + AT_BAR
    rate, phase = 2 * np.pi / 3.0, max(t - GRASP - LATE, 0.0) * 2 * np.pi / 3.0
    bar = [LIFT * x / 2 for x in (1 - np.cos(phase), rate * np.sin(phase), rate**2 * np.cos(phase))]
    bar[0] = bar[0] + [0, 0.42, 0]
    y, ydot, yddot = (np.append(*pair) for pair in zip(hands, bar, strict=True))
    held = t >= GRASP + LATE
    return law.reference(y=y, ydot=ydot, yddot=yddot, off=[held] * 6 + [not held] * 3)


def main(figure: str | None = None) -> Run:
    """Return the run."""
    system = mb.read_mjcf(MODEL, switchable=True)
    law = carrying_law(system)
    run = validate(
        law,
        MODEL,
        DURATION,
        reference=lambda t: reference(law, t),
        scenario=ScenarioOptions(
            mask=lambda t: [1, 0, 0] if t < GRASP + LATE else [0, 1, 1],
            switch=lambda t: dict.fromkeys(GRASPS, t >= GRASP) | {"stand": t < GRASP},
        ),
        q0=start(system),
        perturb={"mass": 0.1},
        delay=1,
        disturbance=lambda t: [0] * 7 + [PUSH * (PUSHED[0] <= t < PUSHED[1]), 0],
    ).runs[0]
    for row in run.tracking:
        print(f"{row.name}: off by {1e3 * row.rms:.2f} rms, {1e3 * row.peak:.2f} at most; mm, mrad")
    print(f"a tick takes {1e6 * run.metric('time.median'):.1f} µs")
    if figure is not None:
        draw(figure, drawn(run), columns=2, marks=[GRASP])
    return run


def drawn(run: Run) -> list[Panel]:
    """Return the height of hands and bar, and the motors of the left arm."""
    r = run.recording
    target, error = r.monitor["target"], r.monitor["error"]
    hand = np.where(r.t < GRASP, (target - error)[:, 1], np.nan)  # its row is off later
    heights = {"bar": (r.t, r.q[:, 7]), "left hand": (r.t, hand)}
    motors = {name: (r.t, r.u[:, i]) for i, name in enumerate(["upper", "lower", "hand"])}
    return [Panel("height, m", heights), Panel("motors of the left arm, N m", motors)]


if __name__ == "__main__":
    main(figure_path(__doc__))
