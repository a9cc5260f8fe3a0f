"""Rates of joints with encoders of positions only: from the dynamics, with stationary gains."""

import numpy as np
import pytest
from observed_mechanisms import observed, start_of, system_of
from support.compiled import compiled

import mbcasadi as mb
from mbcasadi.description.status import Flag
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.estimation import Encoders, velocity_observer
from mbcasadi.estimation.joints import rate_deviation
from mbcasadi.plant import Plant

NOISE = 1e-4  # rad, m
SWINGS = {
    "scara": lambda t: np.array([8 * np.sin(5 * t), 3 * np.cos(4 * t), 29.4, 0.1]),
    "four_bar": lambda t: np.array([0.6 * np.sin(5 * t)]),
    "planar_3rrr": lambda t: 0.5 * np.array([np.sin(5 * t), np.cos(4 * t), np.sin(3 * t)]),
}
MEASURED = {"scara": None, "four_bar": ("crank",), "planar_3rrr": None}


class Run:
    """A plant in MuJoCo, and the observer beside it; errors of q and v after 0.3 s."""

    def __init__(self, name, acceleration, *, dt=1e-3, duration=1.5, wrong=1.0):
        system = self.system = system_of(name)
        self.encoders = Encoders(joints=MEASURED[name], noise=NOISE, acceleration=acceleration)
        observer = velocity_observer(system, encoders=self.encoders, period=dt)
        places = [system.limits.joint_names.index(joint) for joint in self.joints]
        plant = Plant(mb.models.path(name), rigid=True, timestep=dt)
        plant.reset(start_of(system))
        rng, u, z, dv, dq = np.random.default_rng(0), np.zeros(system.nu), 0, [], []
        gaps, rates = [], []
        for k in range(round(duration / dt)):
            y = plant.q[places] + NOISE * rng.standard_normal(len(places))
            out = observed(observer, y=y, valid=1, u=wrong * u, dt=dt, z=z)
            z = out["z_next"]
            dq.append(out["q"] - plant.q)
            dv.append(out["v"] - plant.v)
            if system.nc:
                gaps.append(np.abs(np.array(system.constraint(out["q"]))).max())
                rate = np.array(system.constraint_rate(out["q"], out["v"])).ravel()
                rates.append(np.abs(rate).max())
            assert out["status"] == 0
            u = SWINGS[name](k * dt)
            plant.step(u)
        late = round(0.3 / dt)
        self.dq, self.dv = np.array(dq)[late:], np.array(dv)[late:]
        self.gap, self.gap_rate = max(gaps[late:], default=0.0), max(rates[late:], default=0.0)
        self.speed = np.abs(plant.v).max()

    @property
    def joints(self):
        """Names of the measured joints."""
        return self.encoders.joints or self.system.limits.joint_names


def rms(errors):
    return np.sqrt(np.mean(errors**2, axis=0))


def test_an_arm_has_the_error_that_its_gains_state():
    run = Run("scara", 0.3)
    bound = rate_deviation(run.encoders, 1e-3)
    assert run.speed > 0.5
    assert np.all(rms(run.dv) < 1.1 * bound)
    assert np.all(rms(run.dq) < NOISE)


def test_the_dynamics_let_it_be_quieter_than_positions_alone():
    """The same gains without the torques lag behind; gains that follow without them are noisy."""
    known, unknown = Run("scara", 0.3), Run("scara", 0.3, wrong=0.0)
    without_model = rate_deviation(Encoders(noise=NOISE, acceleration=30.0), 1e-3)
    assert rms(unknown.dv).max() > 5 * rms(known.dv).max()
    assert rms(known.dv).max() < without_model / 10


@pytest.mark.parametrize("name", ["four_bar", "planar_3rrr"])
@pytest.mark.every(2)
def test_loops_stay_closed_and_their_passive_joints_follow(name):
    run = Run(name, 3.0, dt=5e-4)
    assert run.gap < 1e-8
    assert run.gap_rate < 1e-4
    assert rms(run.dq).max() < 2 * NOISE
    assert rms(run.dv).max() < 0.02 * max(run.speed, 5.0)


def test_the_pose_is_found_from_one_encoder_at_the_start():
    system = system_of("four_bar")
    observer = velocity_observer(system, encoders=Encoders(joints=("crank",)))
    plant = Plant(mb.models.path("four_bar"), rigid=True)
    plant.reset(system.tree.q0 + np.array([0.5, 0.0, 0.0]))
    assert np.abs(plant.q - system.tree.q0).max() > 0.2
    out = {"z_next": 0}
    for _ in range(10):
        out = observed(observer, y=plant.q[0], valid=1, u=0, dt=1e-3, z=out["z_next"])
    assert out["q"] == pytest.approx(plant.q, abs=1e-3)
    assert out["v"] == pytest.approx(np.zeros(3), abs=1e-9)


@pytest.mark.parametrize("bad", ["y", "valid", "u", "dt"])
def test_what_is_missing_is_predicted(bad):
    system = system_of("scara")
    observer = velocity_observer(system, encoders=Encoders(noise=NOISE, acceleration=1.0))
    plant = Plant(mb.models.path("scara"), timestep=1e-3)
    plant.reset(start_of(system))
    z, u = 0, np.zeros(4)
    for k in range(400):
        inputs = {"y": plant.q, "valid": np.ones(4), "u": u, "dt": 1e-3}
        lost = 300 <= k < 320
        if lost:
            inputs[bad] = np.full(np.size(inputs[bad]), np.nan)
        out = observed(observer, **inputs, z=z)
        z = out["z_next"]
        assert out["status"] == (3 if lost else 0)
        assert out["flags"] == (Flag.GATED if lost and bad in ("y", "valid") else 0)
        assert out["v"] == pytest.approx(plant.v, abs=0.05 if k > 100 else 1.0)
        u = SWINGS["scara"](k * 1e-3)
        plant.step(u)


def test_a_broken_memory_is_a_new_start():
    system = system_of("four_bar")
    observer = velocity_observer(system)
    q = system.tree.q0
    out = observed(observer, y=q, valid=1, u=0, dt=1e-3, z=np.full(7, np.nan))
    assert out["status"] == 4
    assert out["q"] == pytest.approx(q, abs=1e-9)
    out = observed(observer, y=q, valid=1, u=0, dt=1e-3, z=np.array([*q, 1e19, -1e19, 1e19, 10]))
    assert out["status"] == 4
    assert all(np.all(np.isfinite(value)) for value in out.values())
    assert observed(observer, y=q, valid=1, u=0, dt=1e-3, z=out["z_next"])["status"] == 0


@pytest.mark.parametrize("name", ["scara", "four_bar"])
def test_generated_c_gives_the_same(name, tmp_path):
    system, rng = system_of(name), np.random.default_rng(7)
    observer = velocity_observer(system)
    in_c, z = compiled(observer, tmp_path), 0
    for _ in range(20):
        y = start_of(system) + 0.01 * rng.standard_normal(system.nq)
        inputs = {"y": y, "valid": rng.uniform(0.3, 1, system.nq), "dt": 1e-3, "z": z}
        inputs["u"] = rng.standard_normal(system.nu)
        ours, theirs = observed(observer, **inputs), observed(in_c, **inputs)
        for key, value in ours.items():
            assert theirs[key] == pytest.approx(value, rel=1e-8, abs=1e-9), key
        z = ours["z_next"]


def test_wrong_arguments_are_refused():
    with pytest.raises(ProblemError, match="coordinates of ball or free joints"):
        velocity_observer(system_of("quadruped"))
    with pytest.raises(ProblemError, match="do not determine its motion"):
        velocity_observer(system_of("scara"), encoders=Encoders(joints=("j1", "j2")))
    with pytest.raises(UnknownNameError, match="j9"):
        velocity_observer(system_of("scara"), encoders=Encoders(joints=("j9",)))
    with pytest.raises(ProblemError, match="rate_noise is given"):
        velocity_observer(system_of("scara"), encoders=Encoders(rate_noise=0.1))
