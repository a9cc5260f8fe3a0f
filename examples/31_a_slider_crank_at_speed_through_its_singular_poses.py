"""A slider-crank with equal links turns at speed through both its singular poses by nonlinear MPC.

Where the crank is upright or hangs, the loop's Jacobian loses a row and two branches meet. The
prediction crosses these poses, as projected dynamics does [A05, §7-8]. `rank_tol` is coarse: the
plant's pin is soft and its small gap changes the mechanism's direction near them. The plant is
10 % heavier, its control acts one tick late, and the slider is pushed in a singular pose.

You will see the error of the crank on the plant as modelled and on the other one, and at a speed
that the motor cannot hold over the whole turn, where the horizon distributes the torque.
"""

import casadi as ca
import numpy as np
from closed_loops import motors
from panels import Panel, draw, figure_path

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.validation import Run, compile_controller

MODEL = models.path("slider_crank")
PERIOD, HORIZON, DURATION = 0.01, 40, 4.0  # s, samples, s
SPEED, TOO_FAST, RAMP = 5.0, 6.3, 1.0  # rad/s of the crank, reached within, s
PUSH, PUSHED = 30.0, (2.5, 2.55)  # N on the slider; s
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
    cost = {"residual": ca.vertcat(WEIGHTS * off, EFFORT * at.u), "terminal": WEIGHTS / 2 * off}
    step = mpc.StepOptions(order=3, rank_tol=RANK_TOL)
    ocp = mpc.optimal_control_problem(system, HORIZON, PERIOD, symbols=at, **cost, step=step)
    still = np.tile(np.concatenate([system.tree.q0, np.zeros(3)]), (HORIZON + 1, 1))
    guess = mpc.initial_guess(ocp, still, np.zeros((HORIZON, 1)))
    return mpc.real_time_iteration(ocp, guess, delay=1)


def main(figure: str | None = None) -> dict[str, tuple[Run, np.ndarray]]:
    """Return the three runs, each with the errors of angle and speed (2, nt)."""
    system = mb.read_mjcf(MODEL)
    rti, start = controller(system), system.tree.q0[0]

    def wanted(speed: float, t: float) -> np.ndarray:
        ahead = t + PERIOD * np.arange(1, HORIZON + 2)  # begins when the control acts
        theta, omega = path(ahead, speed)
        return rti.ocp.parameters(theta=theta[:, None] + start, omega=omega[:, None]).ravel()

    def push(t: float) -> list[float]:
        return [0.0, PUSH * (PUSHED[0] <= t < PUSHED[1]), 0.0]

    wrong = {"perturb": {"mass": 0.1}, "disturbance": push}
    cases = {
        "as modelled": (SPEED, {}),
        "with errors": (SPEED, wrong),
        "too fast": (TOO_FAST, wrong),
    }
    found = {}
    with compile_controller(rti) as law:
        for name, (speed, errors) in cases.items():
            follow = {"reference": lambda t, speed=speed: wanted(speed, t), "delay": 1}
            run = mb.validate(law, MODEL, DURATION, **follow, **errors).runs[0]
            record = run.recording
            off = np.array([record.q[:, 0] - start, record.v[:, 0]]) - path(record.t, speed)
            found[name] = run, off
            rms, most = np.sqrt(np.mean(off**2, axis=1)), 1e3 * np.abs(off[0]).max()
            print(f"{name}: crank off by {1e3 * rms[0]:.1f} mrad rms, {most:.0f} at most,")
            print(f"  its speed by {rms[1]:.2f} rad/s rms; {motors(run)}")
    if figure is not None:
        draw(figure, drawn(found), marks=PUSHED)
    return found


def drawn(found: dict[str, tuple[Run, np.ndarray]]) -> list[Panel]:
    """Return error, slider and torque over time."""
    at = {name: (run.recording, off) for name, (run, off) in found.items()}
    return [
        Panel("crank off by, rad", {k: (r.t, off[0]) for k, (r, off) in at.items()}),
        Panel("slider, m", {k: (r.t, r.q[:, 1]) for k, (r, _) in at.items()}),
        Panel("torque, N m", {k: (r.t, r.u[:, 0]) for k, (r, _) in at.items()}),
    ]


if __name__ == "__main__":
    main(figure_path(__doc__))
