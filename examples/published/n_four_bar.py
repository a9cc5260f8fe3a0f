"""A row of four-bars through its singular poses: one freedom, N + 1 where all links are in line.

2 N + 1 equal links: N + 1 turn on the ground, N join their tips. Started upright with a push it
turns over repeatedly; at each horizontal pose every four-bar could continue as a parallelogram or
fold. As parallelograms it moves like one pendulum: an exact solution for comparison.

Source: problem A02 of the benchmark library of the IFToMM Technical Committee for Multibody
Dynamics (links of 1 m and 1 kg, gravity 9.81 N/kg, the first tip starts at 1 m/s), after
E. Bayo and A. Avello, *Singularity-free augmented Lagrangian algorithms for constrained multibody
dynamics*, Nonlinear Dynamics 5 (1994) 209-231. The library has N = 40; the OpenSim benchmark
collection (Tagliapietra et al., 2015) plots its reference for N = 2 and 10 s. Read from it: when
the tip is at the bottom, and how fast. One pixel of the plot is 0.016 s and 0.02 m/s.

You will see the distance from the pendulum, the energy error and the number of steps.
"""

import sys
from typing import Any

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

import mbcasadi as mb

DURATION = 10.0  # s
GRAVITY = 9.81  # m/s²
BOTTOM_TIMES, READ_TO = (0.968, 2.911, 4.855, 6.798, 8.742), 0.016  # s, on the plot
FASTEST, SPEED_READ_TO = 6.83, 0.02  # m/s at the bottom, on the plot


def towards(angle: ca.SX) -> ca.SX:
    """Return the unit vector at an angle."""
    return ca.vertcat(ca.cos(angle), ca.sin(angle))


def system(count: int = 2) -> mb.System:
    """Return `count` four-bars: angles of the N + 1 standing links, then of the N couplers."""
    q, v = ca.SX.sym("q", 2 * count + 1), ca.SX.sym("v", 2 * count + 1)
    standing, couplers = q[: count + 1], q[count + 1 :]
    kinetic, height = ca.SX(0), ca.SX(0)
    closures = []
    for i in range(count + 1):
        kinetic += v[i] ** 2 / 6  # 1 kg m² / 3 about its foot
        height += ca.sin(standing[i]) / 2
    for i in range(count):
        tip = ca.vertcat(i, 0) + towards(standing[i])
        middle = tip + towards(couplers[i]) / 2
        kinetic += ca.sumsqr(ca.jtimes(middle, q, v)) / 2 + v[count + 1 + i] ** 2 / 24
        height += middle[1]
        closures.append(
            tip + towards(couplers[i]) - ca.vertcat(i + 1, 0) - towards(standing[i + 1])
        )
    return mb.from_lagrangian(
        q, v, kinetic=kinetic, potential=GRAVITY * height, phi=ca.vertcat(*closures),
        name=f"{count}_four_bars",
    )  # fmt: skip


def start(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the upright pose and the push that gives the first tip 1 m/s along x."""
    q, v = np.zeros(2 * count + 1), np.zeros(2 * count + 1)
    q[: count + 1], v[: count + 1] = np.pi / 2, -1.0
    return q, v


def simulate(
    count: int = 2,
    rtol: float = 1e-10,
    formulation: str = "projection",
    duration: float = DURATION,
    samples: int = 1000,
) -> mb.Trajectory:
    """Return the motion at equal intervals."""
    times = np.linspace(0, duration, samples + 1)
    return mb.simulate(
        system(count), *start(count), duration, formulation, rtol=rtol, atol=rtol / 10, times=times
    )


def pendulum(times: np.ndarray, count: int) -> np.ndarray:
    """Return the angle of the standing links at the times, as one pendulum."""
    inertia = (count + 1) / 3 + count  # couplers do not turn
    moment = (count + 1) / 2 + count

    def rate(_: float, x: np.ndarray) -> list[float]:
        return [x[1], -moment * GRAVITY * np.cos(x[0]) / inertia]

    begin = (np.pi / 2, -1.0)
    exact = solve_ivp(rate, (0, times[-1]), begin, "DOP853", times, rtol=1e-13, atol=1e-14)
    return exact.y[0]


def bottom_times(trajectory: mb.Trajectory) -> np.ndarray:
    """Return the times, s, at which the standing links hang straight down."""
    turned = np.pi / 2 - trajectory.q[:, 0]
    goals = np.pi * np.arange(1, turned[-1] / np.pi, 2)
    return np.interp(goals, turned, trajectory.t)


def main(count: int = 2) -> dict[str, Any]:
    """Print and return the errors."""
    large = count > 10
    trajectory = simulate(count, 1e-8, samples=200) if large else simulate(count)
    angles = pendulum(trajectory.t, count)
    tip = np.stack([np.cos(trajectory.q[:, 0]), np.sin(trajectory.q[:, 0])])
    exact = np.stack([np.cos(angles), np.sin(angles)])
    found = {
        "distance": float(np.linalg.norm(tip - exact, axis=0).max()),
        "energy_error": float(np.abs(trajectory.energy - trajectory.energy[0]).max()),
        "drift": float(trajectory.drift.max()),
        "bottom_times": bottom_times(trajectory),
        "fastest": float(np.abs(trajectory.v[:, 0]).max()),
        "singular_poses": float(abs(trajectory.q[-1, 0] - trajectory.q[0, 0]) // np.pi),
        "steps": trajectory.steps,
    }
    print(
        f"N = {count}: tip within {found['distance']:.1e} m of the pendulum, energy within "
        f"{found['energy_error']:.1e} J, gap {found['drift']:.1e} m, {found['steps']} steps "
        f"through {found['singular_poses']:.0f} singular poses;\n"
        f"at the bottom at {np.round(found['bottom_times'], 3)} s with {found['fastest']:.2f} m/s"
    )
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
