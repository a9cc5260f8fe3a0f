"""A slider-crank with equal links turns through 23 singular poses in ten seconds [A05, §8].

Where the crank is perpendicular to the slider's line the only row of the constraint vanishes and
two branches meet. Projection at every stage keeps step size, energy and branch. The correction
that A05 prints, of q after each step and not of v, makes the step size collapse at a singular pose
(with v it works here, because the branch is a straight line in q, while no step ends next to a
singular pose). The classical multipliers leave the branch.

You will see steps, energy error and distance from the one-coordinate solution of each; of unstable
runs, which rounding errors decide, orders of magnitude.
"""

import numpy as np
from panels import Panel, draw, figure_path
from scipy.integrate import DOP853, solve_ivp
from twins import slider_crank

import mbcasadi as mb
from mbcasadi.errors import MotionError
from mbcasadi.simulation import EquationOptions, IntegrationOptions

SPEED = 6.0  # rad/s of the crank at the start, enough to turn over
DURATION, SHORT = 10.0, 3.0  # s; the methods that fail do so early
RTOL, ATOL = 1e-10, 1e-12
SMALL_STEP, COLLAPSED = 1e-6, 1e-9  # s; where all is well the steps are 2e-3 s and longer
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
    """Return the motion with q corrected after each step by (39), not v  [A05, section 6].

    It ends with the first step shorter than `COLLAPSED`: which one is a matter of rounding errors.
    """
    dynamics = mb.forward_dynamics(system)

    def rate(_: float, x: np.ndarray) -> np.ndarray:
        return np.r_[x[2:], np.array(dynamics(x[:2], x[2:], 0)[0]).ravel()]

    solver = DOP853(rate, 0.0, np.r_[START, SPEED, -2 * SPEED], SHORT, rtol=RTOL, atol=ATOL)
    t, x = [0.0], [solver.y]
    step = np.inf
    while solver.status == "running" and step > COLLAPSED and solver.step() is None:
        q = solver.y[:2]
        A, phi = np.array(system.constraint_jacobian(q)), np.array(system.constraint(q))
        q = q - (np.linalg.pinv(A) @ phi).ravel()
        solver.y = np.r_[q, solver.y[2:]]
        solver.f = rate(solver.t, solver.y)
        step = solver.t - t[-1]
        t.append(solver.t)
        x.append(solver.y)
    q, v = np.array(x)[:, :2], np.array(x)[:, 2:]
    energy = system.kinetic_energy.map(len(t))(q.T, v.T) + system.potential_energy.map(len(t))(q.T)
    return {"t": np.array(t), "q": q, "energy": np.array(energy).ravel()}


def simulate(
    system: mb.System, duration: float, formulation: str, **options: object
) -> dict[str, np.ndarray]:
    """Return the motion by the package, up to a singular pose where its step size collapses."""
    tight = {"rtol": RTOL, "atol": ATOL}
    start = system, START, [SPEED, -2 * SPEED], duration, formulation
    try:
        run = mb.simulate(*start, **tight, **options)
    except MotionError as collapse:
        run = collapse.trajectory
    return {key: getattr(run, key) for key in ("t", "q", "energy", "drift")}


def order(value: float) -> str:
    """Return the power of ten next to a value, all that is worth printing of an unstable run."""
    return f"1e{round(np.log10(value)):+03d}"


def report(name: str, run: dict[str, np.ndarray]) -> str:
    """Return the line to be printed of a run."""
    least, apart = np.nanmin(run["step"]), run["apart"].max()
    if least < SMALL_STEP:
        end = f"crank off by about {order(apart)} rad" if apart > 0.1 else "on the branch till then"
        return f"{name:20} unstable: steps down to about {order(least)} s, {end}"
    return (
        f"{name:20} {run['t'].size - 1:5} steps to {run['t'][-1]:5.2f} s, the least {least:.0e} s, "
        f"energy off by {run['error'].max():.0e}, crank by {apart:.0e} rad"
    )


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Return time, crank, relative energy error and distance from the exact crank of each run."""
    system = slider_crank.system()
    after_steps = {"integration": IntegrationOptions(project="step")}
    unaided = {
        "integration": IntegrationOptions(project="none"),
        "equations": EquationOptions(rank_tol=0.0),  # no row is ever dropped
    }
    runs = {
        "q, v at every stage": simulate(system, DURATION, "projection"),
        "q, v after each step": simulate(system, DURATION, "projection", **after_steps),
        "classical Lagrange": simulate(system, SHORT, "lagrange", **unaided),
    }
    runs["q after each step"] = as_printed(system)
    exact = crank_alone(DURATION)
    for name, run in runs.items():
        run["step"] = np.diff(run["t"], prepend=np.nan)
        run["error"] = np.abs(run["energy"] / run["energy"][0] - 1)
        run["apart"] = np.abs(run["q"][:, 0] - exact(run["t"]))
        print(report(name, run))
    if figure is not None:
        turns = np.linspace(0, SHORT, 3001)
        passed = np.diff(np.sign(np.cos(exact(turns)))) != 0
        draw(figure, drawn(runs), marks=turns[1:][passed], one_legend=True)
    return runs


def drawn(runs: dict[str, dict[str, np.ndarray]]) -> list[Panel]:
    """Return steps, energy error and distance over the first seconds."""

    def early(key: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        shown = {name: (run["t"] <= SHORT) & (run["t"] > 0) for name, run in runs.items()}
        return {name: (run["t"][shown[name]], run[key][shown[name]]) for name, run in runs.items()}

    dashed = ["q, v after each step"]
    return [
        Panel("step, s", early("step"), log=True, dashed=dashed),
        Panel("energy error", early("error"), log=True, dashed=dashed, limits=(1e-16, 10)),
        Panel("crank off by, rad (grey: singular)", early("apart"), log=True, dashed=dashed),
    ]


if __name__ == "__main__":
    main(figure_path(__doc__))
