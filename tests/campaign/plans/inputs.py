"""Inputs of a tick: usual ones, and what no tick should be given."""

import numpy as np

from campaign.plans.problems import Posed
from mbcasadi.control.tasks.reference import slot_slices

# "masks": contacts that switch at random, and lengths of intervals at random where they are data
KINDS = ("usual", "pushed", "masks", "stale", "far", "not finite", "noise")


FLIPS = 0.3  # share of samples at which a contact switches


class Inputs(dict):
    """q, v, ref, z by name; `kind` says how they were made."""

    kind: str = ""


def drawn(
    posed: Posed, rng: np.random.Generator, state: dict[str, np.ndarray], tick: int
) -> Inputs:
    """Return the inputs of a tick of a random kind.

    Args:
        posed: the controller.
        rng: random numbers.
        state: q, v and z of the run so far.
        tick: its number in the run.
    """
    kind = KINDS[rng.choice(len(KINDS), p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.05])]
    ocp = posed.law.ocp
    P = posed.reference()
    given = Inputs(q=state["q"].copy(), v=state["v"].copy(), ref=P.ravel(), z=state["z"].copy())
    given.kind = kind
    if posed.masks is not None:
        on = by_gait(posed, len(P), tick) if kind != "masks" else at_random(posed, len(P), rng)
        given["ref"] = with_masks(posed, P, on).ravel()
    if ocp.lengths is not None and kind == "masks":
        P[:, slot_slices(ocp.slots)["step"]] *= rng.uniform(0.25, 2.0, (len(P), 1))
        given["ref"] = P.ravel()
    size = 10.0 ** rng.uniform(-4, 1)
    if kind in ("pushed", "far"):
        size = 10.0 ** (rng.uniform(-4, 0.3) if kind == "pushed" else rng.uniform(0.3, 4))
        given["v"] += size * rng.standard_normal(given["v"].size)
        moved = ocp.system.integrate(given["q"], 0.1 * size * rng.standard_normal(given["v"].size))
        given["q"] = np.array(moved).ravel()
    elif kind == "stale":
        given["z"] = posed.law.controller.z0.copy()
    elif kind == "noise":
        scale = size * (1e-3 + np.abs(given["z"]))
        given["z"] = given["z"] + scale * rng.standard_normal(given["z"].size)
    elif kind == "not finite":
        key = rng.choice(["q", "v", "ref", "z"])
        where = rng.integers(given[key].size)
        given[key][where] = rng.choice([np.nan, np.inf, -np.inf, 1e300])
    return given


def by_gait(posed: Posed, samples: int, tick: int) -> np.ndarray:
    """Return which contacts are on in each sample by the gait."""
    assert posed.gait is not None
    times = posed.law.ocp.period * (tick + np.arange(samples) + 0.5)
    return np.array([np.array(posed.gait.on_ground(float(t)), float).ravel() for t in times])


def at_random(posed: Posed, samples: int, rng: np.random.Generator) -> np.ndarray:
    """Return the same at random: each contact switches about every third sample."""
    assert posed.gait is not None
    size = len(posed.gait.offsets)
    flips = rng.uniform(size=(samples, size)) < FLIPS
    return np.cumsum(flips, axis=0) % 2 == rng.integers(0, 2, size)


def with_masks(posed: Posed, P: np.ndarray, on: np.ndarray) -> np.ndarray:
    """Return p with these contacts on, (samples, contacts)."""
    assert posed.masks is not None
    ocp, changed = posed.law.ocp, P.copy()
    scheduled = ocp.parameters({"mask": np.array([posed.masks(row) for row in on])})
    places = slot_slices(ocp.slots)
    for name in ("mask", "landing"):
        if name in places:
            changed[:, places[name]] = scheduled[:, places[name]]
    return changed
