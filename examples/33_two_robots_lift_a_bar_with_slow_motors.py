"""Two robots lift a bar with motors that are weak and slow: nonlinear MPC with both limits [L15].

The loop of five links has three freedoms and six motors; the bar should stay level and rise and
sink by a metre [L15, §VI]. Each motor gives 10 N m at most and changes by 0.5 N m at most from tick
to tick, as a current loop behind a gear does. The laws of example 14 require more of both: clipped
at these limits, their torques no longer give the reaction of the loop that they assume. The
real-time iteration has both limits in its problem, distributes the load over the motors, and brakes
before the limits are active. The plant is 10 % heavier, its control acts one tick late, and a
shoulder is pushed.

You will see the deviation of the bar from its path, and the margins: no limit is exceeded.
"""

import casadi as ca
import numpy as np
from closed_loops import motors
from panels import Panel, draw, figure_path

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.validation import Run, compile_controller

MODEL = models.path("cooperating_arms")
PERIOD, HORIZON, DURATION = 0.02, 20, 6.0  # s, samples, s
RATE = 1.0  # rad/s of the way of the bar up and down
TORQUE, CHANGE = 10.0, 0.5  # N m, N m in one period
PUSH, PUSHED = 20.0, (1.5, 1.8)  # N m on the first robot's shoulder; s
PLACE, SPEED, EFFORT = 100.0, 10.0, 0.1  # roots of weights per second, of y, its rate, u


def path(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bar's pose (x, z, angle) and its rate, one row for each time."""
    rise, still = (1 - np.cos(RATE * t)) / 2, np.zeros_like(t)
    pose = np.stack([1.5 + still, rise, still], axis=-1)
    return pose, np.stack([still, RATE * np.sin(RATE * t) / 2, still], axis=-1)


def bar_pose(arms: mb.System, q: ca.SX) -> ca.SX:
    """Return (x, z, angle) of the bar."""
    p, _ = arms.frame("bar").pose(q)
    return ca.vertcat(p[0], p[2], ca.sum1(q[:3]))


def controller(arms: mb.System) -> mpc.RealTimeIteration:
    """Return the MPC that moves the bar along y of each sample, and begins with holding torques."""
    at = mpc.stage_symbols(arms, y=3, ydot=3)
    pose = bar_pose(arms, at.q)
    off = pose - at.parameters["y"]
    slip = ca.jtimes(pose, at.q, at.v) - at.parameters["ydot"]
    tracked = ca.vertcat(PLACE * off, SPEED * slip)
    held = mb.equilibrium(arms)
    ocp = mpc.optimal_control_problem(
        arms,
        HORIZON,
        PERIOD,
        symbols=at,
        residual=ca.vertcat(tracked, EFFORT * at.u),
        terminal=0.3 * tracked,
        u_bounds=[[-TORQUE, TORQUE]] * 6,
        du_bounds=[[-CHANGE, CHANGE]] * 6,
        step=mpc.StepOptions(order=2, pivot=False),
    )
    x = np.concatenate([held.q, np.zeros(5), held.u])
    guess = mpc.initial_guess(ocp, np.tile(x, (HORIZON + 1, 1)), np.tile(held.u, (HORIZON, 1)))
    return mpc.real_time_iteration(ocp, guess, delay=1, pending=[held.u])


def main(figure: str | None = None) -> dict[str, tuple[Run, np.ndarray]]:
    """Return both runs, each with the error of the bar's pose (3, nt)."""
    arms = mb.read_mjcf(MODEL)
    rti = controller(arms)
    q = ca.SX.sym("q", 5)
    where = ca.Function("where", [q], [bar_pose(arms, q)])

    def ahead(t: float) -> np.ndarray:
        y, ydot = path(t + PERIOD * np.arange(1, HORIZON + 2))  # begins when the control acts
        return rti.ocp.parameters(y=y, ydot=ydot).ravel()

    def push(t: float) -> list[float]:
        return [PUSH * (PUSHED[0] <= t < PUSHED[1]), 0, 0, 0, 0]

    cases = {"as modelled": {}, "with errors": {"perturb": {"mass": 0.1}, "disturbance": push}}
    found = {}
    with compile_controller(rti) as law:
        for name, errors in cases.items():
            run = mb.validate(law, MODEL, DURATION, reference=ahead, delay=1, **errors).runs[0]
            record = run.recording
            off = 1e3 * (where.map(len(record.t))(record.q.T).full() - path(record.t)[0].T)
            change = np.abs(np.diff(record.u, axis=0))
            found[name] = run, off
            print(
                f"{name}: bar off by {np.sqrt(np.mean(off**2, axis=1)).round(2)} mm, mm, mrad rms,"
            )
            print(f"  {np.abs(off).max(axis=1).round(1)} at most; {motors(run)};")
            busy = np.mean(np.any(change > 0.999 * CHANGE, axis=1))
            print(f"  changes by {change.max():.3f} N m a tick at most, that in {100 * busy:.0f} %")
    if figure is not None:
        draw(figure, drawn(found), marks=PUSHED)
    return found


def drawn(found: dict[str, tuple[Run, np.ndarray]]) -> list[Panel]:
    """Return the bar's height, and the torques and their changes with errors."""
    at = {name: (run.recording, off) for name, (run, off) in found.items()}
    record, _ = at["with errors"]
    each = range(record.u.shape[1])
    return [
        Panel("bar too high, mm", {k: (r.t, off[1]) for k, (r, off) in at.items()}),
        Panel("torques with errors, N m", {f"u{i + 1}": (record.t, record.u[:, i]) for i in each}),
        Panel(
            "their changes in one tick, N m",
            {f"u{i + 1}": (record.t[1:], np.diff(record.u[:, i])) for i in each},
        ),
    ]


if __name__ == "__main__":
    main(figure_path(__doc__))
