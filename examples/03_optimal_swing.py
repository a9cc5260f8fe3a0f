"""The least torque that swings a four-bar: projected dynamics in an `Opti`.

The three loop rows have rank two, so their KKT matrix has no inverse. The projected dynamics is
still an ordinary `ca.Function` of (q, v, u), and IPOPT differentiates it.

You will see the number of iterations, the largest torque and the gap of the loop.
"""

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi import models

STEPS = 40
STEP = 0.01  # s
SWING = 1.5  # rad


def midpoint_step(system: mb.System) -> ca.Function:
    """Return (q, v, u) → (q_next, v_next), the explicit midpoint rule."""
    dynamics = mb.forward_dynamics(system, formulation="projection")
    q, v, u = ca.MX.sym("q", system.nq), ca.MX.sym("v", system.nv), ca.MX.sym("u", system.nu)

    def acceleration(q: ca.MX, v: ca.MX) -> ca.MX:
        return dynamics(q, v, system.actuator_force(q, v, u))[0]

    q_mid, v_mid = q + STEP / 2 * v, v + STEP / 2 * acceleration(q, v)
    out = [q + STEP * v_mid, v + STEP * acceleration(q_mid, v_mid)]
    return ca.Function("step", [q, v, u], out, ["q", "v", "u"], ["q_next", "v_next"])


def main() -> dict[str, float]:
    """Solve the problem and return the figures."""
    system = mb.read_mjcf(models.path("four_bar"))
    low, high = system.limits.ctrl[0]
    opti = ca.Opti()
    q = opti.variable(system.nq, STEPS + 1)
    v = opti.variable(system.nv, STEPS + 1)
    u = opti.variable(system.nu, STEPS)
    q_next, v_next = midpoint_step(system).map(STEPS)(q[:, :-1], v[:, :-1], u)
    opti.subject_to(q[:, 1:] == q_next)
    opti.subject_to(v[:, 1:] == v_next)
    opti.subject_to(q[:, 0] == system.tree.q0)
    opti.subject_to(v[:, 0] == 0)
    opti.subject_to(q[0, -1] == SWING)
    opti.subject_to(v[0, -1] == 0)
    opti.subject_to(opti.bounded(low, u, high))
    opti.minimize(ca.sumsqr(u))
    quiet = {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes", "expand": True}
    opti.solver("ipopt", quiet)
    solution = opti.solve()
    torque = float(np.max(np.abs(solution.value(u))))
    gap = float(np.max(np.abs(np.array(system.constraint(solution.value(q[:, -1]))))))
    iterations = int(solution.stats()["iter_count"])
    print(f"{iterations} iterations, torque at most {torque:.3f} of {high} N m, gap {gap:.1e} m")
    return {"torque": torque, "limit": float(high), "gap": gap, "crank": solution.value(q[0, -1])}


if __name__ == "__main__":
    main()
