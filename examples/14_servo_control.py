"""Two robots lift a bar in MuJoCo by six motors for three freedoms [L15, §V].

The bar's pose is a servo constraint `bar_pose(q) = y(t)`; the loop of five links is a passive one,
whose reaction depends on the motors. Both laws satisfy both constraints: `(A_s G B)⁺` with the
least torques, `(A_s M⁻¹ B)⁺` with those of the paper's figures. Stabilisation reduces the effect
of the model errors: masses 10 % too small, and a push on a shoulder.

You will see the range of each torque without errors, as the paper plots them, and the deviation of
the bar from its path with errors.
"""

import sys
from functools import partial

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.laws import Law, servo_control, servo_rows
from mbcasadi.plots import save_figure
from mbcasadi.validation import Run, ScenarioOptions, compile_controller, validate

MODEL = models.path("cooperating_arms")
DURATION = 3.142  # s, half a period; the way down needs the same torques
RATE = 20.0  # 1/s, of both α and β
FORMS = ("least_norm", "figures")
CASES = {"as modelled": (0, 0), "with errors": (0.1, 20)}  # of the masses; N m on a shoulder


def robots_law(form: str) -> Law:
    """Return the law that carries the bar along y = (x3, y3, theta3)."""
    arms = mb.read_mjcf(MODEL)
    q, v, y = ca.SX.sym("q", arms.nq), ca.SX.sym("v", arms.nv), ca.SX.sym("y", 3)
    p, _ = arms.frame("bar").pose(q)
    pose = ca.vertcat(p[0], p[2], ca.sum1(q[:3]))
    rows = servo_rows(arms, q, v, phi=pose - y, y=y, names=("x3", "y3", "theta3"))
    return servo_control(arms, rows, form=form, baumgarte=mb.Baumgarte(RATE, RATE))


def path(law: Law, t: float) -> np.ndarray:
    """Return the reference at time t: the bar stays level and rises and sinks by 1 m."""
    y, ydot, yddot = [1.5, (1 - np.cos(t)) / 2, 0], [0, np.sin(t) / 2, 0], [0, np.cos(t) / 2, 0]
    return law.reference(y=y, ydot=ydot, yddot=yddot)


def words(run: Run) -> str:
    """Return the ranges of the torques, how far the bar was off, and the time of a tick."""
    low, high = run.recording.u.min(axis=0), run.recording.u.max(axis=0)
    ranges = ", ".join(f"{a:.2f} … {b:.2f}" for a, b in zip(low, high, strict=True))
    off, tick = 1e3 * run.metric("tracking.rms"), 1e6 * run.metric("time.median")
    return f"u {ranges} N m;\n  bar off its path by {off:.3f} mm or mrad rms, {tick:.1f} µs a tick"


def main(figure: str | None = None) -> dict[tuple[str, str], Run]:
    """Return a run for each law, as modelled and with errors."""
    runs = {}
    for form in FORMS:
        law = robots_law(form)
        with compile_controller(law) as code:
            for case, (error, push) in CASES.items():
                options = {
                    "reference": partial(path, law),
                    "disturbance": lambda t, push=push: [push * (1.5 <= t < 1.8), 0, 0, 0, 0],
                    "perturb": {"mass": error},
                    "scenario": ScenarioOptions(timestep=1e-3),
                }
                run = validate(code, MODEL, DURATION, rigid=True, **options).runs[0]
                print(f"{form}, {case}: {words(run)}")
                runs[form, case] = run
    if figure is not None:
        records = {form: runs[form, "as modelled"].recording for form in FORMS}
        curves = [{form: (r.t, r.u[:, i]) for form, r in records.items()} for i in range(6)]
        save_figure(figure, {f"u{i + 1}, N m": each for i, each in enumerate(curves)})
    return runs


if __name__ == "__main__":
    main(*sys.argv[1:])
