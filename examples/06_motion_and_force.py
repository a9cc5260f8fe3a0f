"""An arm on a surface: separate commands of motion and contact force [A10, §5].

The quasi-forces split into `u_r`, which moves the arm, and `u_o`, which only presses. Without force
control `u_o = 0`, and the force follows from the motion; with eq. 47 it is the desired 50 N, and
the motion is the same. A10 writes `f - Aᵀ lam`, so its lam is minus ours. It does not give the
initial state: here the arm starts off its path, with the elbow below the base, and once above it.

You will see the range of the force with and without force control, and the decay of the error.
"""

import sys

import casadi as ca
import numpy as np
from twins import prr_arm

import mbcasadi as mb
from mbcasadi.control import laws
from mbcasadi.dynamics import quasi_velocity_terms
from mbcasadi.plots import curves_of, save_figure

K_P, K_D, WANTED = 3.0, 5.0, 50.0  # 1/s, 1/s, N  [A10, section 5]
DURATION = 7.25  # s; the path leaves the arm's reach after 7.36 s
OFFSET = np.array([-0.1, 0.2])  # m, rad: initial error of theta; speeds are zero


def reference(t: ca.SX) -> ca.SX:
    """Return theta_d: the tip's position, m, and the last link's angle, rad  [A10, section 5]."""
    place = 0.3 * ca.sin(0.6 * np.pi * t) + 0.5
    return ca.vertcat(place, np.pi / 6 * ca.sin(np.pi * t) + np.pi / 12)


def control(system: mb.System, force_control: bool) -> ca.Function:
    """Return (t, q, v) → (f, epsilon, u_r, u_o): eq. 39, or eq. 47; f includes gravity."""
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    place = ca.Function("theta", [q], [prr_arm.minimal_coordinates(q)])
    theta = laws.function_coordinates(system, place)
    build = laws.quasi_velocity_force if force_control else laws.quasi_velocity_tracking
    law = build(system, theta, kp=K_P, kd=K_D, options=laws.LawOptions(None, [[-1e6, 1e6]] * 3))
    rate = ca.jacobian(reference(t), t)
    theta_ref = ca.vertcat(reference(t), rate, ca.jacobian(rate, t))
    ref = ca.vertcat(theta_ref, -WANTED) if force_control else theta_ref
    f = law.function(q, v, ref, [])[0]  # every joint has an actuator, B = I
    error = laws.composite_error(system, theta, kp=K_P)(q, v, theta_ref)
    parts = quasi_velocity_terms(system)(q=q, v=v, f=f)  # of f and gravity
    out = [f, *(ca.norm_2(each) for each in (error, parts["u_r"], parts["u_o"]))]
    return ca.Function("control", [t, q, v], out, ["t", "q", "v"], ["f", "epsilon", "u_r", "u_o"])


def run(system: mb.System, side: int, force_control: bool) -> dict[str, np.ndarray]:
    """Return the motion from rest, with the elbow below (-1) or above (1) the base."""
    place, lean = np.array(ca.evalf(reference(ca.SX(0)))).ravel() + OFFSET
    q2 = side * np.arccos(place - np.sin(lean))
    start = np.array([np.cos(lean) - np.sin(q2), q2, lean + 1.5 * np.pi - q2]), np.zeros(3)
    law, t = control(system, force_control), np.linspace(0, DURATION, 1451)
    force = law.factory("force", ["t", "q", "v"], ["f"])
    path = mb.simulate(system, *start, DURATION, "quasi_velocity", force=force, times=t)
    values = law.map(t.size)(t=t, q=path.q.T, v=path.v.T)
    found = {key: np.array(value).squeeze() for key, value in values.items()}
    return found | {"t": t, "q": path.q, "v": path.v, "lam": -path.lam[:, 0]}


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Return the runs: "free" with u_o = 0, "held" with force control, "above" free as well."""
    cases = {"free": (-1, False), "held": (-1, True), "above": (1, False)}
    runs = {name: run(prr_arm.system(), *case) for name, case in cases.items()}
    for name, found in runs.items():
        lam, u_r, u_o = found["lam"], found["u_r"], found["u_o"]
        print(f"{name:5}: lam {lam.min():6.2f} … {lam.max():5.2f} N; at most ", end="")
        print(f"u_r {u_r.max():.2f}, u_o {u_o.max():.2f} √kg m/s²")
    epsilon, t = runs["free"]["epsilon"], runs["free"]["t"]
    print(f"error decays at {-np.log(epsilon[200] / epsilon[0]) / t[200]:.3f} 1/s, K_d is {K_D}")
    if figure is not None:
        titles = {"composite error, √kg m/s": "epsilon", "force on the surface, N": "lam"}
        save_figure(figure, curves_of(runs, titles), log=[*titles][:1])
    return runs


if __name__ == "__main__":
    main(*sys.argv[1:])
