"""Two robots lift a bar, six motors for three freedoms: two controls [L15, §V].

The loop of five links is a passive constraint, the path of the bar a servo constraint. The passive
reaction depends on the control, `a = a_0 + G B u`. The paper's figures come from `A_s M⁻¹ B`, which
leaves the reaction to the feedback; the least control from `A_s G B`.

You will see the range of each motor torque under both, and the errors of the constraints.
"""

import sys

import casadi as ca
import numpy as np
from twins import cooperating_robots as robots

import mbcasadi as mb
from mbcasadi.plots import save_figure

SAMPLES = 2001  # of one period, 2π s


def servo_rows(arms: mb.System) -> object:
    """Return the rows of the bar's path: it stays level and rises and sinks by 1 m."""
    q, v, t = ca.SX.sym("q", arms.nq), ca.SX.sym("v", arms.nv), ca.SX.sym("t")
    path = ca.vertcat(1.5, (1 - ca.cos(t)) / 2, 0)  # m, m, rad  [L15, eq. 64]
    return arms.rows(q, v, phi=robots.bar_pose(q) - path, t=t)


def servo_controls(arms: mb.System, servo: object) -> ca.Function:
    """Return (q, v, t) → (u_figures, u_least, miss): controls with `A_s a = b_s`, and both errors.

    `u_figures = (A_s M⁻¹ B)⁺ (b_s - A_s (a - M⁻¹ B u))`, linear in u  [L15, eq. 35, corrected];
    `u_least = (A_s G B)⁺ (b_s - A_s a_0)`. `miss`, m/s² or rad/s², is of both constraints.
    """
    q, v, t = ca.MX.sym("q", arms.nq), ca.MX.sym("v", arms.nv), ca.MX.sym("t")
    motion = mb.forward_dynamics(arms, "udwadia_kalaba")
    a_0, G = motion.factory("G", ["q", "v", "f"], ["a", "jac:a:f"])(q, v, np.zeros(arms.nv))
    A_s, b_s, B = servo.jacobian(q, t), -servo.bias(q, v, t), arms.actuation(q)
    free = ca.solve(arms.mass_matrix(q), B)  # M⁻¹ B, what B u gives the opened chain
    K = mb.linalg.pinv(A_s @ free)
    u_least = mb.linalg.pinv(A_s @ G @ B) @ (b_s - A_s @ a_0)
    u_figures = ca.solve(ca.MX.eye(arms.nu) + K @ A_s @ (G @ B - free), K @ (b_s - A_s @ a_0))
    miss = ca.MX(0)
    for u in (u_figures, u_least):
        a = motion(q, v, B @ u)[0]
        loop = arms.constraint_jacobian(q) @ a + arms.constraint_bias(q, v)
        miss = ca.fmax(miss, ca.norm_inf(ca.vertcat(A_s @ a - b_s, loop)))
    out = {"u_figures": u_figures, "u_least": u_least, "miss": miss}
    return ca.Function("servo", {"q": q, "v": v, "t": t} | out, ["q", "v", "t"], [*out])


def on_the_path(t: np.ndarray) -> np.ndarray:
    """Return angles and velocities, (2, 5, nt), that carry the bar along its path."""
    height, rate = (1 - np.cos(t)) / 2, np.sin(t) / 2
    reach, slope = np.hypot(1, height), np.arctan2(height, 1)
    first, second = slope + np.arccos(reach / 2), slope - np.arccos(reach / 2)
    turn = rate / np.sin(first - second)  # the bar's x is constant
    w1, w2 = -np.sin(second) * turn, np.sin(first) * turn
    return np.array([[first, second, 0 * t, -second, -first], [w1, w2, 0 * t, -w2, -w1]])


def main(figure: str | None = None) -> dict[str, np.ndarray]:
    """Return the torques, (6, nt), of both controls over one period."""
    t, arms = np.linspace(0, 2 * np.pi, SAMPLES), robots.system()
    q, v = on_the_path(t)
    out = servo_controls(arms, servo_rows(arms)).map(SAMPLES)(q=q, v=v, t=t)
    found = {key: np.array(value) for key, value in out.items()}
    laws, subplots = {"as in the paper's figures": "u_figures", "at least norm": "u_least"}, {}
    for i in range(6):
        torque = subplots[f"u{i + 1}, N m"] = {a: (t, found[key][i]) for a, key in laws.items()}
        said = [f"{u.min():7.3f} … {u.max():6.3f} N m {label}" for label, (_, u) in torque.items()]
        print(f"u{i + 1}: {', '.join(said)}")
    print(f"both constraints held to {found['miss'].max():.1e}")
    if figure is not None:
        save_figure(figure, subplots)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
