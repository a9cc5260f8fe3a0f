"""A slider-crank turns at speed through its singular poses by nonlinear MPC.

Where the crank is upright or hangs, the loop's Jacobian loses a row and two branches meet. The
prediction crosses these poses, as projected dynamics does [A05, §7-8]. `rank_tol` is coarse: the
plant's pin is soft and its small gap changes the mechanism's direction near them. The plant is
10 % heavier, its control acts one tick late, and the slider is pushed in a singular pose.

You will see the error of the crank, and at a speed that the motor cannot hold over a whole turn.
"""

import sys
from functools import partial

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.plots import curves_of, save_figure

MODEL = models.path("slider_crank")
PERIOD, HORIZON, DURATION = 0.01, 40, 4.0  # s, samples, s
SPEED, TOO_FAST, RAMP = 5.0, 6.3, 1.0  # rad/s of the crank, reached within, s
PUSH, PUSHED = 30.0, (2.5, 2.55)  # N on the slider; s
ERRORS = {"perturb": {"mass": 0.1}, "disturbance": lambda t: [0, PUSH * (0 <= t - 2.5 < 0.05), 0]}
CASES = {"as modelled": (SPEED, {}), "with errors": (SPEED, ERRORS), "too fast": (TOO_FAST, ERRORS)}
WEIGHTS = np.sqrt([400.0, 4.0])  # roots of 1/rad², s²/rad², per second
EFFORT = 0.01  # 1/(N m)
RANK_TOL = 0.03  # relative length below which a row of A counts as zero


def path(t: np.ndarray, speed: float) -> tuple[np.ndarray, np.ndarray]:
    """Return angle and speed of the crank from where it starts: a smooth ramp, then constant."""
    s = np.clip(t / RAMP, 0, 1)
    theta = RAMP * (s**2 / 2 - (1 - np.cos(2 * np.pi * s)) / (2 * np.pi) ** 2) + t - RAMP * s
    return speed * theta, speed * (s - np.sin(2 * np.pi * s) / (2 * np.pi))


def controller(system: mb.System) -> mpc.RealTimeIteration:
    """Return the real-time iteration that follows theta and omega of each sample."""
    at = mpc.stage_symbols(system, theta=1, omega=1)
    off = ca.vertcat(at.q[0] - at.parameters["theta"], at.v[0] - at.parameters["omega"])
    cost = mpc.Cost(residual=ca.vertcat(WEIGHTS * off, EFFORT * at.u), terminal=WEIGHTS / 2 * off)
    step = mpc.StepOptions(order=3, rank_tol=RANK_TOL)
    ocp = mpc.optimal_control_problem(system, HORIZON, PERIOD, [cost], symbols=at, step=step)
    still = np.tile(np.concatenate([system.tree.q0, np.zeros(3)]), (HORIZON + 1, 1))
    guess = mpc.initial_guess(ocp, still, np.zeros((HORIZON, 1)))
    return mpc.real_time_iteration(ocp, guess, delay=1)


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Return of each run: t, the errors of angle and speed, and the run."""
    system = mb.read_mjcf(MODEL)
    rti, start, found = controller(system), system.tree.q0[0], {}

    def reference(speed: float, t: float) -> np.ndarray:
        ahead = t + PERIOD * np.arange(1, HORIZON + 2)  # begins when the control acts
        theta, omega = path(ahead, speed)
        return rti.ocp.parameters(theta=theta[:, None] + start, omega=omega[:, None]).ravel()

    with mb.validation.compile_controller(rti) as law:
        for name, (speed, errors) in CASES.items():
            options = {"reference": partial(reference, speed), "delay": 1} | errors
            run = mb.validate(law, MODEL, DURATION, **options).runs[0]
            record = run.recording
            off = np.array([record.q[:, 0] - start, record.v[:, 0]]) - path(record.t, speed)
            found[name] = {"t": record.t, "angle": off[0], "speed": off[1], "run": run}
            rms, most = np.sqrt(np.mean(off**2, axis=1)), 1e3 * np.abs(off[0]).max()
            print(f"{name}: crank off by {1e3 * rms[0]:.1f} mrad rms, {most:.0f} at most,")
            print(f"  its speed by {rms[1]:.2f} rad/s rms; {run.in_words}")
    if figure is not None:
        titles = {"crank off by, rad": "angle", "its speed, rad/s": "speed"}
        save_figure(figure, curves_of(found, titles), marks=PUSHED)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
