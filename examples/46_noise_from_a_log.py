"""A log says how noisy a four-bar and its encoder are: noise by likelihood.

Unknown forces push a four-bar, whose crank alone has an encoder. The control loop writes a log, a
CSV file as a robot writes it. A filter is run through the log with ten times too much noise of the
encoder and a tenth of the forces, then with the numbers under which the log is most likely.

You will see the errors of the rocker's rate with bounds of three deviations, before and after.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import mbcasadi as mb
from mbcasadi.control import PostureTask, laws
from mbcasadi.estimation import (
    Estimator,
    Measured,
    estimate_log,
    fit_noise,
    logged_inputs,
    manifold_filter,
    read_log,
)
from mbcasadi.plots import save_figure
from mbcasadi.validation import ReportOptions, Sensing, save_recording

MODEL, PERIOD, DURATION, SETTLED = mb.models.path("four_bar"), 0.002, 3.0, 0.3  # s
TRUE = {"force": 0.05, "encoder": 1e-3}  # N m/√Hz on each joint; rad
WRONG = {"force": 0.005, "encoder": 1e-2}
CHANNELS = {"y.crank": "monitor.estimate_y.crank", "u.crank": "u_applied.crank"}


def estimator(system: mb.System, force: float, encoder: float) -> Estimator:
    """Return the filter with these numbers."""
    crank, options = [Measured("crank", encoder, kind="position")], {"likelihood": True}
    return manifold_filter(system, crank, force_noise=force, period=PERIOD, **options)


def main(picture: str) -> dict[str, float]:
    """Record, read, fit, draw; return the shares inside the bounds."""
    system = mb.read_mjcf(MODEL)
    law = laws.computed_torque(system, PostureTask(kp=50.0), options=laws.LawOptions(period=PERIOD))
    size = (int(DURATION / PERIOD) + 2, system.nv)
    pushes = np.random.default_rng(0).normal(0, TRUE["force"] / np.sqrt(PERIOD), size)
    report = mb.validate(
        law, MODEL, DURATION, sensors=Sensing(estimator(system, **TRUE)),
        disturbance=lambda t: pushes[round(t / PERIOD)],
        report=ReportOptions(explain=False, timing=False),
    )  # fmt: skip
    recording = report.runs[0].recording
    with tempfile.TemporaryDirectory() as folder:
        log = read_log(save_recording(recording, Path(folder) / "log.csv"))
    before = estimator(system, **WRONG)
    logged = logged_inputs(before, log, channels=CHANNELS)
    fitted = fit_noise(lambda **n: estimator(system, **n), logged, WRONG, settle=SETTLED)
    for name, number in fitted.numbers.items():
        true, by = TRUE[name], fitted.deviation[name]
        print(f"{name}: {number:.2g} ±{by:.0%}, true {true:.2g}, wrong {WRONG[name]:.2g}")
    curves, share, rocker = {}, {}, system.nv + 2
    for label, one in (("before", before), ("after", fitted.estimator)):
        said = estimate_log(one, logged)
        error = said.errors(system, recording.q, recording.v)[:, rocker]
        bound, late = 3 * said.deviation[:, rocker], said.t > SETTLED
        share[label] = float(np.mean(np.abs(error[late]) <= bound[late]))
        print(f"{label}: {error[late].std():.3f} rad/s, {share[label]:.1%} inside the bounds")
        curves[f"rate of the rocker, rad/s: {label}"] = {
            "error": (said.t, error), "+3σ": (said.t, bound), "-3σ": (said.t, -bound)
        }  # fmt: skip
    save_figure(picture, curves, dashed=["+3σ", "-3σ"])
    return share


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "noise_from_a_log.png")
