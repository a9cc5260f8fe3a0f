"""Observers under hostile input: always finite, and right again within a second."""

import numpy as np
import pytest
from observed_mechanisms import start_of, system_of

import mbcasadi as mb
from mbcasadi.contacts import with_contacts
from mbcasadi.estimation import Encoders, momentum_observer, velocity_observer

DT = 1e-3
HOSTILE = np.array([np.nan, np.inf, -np.inf, 1e300, -1e30, 1e19, -1e8, 1e3, 0.0, 1.0])


def systems():
    """Return an arm, a loop, and a robot with feet that come and go, by name."""
    walker = system_of("quadruped")
    feet = [mb.Contact(name) for name in ("FL", "FR", "RL", "RR")]
    return {
        "scara": system_of("scara"),
        "four_bar": system_of("four_bar"),
        "quadruped": with_contacts(walker, feet).with_mask(),
    }


def spoilt(good, rng):
    """Return the inputs of a tick, about a third of them with hostile entries."""
    inputs = {}
    for name, value in good.items():
        entries = np.array(value, dtype=float).ravel()
        if rng.uniform() < 0.3:
            hit = rng.uniform(size=entries.size) < 0.5
            entries[hit] = rng.choice(HOSTILE, hit.sum())
        inputs[name] = entries
    return inputs


def after(observer, good, ticks=1500):
    """Return the outputs after hostile ticks, and those after a second of good ones."""
    rng, z = np.random.default_rng(8), np.zeros(observer.numel_in("z"))
    for _ in range(ticks):
        out = observer(
            **spoilt(good, rng), z=spoilt({"z": z}, rng)["z"] if rng.uniform() < 0.01 else z
        )
        assert all(np.all(np.isfinite(np.array(value))) for value in out.values())
        z = np.array(out["z_next"]).ravel()
    for _ in range(1000):
        calm = observer(**good, z=z)
        z = calm["z_next"]
    return {key: np.array(value).ravel() for key, value in calm.items()}


@pytest.mark.parametrize(
    "name", ["scara", "four_bar", pytest.param("quadruped", marks=pytest.mark.long)]
)
@pytest.mark.every(2)
def test_a_momentum_observer_recovers(name):
    system = systems()[name]
    observer = momentum_observer(system, gain=50.0, rate_noise=1e-3, force_noise=0.1)
    q = start_of(system)
    good = {"q": q, "v": np.zeros(system.nv), "u": np.zeros(system.nu), "dt": DT}
    good |= {} if system.mask is None else {"mask": system.mask}
    out = after(observer, good)
    fresh = np.zeros(observer.numel_in("z"))
    for _ in range(1000):
        expected = observer(**good, z=fresh)
        fresh = expected["z_next"]
    assert out["status"] == 0
    assert out["residual"] == pytest.approx(np.array(expected["residual"]).ravel(), abs=1e-6)
    assert out["collision"] == np.array(expected["collision"]).ravel()


@pytest.mark.parametrize("name", ["scara", "four_bar"])
@pytest.mark.every(2)
def test_a_velocity_observer_recovers(name):
    system = systems()[name]
    observer = velocity_observer(system, encoders=Encoders(acceleration=3.0))
    q = start_of(system)
    load = np.array(system.bias_force(q, np.zeros(system.nv)))
    u = np.linalg.lstsq(np.array(system.actuation(q)), load, rcond=None)[0].ravel()
    if system.nc:  # the crank is held by the force that keeps the loop at rest
        u = np.array(mb.dynamics.constrained_inverse_dynamics(system)(q=q)["u"]).ravel()
    out = after(observer, {"y": q, "valid": np.ones(system.nq), "u": u, "dt": DT})
    assert out["status"] == 0
    assert out["q"] == pytest.approx(q, abs=1e-6)
    assert out["v"] == pytest.approx(np.zeros(system.nv), abs=1e-4)
