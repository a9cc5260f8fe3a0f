"""A slider-crank with equal links turns through 23 singular poses in ten seconds [A05, §8].

Where the crank stands across the slider's line the constraint's one row vanishes and two branches
meet. Projection at every stage keeps step, energy and branch. The correction that A05 prints, of
q after each step and not of v, makes the step size collapse at a singular pose (with v it holds
here, where the branch is a straight line in q). The classical multipliers leave the branch.

You will see steps, energy error and distance from the one-coordinate solution of each.
"""

import argparse

import numpy as np
from scipy.integrate import DOP853, solve_ivp
from twins import slider_crank

import mbcasadi as mb
from mbcasadi.simulation import simulate

SPEED = 6.0  # rad/s of the crank at the start, enough to turn over
DURATION, SHORT = 10.0, 3.0  # s; the methods that fail do so early
RTOL, ATOL = 1e-10, 1e-12
START = np.array(slider_crank.START)


def crank_alone(duration: float) -> object:
    """Return t → q1 from `½ m l² (1 + 4 s²) w² + m g l s = const`, where `q2 = -2 q1`."""

    def rate(_: float, x: np.ndarray) -> list[float]:
        s, c, w = np.sin(x[0]), np.cos(x[0]), x[1]
        return [w, -c * (4 * s * w**2 + slider_crank.GRAVITY) / (1 + 4 * s**2)]

    start = [START[0], SPEED]
    exact = solve_ivp(
        rate, (0, duration), start, "DOP853", rtol=1e-13, atol=1e-14, dense_output=True
    )
    return lambda t: exact.sol(t)[0]


def as_printed(system: mb.System) -> dict[str, np.ndarray]:
    """Return the motion with q corrected after each step by (39), not v  [A05, section 6]."""
    dynamics = mb.forward_dynamics(system)

    def rate(_: float, x: np.ndarray) -> np.ndarray:
        return np.r_[x[2:], np.array(dynamics(x[:2], x[2:], 0)[0]).ravel()]

    solver = DOP853(rate, 0.0, np.r_[START, SPEED, -2 * SPEED], SHORT, rtol=RTOL, atol=ATOL)
    t, x = [0.0], [solver.y]
    while solver.status == "running" and solver.step() is None:
        q = solver.y[:2]
        A, phi = np.array(system.constraint_jacobian(q)), np.array(system.constraint(q))
        q = q - (np.linalg.pinv(A) @ phi).ravel()
        solver.y = np.r_[q, solver.y[2:]]
        solver.f = rate(solver.t, solver.y)
        t.append(solver.t)
        x.append(solver.y)
    q, v = np.array(x)[:, :2], np.array(x)[:, 2:]
    energy = system.kinetic_energy.map(len(t))(q.T, v.T) + system.potential_energy.map(len(t))(q.T)
    return {"t": np.array(t), "q": q, "energy": np.array(energy).ravel()}


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Return time, crank, relative energy error and distance from the exact crank of each run."""
    system = slider_crank.system()
    start, tight = (system, START, [SPEED, -2 * SPEED]), {"rtol": RTOL, "atol": ATOL}
    unaided = {"project": "none", "rank_tol": 0.0}  # no row is ever dropped
    trajectories = {
        "q, v at every stage": simulate(*start, DURATION, "projection", **tight),
        "q, v after each step": simulate(*start, DURATION, "projection", project="step", **tight),
        "classical Lagrange": simulate(*start, SHORT, "lagrange", **unaided, **tight),
    }
    runs = {
        name: {key: getattr(found, key) for key in ("t", "q", "energy", "drift")}
        for name, found in trajectories.items()
    }
    runs["q after each step"] = as_printed(system)
    exact = crank_alone(DURATION)
    for name, run in runs.items():
        run["error"] = np.abs(run["energy"] / run["energy"][0] - 1)
        run["apart"] = np.abs(run["q"][:, 0] - exact(run["t"]))
        print(
            f"{name:20} {run['t'].size - 1:5} steps to {run['t'][-1]:5.2f} s, the least "
            f"{np.diff(run['t']).min():.0e} s, energy off by {run['error'].max():.0e}, "
            f"crank by {run['apart'].max():.0e} rad"
        )
    if figure is not None:
        draw(figure, runs)
    return runs


def draw(figure: str, runs: dict[str, dict[str, np.ndarray]]) -> None:
    """Draw steps, energy error and distance over the first seconds; grey: singular poses."""
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 3, figsize=(10, 3.4), sharex=True, layout="constrained")
    turns = np.linspace(0, SHORT, 3001)
    singular = turns[1:][np.diff(np.sign(np.cos(crank_alone(SHORT)(turns)))) != 0]
    for (name, run), style in zip(runs.items(), ("-", "--", "-", "-"), strict=True):
        shown = run["t"] <= SHORT
        t = run["t"][shown]
        axes[0].semilogy(t[1:], np.diff(t), style, label=name, lw=1)
        axes[1].semilogy(t[1:], np.maximum(run["error"][shown][1:], 1e-16), style, lw=1)
        axes[2].semilogy(t[1:], np.maximum(run["apart"][shown][1:], 1e-16), style, lw=1)
    axes[1].set_ylim(1e-16, 10)
    titles = ("step, s", "energy error, relative", "crank off by, rad")
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title)
        for time in singular:
            axis.axvline(time, color="0.85", lw=3, zorder=0)
    fig.supxlabel("time, s", fontsize=10)
    fig.legend(loc="outside upper center", ncols=4, fontsize=9)
    fig.savefig(figure, dpi=100)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", help="write the figure to this PNG file")
    main(parser.parse_args().figure)
