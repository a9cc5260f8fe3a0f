"""A pendulum on a four-bar swings up by one weak motor: an optimal trajectory.

Trajectory optimisation by multiple shooting on projected dynamics: the loop has three rows of
rank two, and no reduced coordinates are chosen. Every step ends on the manifold, so the whole
prediction is closed; the solution is checked by residuals of our own.

You will see the solver's iterations, the gap of the loop, the torque at its limit, the pendulum at
the end, and the difference of one step from an integration ten times as fine.
"""

import sys

import numpy as np

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.plots import save_figure

STEPS, PERIOD = 60, 0.025  # s
TORQUE = 3.0  # N m, of 4 that the motor has
CRANK, PENDULUM = 0, 2  # joints
ANGLE, SPEED, EFFORT = 1.0, 0.1, 0.5  # weights per second: 1/rad², s²/rad², 1/(N m)²
END_ANGLE, END_SPEED = 50.0, 5.0  # weights at the end


def weights(system: mb.System, angle: float, speed: float) -> np.ndarray:
    """Return weights of crank and pendulum; the loop determines the other joints."""
    chosen = np.isin(np.arange(system.nv), (CRANK, PENDULUM))
    return np.concatenate([angle * chosen, speed * chosen])


def main(figure: str | None = None) -> dict[str, float]:
    """Solve the problem and return the figures."""
    system = mb.read_mjcf(models.path("pendulum_on_four_bar"))
    upright = np.concatenate([system.tree.q0, np.zeros(system.nv)])
    hanging = upright + np.pi * (np.arange(upright.size) == PENDULUM)
    ocp = mpc.optimal_control_problem(
        system,
        STEPS,
        PERIOD,
        [
            mpc.Cost(
                Q=weights(system, ANGLE, SPEED),
                R=EFFORT,
                Q_end=weights(system, END_ANGLE, END_SPEED),
            ),
            mpc.StageBounds(u=[[-TORQUE, TORQUE]]),
        ],
        step=mpc.StepOptions(substeps=2),
    )
    guess = mpc.initial_guess(ocp, np.linspace(hanging, upright, STEPS + 1), np.zeros((STEPS, 1)))
    found = mpc.ocp_solver(ocp, "fatrop").solve(hanging, guess=guess)
    q, v = found.x[:, : system.nq], found.x[:, system.nq :]
    gap = float(np.abs(system.constraint.map(STEPS + 1)(q.T).full()).max())
    finer = mpc.discrete_dynamics(system, PERIOD, mpc.StepOptions(substeps=10)).map(STEPS)
    error = finer(found.x[:-1].T, found.u.T, np.zeros((0, STEPS))).full().T - found.x[1:]
    lean = q[:, :3].sum(axis=1)  # crank, coupler and pendulum turn on each other
    print(found.in_words)
    print(f"loop open by {gap:.1e} m at most, torque {np.abs(found.u).max():.3f} of {TORQUE} N m")
    print(
        f"at the end the pendulum leans {lean[-1]:+.4f} rad and turns {v[-1, :3].sum():+.3f} rad/s"
    )
    print(f"error of one step {np.abs(error[:, : system.nq]).max():.1e} rad")
    if figure is not None:
        t = PERIOD * np.arange(STEPS + 1)
        pendulum = {"lean": (t, lean), "crank": (t, q[:, CRANK])}
        save_figure(figure, {"angle, rad": pendulum, "torque, N m": {"u": (t[:-1], found.u)}})
    return {
        "solved": found.solved,
        "gap": gap,
        "torque": float(np.abs(found.u).max()),
        "lean": float(lean[-1]),
        "turned": float(np.ptp(lean)),
        "error": float(np.abs(error[:, : system.nq]).max()),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
