"""A crank turns a four-bar in time, with the least torque within a limit.

The loop is closed by MJCF's `<connect>`: three rows of rank two, two passive joints. Where the
motor is too weak, the crank lags behind: the tracking error grows, and the torque stays at its
limit.

You will see the torque, its limit and the error of the crank over two turns forward and back.
"""

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi import models, motion

DURATION = 0.6  # s
SWING = 0.9  # rad
FREQUENCY = 3.0  # Hz


def swing(start: float) -> motion.VectorMotion:
    """Return the motion of the crank, forward and back, from rest."""
    t = ca.SX.sym("t")
    return motion.vector_motion(t, start + SWING * (1 - ca.cos(2 * np.pi * FREQUENCY * t)))


def on_the_loop(system: mb.System, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the state next to (q, v) that closes the loop."""
    for _ in range(3):
        A = np.array(system.constraint_jacobian(q))
        q = q - np.linalg.pinv(A, rcond=1e-9) @ np.array(system.constraint(q)).ravel()
    A = np.array(system.constraint_jacobian(q))
    return q, v - np.linalg.pinv(A, rcond=1e-9) @ (A @ v)


def main() -> dict[str, float]:
    """Turn the crank and return the figures."""
    system = mb.read_mjcf(models.path("four_bar"))
    law = mb.control.InverseDynamicsQP(system, [mb.control.PostureTask(("crank",), kp=400.0)])
    q, v = system.tree.q0.copy(), np.zeros(system.nv)
    reference = mb.control.follow_motions(law, {"posture": swing(float(q[0]))})
    errors, torques = [], []
    for k in range(round(DURATION / law.period)):
        ref = reference(k * law.period)
        solution = law.solve(q, v, ref)
        if not solution.solved:
            print(solution.explain())
        errors.append(abs(ref[0] - q[0]))
        torques.append(solution.u[0])
        v = v + law.period * solution.a
        q, v = on_the_loop(system, q + law.period * v, v)
    limit = float(system.limits.ctrl[0, 1])
    torque, error = float(np.max(np.abs(torques))), float(max(errors))
    saturated = float(np.mean(np.abs(torques) > limit - 1e-9))
    print(
        f"torque at most {torque:.3f} N m of {limit} N m, there {100 * saturated:.0f} % of the time"
    )
    print(f"crank off by {error:.4f} rad at most")
    return {"torque": torque, "saturated": saturated, "error": error}


if __name__ == "__main__":
    main()
