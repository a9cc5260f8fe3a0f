"""The filter's C: the Function's numbers, float near double, and hostile ticks."""

from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from drawn_mechanism import DrawnMechanism

import mbcasadi as mb
from mbcasadi.description.status import Flag
from mbcasadi.estimation import FilterOptions, Measured, UnknownForce, manifold_filter
from mbcasadi.estimation.estimator import DOUBTED

MODELS = Path(__file__).parents[2] / "mujoco_models"
DT, NOISE, DENSITY, N, DRIVE = 1e-3, 1e-3, 0.02, 7, 0.5
QUICK = ("-O0",)
ROUNDING = 1e-9

RESOLUTION = 4 * 2.0**-24
"""Some units in the last place of float: at its dead points the rocker's deviation is none."""


@pytest.fixture(scope="module")
def filter_():
    """A four-bar with two encoders and a disturbing torque at its crank."""
    return manifold_filter(
        mb.read_mjcf(MODELS / "four_bar.xml"),
        [Measured(k, NOISE, kind="position", turns=k == "crank") for k in ("crank", "rocker")],
        force_noise=DENSITY,
        disturbances=[UnknownForce("crank", 0.1, 0.2)],
        options=FilterOptions(position=0.02),
    )


@pytest.fixture(scope="module")
def in_c(filter_, tmp_path_factory):
    """Its C in double and in float."""
    folder = tmp_path_factory.mktemp("c")
    return {
        real: mb.export_c(filter_.function, folder / real, real=real).load(flags=QUICK)
        for real in ("double", "float")
    }


class World:
    """The mechanism that is measured."""

    def __init__(self, seed):
        self.system = mb.read_mjcf(MODELS / "four_bar.xml")
        self.rng = np.random.default_rng(seed)
        start = np.zeros((1, 3))
        self.world = DrawnMechanism(
            self.system, DT, np.full(3, DENSITY), start, start.copy(), self.rng, substeps=1
        )

    def tick(self, k):
        """Return y and u of tick k."""
        u = DRIVE * np.sin(6 * k * DT)
        self.world.step(self.world.applied([u]))
        return self.world.q[0, [0, 2]] + NOISE * self.rng.standard_normal(2), u


def as_numbers(out):
    return {key: np.array(x) for key, x in out.items()}


def test_c_has_the_numbers_of_the_function_and_float_is_near_it(filter_, in_c):
    world = World(0)
    z = {"function": filter_.z0, "double": filter_.z0, "float": filter_.z0}
    calls = in_c | {"function": filter_.function}
    least = np.inf
    for k in range(300):
        y, u = world.tick(k)
        out = {
            name: as_numbers(call(y=y, valid=[1, k % 5 > 0], u=u, dt=DT, z=z[name]))
            for name, call in calls.items()
        }
        z = {name: each["z_next"] for name, each in out.items()}
        for key, value in out["function"].items():
            if key == "z_next":  # roots of one covariance differ by a rotation
                continue
            scale = max(1.0, np.abs(value).max())
            assert out["double"][key] == pytest.approx(value, abs=ROUNDING * scale), key
        deviation = np.sqrt(np.diag(out["function"]["covariance"]))
        P = out["float"]["covariance"]
        single = np.concatenate([out["float"][key].ravel() for key in ("q", "v", "states")])
        state = np.concatenate([out["function"][key].ravel() for key in ("q", "v", "states")])
        near = 0.01 * deviation + RESOLUTION * np.maximum(1, np.abs(state))
        assert np.all(np.abs(single - state) < near)
        assert np.all(np.abs(np.sqrt(np.diag(P)) - deviation) < near)
        sized = P / np.outer(deviation, deviation)
        assert np.array_equal(P, P.T)
        least = min(least, np.linalg.eigvalsh(sized).min())
    assert least > -1e-6  # rounding of the product L Lᵀ; L itself is the memory


def hostile(rng, k, y, u, size):
    """Return inputs (y, valid, u, dt) of a hostile tick, and whether its memory is broken."""
    valid, dt, broken = np.ones(2), DT, False
    kind = rng.integers(10)
    entry = rng.integers(2)
    if kind == 0:
        y[entry] = rng.choice([np.nan, np.inf, -np.inf, 1e30])
    elif kind == 1:
        y[entry] += rng.normal() * 10 ** rng.uniform(-3, 6)
    elif kind == 2:
        y[:] = 0.7  # stuck
    elif kind == 3:
        dt = rng.choice([0, -1, np.nan, np.inf, 0.05, 10.0])
    elif kind == 4:
        u = rng.choice([np.nan, 1e12, -1e6])
    elif kind == 5:
        valid[:] = 0
    elif kind == 6:
        valid[entry] = np.nan
    elif kind == 7 and k % 5 == 0:
        broken = True
    return y, valid, u, dt, broken


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.every(2)
def test_hostile_ticks_leave_a_sound_filter_that_recovers(filter_, in_c, real, is_thorough):
    call, world, rng, z = in_c[real], World(1), np.random.default_rng(2), filter_.z0
    statuses = set()
    for k in range(10_000 if is_thorough else 4000):
        y, u = world.tick(k)
        if k % 2000 < 1000:
            y, valid, u, dt, broken = hostile(rng, k, y, u, len(z))
            if broken:
                z = np.array(z).ravel() * rng.choice([np.nan, 1e20, -1, 0], len(z))
        else:  # a second of good samples, the last half of which has to be right
            valid, dt, broken = np.ones(2), DT, False
        out = as_numbers(call(y=y, valid=valid, u=u, dt=dt, z=z))
        z, P = out["z_next"], out["covariance"]
        assert all(np.all(np.isfinite(value)) for value in out.values())
        assert np.abs(out["q"]).max() < 1e6
        scale = np.sqrt(np.maximum(np.diag(P), 1e-30))
        assert np.linalg.eigvalsh(P / np.outer(scale, scale)).min() > -1e-5
        statuses.add(int(out["status"].item()))
        assert int(out["status"].item()) == 4 or not broken
        if k % 2000 > 1900:
            error = out["q"].ravel() - world.world.q[0]
            turns = 2 * np.pi * np.round(error[0] / (2 * np.pi))
            assert abs(error[0] - turns) < 8 * NOISE
            assert int(out["status"].item()) == 0
    assert statuses >= {0, 2, 3, 4}


def test_one_wrong_sample_is_rejected_and_a_jump_is_followed(filter_, in_c):
    call, world, z = in_c["double"], World(3), filter_.z0
    for k in range(300):
        y, u = world.tick(k)
        z = call(y=y, valid=[1, 1], u=u, dt=DT, z=z)["z_next"]
    y, u = world.tick(300)
    before = as_numbers(call(y=y, valid=[1, 0], u=u, dt=DT, z=z))
    out = as_numbers(call(y=[y[0], y[1] + 0.3], valid=[1, 1], u=u, dt=DT, z=z))
    assert int(out["flags"].item()) == Flag.GATED
    assert int(out["status"].item()) == 0
    assert out["residual"][1] > 50
    assert out["q"] == pytest.approx(before["q"])
    states, jump = [], 0.05
    z, sides = filter_.z0, [_pose(crank)[[0, 2]] for crank in (0.0, jump)]
    for k in range(400):
        y = sides[k >= 200]
        out = as_numbers(call(y=y, valid=[1, 1], u=0, dt=DT, z=z))
        z = out["z_next"]
        states.append(int(out["status"].item()))
    assert 2 in states[200:]
    assert states[-1] == 0
    assert abs(out["q"][0].item() - jump) < 3 * NOISE


def _pose(crank):
    """Return a closed pose (3,) of the four-bar at an angle of the crank."""
    system = mb.read_mjcf(MODELS / "four_bar.xml")
    q = np.array([crank, 0.0, 0.0])
    for _ in range(20):
        A = np.array(system.constraint_jacobian(q))
        q[1:] -= np.linalg.pinv(A[:, 1:], rcond=1e-9) @ np.array(system.constraint(q)).ravel()
    return q


@pytest.mark.parametrize(("seed", "speed"), [(1, 60.0), (2, 120.0)])
@pytest.mark.every(2)
def test_a_lost_filter_says_so_until_it_has_found_the_mechanism_again(filter_, in_c, seed, speed):
    """The crank, which rested, is found to spin: samples that fit by chance prove nothing."""
    world, z = World(seed), filter_.z0
    for _ in range(300):  # at rest, where the drive only trembles
        out = in_c["double"](y=world.world.q[0, [0, 2]], valid=[1, 1], u=0.0, dt=DT, z=z)
        z = out["z_next"]
    assert int(np.array(out["status"]).item()) == 0
    along = np.linalg.svd(np.array(world.system.constraint_jacobian(world.world.q[0])))[2][-1]
    world.world.v[0] = speed * along / along[0]
    errors, statuses = [], []
    for k in range(1500):
        y, u = world.tick(k)
        out = in_c["double"](y=y, valid=[1, 1], u=u, dt=DT, z=z)
        z = out["z_next"]
        gap = np.array(out["q"]).ravel() - world.world.q[0]
        errors.append(np.abs((gap + np.pi) % (2 * np.pi) - np.pi).max())
        statuses.append(int(np.array(out["status"]).item()))
    doubted = round(DOUBTED / DT) + 1
    wrong = (np.array(errors) > 8 * NOISE) & (np.array(statuses) == 0)
    in_a_row = [len(list(run)) for is_wrong, run in groupby(wrong) if is_wrong]
    assert max(errors) > 1.0  # it was lost
    assert max(in_a_row) <= doubted
    assert not wrong[-300:].any()
    assert not any(statuses[-300:])
