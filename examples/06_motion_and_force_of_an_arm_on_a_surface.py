"""An arm's tip slides along a surface: motion and contact force under separate commands [A10, §5].

The quasi-forces split into `u_r`, which moves the arm, and `u_o`, which only presses. The law
without force control has `u_o = 0`: they are smallest, and the force follows from the motion. With
eq. 47 it is the desired 50 N. The motion is the same in both runs. A10 writes `f - Aᵀ lam`, so its
lam is minus ours. It does not give the initial state: here the arm starts off its path, with the
elbow below the base, and once above it. The path leaves the arm's reach after 7.36 s.

You will see the range of the force with and without force control, and the decay of the error.
"""

import casadi as ca
import numpy as np
from panels import Panel, draw, figure_path
from twins import prr_arm

import mbcasadi as mb
from mbcasadi.control import laws
from mbcasadi.dynamics import quasi_velocity_terms

K_P, K_D = 3.0, 5.0  # 1/s  [A10, section 5]
WANTED = 50.0  # N, lam_d  [A10, section 5]
DURATION = 7.25  # s
FLOOR = (1e-11, 10.0)  # of the error that the figure shows
SAMPLES = 1451
OFFSET = np.array([-0.1, 0.2])  # m, rad: initial error of theta; speeds are zero


def reference(t: ca.SX) -> ca.SX:
    """Return theta_d: the tip's position, m, and the last link's angle, rad  [A10, section 5]."""
    place = 0.3 * ca.sin(0.6 * np.pi * t) + 0.5
    return ca.vertcat(place, np.pi / 6 * ca.sin(np.pi * t) + np.pi / 12)


def coordinates(system: mb.System) -> laws.Coordinates:
    """Return theta as a law's coordinates."""
    q = ca.SX.sym("q", 3)
    theta = ca.Function("theta", [q], [prr_arm.minimal_coordinates(q)])
    return laws.function_coordinates(system, theta)


def law_of(system: mb.System, force_control: bool) -> laws.Law:
    """Return the law of eq. 39, with that of eq. 47 if the force is controlled."""
    options = {"kp": K_P, "kd": K_D, "ctrl_limits": [[-1e6, 1e6]] * 3}  # N, N m: not reached
    build = laws.quasi_velocity_force if force_control else laws.quasi_velocity_tracking
    return build(system, coordinates(system), **options)


def control(system: mb.System, force_control: bool) -> ca.Function:
    """Return (t, q, v) → (f, epsilon, u_r, u_o, theta, theta_d); f includes gravity."""
    law = law_of(system, force_control)
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    theta_d = reference(t)
    rate = ca.jacobian(theta_d, t)
    theta_ref = ca.vertcat(theta_d, rate, ca.jacobian(rate, t))
    ref = ca.vertcat(theta_ref, -WANTED) if force_control else theta_ref
    f = law.function(q, v, ref, [])[0]  # every joint has an actuator, B = I
    error = laws.composite_error(system, coordinates(system), kp=K_P)(q, v, theta_ref)
    now = quasi_velocity_terms(system)(q=q, v=v, f=f)  # of f and gravity
    out = {"f": f, "epsilon": ca.norm_2(error)}
    out |= {name: ca.norm_2(now[name]) for name in ("u_r", "u_o")}
    out |= {"theta": prr_arm.minimal_coordinates(q), "theta_d": theta_d}
    return ca.Function("control", [t, q, v], [*out.values()], ["t", "q", "v"], [*out])


def start(theta: np.ndarray, side: int) -> np.ndarray:
    """Return q with the tip on the surface and the elbow below (-1) or above (1) the base."""
    q2 = side * np.arccos(theta[0] - np.sin(theta[1]))
    return np.array([np.cos(theta[1]) - np.sin(q2), q2, theta[1] + 1.5 * np.pi - q2])


def run(system: mb.System, q0: np.ndarray, force_control: bool) -> dict[str, np.ndarray]:
    """Return the motion from rest, with the force on the surface in the paper's sign."""
    law, times = control(system, force_control), np.linspace(0, DURATION, SAMPLES)
    force = law.factory("force", ["t", "q", "v"], ["f"])
    found = mb.simulate(
        system, q0, np.zeros(3), DURATION, "quasi_velocity", force=force, times=times
    )
    values = law.map(SAMPLES)(t=times, q=found.q.T, v=found.v.T)
    report = {key: np.array(value).squeeze() for key, value in values.items()}
    return report | {"t": times, "q": found.q, "v": found.v, "lam": -found.lam[:, 0]}


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Return the runs: "free" with u_o = 0, "held" with force control, "above" free as well."""
    system = prr_arm.system()
    theta = np.array(ca.evalf(reference(ca.SX(0)))).ravel() + OFFSET
    runs = {
        "free": run(system, start(theta, -1), force_control=False),
        "held": run(system, start(theta, -1), force_control=True),
        "above": run(system, start(theta, 1), force_control=False),
    }
    for name, found in runs.items():
        lam, u_r, u_o = found["lam"], found["u_r"], found["u_o"]
        print(f"{name:5}: lam {lam.min():6.2f} … {lam.max():5.2f} N; at most ", end="")
        print(f"u_r {u_r.max():.2f}, u_o {u_o.max():.2f} √kg m/s²")
    epsilon = runs["free"]["epsilon"]
    rate = -np.log(epsilon[200] / epsilon[0]) / runs["free"]["t"][200]
    print(f"error decays at {rate:.3f} 1/s, K_d is {K_D}")
    if figure is not None:
        draw(figure, drawn(runs), columns=2)
    return runs


def drawn(runs: dict[str, dict[str, np.ndarray]]) -> list[Panel]:
    """Return motion, error, force and quasi-force of all runs."""
    free, t = runs["free"], runs["free"]["t"]
    motion = {"θ1, m": (t, free["theta"][0]), "θ2, rad": (t, free["theta"][1])}
    wanted = {"θ1 wanted": (t, free["theta_d"][0]), "θ2 wanted": (t, free["theta_d"][1])}
    bound = free["epsilon"][0] * np.exp(-K_D * t)
    error = {"‖ε‖": (t, free["epsilon"]), "‖ε(0)‖ exp(-K_d t)": (t, bound)}
    force = {name: (t, run["lam"]) for name, run in runs.items()}
    effort = {name: (t, np.hypot(run["u_r"], run["u_o"])) for name, run in runs.items()}
    return [
        Panel("motion", motion | wanted, dashed=list(wanted), limits=(-0.4, 1.2)),
        Panel("composite error, √kg m/s", error, log=True, dashed=list(error)[1:], limits=FLOOR),
        Panel("force on the surface, N", force, limits=(-20, 110)),
        Panel("norm of the quasi-forces, √kg m/s²", effort, limits=(0, 52)),
    ]


if __name__ == "__main__":
    main(figure_path(__doc__))
