"""Two pendulums latch in mid-swing: one model for tree and loop [A16].

`M̄ = P M P + μ Q` keeps its size and stays positive definite while the rank goes from 0 to 2: a
mask switches the rows. The virtual mass μ is free; inside the interval (12) the condition of M̄
is least, and the default lies there at every pose. Where the tips meet, the latch stops their
relative motion: v is projected in the metric of M, and kinetic energy is lost.

You will see the loss, and the condition of M̄ for virtual masses inside and outside the interval.
"""

import sys

import casadi as ca
import numpy as np
from twins import topology_switch

import mbcasadi as mb
from mbcasadi.dynamics import virtual_mass_terms
from mbcasadi.plots import save_figure

DURATION = 1.2  # s
SAMPLES = 241
MASSES = {"default": None, "too light": 1e-4, "too heavy": 1.0}  # kg m²


def gap_fun() -> ca.Function:
    """Return (t, q, v) → the distance of the left tip from the right one, m."""
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 4), ca.SX.sym("v", 4)
    joints = topology_switch.points(q)
    return ca.Function("gap", [t, q, v], [joints[5][0] - joints[2][0]], ["t", "q", "v"], ["gap"])


def conditions(system: mb.System, run: mb.Trajectory) -> dict[str, np.ndarray]:
    """Return low, high, mu (nt,) along the run, and the condition of M̄ for each mass."""
    found = {}
    for name, mass in MASSES.items():
        terms = virtual_mass_terms(system, virtual_mass=mass).map(run.t.size)
        out = terms(q=run.q.T, v=run.v.T, mask=run.mask.T)
        found[name] = np.array(out["cond"]).ravel()
        if mass is None:
            found |= {k: np.array(out[k]).ravel() for k in ("low", "high", "virtual_mass")}
    return found


def main(figure: str | None = None) -> dict[str, object]:
    """Return the motion, the event of the latch, and the conditions along the motion."""
    system = topology_switch.system().with_mask([0, 0])
    latch = mb.Event("latch", gap_fun(), direction=-1, mask=[1, 1])
    times = np.linspace(0, DURATION, SAMPLES)
    start = topology_switch.APART, np.zeros(4)
    run = mb.simulate(system, *start, DURATION, "virtual_mass", events=[latch], times=times)
    closure = run.events[0]
    found = conditions(system, run)
    print(f"latched at {closure.time:.4f} s with a gap of {closure.gap:.0e} m; ", end="")
    print(f"{closure.energy_loss:.4f} J of kinetic energy lost")
    print(f"rank {run.rank[0]} before, {run.rank[-1]} after; drift {run.drift.max():.0e} m")
    for name in MASSES:
        print(f"{name:9}: condition of M̄ at most {found[name].max():.0f}")
    found |= {"run": run, "closure": closure}
    if figure is not None:
        t, v = run.t, run.v
        masses = {"λ_max": (t, found["high"]), "μ": (t, found["virtual_mass"])}
        subplots = {
            "speed, rad/s": {"upper link": (t, v[:, 0]), "lower link": (t, v[:, 1])},
            "μ and the interval (12), kg m²": masses | {"λ_min": (t, found["low"])},
            "condition of M̄": {name: (t, found[name]) for name in MASSES},
        }
        dashed, log = ["λ_max", "λ_min"], list(subplots)[1:]
        save_figure(figure, subplots, log=log, dashed=dashed, marks=[closure.time])
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
