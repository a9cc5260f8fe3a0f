"""Late samples: a filter that gets them knows what a filter with all samples in time would know.

The reference is a dense Kalman filter that runs again, from the start, over all samples that have
come, in the order of their own times.
"""

from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.description.status import Flag
from mbcasadi.errors import ProblemError
from mbcasadi.estimation import FilterOptions, Fix, Measured, manifold_filter

MODELS = Path(__file__).parents[2] / "mujoco_models"
DT, DELAY = 2e-3, 0.012
MASSES, STIFFNESS, DENSITY = np.array([1.0, 2.0]), 50.0, 0.7
NOISE = np.array([2e-3, 0.05, 5e-3])
H = np.array([[1.0, 0, 0, 0], [0, 0, 0, 1.0], [0, 1.0, 0, 0]])
REST = np.array([0, 0.5, 0, 0])
ROUNDING = 1e-9
QUICK = ("-O0",)


def sensors(delay=DELAY):
    """One position in time, one rate and one position late."""
    return [
        Measured("x1", NOISE[0], kind="position"),
        Measured("x2", NOISE[1], kind="rate", longest_delay=delay),
        Measured("x2", NOISE[2], kind="position", longest_delay=delay),
    ]


@pytest.fixture(scope="module")
def late():
    return manifold_filter(
        mb.read_mjcf(MODELS / "two_mass_spring.xml"), sensors(), force_noise=DENSITY,
        options=FilterOptions(false_alarm=None), period=DT,
    )  # fmt: skip


class Rerun:
    """A Kalman filter that keeps all samples, and runs from the start at every tick."""

    def __init__(self, z0):
        L = z0[4:20].reshape(4, 4, order="F")
        self.first = REST.copy(), L @ L.T
        self.ticks, self.samples = [], []

    def estimate(self):
        """Return x and P after all ticks, with all samples that have come."""
        (x, P), now = self.first, 0.0
        for end, u in self.ticks:
            own = sorted(s for s in self.samples if now < s[0] <= end)
            for time in sorted({end, *(s[0] for s in own)}):
                x, P = self._moved(x, P, u, time - now)
                now = time
                for _, row, y in (s for s in own if s[0] == time):
                    h = H[row : row + 1]
                    gain = P @ h.T / (h @ P @ h.T + NOISE[row] ** 2)
                    x, P = x + gain[:, 0] * (y - h @ x), P - gain @ h @ P
        return x, P

    @staticmethod
    def _moved(x, P, u, dt):
        eye, zero = np.eye(2), np.zeros((2, 2))
        K = STIFFNESS * np.array([[1.0, -1.0], [-1.0, 1.0]])
        half = np.block([[eye, dt / 2 * eye], [zero, eye]])
        F = half @ np.block([[eye, zero], [-dt * K / MASSES[:, None], eye]]) @ half
        G = half @ np.vstack([zero, np.diag(dt / MASSES)])
        x = REST + F @ (x - REST) + G @ [u, 0]
        return x, F @ P @ F.T + G @ G.T * DENSITY**2 / dt


def test_a_late_sample_counts_as_if_it_had_come_at_its_time(late):
    rng, z, reference = np.random.default_rng(0), late.z0, Rerun(late.z0)
    now, used, oldest = 0.0, 0, 0.0
    taken = set()
    for k in range(60):
        dt, u = DT * rng.uniform(0.6, 1.0), np.sin(k / 5)
        start, now = now, now + dt
        reference.ticks.append((now, u))
        y = H @ REST + 20 * NOISE * rng.standard_normal(3)
        valid, ages = np.ones(3), np.zeros(2)
        reference.samples.append((now, 0, y[0]))
        for i in range(2):
            kind = rng.integers(4)
            time = now if kind == 0 else rng.uniform(max(now - 0.6 * DELAY, 1e-4), now)
            tick = next(end for end, _ in reference.ticks if end >= time)
            valid[1 + i] = kind < 3 and (i, tick) not in taken
            ages[i] = now - time
            if valid[1 + i]:
                taken.add((i, tick))
                reference.samples.append((now - ages[i] if kind else now, 1 + i, y[1 + i]))
                used, oldest = used + (time < start), max(oldest, ages[i])
        out = late.function(y=y, valid=valid, u=u, age=ages, dt=dt, z=z)
        z, (x, P) = out["z_next"], reference.estimate()
        ours = np.array(ca.vertcat(out["q"], out["v"])).ravel()
        assert ours == pytest.approx(x, abs=ROUNDING, rel=ROUNDING), f"tick {k}"
        assert np.array(out["covariance"]) == pytest.approx(P, abs=ROUNDING * np.max(P))
        assert int(out["flags"]) == 0
    assert used > 20
    assert oldest > 3 * DT


@pytest.mark.parametrize("age", [-1e-3, np.nan, np.inf, 10 * DELAY, 1e300])
def test_an_age_that_is_none_is_refused_and_said(late, age):
    z = late.z0
    for _ in range(20):
        z = late.function(y=REST[[0, 2, 1]], valid=1, u=0, age=0, dt=DT, z=z)["z_next"]
    given = {"y": [0, 0.4, 0.9], "u": 0, "dt": DT, "z": z}
    out = late.function(valid=[1, 1, 0], age=[age, 0], **given)
    without = late.function(valid=[1, 0, 0], age=0, **given)
    assert int(out["flags"]) & Flag.OVERDUE
    assert not int(without["flags"]) & Flag.OVERDUE
    for key in ("q", "v", "covariance"):
        assert np.array_equal(np.array(out[key]), np.array(without[key]))


def test_a_second_sample_of_one_tick_is_refused(late):
    z = late.z0
    for _ in range(5):
        z = late.function(y=REST[[0, 2, 1]], valid=[1, 0, 0], u=0, age=0, dt=DT, z=z)["z_next"]
    flags = []
    for age in (2.5 * DT, 3.5 * DT, 3.0 * DT):
        given = {"y": REST[[0, 2, 1]], "valid": [1, 1, 0], "u": 0, "age": [age, 0], "dt": DT}
        out = late.function(**given, z=z)
        z = out["z_next"]
        flags.append(int(out["flags"]) & Flag.OVERDUE)
    assert flags == [0, Flag.OVERDUE, 0]


def test_a_late_outlier_is_rejected_at_its_own_time():
    system = mb.read_mjcf(MODELS / "two_mass_spring.xml")
    own = manifold_filter(system, sensors(), force_noise=DENSITY, period=DT)
    z, still = own.z0, {"y": REST[[0, 2, 1]], "valid": 1, "u": 0, "age": 0, "dt": DT}
    for k in range(100):
        z = own.function(**(still | {"valid": [1, 1, k < 90]}), z=z)["z_next"]
    late = still | {"valid": [1, 0, 1], "age": [0, 2.5 * DT]}
    none = own.function(**(still | {"valid": [1, 0, 0]}), z=z)
    good, bad = own.function(**late, z=z), own.function(**(late | {"y": [0, 0, 0.9]}), z=z)
    assert int(good["flags"]) == 0
    assert int(bad["flags"]) == Flag.GATED
    assert float(good["residual"][2]) < 3
    assert float(bad["residual"][2]) > 20
    for key in ("q", "v", "covariance"):  # but for the prediction in two steps
        assert np.array(bad[key]) == pytest.approx(np.array(none[key]), rel=1e-2, abs=1e-9)
    learned = np.diag(np.array(none["covariance"]) - np.array(good["covariance"]))
    assert learned[1] > 1e-9


def test_without_late_sensors_there_is_no_age_and_no_past():
    system = mb.read_mjcf(MODELS / "two_mass_spring.xml")
    plain = manifold_filter(system, sensors(0.0), force_noise=DENSITY, period=DT)
    assert "age" not in plain.function.name_in()
    assert len(plain.z0) < 40
    with pytest.raises(ProblemError, match="longest_delay = -1"):
        Fix("height", "trunk", 0.1, longest_delay=-1.0)
    with pytest.raises(ProblemError, match="a delay of a density"):
        Measured("gyro", 1e-3, density=True, longest_delay=0.1)


def hostile(rng, k):
    """Return y, valid, u, age, dt of a hostile tick, and whether its memory is broken."""
    y, valid, ages = REST[[0, 2, 1]] + 3 * NOISE * rng.standard_normal(3), np.ones(3), np.zeros(2)
    ages[:] = rng.choice([0.0, DT, 3 * DT, rng.uniform(0, DELAY)], 2)
    u, dt, broken = 0.0, DT, False
    match rng.integers(8):
        case 0:
            y[rng.integers(3)] = rng.choice([np.nan, np.inf, -np.inf, 1e30, 1e8])
        case 1:
            ages[rng.integers(2)] = rng.choice([np.nan, -1.0, np.inf, 1e300, 2 * DELAY, DT])
        case 2:
            valid = rng.choice([0.0, 1.0, np.nan, 1e20], 3)
        case 3:
            dt = rng.choice([0.0, -1.0, np.nan, np.inf, 0.05, 1e-9])
        case 4:
            u = rng.choice([np.nan, 1e30, -1e6])
        case 5:
            broken = k % 40 == 0
    return y, valid, u, ages, dt, broken


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.every(2)
def test_its_c_is_the_function_and_survives_hostile_ticks(late, tmp_path, real):
    call = mb.export_c(late.function, tmp_path, real=real).load(flags=QUICK)
    rng, z, w, flags = np.random.default_rng(1), late.z0, late.z0, 0
    for k in range(120):
        y = H @ REST + NOISE * rng.standard_normal(3)
        ages = rng.uniform(0, DELAY, 2) * (k % 3 == 0)
        given = {"y": y, "valid": [1, 1, k % 2], "u": np.sin(k), "age": ages, "dt": DT}
        ours, other = late.function(**given, z=z), call(**given, z=w)
        z, w = ours["z_next"], other["z_next"]
        deviation = np.sqrt(np.diag(np.array(ours["covariance"])))
        state, single = (np.array(ca.vertcat(x["q"], x["v"])).ravel() for x in (ours, other))
        near = 1e-9 if real == "double" else 0.01 * deviation + 1e-6
        assert np.all(np.abs(state - single) < near), f"tick {k}"
        assert int(ours["flags"]) == int(other["flags"])
        flags |= int(ours["flags"])
    assert flags & Flag.OVERDUE, "before there is a past"
    for k in range(1500):
        y, valid, u, ages, dt, broken = hostile(rng, k)
        if broken:
            w = np.array(w).ravel() * rng.choice([np.nan, 1e25, -1.0, 0.0], w.numel())
        out = {
            key: np.array(x) for key, x in call(y=y, valid=valid, u=u, age=ages, dt=dt, z=w).items()
        }
        w = ca.DM(out["z_next"])
        assert all(np.isfinite(x).all() for x in out.values()), f"tick {k}"
        P = out["covariance"]
        scale = 1 / np.sqrt(np.maximum(np.diag(P), 1e-30))
        assert np.linalg.eigvalsh(P * np.outer(scale, scale)).min() > -1e-5
        assert not broken or int(out["status"].item()) == 4
    for _ in range(500):  # a second of good samples
        out = call(y=REST[[0, 2, 1]] * [1, 0, 1], valid=1, u=0, age=[0, 0.8 * DT], dt=DT, z=w)
        w = out["z_next"]
    assert int(out["status"]) == 0
    assert np.array(out["q"]).ravel() == pytest.approx(REST[:2], abs=0.02)
