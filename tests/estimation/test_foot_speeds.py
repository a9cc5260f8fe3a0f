"""Feet that move do not stand, whatever a mask says: late landings, lower ground, lost contacts."""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.estimation import Encoders, Footing, Imu, base_estimator
from mbcasadi.estimation.foot_speeds import LATE

FEET, DT = ["FL", "FR", "RL", "RR"], 0.002
RATE = 2.0  # rad/s of a knee whose foot falls
RESTS, FALLS = 0.6, 0.06  # s, of all feet; of a foot


@pytest.fixture(scope="module")
def system():
    return mb.read_mjcf(mb.models.path("quadruped"))


def said(system, masks, rates, **footing):
    """Return the outputs of each tick, of a base at rest whose knees turn at rates (nt, 4)."""
    q0 = np.array(system.tree.keyframes["stand"], dtype=float)
    own = base_estimator(
        system, [mb.Contact(name) for name in FEET], imu=Imu("trunk"), q0=q0, period=DT,
        encoders=Encoders(rate_noise=0.01), footing=Footing(**footing),
    )  # fmt: skip
    names = next(s for s in own.inputs if s.name == "y").components
    knees = [names.index(f"{foot}_calf") for foot in FEET]
    speeds = [names.index(f"{foot}_calf.rate") for foot in FEET]
    memory = next(s for s in own.inputs if s.name == "z").components
    stood = [memory.index(f"stood{k}") for k in range(4)]
    y, z, outputs = own.y0.copy(), own.z0, []
    for mask, rate in zip(masks, rates, strict=True):
        y[speeds], y[knees] = rate, y[knees] + DT * rate
        found = own.function(y=y, valid=np.ones(13), mask=mask, dt=DT, z=z)
        z = found["z_next"]
        outputs.append({key: np.array(x) for key, x in found.items()})
        outputs[-1]["stood"] = outputs[-1]["z_next"][stood]
    return outputs


def fall(feet, lasts):
    """Return masks of a stand, and rates of the knees of feet that fall for a time, s, behind it.

    These feet swing at first; from the fall on they are to stand.
    """
    ticks, first = round((RESTS + lasts + 0.1) / DT), round(RESTS / DT)
    masks, rates = np.ones((ticks, 4)), np.zeros((ticks, 4))
    masks[: first - 1, feet] = 0
    rates[first : first + round(lasts / DT), feet] = RATE
    return masks, rates


@pytest.mark.long
def test_a_foot_that_falls_adds_nothing_until_it_rests(system):
    masks, rates = fall([0], FALLS)
    swings = masks.copy()
    swings[: np.flatnonzero(rates[:, 0])[-1] + 1, 0] = 0  # what a sensor of the foot would say
    own, other, open_ = (
        said(system, *pair) if k < 2 else said(system, *pair, largest_speed=1e3)
        for k, pair in enumerate(((masks, rates), (swings, rates), (masks, rates)))
    )
    assert own[-1]["stood"][0] > 0, "it stands at last"
    for key in ("q", "v", "covariance"):
        gaps = [np.abs(a[key] - b[key]).max() for a, b in zip(own, other, strict=True)]
        wrong = [np.abs(a[key] - b[key]).max() for a, b in zip(open_, other, strict=True)]
        assert max(wrong) > 1e-6, f"{key}: the fall is seen where no speed is too large"
        assert max(gaps) < 1e-2 * max(wrong), f"{key}: {max(gaps):.1e} of {max(wrong):.1e}"
    assert not any(out["status"].any() for out in own)


@pytest.mark.parametrize(("lasts", "status"), [(LATE / 2, 0), (3 * LATE, 2)])
def test_feet_that_are_late_contradict_the_estimate_after_a_while(system, lasts, status):
    outputs = said(system, *fall([0, 1, 2, 3], lasts))
    assert max(float(out["status"][0, 0]) for out in outputs[round(RESTS / DT) :]) == status


def test_feet_that_had_settled_contradict_it_at_once(system):
    masks, rates = fall([0, 1, 2, 3], LATE / 2)
    outputs = said(system, np.ones_like(masks), rates)
    assert max(float(out["status"][0, 0]) for out in outputs) == 2
