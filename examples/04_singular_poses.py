"""A slider-crank turns through 23 singular poses in ten seconds [A05, §8].

Where the crank is perpendicular to the slider's line the only row of the constraint vanishes and
two branches meet. Projection at every stage keeps step size, energy and branch; so does projection
after each step here. The classical multipliers leave the branch.

You will see steps, energy error and distance from the one-coordinate solution of each; of unstable
runs, which rounding errors decide, orders of magnitude.
"""

import sys

import numpy as np
from scipy.integrate import solve_ivp
from twins import slider_crank

import mbcasadi as mb
from mbcasadi.plots import curves_of, save_figure
from mbcasadi.simulation import EquationOptions, IntegrationOptions

SPEED = 6.0  # rad/s of the crank at the start, enough to turn over
DURATION, SHORT = 10.0, 3.0  # s; the method that fails does so early
SMALL_STEP = 1e-6  # s; where all is well the steps are 2e-3 s and longer
START = np.array(slider_crank.START)


def exact_crank(t: np.ndarray) -> np.ndarray:
    """Return q1 from `½ m l² (1 + 4 s²) w² + m g l s = const`, where `q2 = -2 q1`."""

    def rate(_: float, x: np.ndarray) -> list[float]:
        s, c, w = np.sin(x[0]), np.cos(x[0]), x[1]
        return [w, -c * (4 * s * w**2 + slider_crank.GRAVITY) / (1 + 4 * s**2)]

    start, tight = [START[0], SPEED], {"rtol": 1e-13, "atol": 1e-14}
    return solve_ivp(rate, (0, t[-1]), start, "DOP853", t_eval=t, **tight).y[0]


def simulate(duration: float, formulation: str, **options: object) -> dict[str, np.ndarray]:
    """Return the motion, its steps, and its errors."""
    start = START, [SPEED, -2 * SPEED]
    tight = {"rtol": 1e-10, "atol": 1e-12}
    run = mb.simulate(slider_crank.system(), *start, duration, formulation, **tight, **options)
    found = {"t": run.t, "q": run.q, "drift": run.drift, "step": np.diff(run.t, prepend=np.nan)}
    found["error"] = np.abs(run.energy / run.energy[0] - 1)
    return found | {"apart": np.abs(run.q[:, 0] - exact_crank(run.t))}


def report(run: dict[str, np.ndarray]) -> str:
    """Return the line to be printed of a run."""
    least, error, apart = np.nanmin(run["step"]), run["error"].max(), run["apart"].max()
    if least < SMALL_STEP:
        step, off = (f"1e{round(np.log10(value)):+03d}" for value in (least, apart))
        return f"unstable: steps down to about {step} s, crank off by about {off} rad"
    steps = f"{run['t'].size - 1:5} steps to {run['t'][-1]:5.2f} s, the least {least:.0e} s"
    return f"{steps}, energy off by {error:.0e}, crank by {apart:.0e} rad"


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Return time, crank, relative energy error and distance from the exact crank of each run."""
    after_steps, never = (IntegrationOptions(project=when) for when in ("step", "none"))
    every_row = EquationOptions(rank_tol=0.0)  # none is ever dropped
    runs = {
        "q, v at every stage": simulate(DURATION, "projection"),
        "q, v after each step": simulate(DURATION, "projection", integration=after_steps),
        "classical Lagrange": simulate(SHORT, "lagrange", integration=never, equations=every_row),
    }
    for name, run in runs.items():
        print(f"{name:20} {report(run)}")
    if figure is not None:
        titles = {"step, s": "step", "energy error": "error", "crank off by, rad": "apart"}
        early = {
            name: {key: run[key][run["t"] < SHORT] for key in ("t", *titles.values())}
            for name, run in runs.items()
        }
        save_figure(figure, curves_of(early, titles), log=list(titles), dashed=[*runs][1:2])
    return runs


if __name__ == "__main__":
    main(*sys.argv[1:])
