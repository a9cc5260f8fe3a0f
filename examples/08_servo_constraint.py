"""One force keeps two masses apart: eq. 47 drifts, Baumgarte's does not [L15].

The gap is a servo constraint `x2 - x1 = 2 l`, enforced by one force on the first mass. Eq. 47
sets its second derivative to zero, so that an initial error grows linearly without bound; with
`2 α psi + β² phi` added it decays. Neither law holds the position of both masses: they drift away.

You will see the gap's error after three seconds under both, and the force.
"""

import sys

import casadi as ca
import numpy as np
from twins import two_mass_spring as masses

import mbcasadi as mb
from mbcasadi.plots import curves_of, save_figure

ALPHA = BETA = 5.0  # 1/s, critically damped
START = np.array([0.0, 2 * masses.REST_LENGTH + 0.005])  # m, 5 mm too far apart
SPEED = np.array([0.0, 0.02])  # m/s
DURATION = 3.0  # s


def servo_force(system: mb.System, alpha: float, beta: float) -> ca.Function:
    """Return (t, q, v) → f = B u, `u = (A_s M⁻¹ B)⁺ (b_s - A_s a_0)`  [L15, eq. 35, 47]."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    servo = system.rows(q, v, phi=masses.gap(q))
    wanted = -servo.bias(q, v) - 2 * alpha * servo.rate(q, v) - beta**2 * servo.residual(q)
    A_s, B, M = servo.jacobian(q), system.actuation(q), system.mass_matrix(q)
    a_0 = ca.solve(M, -system.bias_force(q, v))
    u = mb.linalg.pinv(A_s @ ca.solve(M, B)) @ (wanted - A_s @ a_0)
    return ca.Function("servo", [ca.SX.sym("t"), q, v], [B @ u], ["t", "q", "v"], ["f"])


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Return time, gap error and force of both laws."""
    system = masses.system()
    found = {}
    for name, gains in {"eq. 47": (0.0, 0.0), "stabilised": (ALPHA, BETA)}.items():
        law = servo_force(system, *gains)
        run = mb.simulate(
            system, START, SPEED, DURATION, force=law, times=np.linspace(0, DURATION, 301)
        )
        error = run.q[:, 1] - run.q[:, 0] - 2 * masses.REST_LENGTH
        force = np.array(law.map(run.t.size)(q=run.q.T, v=run.v.T)["f"])[0]
        found[name] = {"t": run.t, "q": run.q, "error": error, "force": force}
        print(
            f"{name:10}: gap off by {1e3 * error[0]:.1f} mm, then {1e3 * error[-1]:.2f} mm; "
            f"force {force.min():.3f} … {force.max():.3f} N, x1 at {run.q[-1, 0]:.1f} m"
        )
    if figure is not None:
        titles = {"gap too large by, m": "error", "force on the first mass, N": "force"}
        save_figure(figure, curves_of(found, titles))
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
