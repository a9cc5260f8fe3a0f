"""An arm's tip slides along a surface: motion and contact force under separate commands [A10, §5].

The quasi-forces split into `u_r`, which moves the arm, and `u_o`, which only presses. With
`u_o = 0` they are smallest and the force on the surface is what the motion makes of it; with
eq. 47 it is the 50 N that are asked for. Both runs move alike. A10 writes `f - Aᵀ lam`, so its
lam is minus ours; it does not give the initial state, and its path leaves the arm's reach at
7.36 s: the arm starts off its path by a stated error and stops at 7.25 s.

You will see the range of the force with and without force control, and how the error decays.
"""

import argparse

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp
from twins import prr_arm

import mbcasadi as mb

K_P, K_D = 3.0, 5.0  # 1/s  [A10, section 5]
WANTED = 50.0  # N, lam_d  [A10, section 5]
DURATION = 7.25  # s
SAMPLES = 1451
OFFSET = np.array([-0.1, 0.2])  # m, rad: initial error of theta; speeds are zero


def reference(t: ca.SX) -> ca.SX:
    """Return theta_d: the tip's place, m, and the last link's lean, rad  [A10, section 5]."""
    place = 0.3 * ca.sin(0.6 * np.pi * t) + 0.5
    return ca.vertcat(place, np.pi / 6 * ca.sin(np.pi * t) + np.pi / 12)


def control(system: mb.System, force_control: bool) -> ca.Function:
    """Return (t, q, v) → (f, epsilon, u): joint forces, composite error, norm of quasi-forces.

    `f = W V2 u_r + W V1 u_o` with eq. 38, 39, 47 written in joint space, where no choice of V1,
    V2 is left: s in null(A) moves theta at the commanded rate, `epsilon = Wᵀ (v - s)`,

        W V2 u_r = Π (M ds/dt + C s) - K_d M (v - s),    Π = I - Aᵀ (A M⁻¹ Aᵀ)⁻¹ A M⁻¹,
        W V1 u_o = (I - Π) (M a + C v) + Aᵀ lam_d,       (I - Π) M a = -Aᵀ (A M⁻¹ Aᵀ)⁻¹ c.
    """
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    M, C, A = system.mass_matrix(q), system.coriolis_matrix(q, v), system.constraint_jacobian(q)
    theta, theta_d = prr_arm.minimal_coordinates(q), reference(t)
    rate = ca.jacobian(theta_d, t) - K_P * (theta - theta_d)
    s = ca.solve(ca.vertcat(A, ca.jacobian(theta, q)), ca.vertcat(0, rate))
    s_dot = ca.jtimes(s, q, v) + ca.jacobian(s, t)
    press = A.T @ ca.solve(A @ ca.solve(M, A.T), ca.SX.eye(1))  # Aᵀ (A M⁻¹ Aᵀ)⁻¹
    wanted = M @ s_dot + C @ s
    f = wanted - press @ A @ ca.solve(M, wanted) - K_D * M @ (v - s)
    if force_control:
        f += press @ (A @ ca.solve(M, C @ v) - system.constraint_bias(q, v)) + A.T * WANTED
    out = [f, ca.sqrt((v - s).T @ M @ (v - s)), ca.sqrt(f.T @ ca.solve(M, f))]
    return ca.Function("control", [t, q, v], out, ["t", "q", "v"], ["f", "epsilon", "u"])


def start(theta: np.ndarray) -> np.ndarray:
    """Return q with the tip on the surface and the elbow below the base."""
    q2 = -np.arccos(theta[0] - np.sin(theta[1]))
    return np.array([np.cos(theta[1]) - np.sin(q2), q2, theta[1] + 1.5 * np.pi - q2])


def run(system: mb.System, law: ca.Function, theta: np.ndarray) -> dict[str, np.ndarray]:
    """Return the motion from rest at theta, with the force on the surface in the paper's sign."""
    t, x = ca.MX.sym("t"), ca.MX.sym("x", 6)
    f, epsilon, u = law(t, x[:3], x[3:])
    carried = system.gravity_force(x[:3])  # the paper's f holds gravity, which the motors bear
    a, _, lam = mb.forward_dynamics(system, "lagrange")(x[:3], x[3:], f + carried)
    flow = ca.Function("flow", [t, x], [ca.vertcat(x[3:], a)])
    out = [-lam, epsilon, u, prr_arm.minimal_coordinates(x[:3]), reference(t)]
    names = ["lam", "epsilon", "u", "theta", "theta_d"]
    report = ca.Function("report", [t, x], out, ["t", "x"], names)
    times = np.linspace(0, DURATION, SAMPLES)
    motion = solve_ivp(
        lambda t, x: np.array(flow(t, x)).ravel(),
        (0, DURATION),
        np.r_[start(theta), np.zeros(3)],
        method="DOP853",
        t_eval=times,
        rtol=1e-9,
        atol=1e-11,
    )
    found = report.map(SAMPLES)(t=times, x=motion.y)
    return {"t": times, "x": motion.y} | {k: np.array(x).squeeze() for k, x in found.items()}


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Return both runs: "free" with u_o = 0, "held" with force control."""
    system = prr_arm.system()
    theta = np.array(ca.evalf(reference(ca.SX(0)))).ravel() + OFFSET
    runs = {}
    for name, force_control in (("free", False), ("held", True)):
        found = runs[name] = run(system, control(system, force_control), theta)
        lam, u = found["lam"], found["u"]
        print(f"{name}: lam {lam.min():.2f} … {lam.max():.2f} N, quasi-force at most {u.max():.1f}")
    epsilon = runs["free"]["epsilon"]
    rate = -np.log(epsilon[200] / epsilon[0]) / runs["free"]["t"][200]
    print(f"error decays at {rate:.3f} 1/s, K_d is {K_D}")
    if figure is not None:
        draw(figure, runs)
    return runs


def draw(figure: str, runs: dict[str, dict[str, np.ndarray]]) -> None:
    """Draw motion, error, force and quasi-force of both runs."""
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(2, 2, figsize=(9, 5), sharex=True, layout="constrained")
    free, held = runs["free"], runs["held"]
    t = free["t"]
    for i, unit in enumerate(("m", "rad")):
        axes[0, 0].plot(t, free["theta"][i], label=rf"$\theta_{i + 1}$, {unit}")
        axes[0, 0].plot(t, free["theta_d"][i], "k--", lw=0.8, label="wanted" if i else None)
    axes[0, 0].set_title("motion, the same in both runs")
    axes[0, 1].semilogy(t, free["epsilon"], label=r"$\|\epsilon\|$")
    bound = free["epsilon"][0] * np.exp(-K_D * t)
    axes[0, 1].semilogy(t, bound, "k--", lw=0.8, label=r"$e^{-K_d t}$")
    axes[0, 1].set_ylim(bottom=1e-11)
    axes[0, 1].set_title("composite error, √(kg) m/s")
    for name, found in (("$u_o = 0$", free), ("force control", held)):
        axes[1, 0].plot(t, found["lam"], label=name)
        axes[1, 1].plot(t, found["u"], label=name)
    axes[1, 0].set_title("force on the surface, N")
    axes[1, 1].set_title("norm of the quasi-forces, √(kg) m/s²")
    for axis, top in zip(axes.ravel(), (1.05, 10.0, 82.0, 48.0), strict=True):
        axis.set_ylim(top=top)
        axis.legend(fontsize=8, ncols=3, loc="upper right")
        axis.grid(alpha=0.3)
    fig.supxlabel("time, s")
    fig.savefig(figure, dpi=100)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", help="write the figure to this PNG file")
    main(parser.parse_args().figure)
